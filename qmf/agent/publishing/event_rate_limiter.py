"""Holding back floods of events: a fault in a loop shall not fill queues, logs and people's screens.

Events are counted by class and severity in windows of time. Those beyond the limit of a window are dropped, never put
off or reordered; the first one after it carries their number.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import attrs

from qmf.errors import CallerError
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Events of one class and severity in a window. Nobody reads a hundred a second for ten seconds, and no program that is
#: well raises them; at well under 1 kB each it is still no burden for a broker. The buffer for outages holds ten of
#: these.
COUNT = 1000

#: Seconds of a window: long enough for the burst that follows a real fault, and short enough to hear soon how it went
#: on.
SECONDS = 10.0


def _positive(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 0 < value < math.inf:
        raise CallerError(f"{attribute.name!r} of a limit must be a positive number, not {value!r}")


@attrs.frozen
class EventLimit:
    """How many events of one class and severity go out.

    Attributes:
        count: events in a window.
        seconds: length of a window; it begins with the first event after the one before.
    """

    count: int = attrs.field(default=COUNT, validator=_positive)
    seconds: float = attrs.field(default=SECONDS, validator=_positive)


class RateWindow:
    """Counts the events of one class and severity. Not for use by several threads at once."""

    __slots__ = ("_begin", "_count", "_held", "_key", "_limit", "_limiter", "_severity")

    def __init__(self, limiter: EventRateLimiter, limit: EventLimit, key: ClassKey, severity: int) -> None:
        self._limiter = limiter
        self._limit = limit
        self._key = key
        self._severity = severity
        self._begin = -math.inf
        self._count = 0
        self._held = 0

    def admit(self, now: float) -> int | None:
        """Decide about one event; see `EventRateLimiter.admit`."""
        held = 0
        if now - self._begin >= self._limit.seconds:
            held, self._held = self._held, 0
            self._begin, self._count = now, 0
            if held:
                _log.warning("%d events %s of severity %d were held back", held, self._key, self._severity)
        if self._count >= self._limit.count:
            if not self._held:
                _log.warning("too many events %s of severity %d: holding back further ones", self._key, self._severity)
            self._held += 1
            self._limiter.suppressed += 1
            return None
        self._count += 1
        return held


class EventRateLimiter:
    """Decides which events pass. Not for use by several threads at once."""

    def __init__(self, limit: EventLimit | None) -> None:
        self._limit = limit
        self._windows: dict[tuple[ClassKey, int], RateWindow] = {}
        #: Events held back up to now.
        self.suppressed = 0

    def window(self, key: ClassKey, severity: int) -> RateWindow | None:
        """What counts a kind of events, or None where all pass."""
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
            now: seconds that only grow.

        Returns:
            how many of its kind were held back before it, or None if it is held back, too.
        """
        window = self.window(key, severity)
        return 0 if window is None else window.admit(now)
