"""Which alerts are told to the bus, and when: each that was found, once, unless it was over long before it was found.

A job that takes up an old lake finds incidents of the past. Those that ended are in the table, and nobody is woken for
them; those that last are told when the job has come to the present.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.correlate.ledger import AlertLedger

#: ns after which an incident is one of the past.
MAX_AGE = 3600 * 10**9

#: Events told between two entries of the ledger.
BATCH = 500


class AlertSink(Protocol):
    """Who tells: see `AlertAgent`."""

    def tell(self, alerts: Sequence[Alert], stop: threading.Event, *, again: bool = False) -> bool:
        """Tell some alerts, and wait until they have arrived."""
        ...


class AlertPublisher:
    """Decides; the ledger remembers."""

    def __init__(
        self,
        voice: AlertSink,
        ledger: AlertLedger,
        stop: threading.Event,
        *,
        max_age: int = MAX_AGE,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Make one.

        Args:
            voice: tells.
            ledger: remembers.
            stop: gives up waiting for the broker; what is in doubt then is told again at the next start.
            max_age: ns after which an incident is one of the past.
            clock: ns since 1970.
        """
        self._voice = voice
        self._ledger = ledger
        self._stop = stop
        self._max_age = max_age
        self._clock = clock

    def resume(self) -> bool:
        """Tell what is in doubt; first thing after a start.

        Returns:
            False where it was stopped.
        """
        doubtful = list(self._ledger.doubtful.values())
        return self._tell(doubtful, again=True) if doubtful else True

    def step(self, alerts: Sequence[Alert], number: int | None = None) -> bool:
        """Deal with what a step, or a batch, found.

        Args:
            alerts: in order.
            number: of the step; None for a batch.

        Returns:
            False where it was stopped.
        """
        fresh = [alert for alert in alerts if not self._ledger.is_done(alert)]
        now: list[Alert] = []
        for alert in fresh:
            if alert.raised and alert.at_ns < self._clock() - self._max_age:
                self._ledger.hold([alert])
            elif not alert.raised and alert.alert_id in self._ledger.held:
                self._ledger.skip([self._ledger.held[alert.alert_id], alert])
            else:
                now.append(alert)
        if not self._tell(now):
            return False
        if number is not None:
            self._ledger.finish(number)
        return True

    def present(self) -> bool:
        """The job has come to the present: incidents of the past that last are told.

        Returns:
            False where it was stopped.
        """
        return self._tell(list(self._ledger.held.values()))

    def _tell(self, alerts: Sequence[Alert], *, again: bool = False) -> bool:
        for start in range(0, len(alerts), BATCH):
            part = alerts[start : start + BATCH]
            if not again:
                self._ledger.begin(part)
            if not self._voice.tell(part, self._stop, again=again):
                return False
            self._ledger.end(part)
        return True
