"""A job's alerts on the bus: agent, ledger and teller together, for one folder of tables."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmf.pipeline.correlate.alert_agent import AlertAgent
from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.correlate.ledger import AlertLedger
from qmf.pipeline.correlate.publishing import MAX_AGE, AlertPublisher
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.spark import catalog

if TYPE_CHECKING:
    from qmf.pipeline.correlate.stream import StepResult
    from qmf.pipeline.correlate.table import StreamTable

_FOLDER = "_told"


class CorrelationReporter:
    """From its making, which connects, to `close`. Belongs to the job's thread."""

    def __init__(
        self,
        url: str,
        rules: Sequence[Rule],
        out: str,
        stop: threading.Event,
        *,
        lake: str,
        late: int,
        instance: str,
        domain: str = "default",
        max_age: int = MAX_AGE,
    ) -> None:
        """Connect, and show what is open.

        Args:
            url: of the broker.
            rules: that are followed.
            out: of the job; a folder of this machine, which remembers what was told.
            stop: gives up waiting for the broker.
            lake, late: what is told of the job.
            instance: last part of the agent's name.
            domain: QMF domain.
            max_age: ns, see `AlertPublisher`.

        Raises:
            QmfError: no connection; the file system refused.
        """
        folder = catalog.local_path(out) / _FOLDER
        self._ledger = AlertLedger(folder / "ledger.jsonl")
        self._agent = AlertAgent(
            url,
            rules,
            self._ledger,
            lake=lake,
            late=late,
            instance=instance,
            domain=domain,
            state_dir=folder,
        )
        self._teller = AlertPublisher(self._agent, self._ledger, stop, max_age=max_age)

    @property
    def name(self) -> str:
        """Of the agent."""
        return self._agent.name

    def catch_up(self, table: StreamTable) -> None:
        """Tell what was committed, and not told before the job ended."""
        if not self._teller.resume():
            return
        for number in table.steps(self._ledger.step):
            if not self._teller.step(table.alerts(number), number):
                return

    def step(self, step: StepResult) -> None:
        """Tell what a step found."""
        job = self._agent.job
        job.steps.inc()
        job.rows.inc(step.counts.rows)
        job.tooLate.inc(step.counts.too_late)
        job.misdated.inc(step.counts.misdated)
        job.stepTime.sample(round(step.seconds * 10**9))
        job.horizon = max(0, step.horizon)
        if step.alerts:
            self._teller.step(step.alerts, step.number)

    def batch(self, alerts: Sequence[Alert]) -> None:
        """Tell what a batch found and no one before."""
        if self._teller.resume() and self._teller.step(alerts):
            self._teller.present()

    def present(self) -> None:
        """The job has come to the present."""
        self._teller.present()

    def close(self) -> None:
        """Say goodbye."""
        self._agent.close()
        self._ledger.close()
