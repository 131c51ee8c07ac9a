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


class _Window:
    __slots__ = ("begin", "count", "held")

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.count = 0
        self.held = 0


class FloodGate:
    """Decides which events pass. Not for use by several threads at once."""

    def __init__(self, limit: EventLimit | None) -> None:
        self._limit = limit
        self._windows: dict[tuple[ClassKey, int], _Window] = {}
        #: Events held back up to now.
        self.suppressed = 0

    def admit(self, key: ClassKey, severity: int, now: float) -> int | None:
        """Decide about one event.

        Args:
            key, severity: of the event.
            now: seconds that only grow.

        Returns:
            how many of its kind were held back before it, or None if it is held back, too.
        """
        if self._limit is None:
            return 0
        window = self._windows.get((key, severity))
        if window is None:
            window = self._windows[key, severity] = _Window(now)
        held = 0
        if now - window.begin >= self._limit.seconds:
            held, window.held = window.held, 0
            window.begin, window.count = now, 0
            if held:
                _log.warning("%d events %s of severity %d were held back", held, key, severity)
        if window.count >= self._limit.count:
            if not window.held:
                _log.warning("too many events %s of severity %d: holding back further ones", key, severity)
            window.held += 1
            self.suppressed += 1
            return None
        window.count += 1
        return held
