"""Opening and closing of two engines joined by bytes, and one engine with invalid bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engines import Pair
from support.examples import examples

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    Delivery,
    LinkRequested,
)
from qmf.bus.engine.values import ConnectionSettings, Filter, Terminus


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 10_000])
def test_opening_in_pieces_of_any_size(piece: int) -> None:
    pair = Pair(piece=piece)
    pair.pump()
    assert pair.at_server == [ConnectionOpened("client", frozenset())]
    assert pair.at_client == [ConnectionOpened("server", frozenset({"ANONYMOUS-RELAY", "x"}))]


def test_a_server_takes_clients_without_sasl() -> None:
    pair = Pair(client=ConnectionSettings("client"))
    pair.pump()
    assert pair.at_server == [ConnectionOpened("client", frozenset())]


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


def test_the_peer_is_asked_for_heartbeats_at_twice_the_rate() -> None:
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


def test_freed_engines_do_nothing() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=False)
    pair.client.free()
    pair.client.free()
    pair.client.links.add_credit(mine, 1)
    pair.client.decisions.settle(mine, 1)
    pair.client.links.detach(mine)
    assert pair.client.links.credit(mine) == 0
    assert pair.client.next_event() is None


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
def test_invalid_bytes_are_one_failure_however_many_follow(data: bytes, server: bool, piece: int) -> None:
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


@examples(125)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_after_the_header_raise_nothing(data: bytes, framed: bool) -> None:
    engine = Engine(ConnectionSettings("me", server=True))
    engine.feed(b"AMQP\x00\x01\x00\x00" + open_frame(b"peer"))
    if framed:
        data = struct.pack(">IBBH", 8 + len(data), 2, 0, 0) + data
    engine.feed(data)
    while (event := engine.next_event()) is not None:
        if isinstance(event, LinkRequested):
            engine.links.refuse(event.link, "amqp:not-found", "no")
    assert isinstance(engine.output(), bytes)
    engine.tick(1.0)
    engine.free()


@examples(60)
@given(st.data())
def test_a_conversation_with_damaged_bytes_raises_nothing(data: st.DataObject) -> None:
    recorder = Pair()
    mine, _ = recorder.link(sending=True, node=Terminus("n", filters=(Filter("f", "d", "v"),)))
    recorder.client.deliveries.send(mine, b"message" * 20)
    recorder.pump()
    stream = bytearray(b"".join(recorder.to_server))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    engine = Engine(ConnectionSettings("me", server=True))
    engine.feed(bytes(stream))
    while (event := engine.next_event()) is not None:
        if isinstance(event, LinkRequested):
            engine.links.accept(event.link, source=event.link.source, target=event.link.target)
            engine.links.add_credit(event.link, 10)
        elif isinstance(event, Delivery) and event.delivery_tag is not None:
            engine.decisions.settle(event.link, event.delivery_tag)
        engine.output()
    assert engine.next_event() is None
    engine.free()
