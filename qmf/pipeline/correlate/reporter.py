"""Reports the alerts and statistics of a job on the bus: agent, ledger and publisher of one folder of tables."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from qmf.bus import Bus
from qmf.pipeline.correlate.alert_agent import AlertAgent
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.ledger import AlertLedger
from qmf.pipeline.correlate.publishing import MAX_AGE, AlertPublisher
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.stream import StepResult
from qmf.pipeline.correlate.table import StreamTable
from qmf.pipeline.lake.location import local_path

_FOLDER = "_told"


class CorrelationReporter:
    """Connects when it is made, until `close`. Belongs to the job's thread."""

    def __init__(
        self,
        url_or_bus: str | Bus,
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
        """Connect, and publish the alerts that are open.

        Args:
            url_or_bus: the broker's URL, or a bus.
            rules: that are evaluated.
            out: of the job; a folder of this machine, which holds the ledger.
            stop: ends waiting for the broker.
            lake, late: properties of the job.
            instance: last part of the agent's name.
            domain: QMF domain.
            max_age: ns, see `AlertPublisher`.

        Raises:
            QmfError: no connection; the file system failed.
        """
        folder = local_path(out) / _FOLDER
        self._ledger = AlertLedger(folder / "ledger.jsonl")
        try:
            self._agent = AlertAgent(
                url_or_bus,
                rules,
                self._ledger,
                lake=lake,
                late=late,
                instance=instance,
                domain=domain,
                state_dir=folder,
            )
        except BaseException:
            self._ledger.close()
            raise
        self._publisher = AlertPublisher(self._agent, self._ledger, stop, max_age=max_age)

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self._agent.name

    def catch_up(self, table: StreamTable) -> None:
        """Publish the alerts of committed steps that were not published before the job ended."""
        if not self._publisher.publish_unconfirmed():
            return
        for number in table.steps(self._ledger.step):
            if not self._publisher.publish_found(table.alerts(number), number):
                return

    def report_step(self, step: StepResult) -> None:
        """Publish the alerts and statistics of a step."""
        job = self._agent.job
        job.steps.inc()
        job.rows.inc(step.counts.rows)
        job.tooLate.inc(step.counts.too_late)
        job.misdated.inc(step.counts.misdated)
        job.stepTime.sample(round(step.seconds * 10**9))
        job.horizon = max(0, step.horizon)
        if step.alerts:
            self._publisher.publish_found(step.alerts, step.number)

    def report_batch(self, alerts: Sequence[AlertRow]) -> None:
        """Publish the alerts of a batch that were not published before."""
        if self._publisher.publish_unconfirmed() and self._publisher.publish_found(alerts):
            self._publisher.publish_deferred()

    def report_present(self) -> None:
        """Publish deferred alerts: the job has reached the present."""
        self._publisher.publish_deferred()

    def close(self) -> None:
        """Close the agent and the ledger."""
        self._agent.close()
        self._ledger.close()
