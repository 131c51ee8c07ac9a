"""What lasts over detaches, refusals, cancelled calls and peers that say odd things, against a scripted peer."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from bus.peer import Peer, serving
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Binding, LinkLost
from qmf.bus.client.persistent_link import MAX_REATTACHMENTS
from qmf.bus.client.sender_links import MAX_SENDER_LINKS
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested

TOPIC = "qmf.default.topic"


class Grants:
    """Grants links but those for addresses with `gone` in them, and accepts messages."""

    def __init__(self) -> None:
        self.links = 0
        self.refuse = False

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            node = event.link.source if event.link.is_sender else event.link.target
            self.links += 1
            if self.refuse or (node is not None and "gone" in (node.address or "")):
                peer.engine.refuse_link(event.link, "amqp:not-found", "no such node")
            else:
                peer.grant(event.link)
        elif isinstance(event, Delivery) and event.delivery_tag is not None:
            peer.engine.settle(event.link, event.delivery_tag)


def take_away(peer: Peer) -> None:
    """End the link that was asked for last."""
    peer.engine.detach(peer.links[-1], "amqp:resource-deleted", "queue deleted")
    peer.transport.flush_soon()


async def test_a_subscription_that_is_taken_away_again_and_again_is_put_in_place_after_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 0.01)
    script = Grants()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "x.#"), Inbox())
        (peer,) = peers.all
        for number in range(MAX_REATTACHMENTS + 3):
            take_away(peer)
            await until(lambda wanted=number + 2: script.links == wanted, "another link")  # type: ignore[misc]
        lost = events.of(LinkLost)
        assert isinstance(lost[0], LinkLost)
        gone = attrs.evolve(lost[0], reopened=False)
        assert lost[: MAX_REATTACHMENTS + 1] == [*([lost[0]] * MAX_REATTACHMENTS), gone]
        await until(lambda: events.of(LinkLost)[-1] == lost[0], "the news")
        await bus.close()


async def test_a_link_that_was_there_for_long_is_opened_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.STABLE", -1.0)
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 3600.0)
    script = Grants()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "x.#"), Inbox())
        (peer,) = peers.all
        for number in range(MAX_REATTACHMENTS + 3):
            take_away(peer)
            await until(lambda wanted=number + 2: script.links == wanted, "another link")  # type: ignore[misc]
        await bus.close()


async def test_a_subscription_that_rests_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 0.01)
    script = Grants()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        subscription = await bus.subscribe(Binding(TOPIC, "x.#"), Inbox())
        script.refuse = True
        (peer,) = peers.all
        take_away(peer)
        await until(lambda: len(events.of(LinkLost)) == 3, "refusals")
        await subscription.close()
        before = script.links
        await bus.send(message(TOPIC, "x", "y"))  # some turns of the loop
        await asyncio.sleep(0.05)
        assert script.links - before <= 1  # the sender's
        await bus.close()


async def test_links_that_were_refused_do_not_push_out_good_ones() -> None:
    script = Grants()
    async with serving(script, capabilities=()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(message("there", "k", "x"), confirm=True)
        for number in range(3 * MAX_SENDER_LINKS):
            await bus.send(message(f"gone-{number}", "k", "x"))
        before = script.links
        await bus.send(message("there", "k", "x"), confirm=True)
        assert script.links == before
        await bus.close()


async def test_a_close_that_is_cancelled_leaves_no_socket_behind() -> None:
    def silent(peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            peer.grant(event.link)

    async with serving(silent) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(message("x", "y", "z"))
        closing = asyncio.create_task(bus.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        async with asyncio.timeout(1):  # less than closing would wait for the confirmation
            await peers.all[0].ended


@pytest.mark.parametrize("properties", [["a", "list"], "text", 5, {"product": 5}])
async def test_a_peer_with_odd_properties_can_be_talked_to(monkeypatch: pytest.MonkeyPatch, properties: object) -> None:
    introduce = Engine._configure

    def oddly(engine: Engine) -> None:
        introduce(engine)
        if engine.settings.server:
            engine._connection.properties = properties  # type: ignore[assignment]

    monkeypatch.setattr(Engine, "_configure", oddly)
    async with serving(Grants()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(message("x", "y", "z"), confirm=True)
        await bus.close()
