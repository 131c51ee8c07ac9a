"""Links on which a client receives, against a scripted peer."""

from __future__ import annotations

import pytest
from bus.peer import Peer, serving
from bus.scripted import ScriptedBroker
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Binding, LinkLost
from qmf.bus.engine.events import EngineEvent, LinkRequested, OutcomeReceived
from qmf.bus.engine.values import Outcome
from qmf.errors import LinkError


async def test_a_refused_subscription_leaves_the_bus_usable() -> None:
    script = ScriptedBroker()
    script.refuse = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.subscribe(Binding("exchange", "key"), Inbox())
        assert (caught.value.address, caught.value.condition) == ("exchange", "amqp:unauthorized-access")
        await bus.subscribe(Binding("exchange", "key"), Inbox())
        await bus.close()


async def test_a_detached_subscription_is_opened_again_and_receives() -> None:
    script = ScriptedBroker()
    inbox = Inbox()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox)
        (peer,) = peers.all
        peer.engine.links.detach(peer.links[0], "amqp:resource-deleted", "queue deleted")
        peer.transport.flush_soon()
        assert await events.wait(LinkLost) == LinkLost(
            "exchange", "amqp:resource-deleted", "queue deleted", reopened=True
        )
        peer.engine.deliveries.send(peer.links[1], message(None, None, "again"))
        peer.transport.flush_soon()
        assert await inbox.wait(1) == ["again"]
        assert peer.links[0].name != peer.links[1].name
        await bus.close()


async def test_a_subscription_that_is_refused_the_second_time_is_reported() -> None:
    script = ScriptedBroker()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        subscription = await bus.subscribe(Binding("exchange", "key"), Inbox())
        script.refuse = 1
        (peer,) = peers.all
        peer.engine.links.detach(peer.links[0], "amqp:resource-deleted", "queue deleted")
        peer.transport.flush_soon()
        lost = await events.wait(LinkLost)
        assert isinstance(lost, LinkLost)
        assert not lost.reopened
        assert bus.connected
        await subscription.close()
        await bus.close()


async def test_a_link_that_is_detached_every_time_is_attached_at_once_for_some_times_only() -> None:
    class Fickle(ScriptedBroker):
        def __call__(self, peer: Peer, event: EngineEvent) -> None:
            super().__call__(peer, event)
            if isinstance(event, LinkRequested):
                peer.engine.links.detach(event.link, "amqp:internal-error", "fickle")

    script = Fickle()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), Inbox())
        await until(lambda: not all(event.reopened for event in events.of(LinkLost) if isinstance(event, LinkLost)))
        assert len(script.requests) == 6
        await bus.close()


async def test_subscriptions_ask_for_settled_messages() -> None:
    script = ScriptedBroker()
    inbox = Inbox(hold=True)
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox, prefetch=4)
        (peer,) = peers.all
        link = peer.links[0]
        assert link.presettled
        for number in range(4):
            peer.engine.deliveries.send(link, message(None, None, str(number)))
        peer.transport.flush_soon()
        await inbox.wait(4)
        assert peer.engine.links.credit(link) == 0
        inbox.held[0].settle()
        await until(lambda: peer.engine.links.credit(link) == 1, "credit for what is done")
        await bus.close()


async def test_messages_of_a_broker_that_does_not_settle_are_accepted_when_they_are_settled() -> None:
    script = ScriptedBroker()
    inbox = Inbox(hold=True)
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox, prefetch=4)
        (peer,) = peers.all
        link = peer.links[0]
        link.presettled = False
        delivery_tags = [peer.engine.deliveries.send(link, message(None, None, str(number))) for number in range(3)]
        peer.transport.flush_soon()
        await inbox.wait(3)
        assert [event for event in peer.events if isinstance(event, OutcomeReceived)] == []
        inbox.held[1].settle()
        await until(lambda: any(isinstance(event, OutcomeReceived) for event in peer.events), "the outcome")
        assert [event for event in peer.events if isinstance(event, OutcomeReceived)] == [
            OutcomeReceived(link, delivery_tags[1], Outcome.ACCEPTED)
        ]
        await bus.close()
