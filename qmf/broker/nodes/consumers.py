"""What receives the messages of a queue, seen from the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message


class Consumer(Protocol):
    """A receiver of a queue's messages.

    What is delivered is acquired: the consumer calls `Queue.accept`, `release` or `reject` with it later.

    Attributes:
        selector: the messages that it takes; None for all.
    """

    selector: Callable[[Message], bool] | None

    @property
    def presettled(self) -> bool:
        """True when a message leaves the queue as it is delivered. Does not change."""

    def ready(self) -> bool:
        """True when `deliver` may be called."""

    def deliver(self, entry: Entry) -> None:
        """Send the message to the receiver."""


class Browser(Protocol):
    """Reads the messages of a queue and leaves them there. It calls `Queue.on_browsed` for each."""

    def on_stored(self, entry: Entry) -> None:
        """A message waits in the queue now."""


class AlternateExchange(Protocol):
    """Where the messages of a queue go that are rejected, dropped or orphaned."""

    @property
    def name(self) -> str:
        """Name of the exchange."""

    def reroute(self, message: Message) -> bool:
        """Publish a message; False if no queue has it."""
