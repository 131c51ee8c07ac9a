"""Several bindings with one receiver: one link where the broker can bind its queue several times, else one for each."""

from __future__ import annotations

import asyncio

import pytest
from broker.visible_broker import VisibleBroker
from bus.peer import serving
from bus.scripted import ScriptedBroker
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Backoff, Binding, Connected, ExchangeKind, MemoryBus, MemoryExchange
from qmf.bus.engine.values import LINK_BINDINGS
from qmf.errors import LinkError

DIRECT, TOPIC = "qmf.default.direct", "qmf.default.topic"
BINDINGS = (
    Binding(DIRECT, "agent", ExchangeKind.DIRECT),
    Binding(TOPIC, "console.#"),
    Binding(TOPIC, "direct-agent.agent"),
)
#: Each matches one of them.
KEYS = ("agent", "console.ind", "direct-agent.agent")
QUICK = Backoff(first=0.01, limit=0.02)
EMBEDDED = {"product": "qmf-broker"}


async def _send_each(bus: AmqpBus, number: int) -> None:
    for exchange, key in zip((DIRECT, TOPIC, TOPIC), KEYS, strict=True):
        await bus.send(message(exchange, key, f"{key} {number}"), confirm=True)


async def test_the_embedded_broker_has_one_queue_for_all_bindings_again_after_a_restart() -> None:
    broker = VisibleBroker(port=0)
    await broker.start()
    bus = AmqpBus(broker.url, backoff=QUICK)
    events, inbox = BusEvents(bus), Inbox()
    await bus.open()
    (subscription,) = await bus.subscribe_all(BINDINGS, inbox)
    assert subscription.binding == BINDINGS[0]
    for round_ in (1, 2):
        await _send_each(bus, round_)
        expected = [
            f"{key} {n}" for n in range(1, round_ + 1) for key in ("agent", "console.ind", "direct-agent.agent")
        ]
        assert await inbox.wait(3 * round_) == expected
        assert len(broker.registry.queues) == 1
        if round_ == 1:
            await broker.close()
            broker = VisibleBroker(port=broker.port)
            await broker.start()
            await events.wait(Connected, 2)
    await subscription.close()
    await _send_each(bus, 3)
    assert len(inbox.texts) == 6
    await bus.close()
    await broker.close()


async def test_links_follow_what_the_broker_of_each_connection_can_do() -> None:
    script, product = ScriptedBroker(), dict(EMBEDDED)
    async with serving(script, properties=product) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        events, inbox = BusEvents(bus), Inbox()
        await bus.open()
        await bus.subscribe_all(BINDINGS, inbox)
        for number, (name, links) in enumerate((("other", 3), ("qmf-broker", 1), ("other", 3)), 2):
            product["product"] = name
            peers.all[-1].transport.abort()
            await events.wait(Connected, number)
            assert len(peers.all[-1].links) == links
        first, *further = peers.all[2].links[0], *peers.all[0].links
        assert [link.properties[LINK_BINDINGS] for link in (first, *further)] == [
            [{"exchange": TOPIC, "key": "console.#"}, {"exchange": TOPIC, "key": "direct-agent.agent"}]
        ] * 2
        last = peers.all[-1]
        assert [link.source and link.source.address for link in last.links] == [DIRECT, TOPIC, TOPIC]
        assert not any(link.properties for link in last.links)
        for link in last.links:
            last.engine.deliveries.send(link, message(None, None, "there"))
        last.transport.flush_soon()
        assert await inbox.wait(3) == ["there"] * 3
        await bus.close()


async def test_a_binding_that_was_carried_is_asked_for_again_when_another_broker_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 0.01)
    script, product = ScriptedBroker(), dict(EMBEDDED)
    async with serving(script, properties=product) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        await bus.open()
        await bus.subscribe_all(BINDINGS, Inbox())
        product["product"], script.refuse = "other", 3
        peers.all[0].transport.abort()
        await until(lambda: len(peers.all) == 2 and len(peers.all[1].links) == 6)
        await bus.close()


@pytest.mark.parametrize("product", ["qmf-broker", "other"])
async def test_a_refused_binding_is_no_subscription(product: str) -> None:
    script = ScriptedBroker()
    async with serving(script, properties={"product": product}) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        script.refuse = 1
        with pytest.raises(LinkError) as caught:
            await bus.subscribe_all(BINDINGS, Inbox())
        assert caught.value.condition == "amqp:unauthorized-access"
        (peer,) = peers.all
        await until(lambda: all(link.detached for link in peer.links))
        await bus.close()


async def test_another_bus_subscribes_to_one_after_the_other_and_undoes_that() -> None:
    exchange = MemoryExchange()
    bus, inbox = MemoryBus(exchange), Inbox()
    await bus.open()
    assert [each.binding for each in await bus.subscribe_all(BINDINGS, inbox)] == list(BINDINGS)
    await bus.close()
    bus = MemoryBus(exchange)
    await bus.open()
    closed = Inbox()
    with pytest.raises(LinkError):
        await bus.subscribe_all((BINDINGS[1], Binding("missing", "key")), closed)
    await bus.send(message(TOPIC, "console.ind", "late"))
    await asyncio.sleep(0)
    assert closed.texts == []
    await bus.close()


async def test_a_bus_that_has_sent_asks_for_its_sending_link_with_the_others() -> None:
    script = ScriptedBroker()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url, backoff=QUICK)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(BINDINGS[0], Inbox())
        for number, links in ((2, 1), (3, 2)):
            peers.all[-1].transport.abort()
            await events.wait(Connected, number)
            peer = peers.all[-1]
            assert [link.is_sender for link in peer.links] == [True, False][:links]
            await bus.send(message("somewhere", "x", "hello"), confirm=True)
            assert len(peer.links) == 2
        await bus.close()
