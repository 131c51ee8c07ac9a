"""Reports the alerts and statistics of a job on the bus: agent and ledger of one folder of tables."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from qmf.bus import Bus
from qmf.pipeline.correlate.alert_agent import AlertAgent
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.ledger import AlertLedger
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.steps import StepResult
from qmf.pipeline.lake.location import local_path

_FOLDER = "_told"

#: Alerts that are published between two entries of the ledger.
CHUNK = 500


class AlertSink(Protocol):
    """Sends alerts to the bus, see `AlertAgent`."""

    def publish(self, alerts: Sequence[AlertRow], stop: threading.Event, *, again: bool = False) -> bool:
        """Publish some alerts, and wait until the broker has confirmed them."""
        ...


def publish_once(sink: AlertSink, ledger: AlertLedger, alerts: Sequence[AlertRow], stop: threading.Event) -> bool:
    """Publish alerts that were not published before; first, and with a mark, those that were not confirmed.

    False where `stop` ended the waiting for the broker: unconfirmed alerts are published again at the next start.
    """
    for again in (True, False):
        own = list(ledger.unconfirmed.values()) if again else [alert for alert in alerts if not ledger.is_done(alert)]
        for start in range(0, len(own), CHUNK):
            chunk = own[start : start + CHUNK]
            if not again:
                ledger.begin(chunk)
            if not sink.publish(chunk, stop, again=again):
                return False
            ledger.confirm(chunk)
    return True


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
        """Connect, and publish the alerts that are open, as of `AlertAgent`.

        The ledger is in the folder of the tables; `stop` ends waiting for the broker.

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
            )  # fmt: skip
        except BaseException:
            self._ledger.close()
            raise
        self._stop = stop
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
        """As `publish_once`; may be called from any thread."""
        with self._lock:
            return publish_once(self._agent, self._ledger, alerts, self._stop)

    def close(self) -> None:
        """Close the agent and the ledger."""
        self._agent.close()
        self._ledger.close()
