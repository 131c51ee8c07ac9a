"""Two engines joined by nothing but bytes, and one engine against nonsense."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engines import Pair

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    CreditChanged,
    Delivery,
    LinkDetached,
    LinkRequested,
    OutcomeReceived,
    SessionEnded,
)
from qmf.bus.engine.values import ConnectionSettings, Filter, Outcome, Terminus


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 10_000])
def test_opening_in_pieces_of_any_size(piece: int) -> None:
    pair = Pair(piece=piece)
    pair.pump()
    assert pair.at_server == [ConnectionOpened("client", frozenset())]
    assert pair.at_client == [ConnectionOpened("server", frozenset({"ANONYMOUS-RELAY", "x"}))]


def test_a_server_takes_clients_without_sasl() -> None:
    pair = Pair(client=ConnectionSettings("client", mechanisms=None))
    pair.pump()
    assert pair.at_server == [ConnectionOpened("client", frozenset())]


@pytest.mark.parametrize("piece", [1, 11, 10_000])
@pytest.mark.parametrize("size", [0, 1, 511, 512, 70_000])
def test_a_message_comes_whole_and_its_outcome_goes_back(piece: int, size: int) -> None:
    pair = Pair(piece=piece, server=ConnectionSettings("server", server=True, max_frame=512))
    mine, theirs = pair.link(sending=True)
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    delivery_tag = pair.client.send(mine, data)
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert (incoming.link, incoming.data) == (theirs, data)
    assert incoming.delivery_tag is not None
    pair.server.settle(theirs, incoming.delivery_tag)
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, delivery_tag, Outcome.ACCEPTED)]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_told(outcome: Outcome) -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    delivery_tag = pair.client.send(mine, b"data")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.delivery_tag is not None
    rejected = outcome is Outcome.REJECTED
    words = ("amqp:decode-error", "no message") if rejected else ("", "")
    pair.server.settle(theirs, incoming.delivery_tag, outcome, *words)
    pair.server.settle(theirs, incoming.delivery_tag, outcome, *words)  # does nothing
    pair.pump()
    assert pair.at_client == [OutcomeReceived(mine, delivery_tag, outcome, *words)]


def test_messages_settled_by_their_sender_need_no_answer() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    pair.client.send(mine, b"one", settled=True)
    pair.client.send(mine, b"two", settled=True)
    pair.pump()
    assert pair.at_server == [Delivery(theirs, None, b"one"), Delivery(theirs, None, b"two")]
    assert pair.at_client == []


def test_credit_is_counted_on_both_sides() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True, credit=3)
    assert pair.client.credit(mine) == 3
    for _ in range(3):
        pair.client.send(mine, b"x")
    assert pair.client.credit(mine) == 0
    pair.pump()
    pair.credit.clear()
    pair.server.add_credit(theirs, 2)
    pair.pump()
    assert CreditChanged(mine) in pair.credit
    assert pair.client.credit(mine) == 2


def test_backlog_is_what_waits_to_be_encoded() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True)
    pair.client.send(mine, b"x" * 1000)
    assert pair.client.backlog(mine) == 1000
    pair.pump()
    assert pair.client.backlog(mine) == 0


@pytest.mark.parametrize("descriptor", ["apache.org:legacy-amqp-topic-binding:string", 0x0000468C00000001])
def test_nodes_and_filters_are_read_as_they_were_written(descriptor: str | int) -> None:
    node = Terminus("qmf.default.topic", filters=(Filter("any", descriptor, "a.#"),))
    pair = Pair()
    mine, theirs = pair.link(sending=False, node=node)
    assert theirs.source == node
    assert mine.source == node
    assert theirs.target == Terminus()
    assert theirs.is_sender
    assert not mine.is_sender


def test_dynamic_nodes_get_their_address_from_the_server() -> None:
    pair = Pair()
    mine = pair.client.attach("dynamic", is_sender=False, terminus=Terminus(dynamic=True), credit=1)
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    assert request.link.source == Terminus(dynamic=True)
    pair.server.accept_link(request.link, source=Terminus("made-up", dynamic=True), target=None)
    pair.pump()
    assert mine.source == Terminus("made-up", dynamic=True)


@pytest.mark.parametrize("sending", [True, False])
def test_a_refused_link_is_only_detached_with_the_servers_words(sending: bool) -> None:
    pair = Pair()
    mine = pair.client.attach("refused", is_sender=sending, terminus=Terminus("nowhere"))
    pair.pump()
    pair.at_client.clear()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    pair.server.refuse_link(request.link, "amqp:not-found", "no such node")
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "amqp:not-found", "no such node", answer=False)]
    assert pair.at_server[-1] == LinkDetached(request.link, "", "", answer=True)


def test_a_detached_link_is_forgotten_and_nothing_on_it_does_harm() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    pair.client.send(mine, b"one")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    pair.server.detach(theirs, "amqp:not-allowed", "enough")
    pair.server.detach(theirs)
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "amqp:not-allowed", "enough", answer=False)]
    assert incoming.delivery_tag is not None
    pair.server.settle(theirs, incoming.delivery_tag)
    pair.server.add_credit(theirs, 5)
    pair.client.detach(mine)
    pair.client.answer_drain(mine)
    assert pair.client.credit(mine) == 0
    assert pair.client.backlog(mine) == 0
    pair.at_client.clear()
    pair.pump()
    assert pair.at_client == []


def test_messages_on_their_way_to_a_link_that_was_closed_are_dropped() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=False)
    pair.server.send(theirs, b"one")
    pair.client.detach(mine)
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "", "", answer=True)]


def test_a_message_above_the_limit_ends_its_link_only() -> None:
    pair = Pair(server=ConnectionSettings("server", server=True, max_frame=512, max_message=5000))
    mine, _ = pair.link(sending=True)
    delivery_tag = pair.client.send(mine, b"x" * 100_000)
    pair.pump()
    settled, detached = pair.at_client
    assert isinstance(settled, OutcomeReceived)
    assert (settled.delivery_tag, settled.outcome) == (delivery_tag, Outcome.REJECTED)
    assert isinstance(detached, LinkDetached)
    assert detached.condition == "amqp:link:message-size-exceeded"
    assert "5000" in detached.description
    pair.at_server.clear()
    other = pair.client.attach("other", is_sender=True, terminus=Terminus("there"))
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    pair.server.accept_link(request.link, source=None, target=request.link.target)
    pair.server.add_credit(request.link, 1)
    pair.pump()
    pair.client.send(other, b"y" * 5000)
    pair.at_server.clear()
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.data == b"y" * 5000


def test_an_aborted_message_leaves_no_trace() -> None:
    pair = Pair(server=ConnectionSettings("server", server=True, max_frame=512))
    mine, theirs = pair.link(sending=True, credit=2)
    # What `Engine.send` never does: half a message, then the end of it.
    delivery = mine.raw.delivery("half")
    mine.raw.stream(b"half" * 1000)
    pair.pump()
    delivery.abort()
    pair.pump()
    assert pair.at_server == []
    pair.client.send(mine, b"whole")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    assert incoming.data == b"whole"
    assert pair.server.credit(theirs) == 1  # of two, the aborted one was given back


def test_ending_a_session_ends_its_links_and_the_next_link_gets_a_new_one() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    theirs.session.close()
    pair.pump()
    detached, ended = pair.at_client
    assert detached == LinkDetached(mine, "", "", answer=False)
    assert isinstance(ended, SessionEnded)
    pair.client.attach("again", is_sender=True, terminus=Terminus("there"))
    pair.pump()
    assert isinstance(pair.at_server[-1], LinkRequested)


def test_closing_gives_the_reason_and_finishes_both_sides() -> None:
    pair = Pair()
    pair.pump()
    pair.server.close("amqp:connection:forced", "shutting down")
    assert not pair.server.finished
    pair.pump()
    assert pair.at_client[-1] == ConnectionClosed("amqp:connection:forced", "shutting down")
    assert pair.at_server[-1] == ConnectionClosed("", "")
    assert pair.client.finished
    assert pair.server.finished


def test_a_side_that_closed_first_waits_for_the_other() -> None:
    pair = Pair()
    pair.pump()
    pair.client.close()
    assert pair.client.output()
    assert not pair.client.finished


def test_heartbeats_keep_a_quiet_connection_alive_and_silence_ends_it() -> None:
    pair = Pair(client=ConnectionSettings("client", idle_timeout=4.0), server=ConnectionSettings("server", server=True))
    pair.client.tick(100.0)
    pair.server.tick(100.0)
    pair.pump()
    now = 100.0
    for _ in range(20):
        now += 1.0
        pair.client.tick(now)
        assert pair.server.tick(now) is not None
        pair.pump()
    assert [event for event in pair.at_client if isinstance(event, ConnectionFailed)] == []
    pair.client.tick(now)
    pair.client.tick(now + 3.9)
    assert pair.client.next_event() is None
    pair.client.tick(now + 4.1)
    event = pair.client.next_event()
    assert isinstance(event, ConnectionFailed)
    assert event.condition == "amqp:resource-limit-exceeded"
    assert "timeout" in event.description


def test_the_peer_is_asked_for_signs_of_life_at_twice_the_rate() -> None:
    pair = Pair(client=ConnectionSettings("client", idle_timeout=4.0))
    pair.pump()
    assert pair.server.tick(50.0) is not None
    deadline = pair.server.tick(50.0)
    assert deadline is not None
    assert deadline <= 52.0


def test_without_time_outs_there_is_no_deadline() -> None:
    pair = Pair()
    pair.pump()
    assert pair.client.tick(1.0) is None


def test_released_engines_stay_quiet() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=False)
    pair.client.free()
    pair.client.free()
    pair.client.add_credit(mine, 1)
    pair.client.settle(mine, 1)
    pair.client.detach(mine)
    assert pair.client.credit(mine) == 0
    assert pair.client.next_event() is None


def test_settings_do_not_show_the_password() -> None:
    assert "secret" not in repr(ConnectionSettings("c", username="me", password="secret"))


PROTON_DECODE_ERRORS = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"AMQP\x00\x00\x09\x01",
    b"AMQP\x03\x01\x00\x00" + b"\xff" * 100,
    b"AMQP\x00\x01\x00\x00\x00\x00\x00\x03\x02\x00\x00\x00",
    b"AMQP\x00\x01\x00\x00\xff\xff\xff\xff\x02\x00\x00\x00",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


@pytest.mark.parametrize("data", PROTON_DECODE_ERRORS)
@pytest.mark.parametrize("server", [True, False])
@pytest.mark.parametrize("piece", [1, 1000])
def test_nonsense_is_one_failure_however_much_follows(data: bytes, server: bool, piece: int) -> None:
    engine = Engine(ConnectionSettings("me", server=server))
    for start in range(0, len(data), piece):
        engine.feed(data[start : start + piece])
    engine.feed(data)
    event = engine.next_event()
    assert isinstance(event, ConnectionFailed)
    assert event.condition
    assert not event.authentication or data.startswith(b"AMQP\x03")
    assert engine.next_event() is None


def open_frame(container: bytes) -> bytes:
    body = b"\x00\x53\x10\xc0" + bytes([len(container) + 3, 1]) + b"\xa1" + bytes([len(container)]) + container
    return struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body


def test_text_that_is_no_utf8_fails_the_connection() -> None:
    engine = Engine(ConnectionSettings("me", server=True))
    engine.feed(b"AMQP\x00\x01\x00\x00" + open_frame(b"\xff\xfe"))
    event = engine.next_event()
    assert isinstance(event, ConnectionFailed)
    assert event.condition == "amqp:decode-error"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_after_the_header_raise_nothing(data: bytes, framed: bool) -> None:
    engine = Engine(ConnectionSettings("me", server=True))
    engine.feed(b"AMQP\x00\x01\x00\x00" + open_frame(b"peer"))
    if framed:
        data = struct.pack(">IBBH", 8 + len(data), 2, 0, 0) + data
    engine.feed(data)
    while (event := engine.next_event()) is not None:
        if isinstance(event, LinkRequested):
            engine.refuse_link(event.link, "amqp:not-found", "no")
    engine.output()
    engine.tick(1.0)
    engine.free()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_conversation_with_damaged_bytes_raises_nothing(data: st.DataObject) -> None:
    recorder = Pair()
    mine, _ = recorder.link(sending=True, node=Terminus("n", filters=(Filter("f", "d", "v"),)))
    recorder.client.send(mine, b"message" * 20)
    recorder.pump()
    stream = bytearray(b"".join(recorder.to_server))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    engine = Engine(ConnectionSettings("me", server=True))
    engine.feed(bytes(stream))
    while (event := engine.next_event()) is not None:
        if isinstance(event, LinkRequested):
            engine.accept_link(event.link, source=event.link.source, target=event.link.target)
            engine.add_credit(event.link, 10)
        elif isinstance(event, Delivery) and event.delivery_tag is not None:
            engine.settle(event.link, event.delivery_tag)
        engine.output()
    engine.free()
