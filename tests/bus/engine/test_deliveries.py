"""Messages and their outcomes between two engines."""

from __future__ import annotations

import pytest
from support.engines import Pair

from qmf.bus.engine.events import (
    Delivery,
    Drained,
    EventBatch,
    LinkDetached,
    LinkRequested,
    MessageTooLarge,
    OutcomeReceived,
)
from qmf.bus.engine.values import ConnectionSettings, Outcome, Terminus


@pytest.mark.parametrize("piece", [1, 11, 10_000])
@pytest.mark.parametrize("size", [0, 1, 511, 512, 70_000])
def test_a_message_comes_whole_and_its_outcome_goes_back(piece: int, size: int) -> None:
    pair = Pair(piece=piece, server=ConnectionSettings("server", server=True, max_frame=512))
    mine, theirs = pair.link(sending=True)
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    delivery_tag = pair.client.deliveries.send(mine, data)
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert (incoming.link, incoming.data) == (theirs, data)
    assert incoming.delivery_tag is not None
    pair.server.decisions.settle(theirs, incoming.delivery_tag)
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, delivery_tag, Outcome.ACCEPTED)]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_reported(outcome: Outcome) -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    delivery_tag = pair.client.deliveries.send(mine, b"data")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.delivery_tag is not None
    rejected = outcome is Outcome.REJECTED
    error = ("amqp:decode-error", "no message") if rejected else ("", "")
    pair.server.decisions.settle(theirs, incoming.delivery_tag, outcome, *error)
    pair.server.decisions.settle(theirs, incoming.delivery_tag, outcome, *error)  # does nothing
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, delivery_tag, outcome, *error)]


@pytest.mark.parametrize("released_by", ["message", "outcome", "call"])
def test_an_acceptance_can_wait_for_what_is_sent_next(released_by: str) -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    _, back = pair.link(sending=False)
    tags = [pair.client.deliveries.send(mine, data) for data in (b"one", b"two", b"three")]
    pair.pump()
    received = [event.delivery_tag for event in pair.at_server if isinstance(event, Delivery)]
    assert None not in received
    first, second, third = (tag for tag in received if tag is not None)
    pair.server.decisions.accept_later(theirs, first)
    pair.server.decisions.accept_later(theirs, second)
    pair.pump()
    assert pair.at_client == []
    if released_by == "message":
        pair.server.deliveries.send(back, b"answer")
    elif released_by == "outcome":
        pair.server.decisions.settle(theirs, third)
    else:
        pair.server.decisions.accept_waiting()
        pair.server.decisions.accept_waiting()  # does nothing
    pair.pump()
    accepted = [event.delivery_tag for event in pair.at_client if isinstance(event, OutcomeReceived)]
    assert accepted[:2] == tags[:2]


def test_an_acceptance_that_waits_ends_with_its_link() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"one")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.delivery_tag is not None
    pair.server.decisions.accept_later(theirs, incoming.delivery_tag)
    pair.client.links.detach(mine)
    pair.pump()
    pair.server.decisions.accept_waiting()
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "", "", answer=True)]


def test_messages_settled_by_their_sender_need_no_answer() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"one", settled=True)
    pair.client.deliveries.send(mine, b"two", settled=True)
    pair.pump()
    assert pair.at_server == [Delivery(theirs, None, b"one"), Delivery(theirs, None, b"two")]
    assert pair.at_client == []


def test_messages_on_their_way_to_a_link_that_was_closed_are_dropped() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    pair.server.deliveries.send(theirs, b"one")
    pair.client.links.detach(mine)
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "", "", answer=True)]


def test_a_message_above_the_limit_ends_its_link_only() -> None:
    pair = Pair(server=ConnectionSettings("server", server=True, max_frame=512, max_message=5000))
    mine, _ = pair.link(sending=True)
    delivery_tag = pair.client.deliveries.send(mine, b"x" * 100_000)
    pair.pump()
    settled, detached = pair.at_client
    assert isinstance(settled, OutcomeReceived)
    assert (settled.delivery_tag, settled.outcome) == (delivery_tag, Outcome.REJECTED)
    assert isinstance(detached, LinkDetached)
    assert detached.condition == "amqp:link:message-size-exceeded"
    assert "5000" in detached.description
    pair.at_server.clear()
    other = pair.client.links.attach("other", is_sender=True, terminus=Terminus("there"))
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    pair.server.links.accept(request.link, source=None, target=request.link.target)
    pair.server.links.add_credit(request.link, 1)
    pair.pump()
    pair.client.deliveries.send(other, b"y" * 5000)
    pair.at_server.clear()
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.data == b"y" * 5000


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("size", [5001, 100_000])
def test_a_client_releases_a_message_above_its_limit_and_tells_its_size(size: int, settled: bool) -> None:
    pair = Pair(client=ConnectionSettings("client", max_frame=512, max_message=5000))
    mine, theirs = pair.link(sending=False)
    delivery_tag = pair.server.deliveries.send(theirs, b"x" * size, settled=settled)
    pair.pump()
    assert pair.at_client == [MessageTooLarge(mine, size, settled), LinkDetached(mine, "", "", answer=True)]
    *outcomes, detached = pair.at_server
    assert outcomes == ([] if settled else [OutcomeReceived(theirs, delivery_tag, Outcome.RELEASED)])
    assert isinstance(detached, LinkDetached)
    assert (detached.condition, "5000" in detached.description) == ("amqp:link:message-size-exceeded", True)


def test_an_aborted_message_leaves_no_trace() -> None:
    pair = Pair(server=ConnectionSettings("server", server=True, max_frame=512))
    mine, theirs = pair.link(sending=True, credit=2)
    # What `Deliveries.send` never does: half a message, then the end of it.
    delivery = mine.raw.delivery("half")
    mine.raw.stream(b"half" * 1000)
    pair.pump()
    delivery.abort()
    pair.pump()
    assert pair.at_server == []
    pair.client.deliveries.send(mine, b"whole")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.data == b"whole"
    assert pair.server.links.credit(theirs) == 1  # of two, the aborted one was given back


def test_messages_that_come_together_can_be_accepted_together() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    sent = [pair.client.deliveries.send(mine, data) for data in (b"one", b"two", b"three")]
    pair.pump()
    received = [event.delivery_tag for event in pair.at_server if isinstance(event, Delivery)]
    assert [event.data for event in pair.at_server if isinstance(event, Delivery)] == [b"one", b"two", b"three"]
    pair.server.decisions.accept_all(theirs, [tag for tag in received if tag is not None])
    pair.server.decisions.accept_all(theirs, [tag for tag in received if tag is not None])  # does nothing
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, tag, Outcome.ACCEPTED) for tag in sent]


def test_a_batch_is_the_same_as_its_events() -> None:
    together, single = Pair(), Pair()
    for pair in (together, single):
        mine, _ = pair.link(sending=True)
        pair.client.deliveries.send(mine, b"one")
        pair.client.deliveries.send(mine, b"two", settled=True)
        pair.server.feed(pair.client.output())
    found: list[tuple[int | None, bytes]] = []
    while (event := together.server.next_batch()) is not None:
        events = event.events() if isinstance(event, EventBatch) else [event]
        found += [(each.delivery_tag, each.data) for each in events if isinstance(each, Delivery)]
    expected: list[tuple[int | None, bytes]] = []
    while (one := single.server.next_event()) is not None:
        if isinstance(one, Delivery):
            expected.append((one.delivery_tag, one.data))
    assert found == expected
    assert [data for _, data in found] == [b"one", b"two"]


def test_several_messages_are_sent_as_far_as_there_is_credit() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True, credit=3)
    messages = [b"0", b"1", b"2", b"3", b"4"]
    tags = list(pair.client.deliveries.send_all(mine, messages, 1, 1000))
    assert len(tags) == 3
    assert list(pair.client.deliveries.send_all(mine, messages, 4, 1000)) == []
    pair.pump()
    received = [event for event in pair.at_server if isinstance(event, Delivery)]
    assert [event.data for event in received] == [b"1", b"2", b"3"]
    for event in received:
        assert event.delivery_tag is not None
        pair.server.decisions.settle(event.link, event.delivery_tag)
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, tag, Outcome.ACCEPTED) for tag in tags]
    pair.client.links.detach(mine)
    assert list(pair.client.deliveries.send_all(mine, messages, 0, 1000)) == []


def test_several_messages_are_sent_until_too_much_waits() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True)
    messages = [b"x" * 100] * 5
    assert pair.client.links.room(mine, 150) == 10
    assert len(pair.client.deliveries.send_all(mine, messages, 0, 150)) == 2
    assert pair.client.links.room(mine, 150) == -1
    assert len(pair.client.deliveries.send_all(mine, messages, 2, 150)) == 0
    pair.pump()
    assert pair.client.links.room(mine, 150) == 8
    assert len(pair.client.deliveries.send_all(mine, messages, 2, 150)) == 2


def test_messages_of_many_reads_are_one_batch() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    for number in range(10):
        pair.client.deliveries.send(mine, b"%d" % number * 50)
    data = pair.client.output()
    for start in range(0, len(data), 7):
        pair.server.feed(data[start : start + 7])
    found: list[bytes] = []
    events = 0
    while (event := pair.server.next_batch()) is not None:
        events += 1
        each = event.events() if isinstance(event, EventBatch) else [event]
        found += [one.data for one in each if isinstance(one, Delivery)]
    assert found == [b"%d" % number * 50 for number in range(10)]
    assert events in (1, 10)  # without the compiled functions there are no batches
    assert pair.server.links.room(theirs, 1) == 0  # the peer is the sender


def test_a_link_is_drained_after_all_its_messages() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False, credit=5)
    pair.client.links.drain(mine, 2)
    pair.pump()
    for number in range(3):
        pair.server.deliveries.send(theirs, b"%d" % number)
    pair.server.links.answer_drain(theirs)
    pair.pump()
    *messages, last = pair.at_client
    assert [event.data for event in messages if isinstance(event, Delivery)] == [b"0", b"1", b"2"]
    assert last == Drained(mine)
