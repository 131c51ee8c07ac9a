"""How far a route between brokers is behind: how many messages wait at its source, and how long the oldest has. No I/O.

Nobody knows when each message came, so this is found from measurements: what had come to the source at one of them has
left it when as much has passed. The oldest message that waits came after the last measurement of which all has passed.
"""

from __future__ import annotations

from collections import deque

#: Measurements that are kept: of more, every second one is forgotten.
MOST = 64


class RouteLag:
    """The measurements of one route.

    Attributes:
        waiting: messages that waited at the last one; None before the first, and when the measure is lost.
    """

    def __init__(self) -> None:
        self.waiting: int | None = None
        #: Times, and how many messages had come to the source until then; the first one is the latest that has passed.
        self._marks: deque[tuple[float, int]] = deque()

    def measure(self, at: float, come: int, waiting: int) -> None:
        """A measurement.

        Args:
            at: its time, in seconds of any clock.
            come: messages that had come to the source until then, by any count that goes on.
            waiting: those of them that waited.
        """
        self.waiting = waiting
        if not waiting:
            self._marks.clear()
        self._marks.append((at, come))
        if len(self._marks) > MOST:
            first, *others = self._marks
            self._marks = deque((first, *others[1::2]))

    def forget(self) -> None:
        """What was counted does not go on: the connection to the source is another one."""
        self.waiting = None
        self._marks.clear()

    def behind(self, now: float, passed: int) -> float:
        """Seconds that the oldest message has waited, rounded up to the measurement before it came; 0 if none waits.

        Args:
            now: the time, by the clock of the measurements.
            passed: messages that have left the source, as `come` counts them.
        """
        marks = self._marks
        while len(marks) > 1 and marks[1][1] <= passed:
            marks.popleft()
        return max(0.0, now - marks[0][0]) if self.waiting and marks else 0.0


class RouteRate:
    """How fast a route transfers."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def measure(self, at: float, transfers: int) -> float:
        """Messages a second since the last call; 0 at the first one.

        Args:
            at: the time, in seconds of any clock.
            transfers: messages that it has transferred until then.
        """
        last, self._last = self._last, (at, transfers)
        if last is None or at <= last[0]:
            return 0.0
        return max(0, transfers - last[1]) / (at - last[0])
