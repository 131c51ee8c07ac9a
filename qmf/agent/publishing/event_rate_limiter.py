"""The rate limit of events: a fault in a loop must not fill queues, logs and screens.

Events are counted by class and severity in windows of time. Those beyond the limit of a window are suppressed, never
delayed or reordered; the first event after them carries their number.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import attrs

from qmf.errors import CallerError
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Events of one class and severity in a window. Nobody reads a hundred a second for ten seconds, and a program that
#: works does not raise them; at well under 1 kB each they are no burden for a broker. The buffer for outages holds ten
#: of these.
COUNT = 1000

#: Seconds of a window: long enough for the burst after a real fault, and short enough to report soon how it continues.
SECONDS = 10.0


def _positive(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 0 < value < math.inf:
        raise CallerError(f"{attribute.name!r} of a limit must be a positive number, not {value!r}")


@attrs.frozen
class EventLimit:
    """Limit of the events of one class and severity.

    Attributes:
        count: events in a window.
        seconds: length of a window; it begins with the first event after the previous window.
    """

    count: int = attrs.field(default=COUNT, validator=_positive)
    seconds: float = attrs.field(default=SECONDS, validator=_positive)


class RateWindow:
    """Counts the events of one class and severity. Not for use by several threads at once."""

    __slots__ = ("_begin", "_count", "_key", "_limit", "_limiter", "_severity", "_suppressed")

    def __init__(self, limiter: EventRateLimiter, limit: EventLimit, key: ClassKey, severity: int) -> None:
        self._limiter = limiter
        self._limit = limit
        self._key = key
        self._severity = severity
        self._begin = -math.inf
        self._count = 0
        self._suppressed = 0

    def is_full(self, now: float) -> bool:
        """Whether an event would be suppressed; any thread, as a hint."""
        return self._count >= self._limit.count and now - self._begin < self._limit.seconds

    def admit(self, now: float) -> int | None:
        """Decide about one event; see `EventRateLimiter.admit`."""
        suppressed = 0
        if now - self._begin >= self._limit.seconds:
            suppressed, self._suppressed = self._suppressed, 0
            self._begin, self._count = now, 0
            if suppressed:
                _log.warning("%d events %s of severity %d were suppressed", suppressed, self._key, self._severity)
        if self._count >= self._limit.count:
            if not self._suppressed:
                _log.warning("too many events %s of severity %d: suppressing further ones", self._key, self._severity)
            self._suppressed += 1
            self._limiter.suppressed += 1
            return None
        self._count += 1
        return suppressed


class EventRateLimiter:
    """Limits the rate of events. Not for use by several threads at once."""

    def __init__(self, limit: EventLimit | None) -> None:
        self._limit = limit
        self._windows: dict[tuple[ClassKey, int], RateWindow] = {}
        #: Events suppressed up to now.
        self.suppressed = 0

    def window(self, key: ClassKey, severity: int) -> RateWindow | None:
        """The window of a class and severity, or None without a limit."""
        if self._limit is None:
            return None
        window = self._windows.get((key, severity))
        if window is None:
            window = self._windows[key, severity] = RateWindow(self, self._limit, key, severity)
        return window

    def admit(self, key: ClassKey, severity: int, now: float) -> int | None:
        """Decide about one event.

        Args:
            key, severity: of the event.
            now: seconds of a monotonic clock.

        Returns:
            the number of such events that were suppressed before it, or None if it is suppressed, too.
        """
        window = self.window(key, severity)
        return 0 if window is None else window.admit(now)
