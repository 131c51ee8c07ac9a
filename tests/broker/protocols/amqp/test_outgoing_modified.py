"""The outcome `modified` with message annotations: they are merged into those of the message."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from broker.nodes.parts import depth_of
from broker.raw_clients import Client, connect, frame
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import QueueLimits
from qmf.bus.engine.events import CreditChanged, Delivery, OutcomeReceived
from qmf.bus.engine.values import Terminus
from qmf.codec import Described, Symbol, UInt32, UInt64
from qmf.codec.message import Message, Section, decode_message, encode_message
from qmf.messaging.aio import Connection


@contextlib.asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    client = Client(*await connect(broker))
    try:
        yield client
    finally:
        client.writer.close()
        with contextlib.suppress(ConnectionError):
            await client.writer.wait_closed()


async def send(client: Client, annotations: Mapping[str, object], *, durable: bool = False) -> bytes:
    link = client.engine.links.attach("out", is_sender=True, terminus=Terminus("q"))
    await client.exchange(CreditChanged)
    data = encode_message(
        Message(
            subject="s",
            durable=durable,
            message_annotations=annotations,
            application_properties={"a": 1},
            section=Section.DATA,
            body=b"body",
        )
    )
    client.engine.deliveries.send(link, data)
    await client.exchange(OutcomeReceived)
    return data


async def receive(client: Client, count: int = 1) -> Delivery:
    client.engine.links.attach(f"in-{count}", is_sender=False, terminus=Terminus("q"), credit=1)
    await client.exchange(Delivery, count)
    return [event for event in client.seen if isinstance(event, Delivery)][-1]


def modify(client: Client, annotations: object, *, failed: bool = False) -> None:
    """Settle the first delivery of a session as modified, by a frame: nothing of ours does so."""
    outcome = Described(UInt64(0x27), [failed, False, annotations])
    client.writer.write(frame(Described(UInt64(0x15), [True, UInt32(0), UInt32(0), True, outcome])))


def queue_of(broker: VisibleBroker) -> Queue:
    (queue,) = broker.registry.queues
    return queue


async def test_annotations_of_the_outcome_are_merged_into_those_of_the_message() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        async with client_of(broker) as client:
            data = await send(client, {"x-kept": "old", "x-replaced": 1})
            await receive(client)
            modify(client, {Symbol("x-replaced"): [1, "two"], Symbol("x-new"): True}, failed=True)
            queue = queue_of(broker)
            await until(lambda: len(queue.contents) == 1, "the message is back")
            await until(lambda: queue.counters.releases == 1, "released")
        async with client_of(broker) as client:
            again = decode_message((await receive(client)).data)
            assert again.message_annotations == {"x-kept": "old", "x-replaced": [1, "two"], "x-new": True}
            assert (again.delivery_count, again.subject, again.body) == (1, "s", b"body")
            assert again.application_properties == {"a": 1}
            assert depth_of(queue)[1] > len(data)


async def test_merged_annotations_are_there_after_a_restart(tmp_path: Path) -> None:
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        await (await connection.session()).sender("q; {create: always, node: {type: queue, durable: True}}")
        await connection.close()
        async with client_of(broker) as client:
            await send(client, {"x-kept": "old"}, durable=True)
            await receive(client)
            modify(client, {Symbol("x-new"): 7})
            queue = queue_of(broker)
            await until(lambda: len(queue.contents) == 1, "the message is back")
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker, client_of(broker) as client:
        again = decode_message((await receive(client)).data)
        assert again.message_annotations == {"x-kept": "old", "x-new": 7}


@pytest.mark.parametrize("annotations", ["no map", {Symbol("x-large"): "x" * 300}])
async def test_annotations_that_cannot_be_merged_are_left_out_and_the_log_says_so(
    annotations: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with VisibleBroker(port=0, queues=["q"], limits=QueueLimits(size=300)) as broker:
        async with client_of(broker) as client:
            await send(client, {"x-kept": "old"})
            await receive(client)
            with caplog.at_level(logging.WARNING, "qmf.broker"):
                modify(client, annotations)
                queue = queue_of(broker)
                await until(lambda: len(queue.contents) == 1, "the message is back")
            assert "queue q: ignored the annotations of a modified message" in caplog.text
        async with client_of(broker) as client:
            assert decode_message((await receive(client)).data).message_annotations == {"x-kept": "old"}
