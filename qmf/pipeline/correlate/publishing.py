"""Publishes alerts on the bus, each once; `notifying` decides which, and when."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.ledger import AlertLedger

#: Alerts that are published between two entries of the ledger.
CHUNK = 500


class AlertSink(Protocol):
    """Sends alerts to the bus, see `AlertAgent`."""

    def publish(self, alerts: Sequence[AlertRow], stop: threading.Event, *, again: bool = False) -> bool:
        """Publish some alerts, and wait until the broker has confirmed them."""
        ...


class AlertPublisher:
    """Records in the ledger what is published."""

    def __init__(self, sink: AlertSink, ledger: AlertLedger, stop: threading.Event) -> None:
        """Make a publisher.

        Args:
            sink: sends the alerts.
            ledger: of published alerts.
            stop: ends waiting for the broker; unconfirmed alerts are published again at the next start.
        """
        self._sink = sink
        self._ledger = ledger
        self._stop = stop

    def publish(self, alerts: Sequence[AlertRow]) -> bool:
        """Publish alerts that were not published before; first, and with a mark, those that were not confirmed.

        Args:
            alerts: in order.

        Returns:
            False where it was stopped.
        """
        unconfirmed = list(self._ledger.unconfirmed.values())
        if unconfirmed and not self._publish(unconfirmed, again=True):
            return False
        return self._publish([alert for alert in alerts if not self._ledger.is_done(alert)])

    def _publish(self, alerts: Sequence[AlertRow], *, again: bool = False) -> bool:
        for start in range(0, len(alerts), CHUNK):
            chunk = alerts[start : start + CHUNK]
            if not again:
                self._ledger.begin(chunk)
            if not self._sink.publish(chunk, self._stop, again=again):
                return False
            self._ledger.confirm(chunk)
        return True
