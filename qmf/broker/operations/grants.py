"""What was granted: the right to consume or browse a queue, and to publish one message. Made by `Operations` alone."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.broker.nodes.consumers import Browser, Consumer
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node


@attrs.frozen
class ConsumeGrant:
    """The right to take messages from a queue."""

    queue: Queue

    def begin(self, consumer: Consumer) -> None:
        """Let a consumer have messages from now on."""
        self.queue.delivery.add_consumer(consumer)


@attrs.frozen
class BrowseGrant:
    """The right to read the messages of a queue."""

    queue: Queue

    def begin(self, browser: Browser) -> None:
        """Show the messages to a browser from now on."""
        self.queue.delivery.add_browser(browser)


@attrs.frozen
class Publication:
    """A message that may be published, now or when its transaction ends.

    Attributes:
        node: to which; None if its address names nothing.
        message: which.
    """

    _registry: NodeRegistry
    node: Node | None
    message: Message

    def targets(self) -> Sequence[Queue]:
        """The queues that it would be put into now."""
        return self._registry.targets(self.node, self.message)

    def publish(self) -> None:
        """Route it."""
        self._registry.publish(self.node, self.message)
