"""When samples are due. Reads no clock: the time is an argument, in seconds of a monotonic clock."""

from __future__ import annotations


class SamplingSchedule:
    """When the next sample is due, at an even interval.

    Attributes:
        interval: seconds from sample to sample.
        due: when the next sample is due.
    """

    def __init__(self, interval: float, now: float) -> None:
        self.interval = interval
        self.due = now + interval

    def begin(self, now: float) -> float:
        """Begin the sample that is due, and compute when the next one is due.

        Small delays do not add up: the next sample is due one interval after this one *was* due. Samples that were
        missed are skipped.

        Returns:
            the delay: seconds since the sample was due, 0 or more.
        """
        delay = max(0.0, now - self.due)
        self.due = (self.due if delay < self.interval else now) + self.interval
        return delay

    def set_interval(self, interval: float, now: float) -> None:
        """Continue with another interval, counted from now."""
        self.interval = interval
        self.due = now + interval
