"""When samples are due. Holds no clock: the time is an argument, in seconds of a clock that only goes forward."""

from __future__ import annotations


class Beat:
    """An even beat.

    Attributes:
        interval: seconds from beat to beat.
        due: when the next one is due.
    """

    def __init__(self, interval: float, now: float) -> None:
        self.interval = interval
        self.due = now + interval

    def began(self, now: float) -> float:
        """The work of the beat that was due begins; the next one becomes due.

        A little lateness does not add up: the next is due an interval after this one *was* due. Beats that were missed
        altogether are not made up for.

        Returns:
            seconds since it was due, 0 or more.
        """
        delay = max(0.0, now - self.due)
        self.due = (self.due if delay < self.interval else now) + self.interval
        return delay

    def change(self, interval: float, now: float) -> None:
        """Go on with another interval, from now."""
        self.interval = interval
        self.due = now + interval
