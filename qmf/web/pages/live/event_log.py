"""The events received lately, and how many came per minute."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator

import attrs

from qmf.schema import Severity
from qmf.views.events import EventView, LostEvents

#: Events that are kept.
MOST_EVENTS = 10_000
#: Minutes for which events are counted.
MINUTES = 60


@attrs.frozen
class LoggedEvent:
    """An event with its number in the log; the first has 1."""

    number: int
    event: EventView


class EventLog:
    """The latest events, the oldest first; and how many came in each of the last minutes."""

    def __init__(self) -> None:
        self._events: collections.deque[LoggedEvent] = collections.deque(maxlen=MOST_EVENTS)
        self._counts: dict[int, list[int]] = {}
        self.total = 0
        """The number of the newest entry: how many events were received, and how often some did not arrive."""
        self.gaps = 0
        """How often events did not arrive."""
        self.lost = 0
        """How many events did not arrive."""
        self.dropped = 0
        """How many events were dropped before they got here, because too many came at once."""

    def add(self, event: EventView, now: float) -> None:
        """Take an event that was received at `now`, in seconds since 1970; or `LostEvents`, which were not."""
        self.total += 1
        self._events.append(LoggedEvent(self.total, event))
        if isinstance(event, LostEvents):
            self.gaps += 1
            self.lost += event.count
            return
        minute = int(now // 60)
        counts = self._counts.get(minute)
        if counts is None:
            counts = self._counts[minute] = [0] * len(Severity)
            for old in [key for key in self._counts if key <= minute - MINUTES]:
                del self._counts[old]
        counts[min(max(event.severity, 0), len(Severity) - 1)] += 1

    def newest_first(self) -> Iterator[LoggedEvent]:
        """The events, the newest first."""
        return reversed(self._events)

    def since(self, number: int) -> Iterator[LoggedEvent]:
        """The events after the one with this number, the oldest first."""
        fresh = self.total - number
        if fresh <= 0:
            return iter(())
        return itertools.islice(self._events, max(0, len(self._events) - fresh), None)

    def per_minute(self, now: float) -> list[int]:
        """How many events came in each of the last `MINUTES` minutes, the current one last."""
        current = int(now // 60)
        return [sum(self._counts.get(minute, ())) for minute in range(current - MINUTES + 1, current + 1)]

    def by_severity(self, now: float) -> dict[Severity, int]:
        """How many events of each severity came in the last `MINUTES` minutes."""
        current = int(now // 60)
        found = [counts for minute, counts in self._counts.items() if minute > current - MINUTES]
        return {item: sum(counts[item] for counts in found) for item in Severity}
