"""Links that are resumed on another connection: what the broker remembers of them, and for how long."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping

import pytest
from broker.raw_clients import Client, connect
from broker.visible_broker import VisibleBroker
from support.recording import message, text
from support.waiting import until

from qmf.broker import AmqpOptions
from qmf.broker.protocols.amqp import resumable_links
from qmf.bus.engine.events import Delivery, LinkAttached, LinkDetached, OutcomeConfirmed, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import LINK_RESUMPTION, Resumption
from qmf.bus.engine.values import ExpiryPolicy, Outcome, Terminus

Unsettled = Mapping[int, Outcome | None]


class Peer(Client):
    """A client with one link that can be resumed."""

    attempts = itertools.count(1)
    link: Link

    async def attach(
        self, *, sending: bool, unsettled: Unsettled | None = None, node: Terminus | None = None, id: str = "id"
    ) -> Resumption:
        """Ask for the link; gives what the broker knows of it."""
        self.link = self.engine.links.attach(
            "name", is_sender=sending, terminus=node or Terminus("q"), resumption=self.resumption(unsettled or {}, id)
        )
        await self.exchange(LinkAttached)
        assert self.link.resumption is not None
        assert self.link.resumption.id == id
        return self.link.resumption

    def resumption(self, unsettled: Unsettled, id: str = "id") -> Resumption:
        """With a higher number each time, over all clients."""
        return Resumption(id, unsettled, next(self.attempts))

    async def refused(self, *, sending: bool, node: Terminus, presettled: bool = False) -> LinkDetached:
        """Ask for a link that the broker refuses."""
        self.engine.links.attach(
            "name", is_sender=sending, terminus=node, presettled=presettled, resumption=Resumption("other")
        )
        await self.exchange(LinkDetached)
        return next(event for event in self.seen if isinstance(event, LinkDetached))

    async def receive(self, credit: int, expected: int) -> list[tuple[int | None, str]]:
        """Give credit; delivery tags and texts of the messages that follow."""
        self.seen.clear()
        self.engine.links.add_credit(self.link, credit)
        await self.exchange(Delivery, expected)
        deliveries = [event for event in self.seen if isinstance(event, Delivery)]
        return [(item.delivery_tag, text(item.data) if item.data else "") for item in deliveries]

    async def flush(self) -> None:
        """Write what there is, and wait until the broker has read it."""
        self.engine.links.attach(f"flush {len(self.seen)}", is_sender=True, terminus=Terminus("amq.topic"))
        count = sum(isinstance(event, LinkAttached) for event in self.seen)
        await self.exchange(LinkAttached, count + 1)

    async def cut(self) -> None:
        """End the connection without AMQP's close."""
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def peer(broker: VisibleBroker) -> Peer:
    return Peer(*await connect(broker))


async def peer_of(user: str, broker: VisibleBroker) -> Peer:
    """A peer that is logged in; the password is "secret"."""
    return Peer(*await connect(broker), mechanisms=("PLAIN",), username=user, password="secret")


def depth(broker: VisibleBroker, name: str = "q") -> tuple[int, int]:
    """Messages that wait in a queue, and those that wait or are unsettled."""
    (queue,) = [queue for queue in broker.registry.queues if queue.name == name]
    return len(queue.contents), queue.contents.depth.count


def suspended(broker: VisibleBroker) -> int:
    return broker.resumable.suspended


async def lost(broker: VisibleBroker, client: Peer, count: int = 1) -> None:
    """The connection of a client is cut, and the broker has noticed: it has so many suspended links."""
    await client.cut()
    await until(lambda: suspended(broker) == count, "the suspended link")


async def fill(broker: VisibleBroker, *texts: str) -> None:
    client = await peer(broker)
    link = client.engine.links.attach("fill", is_sender=True, terminus=Terminus("q"))
    await client.exchange(LinkAttached)
    for item in texts:
        client.engine.deliveries.send(link, message("q", "s", item))
    await client.exchange(OutcomeReceived, len(texts))
    await client.cut()


# The client sends


async def test_an_accepted_message_is_remembered_until_the_client_settles_it() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first = await peer(broker)
        assert await first.attach(sending=True) == Resumption("id")
        for tag in (1, 2, 3):
            first.engine.deliveries.send(first.link, message("q", "s", str(tag)), delivery_tag=tag)
        while data := first.engine.output():
            first.writer.write(data)
        await until(lambda: depth(broker)[0] == 3, "the messages")  # their outcomes are never read
        await lost(broker, first)
        second = await peer(broker)
        granted = await second.attach(sending=True, unsettled=dict.fromkeys([2, 3, 4]))
        assert granted == Resumption("id", {2: Outcome.ACCEPTED, 3: Outcome.ACCEPTED}, resumed=True)
        # One that is sent again in spite of that is not routed again.
        second.engine.deliveries.send(second.link, message("q", "s", "3"), delivery_tag=3)
        second.engine.deliveries.send(second.link, message("q", "s", "4"), delivery_tag=4)
        await second.exchange(OutcomeReceived, 2)
        await second.flush()
        await lost(broker, second)
        assert depth(broker)[0] == 4
        third = await peer(broker)
        assert await third.attach(sending=True, unsettled=dict.fromkeys([2, 3, 4])) == Resumption(
            "id", {2: Outcome.ACCEPTED}, resumed=True
        )
        await third.cut()


async def test_a_refused_message_may_be_sent_again() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first = await peer(broker)
        await first.attach(sending=True)
        first.engine.deliveries.send(first.link, b"garbage", delivery_tag=1)
        await first.exchange(OutcomeReceived)
        await lost(broker, first)
        second = await peer(broker)
        assert await second.attach(sending=True, unsettled={1: None}) == Resumption("id", {}, resumed=True)
        second.engine.deliveries.send(second.link, message("q", "s", "x"), delivery_tag=1)
        await second.exchange(OutcomeReceived)
        assert depth(broker)[0] == 1
        await second.cut()


async def test_credit_is_given_for_messages_that_the_client_has_settled() -> None:
    async with VisibleBroker(port=0, queues=["q"], amqp=AmqpOptions(max_frame=512)) as broker:
        client = await peer(broker)
        await client.attach(sending=True)
        await client.flush()
        window = client.engine.links.credit(client.link)
        assert window == 512 // 64
        for tag in range(window):
            client.engine.deliveries.send(client.link, message("q", "s", "x"), delivery_tag=tag)
        await client.exchange(OutcomeReceived, window)
        await client.flush()
        assert client.engine.links.credit(client.link) == window
        await client.cut()


# The client receives


async def test_a_resumed_receiver_keeps_what_it_has_and_the_rest_returns_to_the_queue() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, *"abcdef")
        first = await peer(broker)
        granted = await first.attach(sending=False)
        assert granted == Resumption("id")
        assert await first.receive(5, 5) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
        await lost(broker, first)
        assert depth(broker) == (1, 6)
        # It has processed 1, rejected 2, has 3, returns 4 and never received 5.
        known: Unsettled = {1: Outcome.ACCEPTED, 2: Outcome.REJECTED, 3: None, 4: Outcome.MODIFIED, 9: Outcome.ACCEPTED}
        second = await peer(broker)
        assert await second.attach(sending=False, unsettled=known) == Resumption("id", {3: None}, resumed=True)
        assert depth(broker) == (3, 4)
        assert await second.receive(10, 4) == [(3, ""), (6, "d"), (7, "e"), (8, "f")]
        second.engine.decisions.set_outcome(second.link, 3, Outcome.ACCEPTED)
        second.engine.decisions.set_outcome(second.link, 7, Outcome.ACCEPTED)
        await second.exchange(OutcomeConfirmed, 2)
        assert depth(broker) == (0, 2)
        await second.cut()


async def test_nobody_else_gets_what_is_delivered_on_a_suspended_link() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, *"abc")
        first, other = await peer(broker), await peer(broker)
        await first.attach(sending=False)
        await first.receive(2, 2)
        await lost(broker, first)
        await other.attach(sending=False, id="another")
        assert await other.receive(10, 1) == [(1, "c")]
        second = await peer(broker)
        await second.attach(sending=False, unsettled={1: None})
        await other.exchange(Delivery, 2)  # what the first had not received
        assert [text(event.data) for event in other.seen if isinstance(event, Delivery)] == ["c", "b"]
        for client in (second, other):
            await client.cut()


async def test_a_link_that_is_lost_while_it_is_resumed_is_resumed_again() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, *"ab")
        first = await peer(broker)
        await first.attach(sending=False)
        await first.receive(2, 2)
        await lost(broker, first)
        for _ in range(3):
            again = await peer(broker)
            assert (await again.attach(sending=False, unsettled={1: None, 2: None})).unsettled == {1: None, 2: None}
            assert await again.receive(1, 1) == [(1, "")]
            await lost(broker, again)
        assert depth(broker) == (0, 2)


async def test_messages_without_credit_wait_until_deliveries_are_established_again() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, *"ab")
        first = await peer(broker)
        await first.attach(sending=False)
        await first.receive(2, 2)
        await lost(broker, first)
        await fill(broker, "c")
        second = await peer(broker)
        await second.attach(sending=False, unsettled={1: None, 2: None})
        assert await second.receive(1, 1) == [(1, "")]
        assert await second.receive(2, 2) == [(2, ""), (3, "c")]
        await second.cut()


# Both


@pytest.mark.parametrize("sending", [True, False])
async def test_a_link_is_taken_over_from_a_connection_whose_loss_was_not_noticed(sending: bool) -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, "a")
        first, second = await peer(broker), await peer(broker)
        await first.attach(sending=sending)
        if not sending:
            await first.receive(1, 1)
        assert (await second.attach(sending=sending, unsettled={1: None})).resumed
        await first.exchange(LinkDetached)
        (detached,) = [event for event in first.seen if isinstance(event, LinkDetached)]
        assert detached.condition == "amqp:link:stolen"
        await first.cut()
        await until(lambda: broker.connections == 1, "the end of the first connection")
        assert suspended(broker) == 0
        if not sending:
            assert await second.receive(1, 1) == [(1, "")]
        await second.cut()


async def test_what_arrives_on_a_link_that_was_taken_over_is_not_routed() -> None:
    """It was still on its way when the client, which had lost the connection, sent it again on the next one."""
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first, second = await peer(broker), await peer(broker)
        await first.attach(sending=True)
        await first.flush()
        await second.attach(sending=True, unsettled={1: None})
        first.engine.deliveries.send(first.link, message("q", "s", "late"), delivery_tag=1)
        await first.flush()
        assert depth(broker) == (0, 0)
        for client in (first, second):
            await client.cut()


@pytest.mark.parametrize("suspend", [True, False])
async def test_an_attach_that_arrives_late_does_not_take_the_link_over(suspend: bool) -> None:
    """It was still on its way when the client, which had lost the connection, attached the link on the next one."""
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first, second, third = await peer(broker), await peer(broker), await peer(broker)
        early = first.resumption({})
        await second.attach(sending=True)
        second.engine.deliveries.send(second.link, message("q", "s", "x"), delivery_tag=1)
        while data := second.engine.output():
            second.writer.write(data)
        await until(lambda: depth(broker)[0] == 1, "the message")
        if suspend:
            await lost(broker, second)
        first.engine.links.attach("name", is_sender=True, terminus=Terminus("q"), resumption=early)
        await first.exchange(LinkDetached)
        (detached,) = [event for event in first.seen if isinstance(event, LinkDetached)]
        assert detached.condition == "amqp:link:stolen"
        assert (await third.attach(sending=True, unsettled={1: None})).unsettled == {1: Outcome.ACCEPTED}
        for client in (first, second, third):
            await client.cut()


@pytest.mark.parametrize("sending", [True, False])
async def test_a_link_that_is_closed_is_forgotten(sending: bool) -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, "a")
        first = await peer(broker)
        await first.attach(sending=sending)
        if not sending:
            await first.receive(1, 1)
        first.engine.links.detach(first.link)
        await first.exchange(LinkDetached)
        await first.cut()
        assert depth(broker) == (1, 1)
        second = await peer(broker)
        assert await second.attach(sending=sending, unsettled={1: None}) == Resumption("id")
        await second.cut()


async def test_a_link_that_is_detached_without_being_closed_is_kept() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, "a")
        client = await peer(broker)
        await client.attach(sending=False)
        await client.receive(1, 1)
        client.link.raw.detach()
        await client.exchange(LinkDetached)
        assert suspended(broker) == 1
        client.seen.clear()
        assert (await client.attach(sending=False, unsettled={1: None})).resumed
        await client.cut()


@pytest.mark.slow
async def test_a_suspended_link_is_given_up_after_its_time_out() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, "a")
        first = await peer(broker)
        await first.attach(sending=False, node=Terminus("q", timeout=1))
        assert await first.receive(1, 1) == [(1, "a")]
        await first.cut()
        await until(lambda: depth(broker) == (1, 1), "the message in its queue")
        assert suspended(broker) == 0
        second = await peer(broker)
        assert await second.attach(sending=False, unsettled={1: None}) == Resumption("id")
        await second.cut()


async def test_the_time_out_is_granted_as_asked_for_within_limits() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        for number, (asked, expected) in enumerate([(0, 300), (20, 20), (100_000, 3_600)]):
            client = await peer(broker)
            await client.attach(sending=True, node=Terminus("q", timeout=asked), id=str(number))
            assert client.link.target is not None
            assert (client.link.target.timeout, client.link.target.expiry) == (expected, ExpiryPolicy.LINK)
            await client.cut()


@pytest.mark.parametrize("limit", ["MAX_SUSPENDED", "MAX_SUSPENDED_BYTES"])
async def test_suspended_links_are_limited(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(
        resumable_links, limit, 2 if limit == "MAX_SUSPENDED" else 5 * len(message("q", "s", "x" * 50)) // 2
    )
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        await fill(broker, *["x" * 50] * 4)
        for number in range(3):
            client = await peer(broker)
            await client.attach(sending=False, id=str(number))
            await client.receive(1, 1)
            await client.cut()
            await until(lambda: broker.connections == 0, "the end of the connection")
        assert suspended(broker) == 2
        assert depth(broker) == (2, 4)
        clients = [await peer(broker) for _ in range(3)]
        granted = [
            await client.attach(sending=False, unsettled={1: None}, id=str(i)) for i, client in enumerate(clients)
        ]
        assert [item.resumed for item in granted] == [False, True, True]
        for client in clients:
            await client.cut()


async def test_an_automatically_deleted_queue_stays_for_its_suspended_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Terminus("auto", capabilities=("create-on-demand",), properties={"auto-delete": True})
    async with VisibleBroker(port=0) as broker:
        first, other = await peer(broker), await peer(broker)
        await first.attach(sending=False, node=node)
        await lost(broker, first)
        await other.attach(sending=False, node=Terminus("auto"), id="another")
        other.engine.links.detach(other.link)
        await other.exchange(LinkDetached)
        await other.cut()
        assert depth(broker, "auto") == (0, 0)
        monkeypatch.setattr(resumable_links, "MAX_SUSPENDED", 1)
        third = await peer(broker)
        await third.attach(sending=True, node=Terminus("amq.topic"))
        await third.cut()
        await until(lambda: broker.registry.find("auto") is None, "the end of the queue")


async def test_the_link_to_a_deleted_queue_is_refused() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first, second = await peer(broker), await peer(broker)
        await first.attach(sending=True)
        await lost(broker, first)
        (queue,) = broker.registry.queues
        broker.registry.delete_queue(queue)
        second.engine.links.attach("name", is_sender=True, terminus=Terminus("q"), resumption=second.resumption({}))
        await second.exchange(LinkDetached)
        (detached,) = [event for event in second.seen if isinstance(event, LinkDetached)]
        assert detached.condition == "amqp:resource-deleted"
        assert suspended(broker) == 0
        await second.cut()


async def test_a_link_to_another_node_is_not_resumed() -> None:
    async with VisibleBroker(port=0, queues=["q", "other"]) as broker:
        first, second = await peer(broker), await peer(broker)
        await first.attach(sending=True)
        await lost(broker, first)
        second.engine.links.attach("name", is_sender=True, terminus=Terminus("other"), resumption=second.resumption({}))
        await second.exchange(LinkDetached)
        await second.cut()


@pytest.mark.parametrize(
    ("sending", "node", "presettled"),
    [
        (False, Terminus("amq.topic"), False),
        (False, Terminus("q", browse=True), False),
        (False, Terminus(dynamic=True), False),
        (True, Terminus(dynamic=True), False),
        (True, Terminus("q"), True),
    ],
)
async def test_links_that_cannot_be_resumed_are_refused(sending: bool, node: Terminus, presettled: bool) -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        client = await peer(broker)
        detached = await client.refused(sending=sending, node=node, presettled=presettled)
        assert "resumed" in detached.description
        assert suspended(broker) == 0
        await client.cut()


async def test_only_the_same_user_resumes_a_link() -> None:
    async with VisibleBroker(port=0, queues=["q"], users={"one": "secret", "other": "secret"}) as broker:
        first = await peer_of("one", broker)
        await first.attach(sending=True)
        await lost(broker, first)
        for user, resumed in (("other", False), ("one", True)):
            client = await peer_of(user, broker)
            assert (await client.attach(sending=True)).resumed is resumed
            await client.cut()


async def test_a_sender_is_not_resumed_as_a_receiver() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first, second = await peer(broker), await peer(broker)
        await first.attach(sending=True)
        await lost(broker, first)
        assert (await second.attach(sending=False)).resumed is False
        await second.cut()


async def test_the_broker_offers_it() -> None:
    async with VisibleBroker(port=0) as broker:
        client = await peer(broker)
        await client.flush()
        (opened,) = [event for event in client.seen if hasattr(event, "capabilities")]
        assert LINK_RESUMPTION in opened.capabilities
        await client.cut()
