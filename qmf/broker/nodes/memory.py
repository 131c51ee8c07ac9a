"""What all queues of a broker hold together, against the limits of the broker."""

from __future__ import annotations

from qmf.broker.nodes.settings import QueueLimits


class MemoryUse:
    """Counts the messages in memory: those in queues, and those of open transactions.

    Attributes:
        limits: of the broker.
        count, size: number and bytes of the messages.
    """

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self.count = self.size = 0

    def __str__(self) -> str:
        most = [
            f"{name}: {most}"
            for name, most in (("count", self.limits.count), ("size", self.limits.size))
            if most is not None
        ]
        return f"current=[count: {self.count}, size: {self.size}], max=[{', '.join(most)}]"

    def fits(self, count: int, size: int) -> bool:
        """True if the limits leave room for so many messages, of so many bytes together."""
        limits = self.limits
        return (limits.count is None or self.count + count <= limits.count) and (
            limits.size is None or self.size + size <= limits.size
        )

    def add(self, count: int, size: int) -> None:
        """Messages have come or, with negative numbers, gone."""
        self.count += count
        self.size += size
