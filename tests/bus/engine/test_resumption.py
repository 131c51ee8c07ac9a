"""Links that can be resumed: what both sides know of their unsettled deliveries, and delivery tags of the owner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engines import Pair

from qmf.bus.engine.events import (
    ConfirmedBatch,
    ConnectionFailed,
    Delivery,
    DeliveryBatch,
    HeldBatch,
    LinkAttached,
    LinkRequested,
    OutcomeConfirmed,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import LINK_RESUMPTION, MAX_LISTED, Resumption, read_resumption, write_resumption
from qmf.bus.engine.values import ConnectionSettings, Outcome, Terminus

#: The largest delivery tag.
LARGEST = 2**64 - 1
STATES = st.none() | st.sampled_from(Outcome)


@given(st.dictionaries(st.integers(0, 50) | st.integers(0, 2**64 - 1), STATES), st.integers(0, 2**32), st.booleans())
def test_what_is_written_is_read(unsettled: dict[int, Outcome | None], attempt: int, resumed: bool) -> None:
    sent = Resumption("a link", unsettled, attempt, resumed)
    read = read_resumption(write_resumption(sent))
    assert read == sent
    assert read is not None
    assert list(read.unsettled) == sorted(unsettled)


def test_successive_delivery_tags_are_ranges() -> None:
    accepted = dict.fromkeys([1, 2, 3, 7, 9, 10], Outcome.ACCEPTED)
    written = write_resumption(Resumption("x", {**accepted, 4: None}))
    ranges = {"accepted": [1, 3, 7, 7, 9, 10], "none": [4, 4]}
    assert written == {"id": "x", "attempt": 0, "resumed": False, "unsettled": ranges}


def test_another_link_has_none() -> None:
    assert read_resumption(None) is None


@pytest.mark.parametrize(
    "value",
    [
        "text",
        {},
        {"id": ""},
        {"id": "x" * 101},
        {"id": 7},
        {"id": "x", "attempt": "1"},
        {"id": "x", "unsettled": [1, 2]},
        {"id": "x", "unsettled": {"lost": [1, 2]}},
        {"id": "x", "unsettled": {"none": [1, 2, 3]}},
        {"id": "x", "unsettled": {"none": 5}},
        {"id": "x", "unsettled": {"none": [2, 1]}},
        {"id": "x", "unsettled": {"none": [-1, 1]}},
        {"id": "x", "unsettled": {"none": ["1", 1]}},
        {"id": "x", "unsettled": {"none": [1, 1 << 64]}},
        {"id": "x", "unsettled": {"none": [0, MAX_LISTED]}},
        {"id": "x", "unsettled": {"none": [0, MAX_LISTED - 1], "accepted": [MAX_LISTED, MAX_LISTED]}},
    ],
)
def test_what_is_malformed_is_refused(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are for logs
        read_resumption(value)


def resumable(pair: Pair, *, sending: bool, listed: dict[int, Outcome | None] | None = None) -> tuple[Link, Link]:
    """A link that can be resumed, between client and server."""
    mine = pair.client.links.attach(
        "name",
        is_sender=sending,
        terminus=Terminus("there"),
        credit=0 if sending else 10,
        properties={"other": 1},
        resumption=Resumption("a link", listed or {}),
    )
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    theirs = request.link
    granted = Resumption("a link", {5: Outcome.ACCEPTED}, resumed=True)
    pair.server.links.accept(theirs, source=theirs.source, target=theirs.target, resumption=granted)
    if sending:
        pair.server.links.add_credit(theirs, 10)
    pair.pump()
    assert LinkAttached(mine) in pair.at_client
    assert mine.resumption == granted
    pair.at_client.clear()
    pair.at_server.clear()
    return mine, theirs


def test_both_sides_list_their_unsettled_deliveries() -> None:
    _, theirs = resumable(Pair(), sending=True, listed={3: None, 5: None})
    assert theirs.resumption == Resumption("a link", {3: None, 5: None})
    assert theirs.properties["other"] == 1


@pytest.mark.parametrize("outcome", Outcome)
def test_the_owner_chooses_delivery_tags_and_the_sender_settles_after_the_outcome(outcome: Outcome) -> None:
    pair = Pair()
    mine, theirs = resumable(pair, sending=True)
    assert pair.client.deliveries.send(mine, b"data", delivery_tag=1 << 40) == 1 << 40
    assert pair.client.deliveries.send(mine, b"", delivery_tag=7) == 7
    pair.pump()
    assert pair.at_server == [Delivery(theirs, 1 << 40, b"data"), Delivery(theirs, 7, b"")]
    pair.at_server.clear()
    rejected = outcome is Outcome.REJECTED
    condition = ("amqp:not-allowed", "no") if rejected else ("", "")
    pair.server.decisions.set_outcome(theirs, 7, outcome, None, *condition, failed=outcome is Outcome.MODIFIED)
    pair.pump()
    (received,) = pair.at_client
    assert (received.delivery_tag, received.outcome) == (7, outcome)  # type: ignore[union-attr]
    assert (received.condition, received.description) == condition  # type: ignore[union-attr]
    assert received.failed == (outcome is Outcome.MODIFIED)  # type: ignore[union-attr]
    assert pair.at_server == [OutcomeConfirmed(theirs, 7)]


@pytest.mark.parametrize("joined", [False, True])
def test_another_form_of_delivery_tags_fails_the_connection(joined: bool) -> None:
    pair = Pair()
    mine, theirs = resumable(pair, sending=True)
    theirs.joined = joined
    mine.raw.delivery("short")
    mine.raw.send(b"data")
    mine.raw.advance()
    pair.pump()
    (failure,) = pair.at_server
    assert isinstance(failure, ConnectionFailed)
    assert failure.condition == "amqp:decode-error"


def test_a_malformed_property_fails_the_connection() -> None:
    pair = Pair()
    pair.client.links.attach("name", is_sender=True, terminus=Terminus("there"), properties={LINK_RESUMPTION: "text"})
    pair.pump()
    assert any(isinstance(event, ConnectionFailed) for event in pair.at_server)


@pytest.mark.parametrize("joined", [False, True])
def test_messages_that_come_together_are_a_batch_if_the_owner_wants_it(joined: bool) -> None:
    pair = Pair()
    mine, theirs = resumable(pair, sending=True)
    theirs.joined = joined
    for tag in (7, 9):
        pair.client.deliveries.send(mine, b"%d" % tag, delivery_tag=tag)
    pair.server.feed(b"".join(iter(pair.client.output, b"")))
    single = [Delivery(theirs, 7, b"7"), Delivery(theirs, 9, b"9")]
    batch = [DeliveryBatch(theirs, [(7, b"7"), (9, b"9")])]
    assert list(pair.server.events) == (batch if joined else single)


def test_acceptances_that_are_held_come_together() -> None:
    pair = Pair()
    mine, theirs = resumable(pair, sending=True)
    mine.keeps_unsettled = True
    for tag in (7, 9):
        pair.client.deliveries.send(mine, b"x", delivery_tag=tag)
    pair.pump()
    for tag in (7, 9):
        pair.server.decisions.set_outcome(theirs, tag, Outcome.ACCEPTED)
    pair.client.feed(b"".join(iter(pair.server.output, b"")))
    (batch,) = pair.client.events
    assert batch == HeldBatch(mine, [7, 9])
    assert [(event.delivery_tag, event.final) for event in batch.events()] == [(7, False), (9, False)]
    pair.client.events.clear()
    pair.at_server.clear()
    for tag in (7, 9):
        pair.client.decisions.settle_sent(mine, tag, Outcome.ACCEPTED)
    pair.pump()
    assert pair.at_server == [OutcomeConfirmed(theirs, 7), OutcomeConfirmed(theirs, 9)]


@pytest.mark.parametrize("joined", [False, True])
def test_messages_are_sent_accepted_settled_and_confirmed_together(joined: bool) -> None:
    pair = Pair()
    mine, theirs = resumable(pair, sending=True)
    mine.keeps_unsettled, theirs.joined = True, joined
    tags = [LARGEST, 3, 1 << 40, 5]
    sent = pair.client.deliveries.send_all(mine, [b"%d" % tag for tag in tags], 1, 1000, delivery_tags=tags)
    assert list(sent) == tags[1:]
    assert list(pair.client.deliveries.send_all(mine, [b"one more"], 0, 1, delivery_tags=[LARGEST])) == []
    pair.pump()
    assert list(pair.client.deliveries.send_all(mine, [b"one more"], 0, 1, delivery_tags=[LARGEST])) == [LARGEST]
    pair.pump()
    tags = [3, 1 << 40, 5, LARGEST]
    assert [(event.delivery_tag, event.data) for event in pair.at_server if isinstance(event, Delivery)] == [
        *((tag, b"%d" % tag) for tag in tags[:3]),
        (LARGEST, b"one more"),
    ]
    pair.at_server.clear()
    pair.server.decisions.accept_unsettled(theirs, [*tags, 77])
    pair.client.feed(b"".join(iter(pair.server.output, b"")))
    assert list(pair.client.events) == [HeldBatch(mine, tags)]
    pair.client.events.clear()
    pair.client.decisions.settle_all_sent(mine, [*tags[:2], 77])
    pair.server.feed(b"".join(iter(pair.client.output, b"")))
    assert list(pair.server.events) == [ConfirmedBatch(theirs, tags[:2])]
    pair.client.decisions.settle_all_sent(mine, tags)
    pair.server.feed(b"".join(iter(pair.client.output, b"")))
    assert list(pair.server.events) == [ConfirmedBatch(theirs, tags)]
    assert (theirs.received, theirs.confirming, mine.transactional) == ({}, {}, {})


def test_a_message_in_parts_comes_between_those_that_come_whole() -> None:
    pair = Pair(client=ConnectionSettings("client", hostname="host", max_frame=512))
    mine, theirs = resumable(pair, sending=True)
    theirs.joined = True
    contents = {7: b"x", 8: b"y" * 2_000, 9: b"z"}
    for tag, data in contents.items():
        pair.client.deliveries.send(mine, data, delivery_tag=tag)
    pair.pump()
    assert pair.at_server == [Delivery(theirs, tag, data) for tag, data in contents.items()]


def test_messages_that_the_sender_has_settled_have_no_tag() -> None:
    pair = Pair()
    mine, theirs = resumable(pair, sending=True)
    theirs.joined = True
    pair.client.deliveries.send(mine, b"data", settled=True)
    pair.pump()
    assert (pair.at_server, theirs.received) == ([Delivery(theirs, None, b"data")], {})
