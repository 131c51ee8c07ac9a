"""Transactions, modified messages, drains, sessions and all fields of a terminus, between two engines."""

from __future__ import annotations

from typing import Any

import pytest
from cproton import lib
from support.engines import Pair

from qmf.bus.engine.events import (
    ConnectionFailed,
    Delivery,
    Drained,
    LinkRequested,
    OutcomeConfirmed,
    OutcomeReceived,
    SessionEnded,
)
from qmf.bus.engine.native import delivery_at
from qmf.bus.engine.transactions import TransactionalState, decode_state
from qmf.bus.engine.values import DescribedProperty, Durability, ExpiryPolicy, Filter, Outcome, Terminus
from qmf.codec.amqp10 import encode
from qmf.codec.types import Described

TRANSACTION = b"\x00tx\xff"


def test_a_transaction_is_declared() -> None:
    pair = Pair()
    coordinator = Terminus(coordinator=True, capabilities=("amqp:local-transactions",))
    mine, theirs = pair.link(sending=True, node=coordinator)
    assert theirs.target == coordinator
    tag = pair.client.deliveries.send(mine, b"declare")
    pair.pump()
    (request,) = pair.at_server
    assert isinstance(request, Delivery)
    assert request.delivery_tag is not None
    pair.server.decisions.declare(theirs, request.delivery_tag, TRANSACTION)
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, tag, Outcome.ACCEPTED, transaction=TRANSACTION)]


def test_a_message_is_sent_in_a_transaction() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"inside", transaction=TRANSACTION)
    pair.client.deliveries.send(mine, b"outside")
    pair.pump()
    assert [(item.data, item.transaction) for item in pair.at_server if isinstance(item, Delivery)] == [
        (b"inside", TRANSACTION),
        (b"outside", None),
    ]


def test_many_messages_are_sent_and_accepted_in_transactions() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True, credit=100)
    other = b"another"
    tags: dict[int, bytes] = {}
    for transaction in (TRANSACTION, other, TRANSACTION):
        sent = pair.client.deliveries.send_all(mine, [b"1", b"2", b"3", b"4"], 0, 1000, transaction=transaction)
        tags |= dict.fromkeys(sent, transaction)
    pair.pump()
    received = [event for event in pair.at_server if isinstance(event, Delivery)]
    assert [(event.data, event.transaction) for event in received] == [
        (data, transaction) for transaction in (TRANSACTION, other, TRANSACTION) for data in (b"1", b"2", b"3", b"4")
    ]
    refused = received[6]
    for event in received:
        assert event.delivery_tag is not None
        outcome = Outcome.RELEASED if event is refused else Outcome.ACCEPTED
        pair.server.decisions.settle(theirs, event.delivery_tag, outcome, transaction=event.transaction)
    pair.pump()
    assert pair.at_client == [
        OutcomeReceived(
            mine, tag, Outcome.RELEASED if number == 6 else Outcome.ACCEPTED, transaction=transaction, final=True
        )
        for number, (tag, transaction) in enumerate(tags.items())
    ]
    assert not mine.sent


def test_many_messages_are_sent_settled_in_a_transaction() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True)
    pair.client.deliveries.send_all(mine, [b"1", b"2"], 0, 1000, settled=True, transaction=TRANSACTION)
    pair.pump()
    received = [event for event in pair.at_server if isinstance(event, Delivery)]
    assert [(event.data, event.delivery_tag, event.transaction) for event in received] == [
        (b"1", None, TRANSACTION),
        (b"2", None, TRANSACTION),
    ]
    assert not mine.sent


def test_many_messages_are_accepted_together_in_a_transaction() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    sent = [pair.server.deliveries.send(theirs, data) for data in (b"1", b"2", b"3")]
    pair.pump()
    received = [event.delivery_tag for event in pair.at_client if isinstance(event, Delivery)]
    tags = [tag for tag in received if tag is not None]
    pair.client.decisions.accept_all(mine, [*tags, 1 << 40], TRANSACTION)
    pair.pump()
    assert pair.at_server == [
        OutcomeReceived(theirs, tag, Outcome.ACCEPTED, transaction=TRANSACTION, final=False) for tag in sent
    ]
    for tag in sent:
        pair.server.decisions.settle_sent(theirs, tag, Outcome.ACCEPTED)
    pair.client.decisions.accept_all(mine, tags)
    pair.client.decisions.accept_all(mine, tags, TRANSACTION)  # does nothing
    pair.pump()
    assert not theirs.transactional
    assert not mine.received


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_message_is_decided_about_in_a_transaction(outcome: Outcome) -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    tag = pair.server.deliveries.send(theirs, b"data")
    pair.pump()
    (delivery,) = pair.at_client
    assert isinstance(delivery, Delivery)
    assert delivery.delivery_tag is not None
    pair.client.decisions.set_outcome(mine, delivery.delivery_tag, outcome, TRANSACTION)
    pair.pump()
    assert pair.at_server == [OutcomeReceived(theirs, tag, outcome, transaction=TRANSACTION, final=False)]
    pair.server.decisions.settle_sent(theirs, tag, Outcome.ACCEPTED)
    pair.server.decisions.settle_sent(theirs, tag, Outcome.ACCEPTED)  # does nothing
    pair.client.decisions.settle(mine, delivery.delivery_tag)
    pair.pump()
    assert not theirs.transactional
    assert not mine.received


@pytest.mark.parametrize("description", ["no such item", "", "much " * 200])
def test_a_rejection_in_a_transaction_has_its_reason(description: str) -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    tag = pair.server.deliveries.send(theirs, b"data")
    pair.pump()
    (delivery,) = pair.at_client
    assert isinstance(delivery, Delivery)
    assert delivery.delivery_tag is not None
    error = ("shop:no-such-item", description)
    pair.client.decisions.set_outcome(mine, delivery.delivery_tag, Outcome.REJECTED, TRANSACTION, *error)
    pair.pump()
    assert pair.at_server == [
        OutcomeReceived(theirs, tag, Outcome.REJECTED, *error, transaction=TRANSACTION, final=False)
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Described(0x1D, ["a:b", "text"]), ("a:b", "text")),
        (Described("amqp:error:list", ["a:b"]), ("a:b", "")),
        (Described(0x1D, ["a:b", None, {"more": 1}]), ("a:b", "")),
        (Described(0x1D, []), ("", "")),
        (Described(0x1D, "text"), ("", "")),
        (Described(0x1E, ["a:b", "text"]), ("", "")),
        ("text", ("", "")),
        (None, ("", "")),
    ],
)
def test_reasons_of_rejections_as_others_write_them(error: object, expected: tuple[str, str]) -> None:
    state = decode_state(encode([TRANSACTION, Described(0x25, [error])]))
    assert state == TransactionalState(TRANSACTION, 0x25, *expected)


def test_a_receiver_that_settles_first_leaves_nothing_behind() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    pair.server.deliveries.send(theirs, b"data")
    pair.pump()
    (delivery,) = pair.at_client
    assert isinstance(delivery, Delivery)
    assert delivery.delivery_tag is not None
    pair.client.decisions.set_outcome(mine, delivery.delivery_tag, Outcome.ACCEPTED, TRANSACTION)
    pair.pump()
    assert len(theirs.transactional) == 1
    pair.client.decisions.settle(mine, delivery.delivery_tag)
    pair.pump()
    assert not theirs.transactional


@pytest.mark.parametrize(("failed", "undeliverable"), [(False, True), (True, False), (True, True)])
def test_a_modified_message(failed: bool, undeliverable: bool) -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    tag = pair.server.deliveries.send(theirs, b"data")
    pair.pump()
    (delivery,) = pair.at_client
    assert isinstance(delivery, Delivery)
    assert delivery.delivery_tag is not None
    pair.client.decisions.modify(mine, delivery.delivery_tag, failed=failed, undeliverable=undeliverable)
    pair.pump()
    assert pair.at_server == [
        OutcomeReceived(theirs, tag, Outcome.MODIFIED, failed=failed, undeliverable=undeliverable)
    ]


def test_a_drain_ends_when_the_peer_has_no_more() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False, credit=0)
    pair.client.links.drain(mine, 5)
    pair.pump()
    pair.server.deliveries.send(theirs, b"only")
    pair.server.links.answer_drain(theirs)
    pair.pump()
    delivery, drained = pair.at_client
    assert isinstance(delivery, Delivery)
    assert drained == Drained(mine)
    assert pair.client.links.credit(mine) == 0
    pair.at_client.clear()
    pair.client.links.add_credit(mine, 1)  # a drain is over once it has ended
    pair.pump()
    pair.server.links.answer_drain(theirs)
    pair.pump()
    assert pair.at_client == []
    assert pair.server.links.credit(theirs) == 1


def test_a_drain_ends_when_all_credit_is_used() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False, credit=0)
    pair.client.links.drain(mine, 1)
    pair.pump()
    pair.server.deliveries.send(theirs, b"one")
    pair.server.links.answer_drain(theirs)
    pair.pump()
    assert pair.at_client[-1] == Drained(mine)


def test_sessions_are_apart() -> None:
    pair = Pair()
    pair.pump()
    session = pair.client.sessions.begin()
    first = pair.client.links.attach("a", is_sender=True, terminus=Terminus("there"), session=session)
    second = pair.client.links.attach("a", is_sender=True, terminus=Terminus("there"))
    pair.pump()
    requests = [event.link for event in pair.at_server if isinstance(event, LinkRequested)]
    assert len({link.session_id for link in requests}) == 2
    for link in requests:
        pair.server.links.accept(link, source=link.source, target=link.target)
    pair.pump()
    pair.client.sessions.end(session)
    pair.client.sessions.end(session)  # does nothing
    pair.pump()
    assert pair.at_client[-1] == SessionEnded(session, "", "", answer=True)
    assert first.detached
    assert not second.detached


def test_every_field_of_a_terminus_arrives() -> None:
    source = Terminus(
        address="queue",
        filters=(Filter("selector", "apache.org:selector-filter:string", "a = 1"),),
        browse=True,
        capabilities=("queue", "create-on-demand"),
        durability=Durability.UNSETTLED_STATE,
        expiry=ExpiryPolicy.NEVER,
        timeout=120,
    )
    pair = Pair()
    _, theirs = pair.link(sending=False, node=source)
    assert theirs.source == source


def test_the_properties_of_a_dynamic_node_arrive() -> None:
    pair = Pair()
    policy = DescribedProperty("amqp:delete-on-close:list", [])
    wanted = Terminus(dynamic=True, properties={"lifetime-policy": policy, "qpid.max_count": 5, "durable": True})
    _, theirs = pair.link(sending=True, node=wanted)
    assert theirs.target == wanted


def test_the_properties_of_a_link_and_the_other_terminus_arrive() -> None:
    pair = Pair()
    pair.client.links.attach(
        "x",
        is_sender=True,
        terminus=Terminus("there"),
        own_terminus=Terminus("here"),
        properties={"shared": True, "text": "ä"},
    )
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    assert request.link.source == Terminus("here")
    assert request.link.properties == {"shared": True, "text": "ä"}


def test_an_acceptance_is_confirmed_by_the_settlement_of_the_peer() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    tag = pair.server.deliveries.send(theirs, b"data")
    pair.pump()
    (delivery,) = pair.at_client
    assert isinstance(delivery, Delivery)
    assert delivery.delivery_tag is not None
    pair.client.decisions.set_outcome(mine, delivery.delivery_tag, Outcome.ACCEPTED)
    pair.at_client.clear()
    pair.pump()
    assert pair.at_server == [OutcomeReceived(theirs, tag, Outcome.ACCEPTED)]
    assert pair.at_client == [OutcomeConfirmed(mine, delivery.delivery_tag)]
    assert not mine.received
    assert not mine.confirming


@pytest.mark.parametrize(
    ("encoded", "error"),
    [
        (b"", "without the id"),
        (b"\x45", "without the id"),
        (b"\x43", "without the id"),
        (encode(["text"]), "without the id"),
        (encode([b"id", 1]), "not a described value"),
        (encode([b"id", Described("accepted", [])]), "not a described value"),
        (encode([b"x" * 201]), "201 bytes, 200 are allowed"),
        (encode([b"x" * 1000]), "1000 bytes"),
    ],
)
def test_states_that_the_specification_does_not_allow(encoded: bytes, error: str) -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"data", transaction=TRANSACTION)
    (delivery,) = map(_c_object, mine.sent)
    data = lib.pn_disposition_data(lib.pn_delivery_local(delivery))
    lib.pn_data_clear(data)
    lib.pn_data_decode(data, encoded, len(encoded))
    pair.pump()
    (failed,) = pair.at_server
    assert isinstance(failed, ConnectionFailed)
    assert error in failed.description


def _c_object(handle: Any) -> Any:
    """The delivery of a handle, which is its address for the compiled functions."""
    return delivery_at(handle) if isinstance(handle, int) else handle


def test_a_state_without_an_outcome() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"data", transaction=TRANSACTION)
    (delivery,) = map(_c_object, mine.sent)
    data = lib.pn_disposition_data(lib.pn_delivery_local(delivery))
    lib.pn_data_clear(data)
    encoded = encode([TRANSACTION, None])
    lib.pn_data_decode(data, encoded, len(encoded))
    pair.pump()
    (received,) = pair.at_server
    assert isinstance(received, Delivery)
    assert (received.link, received.transaction) == (theirs, TRANSACTION)
