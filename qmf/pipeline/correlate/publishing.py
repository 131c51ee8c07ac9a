"""Which alerts are published on the bus, and when: each once, unless it was cleared long before it was found.

A job that starts with an old lake finds incidents of the past. Alerts that were cleared since are in the table only;
those that are still open are published when the job has reached the present.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.ledger import AlertLedger

#: ns after which an incident is one of the past.
MAX_AGE = 3600 * 10**9

#: Alerts that are published between two entries of the ledger.
CHUNK = 500


class AlertSink(Protocol):
    """Sends alerts to the bus, see `AlertAgent`."""

    def publish(self, alerts: Sequence[AlertRow], stop: threading.Event, *, again: bool = False) -> bool:
        """Publish some alerts, and wait until the broker has confirmed them."""
        ...


class AlertPublisher:
    """Decides what is published when, and records it in the ledger."""

    def __init__(
        self,
        sink: AlertSink,
        ledger: AlertLedger,
        stop: threading.Event,
        *,
        max_age: int = MAX_AGE,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Make a publisher.

        Args:
            sink: sends the alerts.
            ledger: of published alerts.
            stop: ends waiting for the broker; unconfirmed alerts are published again at the next start.
            max_age: ns after which an incident is one of the past.
            clock: ns since 1970.
        """
        self._sink = sink
        self._ledger = ledger
        self._stop = stop
        self._max_age = max_age
        self._clock = clock

    def publish_unconfirmed(self) -> bool:
        """Publish unconfirmed alerts again; the first action after a start.

        Returns:
            False where it was stopped.
        """
        unconfirmed = list(self._ledger.unconfirmed.values())
        return self._publish(unconfirmed, again=True) if unconfirmed else True

    def publish_found(self, alerts: Sequence[AlertRow], step: int | None = None) -> bool:
        """Publish, defer or skip the alerts that a step or a batch found.

        Args:
            alerts: in order.
            step: its number; None for a batch.

        Returns:
            False where it was stopped.
        """
        now: list[AlertRow] = []
        for alert in alerts:
            if self._ledger.is_done(alert):
                continue
            if alert.raised and alert.at_ns < self._clock() - self._max_age:
                self._ledger.defer([alert])
            elif not alert.raised and alert.alert_id in self._ledger.deferred:
                self._ledger.skip([self._ledger.deferred[alert.alert_id], alert])
            else:
                now.append(alert)
        if not self._publish(now):
            return False
        if step is not None:
            self._ledger.finish_step(step)
        return True

    def publish_deferred(self) -> bool:
        """Publish alerts of the past that are still open; called when the job has reached the present.

        Returns:
            False where it was stopped.
        """
        return self._publish(list(self._ledger.deferred.values()))

    def _publish(self, alerts: Sequence[AlertRow], *, again: bool = False) -> bool:
        for start in range(0, len(alerts), CHUNK):
            chunk = alerts[start : start + CHUNK]
            if not again:
                self._ledger.begin(chunk)
            if not self._sink.publish(chunk, self._stop, again=again):
                return False
            self._ledger.confirm(chunk)
        return True
