"""How many messages there are, and how many bytes they have: in a queue, and in all queues together; and the limits."""

from __future__ import annotations

from qmf.broker.nodes.settings import QueueLimits

_UNLIMITED = 1 << 62


class Depth:
    """Counts messages against limits.

    Attributes:
        limits: of what is counted here.
        count, size: number and bytes of the messages, including those that consumers have acquired.
        within: that of all queues together, which counts these messages as well, and those of open transactions;
            None where these have no limits.
    """

    def __init__(self, limits: QueueLimits, within: Depth | None = None) -> None:
        self.limits = limits
        self.within = within
        self.count = self.size = 0
        self._max_count = _UNLIMITED if limits.count is None else limits.count
        self._max_size = _UNLIMITED if limits.size is None else limits.size

    def __str__(self) -> str:
        """In the words of qpidd's refusals."""
        limits = (("count", self.limits.count), ("size", self.limits.size))
        most = ", ".join(f"{name}: {most}" for name, most in limits if most is not None)
        return f"current=[count: {self.count}, size: {self.size}], max=[{most}]"

    def fits(self, count: int, size: int) -> bool:
        """True if all limits leave room for so many messages, of so many bytes together."""
        return (
            self.count + count <= self._max_count
            and self.size + size <= self._max_size
            and (self.within is None or self.within.fits(count, size))
        )

    def fits_within(self, count: int, size: int) -> bool:
        """As `fits`, by the limits of `within` alone; negative numbers are what would go."""
        return self.within is None or self.within.fits(count, size)

    def add(self, count: int, size: int) -> None:
        """Messages have come or, with negative numbers, gone."""
        self.count += count
        self.size += size
        if self.within is not None:
            self.within.add(count, size)
