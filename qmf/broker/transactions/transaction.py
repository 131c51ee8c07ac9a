"""One transaction: the messages sent and the outcomes given in it, until it is committed or rolled back.

Knows nodes and messages, not links: what happens to a delivery at the end is decided by its link (`Acquisition`).
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import attrs

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import Node, NodeRegistry


class Acquisition(Protocol):
    """A delivery with an outcome that takes effect with a transaction."""

    def commit(self) -> None:
        """The outcome takes effect."""

    def roll_back(self) -> None:
        """The delivery is as it was before the outcome."""


class QueueFull(Exception):
    """A transaction cannot be committed, because a queue has no room for its messages.

    Attributes:
        name: of the queue.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


@attrs.define(eq=False)
class Transaction:
    """A transaction that has not ended.

    Attributes:
        id: chosen by the broker; unique in its connection.
        sent: messages, with the nodes that they were sent to.
        acquisitions: deliveries with an outcome.
    """

    id: bytes
    sent: list[tuple[Node | None, Message]] = attrs.field(factory=list)
    acquisitions: list[Acquisition] = attrs.field(factory=list)

    def commit(self, registry: NodeRegistry) -> None:
        """Let everything take effect.

        Raises:
            QueueFull: a queue has no room; nothing has taken effect.
        """
        counts: Counter[Queue] = Counter()
        sizes: Counter[Queue] = Counter()
        for node, message in self.sent:
            for queue in registry.targets(node, message):
                counts[queue] += 1
                sizes[queue] += len(message.data)
        for queue, count in counts.items():
            if not queue.has_room(count, sizes[queue]):
                raise QueueFull(queue.name)
        for acquisition in self.acquisitions:
            acquisition.commit()
        for node, message in self.sent:
            for queue in registry.targets(node, message):
                queue.counters.transactional_enqueues += 1
                queue.counters.transactional_enqueued_bytes += len(message.data)
            registry.publish(node, message)

    def roll_back(self) -> None:
        """Let nothing take effect."""
        for acquisition in self.acquisitions:
            acquisition.roll_back()
