"""A bus whose broker is stopped and started again."""

from __future__ import annotations

import asyncio
import logging
import ssl

import pytest
from bus.peer import Peer, serving
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.broker import Broker
from qmf.bus import AmqpBus, Backoff, Binding, Connected, Disconnected, ExchangeKind, LinkLost
from qmf.bus.client.amqp_bus import ATTEMPT_TIMEOUT
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import EngineEvent, LinkDetached, LinkRequested
from qmf.errors import ConnectError, DisconnectedError

TOPIC = "qmf.default.topic"


QUICK = Backoff(first=0.01, limit=0.02)


async def restart(broker: Broker) -> Broker:
    """The same address, a new broker."""
    await broker.close()
    again = Broker(port=broker.port)
    await again.start()
    return again


async def test_subscriptions_survive_the_restart_of_the_broker() -> None:
    broker = Broker(port=0)
    await broker.start()
    bus = AmqpBus(broker.url, backoff=QUICK)
    events, topic, direct, closed = BusEvents(bus), Inbox(), Inbox(), Inbox()
    await bus.open()
    await bus.subscribe(Binding(TOPIC, "a.#"), topic)
    await bus.subscribe(Binding("amq.direct", "b", ExchangeKind.DIRECT), direct)
    await (await bus.subscribe(Binding(TOPIC, "a.#"), closed)).close()
    for round_ in range(1, 4):
        broker = await restart(broker)
        connected = await events.wait(Connected, round_ + 1)
        assert isinstance(connected, Connected)
        assert connected.again
        assert bus.connected
        await bus.send(message(TOPIC, "a.b", f"topic {round_}"), confirm=True)
        await bus.send(message("amq.direct", "b", f"direct {round_}"), confirm=True)
        await topic.wait(round_)
        await direct.wait(round_)
    assert topic.texts == ["topic 1", "topic 2", "topic 3"]
    assert direct.texts == ["direct 1", "direct 2", "direct 3"]
    assert closed.texts == []
    kinds = [type(event) for event in events.seen]
    assert kinds == [Connected, *[Disconnected, Connected] * 3]
    lost = events.of(Disconnected)[0]
    assert isinstance(lost, Disconnected)
    assert lost.reason == "the broker closed the connection (amqp:connection:forced: the broker is shutting down)"
    assert lost.retry is not None
    assert 0 < lost.retry <= 0.01
    await bus.close()
    await broker.close()


async def test_opening_can_be_cancelled_at_any_moment() -> None:
    async with Broker(port=0) as broker:
        for turns in range(30):
            bus = AmqpBus(broker.url)
            opening = asyncio.ensure_future(bus.open())
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            done, _ = await asyncio.wait({opening}, timeout=5)
            assert done, f"still opening after it was cancelled in turn {turns} of the loop"
            await asyncio.gather(opening, return_exceptions=True)
            await bus.close()


async def test_while_disconnected_sending_fails_with_the_reason() -> None:
    broker = Broker(port=0)
    await broker.start()
    bus = AmqpBus(broker.url, backoff=Backoff(first=60))
    events = BusEvents(bus)
    await bus.open()
    await broker.close()
    await events.wait(Disconnected)
    assert not bus.connected
    with pytest.raises(DisconnectedError, match="shutting down"):
        await bus.send(message(TOPIC, "x"))
    with pytest.raises(DisconnectedError, match="shutting down"):
        await bus.subscribe(Binding(TOPIC, "x"), Inbox())
    async with asyncio.timeout(1):
        await bus.close()  # ends the wait of a minute


async def test_without_reconnect_a_loss_is_final() -> None:
    broker = Broker(port=0)
    await broker.start()
    bus = AmqpBus(broker.url, reconnect=False)
    events = BusEvents(bus)
    await bus.open()
    await broker.close()
    lost = await events.wait(Disconnected)
    assert isinstance(lost, Disconnected)
    assert lost.retry is None
    await bus.close()


async def test_attempts_go_on_until_the_broker_is_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    broker = Broker(port=0)
    await broker.start()
    bus = AmqpBus(broker.url, backoff=QUICK)
    events = BusEvents(bus)
    await bus.open()
    await broker.close()
    await until(lambda: caplog.text.count("connection refused") >= 3, "three failed attempts")
    assert len(events.of(Disconnected)) == 1
    broker = Broker(port=broker.port)
    await broker.start()
    await events.wait(Connected, 2)
    await bus.close()
    await broker.close()


async def test_a_subscription_that_the_new_broker_refuses_is_reported() -> None:
    broker = Broker(port=0, domains=["site"])
    await broker.start()
    bus = AmqpBus(broker.url, backoff=QUICK)
    events, inbox = BusEvents(bus), Inbox()
    await bus.open()
    await bus.subscribe(Binding("qmf.site.topic", "#"), Inbox())
    await bus.subscribe(Binding(TOPIC, "#"), inbox)
    broker = await restart(broker)
    await events.wait(Connected, 2)
    (lost,) = events.of(LinkLost)
    assert isinstance(lost, LinkLost)
    assert (lost.address, lost.condition, lost.reopened) == ("qmf.site.topic", "amqp:not-found", False)
    await bus.send(message(TOPIC, "x", "still"), confirm=True)
    assert await inbox.wait(1) == ["still"]
    await bus.close()
    await broker.close()


async def test_messages_held_over_a_reconnect_do_no_harm() -> None:
    broker = Broker(port=0)
    await broker.start()
    bus = AmqpBus(broker.url, backoff=QUICK)
    events, inbox = BusEvents(bus), Inbox(hold=True)
    await bus.open()
    await bus.subscribe(Binding(TOPIC, "#"), inbox, prefetch=2)
    for text in ("one", "two", "three"):
        await bus.send(message(TOPIC, "x", text), confirm=True)
    await inbox.wait(2)
    broker = await restart(broker)
    await events.wait(Connected, 2)
    for received in inbox.held:
        received.settle()
    inbox.hold = False
    for text in ("four", "five", "six", "seven"):
        await bus.send(message(TOPIC, "x", text), confirm=True)
    assert await inbox.wait(6) == ["one", "two", "four", "five", "six", "seven"]
    await bus.close()
    await broker.close()


async def test_a_connection_that_is_cut_is_a_loss() -> None:
    async with serving(lambda peer, event: None) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        events = BusEvents(bus)
        await bus.open()
        peers.all[0].transport.abort()
        await events.wait(Connected, 2)
        lost = events.of(Disconnected)[0]
        assert isinstance(lost, Disconnected)
        assert lost.reason in ("the broker closed the connection", "connection reset by peer")
        await bus.close()


async def test_a_silent_broker_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(lambda peer, event: None) as peers:
        bus = AmqpBus(peers.url, heartbeat=0.05, reconnect=False)
        events = BusEvents(bus)
        await bus.open()
        monkeypatch.setattr(peers.all[0].engine, "tick", lambda _: None)  # no more heartbeats
        lost = await events.wait(Disconnected)
        assert isinstance(lost, Disconnected)
        assert "timeout" in lost.reason
        await bus.close()


async def test_a_loss_while_subscriptions_are_restored_is_one_more_failed_attempt() -> None:
    cut = 0

    def script(peer: Peer, event: EngineEvent) -> None:
        nonlocal cut
        if isinstance(event, LinkRequested):
            if len(peers.all) in (2, 3):
                cut += 1
                peer.transport.abort()
            else:
                peer.grant(event.link)

    async with serving(script) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        events, inbox = BusEvents(bus), Inbox()
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox)
        peers.all[0].transport.abort()
        await events.wait(Connected, 2)
        assert cut == 2
        assert len(peers.all) == 4
        assert [type(event) for event in events.seen] == [Connected, Disconnected, Connected]
        last = peers.all[-1]
        last.engine.deliveries.send(last.links[0], message(None, None, "at last"))
        last.transport.flush_soon()
        assert await inbox.wait(1) == ["at last"]
        await bus.close()


async def test_a_subscription_that_is_closed_after_its_refusal_by_the_new_broker_is_not_attached_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 0.2)
    requests: list[str | None] = []

    def script(peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            address = None if event.link.source is None else event.link.source.address
            if len(peers.all) == 1:
                peer.grant(event.link)
            elif address == "refused":
                requests.append(address)
                peer.engine.links.refuse(event.link, "amqp:not-found", "no such node")

    async with serving(script) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        events = BusEvents(bus)
        await bus.open()
        refused = await bus.subscribe(Binding("refused", "key"), Inbox())
        await bus.subscribe(Binding("granted", "key"), Inbox())
        peers.all[0].transport.abort()
        await until(lambda: len(peers.all) == 2 and len(peers.all[1].links) == 2, "the new connection")
        again = peers.all[1]
        await until(lambda: any(isinstance(event, LinkDetached) for event in again.events), "the refusal")
        await refused.close()
        (waiting,) = [link for link in again.links if link.source is not None and link.source.address == "granted"]
        again.grant(waiting)
        again.transport.flush_soon()
        await events.wait(Connected, 2)
        await asyncio.sleep(0.3)
        assert requests == ["refused"]
        await bus.close()


def end_right_after_connecting(monkeypatch: pytest.MonkeyPatch, attempts: set[int]) -> list[NetworkConnection]:
    """Have these connections, counted from 1, end in the moment in which they are ready; returns all of them."""
    made: list[NetworkConnection] = []
    connect = NetworkConnection.connect

    async def connect_and_lose(network: NetworkConnection, tls: ssl.SSLContext | None, timeout: float) -> None:
        made.append(network)
        await connect(network, tls, timeout)
        if len(made) in attempts:
            network.transport.abort()
            await until(lambda: not network.usable, "the end of the connection")

    monkeypatch.setattr(NetworkConnection, "connect", connect_and_lose)
    return made


async def test_a_connection_that_has_ended_when_it_is_ready_is_one_more_failed_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = end_right_after_connecting(monkeypatch, {2})
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url, backoff=QUICK)
        events, inbox = BusEvents(bus), Inbox()
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "#"), inbox)
        made[0].transport.abort()
        async with asyncio.timeout(ATTEMPT_TIMEOUT / 2):  # the answer that cannot come is not waited for
            await events.wait(Connected, 2)
        assert len(made) == 3
        await bus.send(message(TOPIC, "x", "again"), confirm=True)
        assert await inbox.wait(1) == ["again"]
        await bus.close()


async def test_a_first_connection_that_ends_at_once_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    end_right_after_connecting(monkeypatch, {1})
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url, backoff=QUICK)
        with pytest.raises(ConnectError, match="the broker closed the connection"):
            await bus.open()
        assert not bus.connected
        await bus.open()
        await bus.send(message(TOPIC, "x"), confirm=True)
        await bus.close()


async def test_closing_while_subscriptions_are_restored() -> None:
    def script(peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested) and len(peers.all) == 1:
            peer.grant(event.link)

    async with serving(script) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        await bus.open()
        subscription = await bus.subscribe(Binding("exchange", "key"), Inbox())
        peers.all[0].transport.abort()
        await until(lambda: len(peers.all) == 2 and peers.all[1].links, "the second attempt")
        assert not bus.connected
        await subscription.close()
        await bus.close()
        await until(peers.all[1].ended.done, "the end of the connection")


async def test_closing_while_an_attempt_is_under_way() -> None:
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url, backoff=QUICK)
        events = BusEvents(bus)
        await bus.open()
        port = broker.port
    await events.wait(Disconnected)
    accepted = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        while await reader.read(1000):
            pass
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", port):
        await accepted.wait()
        await bus.close()
    assert not bus.connected


async def test_the_first_opening_never_retries() -> None:
    broker = Broker(port=0)
    await broker.start()
    await broker.close()
    bus = AmqpBus(broker.url, backoff=QUICK)
    with pytest.raises(ConnectError):
        await bus.open()
    assert not [task for task in asyncio.all_tasks() if "_keep" in repr(task)]
    await bus.close()
