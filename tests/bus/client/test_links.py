"""Links that brokers refuse or take away, against a scripted peer."""

from __future__ import annotations

import asyncio

import pytest
from bus.peer import Peer, serving
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Binding, LinkLost
from qmf.bus.client.persistent_link import MAX_REATTACHMENTS
from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested, OutcomeReceived
from qmf.bus.engine.values import Outcome, Terminus
from qmf.errors import DisconnectedError, LinkError, NetworkError


class Script:
    """A broker that grants everything, unless told otherwise."""

    def __init__(self) -> None:
        #: Links to refuse, then links to grant.
        self.refuse = 0
        #: Detach a sending client's link at each message, so many times.
        self.detach = 0
        self.outcome = Outcome.ACCEPTED
        self.silent = False
        self.credit = 100
        self.requests: list[Terminus | None] = []

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            self.requests.append(event.link.source if event.link.is_sender else event.link.target)
            if self.refuse:
                self.refuse -= 1
                peer.engine.refuse_link(event.link, "amqp:unauthorized-access", "not you")
            else:
                peer.grant(event.link, self.credit)
        elif isinstance(event, Delivery):
            if self.detach:
                self.detach -= 1
                peer.engine.detach(event.link, "amqp:precondition-failed", "bad message")
            elif not self.silent:
                assert event.delivery_tag is not None
                words = ("amqp:not-allowed", "no") if self.outcome is Outcome.REJECTED else ("", "")
                peer.engine.settle(event.link, event.delivery_tag, self.outcome, *words)


DATA = message("somewhere", "x", "hello")


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.RELEASED, Outcome.MODIFIED])
async def test_a_refused_message_is_an_error_for_who_confirms_and_news_otherwise(outcome: Outcome) -> None:
    script = Script()
    script.outcome = outcome
    condition = "amqp:not-allowed" if outcome is Outcome.REJECTED else f"amqp:{outcome.value}"
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(DATA, confirm=True)
        assert caught.value.condition == condition
        assert events.of(LinkLost) == []
        await bus.send(DATA)
        lost = await events.wait(LinkLost)
        assert isinstance(lost, LinkLost)
        assert (lost.address, lost.condition, lost.reopened) == ("", condition, True)
        await bus.close()


async def test_who_posted_a_message_hears_why_it_was_refused_or_lost() -> None:
    script = Script()
    words: list[NetworkError | None] = []
    async with serving(script) as peers:
        bus = AmqpBus(peers.url, reconnect=False)
        events = BusEvents(bus)
        await bus.open()
        assert not bus.try_send(DATA, words.append)  # there is no link yet
        await bus.send(DATA, confirm=True)
        script.outcome = Outcome.REJECTED
        assert bus.try_send(DATA, words.append)
        await until(lambda: words, "the refusal")
        assert isinstance(words[0], LinkError)
        assert words[0].condition == "amqp:not-allowed"
        script.silent = True
        assert bus.try_send(DATA, words.append)
        await until(lambda: len(peers.all[0].bodies) == 3, "the message")
        peers.all[0].transport.abort()
        await until(lambda: len(words) == 2, "the end")
        assert isinstance(words[1], DisconnectedError)
        assert events.of(LinkLost) == []
        await bus.close()


async def test_a_message_behind_others_is_not_posted() -> None:
    script = Script()
    script.credit = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        waiting = asyncio.create_task(bus.send(DATA))
        await asyncio.sleep(0)
        assert not bus.try_send(DATA, lambda _: None)
        peer = peers.all[0]
        peer.engine.add_credit(peer.links[0], 5)
        peer.transport.flush_soon()
        await waiting
        assert bus.try_send(DATA, lambda _: None)
        await until(lambda: len(peer.bodies) == 3, "all messages")
        await bus.close()


async def test_a_detached_sender_is_opened_again_and_says_so() -> None:
    script = Script()
    script.detach = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        with pytest.raises(LinkError, match="bad message"):
            await bus.send(DATA, confirm=True)
        await bus.send(DATA, confirm=True)
        assert events.of(LinkLost) == [LinkLost("", "amqp:precondition-failed", "bad message", reopened=True)]
        assert len(peers.all) == 1
        await bus.close()


async def test_a_broker_that_detaches_every_time_is_asked_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.sender_link.PAUSE", 0.05)
    script = Script()
    script.detach = MAX_REATTACHMENTS + 2
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        loop = asyncio.get_running_loop()
        times = []
        for _ in range(MAX_REATTACHMENTS + 2):
            with pytest.raises(LinkError):
                await bus.send(DATA, confirm=True)
            times.append(loop.time())
        await bus.send(DATA, confirm=True)
        times.append(loop.time())
        assert times[-1] - times[-2] > 0.04
        assert times[-2] - times[-3] > 0.04
        assert len(script.requests) == MAX_REATTACHMENTS + 3
        await bus.close()


async def test_a_sender_that_is_refused_fails_messages_at_once_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.sender_link.PAUSE", 0.1)
    script = Script()
    script.refuse = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        with pytest.raises(LinkError, match="not you"):
            await bus.send(DATA, confirm=True)
        with pytest.raises(LinkError, match="not you"):
            await bus.send(DATA, confirm=True)
        await bus.send(DATA)
        assert len(script.requests) == 1
        assert events.of(LinkLost) == [LinkLost("", "amqp:unauthorized-access", "not you", reopened=False)]
        await asyncio.sleep(0.11)
        await bus.send(DATA, confirm=True)
        assert len(script.requests) == 2
        await bus.close()


async def test_sending_waits_for_credit() -> None:
    script = Script()
    script.credit = 2
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        await bus.send(DATA, confirm=True)
        third = asyncio.create_task(bus.send(DATA, confirm=True))
        fourth = asyncio.create_task(bus.send(message("somewhere", "x", "fourth"), confirm=True))
        await asyncio.sleep(0.03)
        assert not third.done()
        third.cancel()
        (peer,) = peers.all
        peer.engine.add_credit(peer.links[0], 1)
        peer.transport.flush_soon()
        await fourth
        assert third.cancelled()
        assert len(peer.bodies) == 3
        assert b"fourth" in peer.bodies[-1]
        await bus.close()


async def test_who_waits_for_credit_or_confirmation_hears_of_the_loss() -> None:
    script = Script()
    script.credit = 1
    script.silent = True
    async with serving(script) as peers:
        bus = AmqpBus(peers.url, reconnect=False)
        await bus.open()
        tasks = [asyncio.create_task(bus.send(DATA, confirm=True)) for _ in range(3)]
        await until(lambda: peers.all[0].bodies, "the first message")
        peers.all[0].transport.abort()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, DisconnectedError)
        await bus.close()


async def test_without_anonymous_relay_each_destination_has_its_own_link() -> None:
    script = Script()
    async with serving(script, capabilities=()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        for to in ("one", "two", "one"):
            await bus.send(message(to, "key"), confirm=True)
        assert script.requests == [Terminus("one"), Terminus("two")]
        await bus.close()


async def test_without_anonymous_relay_links_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.sender_links.MAX_SENDER_LINKS", 3)
    script = Script()
    async with serving(script, capabilities=()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        for to in ("a", "b", "c", "a", "d", "b"):
            await bus.send(message(to, "key"), confirm=True)
        assert [node.address for node in script.requests if node] == ["a", "b", "c", "d", "b"]
        await bus.close()


async def test_a_refused_subscription_leaves_the_bus_usable() -> None:
    script = Script()
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
    script = Script()
    inbox = Inbox()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox)
        (peer,) = peers.all
        peer.engine.detach(peer.links[0], "amqp:resource-deleted", "queue deleted")
        peer.transport.flush_soon()
        assert await events.wait(LinkLost) == LinkLost(
            "exchange", "amqp:resource-deleted", "queue deleted", reopened=True
        )
        peer.engine.send(peer.links[1], message(None, None, "again"))
        peer.transport.flush_soon()
        assert await inbox.wait(1) == ["again"]
        assert peer.links[0].name != peer.links[1].name
        await bus.close()


async def test_a_subscription_that_is_refused_the_second_time_is_given_up() -> None:
    script = Script()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        subscription = await bus.subscribe(Binding("exchange", "key"), Inbox())
        script.refuse = 1
        (peer,) = peers.all
        peer.engine.detach(peer.links[0], "amqp:resource-deleted", "queue deleted")
        peer.transport.flush_soon()
        lost = await events.wait(LinkLost)
        assert isinstance(lost, LinkLost)
        assert not lost.reopened
        assert bus.connected
        await subscription.close()
        await bus.close()


async def test_a_broker_that_always_detaches_a_subscription_is_not_asked_for_ever() -> None:
    class Fickle(Script):
        def __call__(self, peer: Peer, event: EngineEvent) -> None:
            super().__call__(peer, event)
            if isinstance(event, LinkRequested):
                peer.engine.detach(event.link, "amqp:internal-error", "fickle")

    script = Fickle()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), Inbox())
        await until(lambda: not all(event.reopened for event in events.of(LinkLost) if isinstance(event, LinkLost)))
        assert len(script.requests) == 6
        await bus.close()


async def test_an_ended_session_is_begun_again_with_all_links() -> None:
    script = Script()
    inbox = Inbox()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox)
        await bus.send(DATA, confirm=True)
        (peer,) = peers.all
        peer.links[0].session.close()
        peer.transport.flush_soon()
        await events.wait(LinkLost, 2)
        await bus.send(DATA, confirm=True)
        receiving = [link for link in peer.links if link.is_sender]
        peer.engine.send(receiving[-1], message(None, None, "still here"))
        peer.transport.flush_soon()
        assert await inbox.wait(1) == ["still here"]
        assert len(peers.all) == 1
        await bus.close()


async def test_subscriptions_ask_for_settled_messages() -> None:
    script = Script()
    inbox = Inbox(hold=True)
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox, prefetch=4)
        (peer,) = peers.all
        link = peer.links[0]
        assert link.presettled
        for number in range(4):
            peer.engine.send(link, message(None, None, str(number)))
        peer.transport.flush_soon()
        await inbox.wait(4)
        assert peer.engine.credit(link) == 0
        inbox.held[0].settle()
        await until(lambda: peer.engine.credit(link) == 1, "credit for what is done")
        await bus.close()


async def test_messages_of_a_broker_that_does_not_settle_are_accepted_when_they_are_done() -> None:
    script = Script()
    inbox = Inbox(hold=True)
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox, prefetch=4)
        (peer,) = peers.all
        link = peer.links[0]
        link.presettled = False
        delivery_tags = [peer.engine.send(link, message(None, None, str(number))) for number in range(3)]
        peer.transport.flush_soon()
        await inbox.wait(3)
        assert [event for event in peer.events if isinstance(event, OutcomeReceived)] == []
        inbox.held[1].settle()
        await until(lambda: any(isinstance(event, OutcomeReceived) for event in peer.events), "the outcome")
        assert [event for event in peer.events if isinstance(event, OutcomeReceived)] == [
            OutcomeReceived(link, delivery_tags[1], Outcome.ACCEPTED)
        ]
        await bus.close()


async def test_a_link_that_the_broker_asks_for_is_refused() -> None:
    async with serving(Script()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        (peer,) = peers.all
        peer.engine.attach("unwanted", is_sender=True, terminus=Terminus("client"))
        peer.transport.flush_soon()
        await until(lambda: any(getattr(event, "condition", "") == "amqp:not-allowed" for event in peer.events))
        assert bus.connected
        await bus.close()


async def test_closing_waits_for_confirmations_that_are_due() -> None:
    script = Script()
    script.silent = True
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA)
        (peer,) = peers.all
        await until(lambda: peer.bodies, "the message")
        closing = asyncio.create_task(bus.close())
        await asyncio.sleep(0.03)
        assert not closing.done()
        (incoming,) = [event for event in peer.events if isinstance(event, Delivery)]
        assert incoming.delivery_tag is not None
        peer.engine.settle(incoming.link, incoming.delivery_tag)
        peer.transport.flush_soon()
        await closing
