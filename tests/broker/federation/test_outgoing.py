"""What an outgoing link sends of a message."""

from __future__ import annotations

import asyncio

import pytest
from broker.federation.federated import OUT, FederatedBroker, pair
from broker.raw_clients import Client, connect
from support.waiting import until

from qmf.bus.engine.events import CreditChanged
from qmf.bus.engine.values import Terminus
from qmf.codec import Message, Section, encode_message
from qmf.codec.types import Symbol
from qmf.messaging import aio


async def put(broker: FederatedBroker, *messages: bytes) -> None:
    client = Client(*await connect(broker))
    link = client.engine.links.attach("in", is_sender=True, terminus=Terminus("here"))
    await client.exchange(CreditChanged)
    for data in messages:
        client.engine.deliveries.send(link, data)
    await client.exchange(object, len(client.seen) + 1)
    await until(lambda: broker.depth("here") == len(messages), "the messages")
    client.writer.close()


@pytest.mark.parametrize("annotations", [{}, {Symbol("x-qpid.trace"): "another"}], ids=["new", "forwarded before"])
async def test_a_message_that_has_waited_leaves_with_what_is_left_of_its_time_to_live(
    annotations: dict[Symbol, str],
) -> None:
    async with pair() as (here, there):
        message = Message(ttl=60.0, section=Section.VALUE, body="x", message_annotations=annotations)
        await put(here, *[encode_message(message)] * 3)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: loop.time() > began + 0.05, "some of the time to live")
        here.link(OUT, "here", "there")
        async with aio.Connection(there.url) as connection:
            receiver = await (await connection.session()).receiver("there")
            for _ in range(3):
                found = (await receiver.fetch(timeout=30)).ttl
                assert found is not None
                assert 30 < found < 59.96
