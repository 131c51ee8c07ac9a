"""Messages with a delivery time, sent by clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import proton
import pytest
from broker.management.managed import managed
from broker.visible_broker import VisibleBroker
from proton.utils import BlockingConnection, SendException

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection as BlockingApi
from qmf.messaging import Empty, Message
from qmf.messaging.aio import Connection
from qmf.messaging.exceptions import EncodeError
from qmf.models.broker import console as remote

ANNOTATIONS = "x-amqp-message-annotations"


def delayed(text: str, milliseconds: int, **more: Any) -> Message:
    return Message(text, properties={ANNOTATIONS: {"x-opt-delivery-delay": milliseconds}}, **more)


async def test_a_delayed_message_comes_later() -> None:
    async with VisibleBroker(port=0) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session()
        sender, receiver = await session.sender("q; {create: always}"), await session.receiver("q")
        await sender.send(delayed("later", 200))
        await sender.send(Message("at once"))
        assert [(await receiver.fetch(timeout=30)).content for _ in range(2)] == ["at once", "later"]
        await sender.send(delayed("much later", 3_600_000))
        with pytest.raises(Empty):
            await receiver.fetch(timeout=0)
        (queue,) = broker.registry.queues
        assert (queue.contents.delayed_count, queue.contents.depth.count) == (1, 3)
        await connection.close()


async def test_an_exchange_routes_at_once_and_the_queues_wait() -> None:
    async with VisibleBroker(port=0) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session()
        receiver = await session.receiver("amq.topic/news")
        sender = await session.sender("amq.topic")
        await sender.send(Message("x", subject="news", properties={ANNOTATIONS: {"x-opt-delivery-delay": 100}}))
        assert (await receiver.fetch(timeout=30)).content == "x"
        await connection.close()


async def test_a_transaction_with_a_delayed_message(tmp_path: Path) -> None:
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session(transactional=True)
        sender = await session.sender("q; {create: always, node: {durable: True}}")
        await sender.send(delayed("later", 100, durable=True))
        await sender.send(delayed("never", 3_600_000, durable=True))
        await session.commit()
        receiver = await session.receiver("q")
        assert (await receiver.fetch(timeout=30)).content == "later"
        with pytest.raises(Empty):
            await receiver.fetch(timeout=0)
        await session.acknowledge()
        await session.commit()
        assert broker.registry.queues
        await connection.close()


async def test_a_delayed_message_survives_a_restart_with_its_time(tmp_path: Path) -> None:
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        sender = await (await connection.session()).sender("q; {create: always, node: {durable: True}}")
        await sender.send(delayed("hours", 3_600_000, durable=True))
        await sender.send(delayed("soon", 50, durable=True))
        await connection.close()
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        receiver = await (await connection.session()).receiver("q")
        assert (await receiver.fetch(timeout=30)).content == "soon"
        with pytest.raises(Empty):
            await receiver.fetch(timeout=0)
        (queue,) = broker.registry.queues
        assert queue.contents.delayed_count == 1
        await connection.close()


def test_a_foreign_client_is_told_that_the_broker_does_it_and_which_value_is_wrong() -> None:
    with EmbeddedBroker(queues=["q"]) as broker:
        connection = BlockingConnection(broker.url.removeprefix("amqp://"), timeout=30)
        assert connection.conn is not None
        offered = connection.conn.remote_offered_capabilities
        assert "DELAYED_DELIVERY" in [str(name) for name in getattr(offered, "elements", offered)]
        sender = connection.create_sender("q")
        wrong = proton.Message("x")
        wrong.annotations = {proton.symbol("x-opt-delivery-time"): "tomorrow"}
        with pytest.raises(SendException) as caught:
            sender.send(wrong)
        assert caught.value.state == proton.Delivery.REJECTED
        right = proton.Message("y")
        right.annotations = {proton.symbol("x-opt-delivery-delay"): proton.ulong(50)}
        sender.send(right)
        receiver = connection.create_receiver("q", credit=1)
        assert receiver.receive(timeout=30).body == "y"
        connection.close()


async def test_the_management_counts_what_waits() -> None:
    async with managed(queues=["q"]) as (broker, client):
        connection = await Connection.establish(broker.url, timeout=30)
        sender = await (await connection.session()).sender("q")
        await sender.send(delayed("later", 3_600_000))
        (it,) = await client.objects(remote.Broker)
        results = (await it.query("queue", "q")).results
        assert results["msgDepth"] == results["delayedCount"] == 1
        await connection.close()


def test_annotations_of_the_api_must_be_a_map() -> None:
    with EmbeddedBroker(queues=["q"]) as broker:
        connection = BlockingApi.establish(broker.url, timeout=30)
        sender = connection.session().sender("q")
        with pytest.raises(EncodeError, match="must be a map with names or numbers as keys"):
            sender.send(Message("x", properties={ANNOTATIONS: 5}))
        connection.close()
