"""Brokers that relay to each other, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from broker.federation.federated import FederatedBroker
from broker.raw_clients import Client, connect
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.nodes.observed_definitions import MessageRelay
from qmf.broker.nodes.relay_addresses import RELAY_REASON
from qmf.broker.nodes.sections import read_annotation
from qmf.broker.operations.principal import BROKER
from qmf.broker.relay.options import RelayOptions
from qmf.bus.engine.events import AcceptedBatch, CreditChanged, OutcomeReceived
from qmf.bus.engine.values import Terminus
from qmf.codec import Message, Section, encode_message

#: The domain of the second broker.
DOMAIN = "office.example"
#: An address there.
ORDERS = f"orders@{DOMAIN}"
LETTERS = "relay.dead-letters"
#: Nothing listens there.
NOWHERE = "amqp://127.0.0.1:1"


class RelayingBroker(FederatedBroker):
    """A broker that relays, and tries again at once."""

    def relay(self, name: str = DOMAIN, **properties: object) -> MessageRelay:
        """Create a relay."""
        self.operations.forwarding.create(BROKER, "relay", name, properties, strict=True)
        return self.found_relay(name)

    def found_relay(self, name: str = DOMAIN) -> MessageRelay:
        """A relay."""
        found: MessageRelay = self.operations.forwarding.types["relay"].find(name)
        return found

    async def has(self, name: str, count: int) -> None:
        """Wait until a queue has so many messages."""
        await until(lambda: self.depth(name) == count, lambda: f"{count} in {name}: {self.depth(name)}")


@asynccontextmanager
async def relaying(
    *, other: Sequence[str] = ("orders",), options: RelayOptions | None = None, **arguments: Any
) -> AsyncIterator[tuple[RelayingBroker, RelayingBroker]]:
    """A broker that relays to another one, which it has as its domain ``peer``."""
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(RelayingBroker(port=0, queues=other))
        relay = options or RelayOptions(enabled=True)
        here = await stack.enter_async_context(RelayingBroker(port=0, relay=relay, **arguments))
        here.domain(there.url)
        yield here, there


def reason_in(broker: RelayingBroker, queue: str = LETTERS) -> str:
    """Why the first dead letter of a queue is one."""
    (entry, *_) = broker.queue(queue).contents.waiting()
    return str(read_annotation(entry.message.data, RELAY_REASON))


class AnonymousSender:
    """A client that sends messages which name their nodes themselves."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def send(self, *addresses: str) -> list[tuple[str, str]]:
        """Send a message to each address; condition and description of the errors."""
        client = Client(*await connect(self._broker))
        try:
            link = client.engine.links.attach("anonymous", is_sender=True, terminus=Terminus())
            await client.exchange(CreditChanged)
            for address in addresses:
                client.engine.deliveries.send(
                    link, encode_message(Message(body="x", section=Section.VALUE, to=address))
                )
            while sum(outcomes(client)) < len(addresses):
                await client.exchange(object, len(client.seen) + 1)
        finally:
            client.writer.close()
        return [(each.condition, each.description) for each in client.seen if isinstance(each, OutcomeReceived)]


def outcomes(client: Client) -> list[int]:
    """Numbers of messages that have an outcome, event by event."""
    return [
        len(list(each.delivery_tags)) if isinstance(each, AcceptedBatch) else 1
        for each in client.seen
        if isinstance(each, AcceptedBatch | OutcomeReceived)
    ]
