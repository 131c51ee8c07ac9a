"""Walking frames: the compiled walker and the one in Python, with frames in pieces, other bytes, and invalid ones."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from qmf.bus.frames.performatives import (
    Attach,
    link_flow,
    read_attach,
    read_fields,
    read_number,
    read_performative,
    set_message_format,
)
from qmf.bus.frames.walker import HEAD, CompiledWalker, PythonWalker, Stop, StopKind, Walker, compiled_walker

#: Makes a walker; by name, so that a test says which one failed.
Make = Callable[[bool], Walker]

HEADER = b"AMQP\x00\x01\x00\x00"
UINT, NULL, TRUE, FALSE = b"\x70", b"\x40", b"\x41", b"\x42"


def _python(outgoing: bool) -> Walker:
    return PythonWalker(outgoing=outgoing)


def _compiled(outgoing: bool) -> Walker:
    module = compiled_walker()
    if module is None:
        pytest.skip("the compiled walker is not installed (scripts/c_extensions.py)")
    return CompiledWalker(module, outgoing=outgoing)


@pytest.fixture(params=[_python, _compiled])
def make(request: pytest.FixtureRequest) -> Make:
    chosen: Make = request.param
    return chosen


def number(value: int) -> bytes:
    return UINT + value.to_bytes(4)


def frame(
    code: int, *fields: bytes, payload: bytes = b"", channel: int = 3, long: bool = False, kind: int = 0
) -> bytes:
    """A frame; with `long`, its list and its descriptor have their long forms."""
    body = b"".join(fields)
    if long:
        performative = b"\x00\x80" + code.to_bytes(8) + b"\xd0" + struct.pack(">II", len(body) + 4, len(fields)) + body
    else:
        performative = bytes((0, 0x53, code, 0xC0, len(body) + 1, len(fields))) + body
    return struct.pack(">IBBH", 8 + len(performative) + len(payload), 2, kind, channel) + performative + payload


def transfer(
    message_format: bytes, payload: bytes = b"x" * 20, tag: bytes = b"\xa0\x02ab", *, long: bool = False
) -> bytes:
    return frame(0x14, b"\x43", b"\x52\x01", tag, message_format, TRUE, FALSE, payload=payload, long=long)


def flow(handle: bytes, echo: bytes, available: bytes = NULL) -> bytes:
    window = (number(1), number(2), number(3), number(4))
    return frame(0x13, *window, handle, number(0xFFFFFFFE), b"\x52\x05", available, FALSE, echo)


def stops(walker: Walker, pieces: list[bytes]) -> list[tuple[StopKind, int, int, int, int]]:
    """Stops with their places in all bytes; a frame that began in an earlier piece begins with the piece."""
    found = []
    base = 0
    for piece in pieces:
        offset = 0
        while (stop := walker.next_stop(memoryview(bytearray(piece)), offset)) is not None:
            assert offset <= stop.start < stop.end <= len(piece)
            offset = stop.end
            found.append((stop.kind, stop.channel, stop.value, base + stop.start, base + stop.end))
        base += len(piece)
    return found


@pytest.mark.parametrize(
    ("data", "kind", "value"),
    [
        (transfer(number(0x80013700)), StopKind.FORMAT, 0x80013700),
        (transfer(b"\x52\x07"), StopKind.FORMAT, 7),
        (transfer(number(9), long=True), StopKind.FORMAT, 9),
        (transfer(number(9), tag=NULL), StopKind.FORMAT, 9),
        (transfer(number(9), payload=b"y" * 70_000), StopKind.FORMAT, 9),
        (transfer(number(9), tag=b"\xb0\x00\x00\x00\x20" + b"t" * 32), StopKind.FORMAT, 9),
        (flow(number(0), TRUE), StopKind.LINK_ECHO, 3),
        (flow(b"\x43", b"\x56\x01"), StopKind.LINK_ECHO, 3),
        (flow(NULL, TRUE), StopKind.SESSION_ECHO, 3),
        (flow(b"\x43", TRUE, number(70)), StopKind.LINK_ECHO, 3),
        (flow(b"\x43", FALSE, number(70)), StopKind.AVAILABLE, 70),
        (flow(b"\x43", NULL, b"\x43"), StopKind.AVAILABLE, 0),
        (frame(0x13, *[number(1)] * 7, b"\x52\x09"), StopKind.AVAILABLE, 9),
        (frame(0x11, NULL, b"\x43", number(5), number(5)), StopKind.BEGIN, 0),
    ],
)
def test_received_frames_that_matter(make: Make, data: bytes, kind: StopKind, value: int) -> None:
    before, after = HEADER + transfer(b"\x43") + flow(b"\x43", FALSE), transfer(NULL)
    (found,) = stops(make(False), [before + data + after])
    assert (found[0], found[1], found[3], found[4]) == (kind, 3, len(before), len(before) + len(data))
    assert kind is StopKind.BEGIN or found[2] == value


@pytest.mark.parametrize(
    "data",
    [
        transfer(b"\x43"),
        transfer(NULL),
        transfer(number(0)),
        transfer(number(9))[:5] + b"\x01" + transfer(number(9))[6:],  # of SASL
        frame(0x14, b"\x43", b"\x43", b"\xa0\x01t"),  # no more fields
        frame(0x13, NULL, NULL, NULL, NULL, b"\x43", b"\x43", b"\x43", NULL, FALSE),
        flow(b"\x43", FALSE),
        flow(b"\x43", NULL),
        flow(NULL, FALSE, number(70)),
        flow(b"\x43", b"\x56\x00"),
        frame(0x12, b"\xa1\x01n", b"\x43", TRUE),
        frame(0x15, TRUE, number(1)),
        struct.pack(">IBBH", 8, 2, 0, 0),  # a heartbeat
        struct.pack(">IBBH", 12, 2, 0, 0) + b"\x00\x53\x14\x45",
        struct.pack(">IBBH", 15, 2, 0, 0) + b"\xa3\x05hello",
        struct.pack(">IBBH", 20, 200, 0, 0) + b"\x00\x53\x14\xc0\x05\x04CCCC\x00\x00",  # a header longer than the frame
        HEADER,
    ],
)
def test_received_frames_that_do_not(make: Make, data: bytes) -> None:
    assert stops(make(False), [data, transfer(number(9))]) == [
        (StopKind.FORMAT, 3, 9, len(data), len(data) + len(transfer(number(9))))
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 31, 64, 127, 128, 129])
def test_frames_in_pieces_are_found_at_their_ends(make: Make, size: int) -> None:
    frames = [
        HEADER,
        transfer(number(1)),
        transfer(b"\x43", payload=b"z" * 700),
        transfer(number(2), payload=b"z" * 700),
        struct.pack(">IBBH", 8, 2, 0, 0),
        flow(b"\x43", TRUE),
        frame(0x11, NULL, b"\x43"),
    ]
    data = b"".join(frames)
    found = stops(make(False), [data[start : start + size] for start in range(0, len(data), size)])
    assert [(kind, value) for kind, _, value, *_ in found[:3]] == [
        (StopKind.FORMAT, 1),
        (StopKind.FORMAT, 2),
        (StopKind.LINK_ECHO, 3),
    ]
    assert found[3][0] is StopKind.BEGIN
    ends = [sum(map(len, frames[: count + 1])) for count in (1, 3, 5, 6)]
    assert [end for *_, end in found] == ends


def test_what_is_no_amqp_is_not_looked_at(make: Make) -> None:
    assert stops(make(False), [b"\x00\x00\x00\x03\x02\x00\x00\x00" + transfer(number(9))]) == []


def test_a_frame_with_a_long_header_is_found(make: Make) -> None:
    data = transfer(number(9))
    longer = struct.pack(">IB", len(data) + 8, 4) + data[5:8] + b"extended" + data[8:]
    assert [stop[:3] for stop in stops(make(False), [longer])] == [(StopKind.FORMAT, 3, 9)]


def test_sent_transfers_with_a_format_in_their_tag(make: Make) -> None:
    padded = transfer(b"\x43", tag=b"\xa0\x0c" + b"12345678" + (0x80013700).to_bytes(4))
    plain = transfer(b"\x43", tag=b"\xa0\x0812345678")
    data = bytearray(plain + padded + plain)
    walker = make(True)
    stop = walker.next_stop(bytes(data), 0)
    assert stop is not None
    assert (stop.kind, stop.start, stop.end) == (StopKind.PADDED_TAG, len(plain), len(plain + padded))
    assert walker.next_stop(bytes(data), stop.end) is None
    set_message_format(data, stop.start + stop.value)
    assert bytes(data) == plain + transfer(number(0x80013700), tag=b"\xa0\x0812345678") + plain


@pytest.mark.parametrize("length", [10, 1000])
def test_sent_frames_are_incomplete_until_their_heads_are_there(make: Make, length: int) -> None:
    sent = frame(0x12, b"\xb1" + length.to_bytes(4) + b"n" * length, b"\x52\x07", FALSE, long=True)
    heartbeat = struct.pack(">IBBH", 8, 2, 0, 0)
    for cut in range(1, len(sent)):
        walker = make(True)
        first = walker.next_stop(heartbeat + sent[:cut], 0)
        assert first == Stop(StopKind.INCOMPLETE, 8, 8 + cut)
        second = walker.next_stop(sent + heartbeat, 0)
        assert second is not None
        assert (second.kind, second.start, second.end) == (StopKind.ATTACH, 0, len(sent))
        assert read_attach(sent) == Attach(3, "n" * length, 7, True)


def test_long_sent_transfers_need_their_heads_only(make: Make) -> None:
    sent = transfer(b"\x43", payload=b"p" * 5000)
    walker = make(True)
    assert walker.next_stop(sent[:HEAD], 0) is None
    assert walker.next_stop(sent[HEAD:], 0) is None


@pytest.mark.parametrize("first", [HEAD, 1000, 4999])
def test_long_sent_transfers_are_found_with_their_heads(make: Make, first: int) -> None:
    sent = transfer(b"\x43", payload=b"p" * 5000, tag=b"\xa0\x0c" + b"t" * 12)
    walker = make(True)
    stop = walker.next_stop(sent[:first], 0)
    assert stop is not None
    assert (stop.kind, stop.start, stop.end) == (StopKind.PADDED_TAG, 0, first)
    assert walker.next_stop(sent[:first], stop.end) is None
    again = walker.next_stop(sent[first:] + sent, 0)
    assert again is not None
    assert (again.kind, again.start) == (StopKind.PADDED_TAG, len(sent) - first)


def test_the_flow_of_a_link_has_the_fields_of_its_session() -> None:
    window = (number(1), b"\x52\x02", number(3), number(4))
    for session in (frame(0x13, *window), frame(0x13, *window, NULL, NULL)):
        made = link_flow(session, handle=6, delivery_count=(1 << 32) + 7, credit=8, available=None, drain=True)
        code, channel, position = read_performative(made, len(made))
        fields = read_fields(made, position, len(made), 20)
        assert (code, channel, int.from_bytes(made[:4])) == (0x13, 3, len(made))
        assert [read_number(made, field) for field in fields[:7]] == [1, 2, 3, 4, 6, 7, 8]
        assert (made[fields[7]], made[fields[8]], len(fields)) == (0x40, 0x41, 9)


_frames = st.sampled_from(
    [
        HEADER,
        transfer(number(9)),
        transfer(b"\x43"),
        transfer(b"\x43", tag=b"\xa0\x0c123456789012"),
        flow(b"\x43", TRUE),
        flow(NULL, TRUE),
        frame(0x11, NULL, b"\x43"),
        frame(0x12, b"\xa1\x01n", b"\x43", FALSE),
        frame(0x12, b"\xb1\x00\x00\x01\x2c" + b"n" * 300, b"\x43", FALSE, long=True),
        frame(0x10, b"\xa1\x01c"),
    ]
)


@examples(200)
@given(
    st.lists(
        st.one_of(
            _frames, st.binary(max_size=40), st.integers(0, 400).map(lambda size: struct.pack(">IBBI", size, 2, 0, 20))
        )
    ),
    st.lists(st.integers(1, 300), min_size=1, max_size=10),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
    st.booleans(),
)
def test_both_walkers_find_the_same(
    frames: list[bytes], sizes: list[int], changes: list[tuple[int, int]], outgoing: bool
) -> None:
    data = bytearray(b"".join(frames))
    for place, value in changes:
        if place < len(data):
            data[place] = value
    pieces: list[bytes] = []
    start = 0
    while start < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(bytes(data[start : start + size]))
        start += size
    one, other = _python(outgoing), _compiled(outgoing)
    held = b""
    for piece in pieces:
        piece, held, offset = held + piece, b"", 0
        while True:
            stop = one.next_stop(piece, offset)
            same = other.next_stop(piece, offset)
            assert (stop is None) == (same is None)
            if stop is None or same is None:
                break
            assert (stop.kind, stop.start, stop.end) == (same.kind, same.start, same.end)
            if stop.kind is StopKind.INCOMPLETE:
                held = piece[stop.start :]
                break
            assert stop.kind in (StopKind.BEGIN, StopKind.ATTACH) or stop.value == same.value
            assert stop.channel == same.channel
            offset = stop.end
