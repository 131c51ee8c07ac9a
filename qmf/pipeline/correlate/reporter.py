"""Reports the alerts and statistics of a job on the bus: agent, ledger and publisher of one folder of tables."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from qmf.bus import Bus
from qmf.pipeline.correlate.alert_agent import AlertAgent
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.ledger import AlertLedger
from qmf.pipeline.correlate.publishing import AlertPublisher
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.steps import StepResult
from qmf.pipeline.lake.location import local_path

_FOLDER = "_told"


class CorrelationReporter:
    """Connects when it is made, until `close`."""

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
        self._publisher = AlertPublisher(self._agent, self._ledger, stop)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self._agent.name

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Other rules are evaluated from now on."""
        with self._lock:
            self._agent.replace_rules(rules)

    def report_step(self, step: StepResult) -> None:
        """Publish the statistics of a step."""
        job = self._agent.job
        with self._lock:
            job.steps.inc()
            job.rows.inc(step.counts.rows)
            job.tooLate.inc(step.counts.too_late)
            job.misdated.inc(step.counts.misdated)
            job.stepTime.sample(round(step.seconds * 10**9))
            job.horizon = max(0, step.horizon)

    def publish(self, alerts: Sequence[AlertRow]) -> bool:
        """Publish alerts that were not published before, and wait for the broker; may be called from any thread.

        Returns:
            False where it was stopped.
        """
        with self._lock:
            return self._publisher.publish(alerts)

    def close(self) -> None:
        """Close the agent and the ledger."""
        self._agent.close()
        self._ledger.close()
