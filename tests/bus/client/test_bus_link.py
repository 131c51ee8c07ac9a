"""Links that are detached again and again, against a scripted peer."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from bus.peer import Peer, serving
from bus.scripted import GrantingBroker
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Binding, LinkLost
from qmf.bus.client.bus_link import MAX_REATTACHMENTS

TOPIC = "qmf.default.topic"


def take_away(peer: Peer) -> None:
    """End the link that was asked for last."""
    peer.engine.links.detach(peer.links[-1], "amqp:resource-deleted", "queue deleted")
    peer.transport.flush_soon()


async def test_a_link_that_is_detached_too_often_is_attached_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 0.01)
    script = GrantingBroker()
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
        await until(lambda: events.of(LinkLost)[-1] == lost[0], "the report")
        await bus.close()


async def test_a_link_that_was_attached_for_long_is_attached_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.STABLE", -1.0)
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 3600.0)
    script = GrantingBroker()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "x.#"), Inbox())
        (peer,) = peers.all
        for number in range(MAX_REATTACHMENTS + 3):
            take_away(peer)
            await until(lambda wanted=number + 2: script.links == wanted, "another link")  # type: ignore[misc]
        await bus.close()


async def test_a_paused_subscription_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.receiver_link.PAUSE", 0.01)
    script = GrantingBroker()
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
