"""Requests to the coordinator, as clients send them."""

from __future__ import annotations

from broker.raw_clients import Client, connect

from qmf.broker import Broker
from qmf.bus.engine.events import LinkAttached, OutcomeReceived
from qmf.bus.engine.values import Outcome, Terminus
from qmf.codec.message import Message, Section, encode_message
from qmf.codec.types import Described, Symbol


def request(descriptor: object, *fields: object) -> bytes:
    return encode_message(Message(section=Section.VALUE, body=Described(descriptor, list(fields))))


async def test_symbols_are_understood_as_descriptors() -> None:
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        link = client.engine.links.attach("c", is_sender=True, terminus=Terminus(coordinator=True))
        await client.exchange(LinkAttached)
        client.engine.deliveries.send(link, request(Symbol("amqp:declare:list")))
        await client.exchange(OutcomeReceived)
        (declared,) = [event for event in client.seen if isinstance(event, OutcomeReceived)]
        assert declared.transaction
        client.engine.deliveries.send(link, request(Symbol("amqp:discharge:list"), declared.transaction, False))
        await client.exchange(OutcomeReceived, 2)
        assert client.seen[-1].outcome is Outcome.ACCEPTED  # type: ignore[attr-defined]
        client.writer.close()
