"""The fake: its faults. What it has in common with real buses is in test_base_conformance.py."""

from __future__ import annotations

import asyncio
import threading

import pytest
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.bus import Backoff, Binding, Connected, Disconnected, LinkLost, MemoryBus, MemoryExchange
from qmf.errors import ConnectError, DisconnectedError, LinkError

TOPIC = "qmf.default.topic"
QUICK = Backoff(first=0.001, limit=0.001)


async def opened(exchange: MemoryExchange, *, reconnect: bool = True) -> MemoryBus:
    bus = MemoryBus(exchange, reconnect=reconnect, backoff=QUICK)
    await bus.open()
    return bus


async def test_a_stopped_exchange_takes_nobody() -> None:
    exchange = MemoryExchange(name="site")
    exchange.stop()
    bus = MemoryBus(exchange)
    with pytest.raises(ConnectError, match="memory://site: the exchange is stopped"):
        await bus.open()
    exchange.start()
    await bus.open()
    assert bus.connected
    await bus.close()


async def test_a_dropped_bus_comes_back_with_its_subscriptions() -> None:
    exchange = MemoryExchange()
    bus, other = await opened(exchange), await opened(exchange)
    events, inbox = BusEvents(bus), Inbox()
    await bus.subscribe(Binding(TOPIC, "#"), inbox)
    exchange.drop("pulled the plug")
    lost = await events.wait(Disconnected)
    assert isinstance(lost, Disconnected)
    assert lost.reason == "pulled the plug"
    assert await events.wait(Connected) == Connected(again=True, broker="memory")
    await until(lambda: other.connected, "the other bus")
    await other.send(message(TOPIC, "x", "back"))
    assert await inbox.wait(1) == ["back"]
    await bus.close()
    await other.close()


async def test_while_the_exchange_is_stopped_nothing_can_be_sent() -> None:
    exchange = MemoryExchange()
    bus = await opened(exchange)
    events = BusEvents(bus)
    exchange.stop("maintenance")
    await events.wait(Disconnected)
    with pytest.raises(DisconnectedError, match=r"maintenance|stopped"):
        await bus.send(message(TOPIC, "x"))
    exchange.start()
    await events.wait(Connected)
    await bus.send(message(TOPIC, "x"))
    await bus.close()


async def test_without_reconnect_it_stays_away() -> None:
    exchange = MemoryExchange()
    bus = await opened(exchange, reconnect=False)
    events = BusEvents(bus)
    exchange.drop()
    lost = await events.wait(Disconnected)
    assert isinstance(lost, Disconnected)
    assert lost.retry is None
    assert not bus.connected
    await bus.close()


async def test_refusing_a_node() -> None:
    exchange = MemoryExchange()
    bus = await opened(exchange)
    events = BusEvents(bus)
    exchange.refuse(TOPIC, "amqp:unauthorized-access", "not you")
    with pytest.raises(LinkError, match="not you") as caught:
        await bus.subscribe(Binding(TOPIC, "#"), Inbox())
    assert caught.value.address == TOPIC
    with pytest.raises(LinkError, match="not you"):
        await bus.send(message(TOPIC, "x"), confirm=True)
    await bus.send(message(TOPIC, "x"))
    assert events.seen == [LinkLost("", "amqp:unauthorized-access", "not you", reopened=True)]
    exchange.refuse(TOPIC, "")
    await bus.send(message(TOPIC, "x"), confirm=True)
    await bus.close()


async def test_a_subscription_refused_after_a_loss_is_reported() -> None:
    exchange = MemoryExchange()
    bus = await opened(exchange)
    events = BusEvents(bus)
    await bus.subscribe(Binding(TOPIC, "#"), Inbox())
    exchange.refuse(TOPIC)
    exchange.drop()
    await events.wait(Connected)
    (lost,) = events.of(LinkLost)
    assert isinstance(lost, LinkLost)
    assert (lost.address, lost.reopened) == (TOPIC, False)
    await bus.close()


async def test_a_full_queue_loses_the_oldest() -> None:
    exchange = MemoryExchange(queue_limit=3)
    bus = await opened(exchange)
    inbox = Inbox(hold=True)
    await bus.subscribe(Binding(TOPIC, "#"), inbox, prefetch=1)
    await bus.send(message(TOPIC, "x", "0"))
    await inbox.wait(1)
    for number in range(1, 6):
        await bus.send(message(TOPIC, "x", str(number)))
    assert exchange.dropped == 2
    inbox.hold = False
    inbox.held[0].settle()
    assert await inbox.wait(4) == ["0", "3", "4", "5"]
    await bus.close()


async def test_counting() -> None:
    exchange = MemoryExchange()
    bus = await opened(exchange)
    await bus.send(message(TOPIC, "x"))
    await bus.send(message("nowhere", "x"))
    assert (exchange.received, exchange.discarded) == (2, 1)
    await bus.close()


async def test_closing_while_waiting_to_come_back() -> None:
    exchange = MemoryExchange()
    bus = MemoryBus(exchange, backoff=Backoff(first=60))
    events = BusEvents(bus)
    await bus.open()
    exchange.drop()
    await events.wait(Disconnected)
    async with asyncio.timeout(1):
        await bus.close()


async def test_buses_on_loops_in_different_threads() -> None:
    exchange = MemoryExchange()
    bus = await opened(exchange)
    inbox = Inbox()
    await bus.subscribe(Binding(TOPIC, "#"), inbox)

    async def elsewhere() -> None:
        other = await opened(exchange)
        for number in range(50):
            await other.send(message(TOPIC, "x", str(number)))
        await other.close()

    thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
    thread.start()
    await inbox.wait(50)
    await asyncio.to_thread(thread.join)
    assert inbox.texts == [str(number) for number in range(50)]
    await bus.close()
