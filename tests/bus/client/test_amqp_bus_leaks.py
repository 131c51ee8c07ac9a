"""Nothing stays behind: no proton objects, no tasks, no growing memory on long connections."""

from __future__ import annotations

import asyncio
import gc

import pytest
from cproton import retained_count
from support.recording import Inbox, message
from support.waiting import until

from qmf.broker import Broker
from qmf.bus import AmqpBus, Binding
from qmf.errors import LinkError

TOPIC = "qmf.default.topic"


async def life(broker: Broker) -> None:
    """A bus that does a little of everything."""
    bus = AmqpBus(broker.url)
    inbox = Inbox()
    await bus.open()
    for _ in range(3):
        subscription = await bus.subscribe(Binding(TOPIC, "#"), inbox)
        await bus.send(message(TOPIC, "x"), confirm=True)
        await subscription.close()
    with pytest.raises(LinkError):
        await bus.subscribe(Binding("nowhere", "#"), inbox)
    await bus.subscribe(Binding(TOPIC, "#"), Inbox(hold=True))
    await bus.send(message(TOPIC, "x"), confirm=True)
    await bus.close()


async def test_connections_leave_no_objects_of_proton() -> None:
    async with Broker(port=0) as broker:
        await life(broker)
    gc.collect()
    before = retained_count()
    async with Broker(port=0) as broker:
        for _ in range(5):
            await life(broker)
    gc.collect()
    assert retained_count() <= before
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_messages_leave_no_objects_of_proton() -> None:
    """Deliveries must not add up while the connection stays."""
    gc.collect()
    before = retained_count()
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url)
        inbox = Inbox()
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "#"), inbox)
        for _ in range(3):
            for _ in range(300):
                await bus.send(message(TOPIC, "x"))
            await bus.send(message(TOPIC, "x"), confirm=True)
            await inbox.wait(301)
            inbox.texts.clear()
            # A handful of connections, sessions and links; not one object per message, once all are settled.
            await until(lambda: retained_count() < before + 50, "objects of settled messages to go")
        await bus.close()
