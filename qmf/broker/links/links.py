"""The two kinds of links that a client of the broker has: one feeds it from a queue, one takes in what it sends."""

from __future__ import annotations

import logging

from qmf.broker.nodes.exchanges import HeadersExchange
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import Node, NodeRegistry, RoutingResult
from qmf.bus.engine.events import Delivery, Settled
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

#: Messages that a sending client may have on the way per link. They are routed as they arrive, so that the window only
#: has to cover the round trip of a fast sender.
WINDOW = 500
#: Messages that a receiving client may hold unsettled per link, whatever credit it gives: they stay in our memory.
UNSETTLED = 5_000

_TAKEN = (Outcome.ACCEPTED, "", "")


class LinkRefused(Exception):
    """A link cannot be granted.

    Attributes:
        condition, description: what the peer is told.
    """

    def __init__(self, condition: str, description: str) -> None:
        self.condition = condition
        self.description = description
        super().__init__(condition, description)


class OutgoingLink:
    """A link to a client that receives; the `Consumer` of a queue.

    Attributes:
        queue: where the messages come from.
        link: the engine's.
        transfers: messages sent, repeated ones included.
    """

    def __init__(self, transport: AmqpTransport, link: Link, queue: Queue) -> None:
        self.queue = queue
        self.link = link
        self.transfers = 0
        self._transport = transport
        self._unsettled: dict[int, Message] = {}

    def ready(self) -> bool:
        """See `Consumer`."""
        return len(self._unsettled) < UNSETTLED and self._transport.ready(self.link)

    def take(self, message: Message) -> None:
        """See `Consumer`."""
        delivery_tag = self._transport.engine.send(self.link, message.data)
        self._transport.flush_soon()
        self.transfers += 1
        if not self.link.settled:
            self._unsettled[delivery_tag] = message

    def held(self) -> tuple[int, int]:
        """See `Consumer`."""
        return len(self._unsettled), sum(len(message.data) for message in self._unsettled.values())

    def settled(self, event: Settled) -> None:
        """The client decided about a message. One that it gave back waits again; one that it could not read is gone."""
        message = self._unsettled.pop(event.delivery_tag, None)
        if message is not None and event.outcome in (Outcome.RELEASED, Outcome.MODIFIED):
            self.queue.put_back([message])
        else:
            if message is not None and event.outcome is Outcome.REJECTED:
                self.queue.counts.rejected += 1
            self.queue.dispatch()

    def end(self) -> None:
        """The link is gone; others may take what it held."""
        self.queue.remove(self)
        self.queue.put_back(self._unsettled.values())
        self._unsettled.clear()


class IncomingLink:
    """A link from a client that sends.

    Attributes:
        link: the engine's.
        transfers: messages that came.
    """

    def __init__(
        self, transport: AmqpTransport, link: Link, registry: NodeRegistry, target: Node | None, *, relay: bool
    ) -> None:
        """Args:

        target: where everything goes; None when each message says so.
        relay: each message says so in its `to`.
        """
        self.link = link
        self.transfers = 0
        self._transport = transport
        self._registry = registry
        self._target = target
        self._relay = relay
        #: Messages that the window is open for since it was opened last.
        self._paid = 0
        transport.engine.flow(link, WINDOW)

    def arrived(self, event: Delivery) -> None:
        """Route a message, answer for it, and give credit for the next ones."""
        outcome, condition, description = route(self._registry, event.data, self._target, relay=self._relay)
        if event.delivery_tag is not None:
            self._transport.engine.settle(self.link, event.delivery_tag, outcome, condition, description)
        self.transfers += 1
        used = self.transfers - self._paid
        if used >= WINDOW // 2:
            self._transport.engine.flow(self.link, used)
            self._paid = self.transfers
        self._transport.flush_soon()


def route(registry: NodeRegistry, data: bytes, target: Node | None, *, relay: bool) -> tuple[Outcome, str, str]:
    """Put a message where it belongs.

    Args:
        registry: of the broker.
        data: the encoded message.
        target: where it goes unless it says so.
        relay: it may say so in its `to`.

    Returns:
        what its sender is told: outcome, condition and description.
    """
    try:
        message = read_message(data, registry.clock())
        if relay and message.to is not None:
            target = registry.find(message.to)
        if isinstance(target, HeadersExchange):
            _ = message.headers  # read now: what is broken is refused
    except DecodeError as error:
        registry.counters.received += 1
        registry.counters.rejected += 1
        log.info("rejected a message: %s", error)
        return Outcome.REJECTED, "amqp:decode-error", str(error)
    if registry.publish(target, message) is RoutingResult.FULL:
        name = message.to if relay else getattr(target, "name", "")
        return Outcome.REJECTED, "amqp:resource-limit-exceeded", f"queue {name!r} is full"
    return _TAKEN
