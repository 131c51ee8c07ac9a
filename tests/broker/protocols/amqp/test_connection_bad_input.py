"""Frames that make no sense: the right error, the connection kept where the protocol allows, never a traceback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from broker.nodes.parts import depth_of
from broker.raw_clients import AMQP, connect, frame, usable
from broker.visible_broker import VisibleBroker
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.waiting import until

from qmf.broker import Broker
from qmf.codec import Described, UInt8, UInt32, UInt64
from qmf.codec.amqp10 import encode
from qmf.codec.types import Symbol

SENDS, RECEIVES = False, True
OPEN = frame(Described(UInt64(0x10), ["raw"]))
BEGIN = frame(Described(UInt64(0x11), [None, UInt32(0), UInt32(1000), UInt32(1000)]))


def source(*fields: object) -> Described:
    return Described(UInt64(0x28), list(fields))


def target(*fields: object) -> Described:
    return Described(UInt64(0x29), list(fields))


def attach(role: bool, source: object, target: object, *more: object, name: object = "link", handle: int = 0) -> bytes:
    modes = [UInt8(2), UInt8(0)]
    count = [None, None, UInt32(0)] if role is SENDS else []
    fields = [name, UInt32(handle), role, *modes, source, target, *count, *more]
    return frame(Described(UInt64(0x12), fields))


def filters(descriptor: object, value: object) -> dict[Any, Any]:
    return {Symbol("f"): Described(descriptor, value)}


def flow(handle: int, credit: int) -> bytes:
    fields = [UInt32(0), UInt32(1000), UInt32(0), UInt32(1000), UInt32(handle), UInt32(0), UInt32(credit)]
    return frame(Described(UInt64(0x13), fields))


def transfer(handle: int, payload: bytes, tag: bytes = b"t", *, more: bool = False, id: int = 0) -> bytes:
    return frame(Described(UInt64(0x14), [UInt32(handle), UInt32(id), tag, UInt32(0), False, more]), payload)


SELECTOR = Symbol("apache.org:selector-filter:string")
TOPIC = Symbol("apache.org:legacy-amqp-topic-binding:string")
HEADERS = Symbol("apache.org:legacy-amqp-headers-binding:map")
RECEIVE_TOPIC = source("amq.topic", UInt32(0), None, None, False, None, None)
CREATE = [Symbol("queue"), Symbol("create-on-demand")]


def filtered(descriptor: object, value: object, address: str = "amq.topic") -> bytes:
    made = source(address, UInt32(0), None, None, False, None, None, filters(descriptor, value))
    return attach(RECEIVES, made, target("x"))


def declared(**arguments: object) -> bytes:
    """A link to a queue that is created with these arguments."""
    properties = {Symbol(name): value for name, value in arguments.items()}
    return attach(SENDS, source("x"), target("made", None, None, None, None, properties, CREATE))


#: What is sent after open and begin, and the condition that the answer has. The connection is kept.
REFUSED_LINKS = [
    (attach(RECEIVES, source("nowhere"), target("x")), b"amqp:not-found"),
    (attach(SENDS, source("x"), target("nowhere")), b"amqp:not-found"),
    (attach(SENDS, source("x"), None), b"amqp:invalid-field"),
    (attach(SENDS, source("x"), target("q"), name=None), b"amqp:invalid-field"),
    (attach(RECEIVES, source("q"), target("x"), name=None), b"amqp:invalid-field"),
    (attach(RECEIVES, None, target("x")), b"amqp:not-found"),
    (attach(RECEIVES, source(""), target("x")), b"amqp:not-allowed"),
    (filtered(SELECTOR, "a = = b"), b"amqp:invalid-field"),
    (filtered(SELECTOR, "(" * 5_000), b"amqp:invalid-field"),
    (filtered(SELECTOR, "a = 1" + " and a = 1" * 5_000), b"amqp:invalid-field"),
    (filtered(SELECTOR, 5, "q"), b"amqp:invalid-field"),
    (filtered(SELECTOR, {"a": 1}, "q"), b"amqp:invalid-field"),
    (filtered(TOPIC, 5), b"amqp:invalid-field"),
    (filtered(HEADERS, "x", "amq.match"), b"amqp:invalid-field"),
    (filtered(HEADERS, {"x-match": "some"}, "amq.match"), b"amqp:invalid-field"),
    (declared(**{"qpid.max_count": "many"}), b"amqp:invalid-field"),
    (declared(**{"qpid.max_count": -1}), b"amqp:invalid-field"),
    (declared(**{"qpid.policy_type": 5}), b"amqp:invalid-field"),
    (declared(exclusive="perhaps"), b"amqp:invalid-field"),
    (declared(**{"lifetime-policy": "forever"}), b"amqp:invalid-field"),
    (declared(**{"qpid.policy_type": "flow-to-disk"}), b"amqp:not-implemented"),
]
#: The protocol leaves no choice: the frame itself is wrong.
CLOSING = [
    (attach(RECEIVES, source("q", UInt32(0), None, None, False, None, None, "no map"), target("x")), b"decode-error"),
    (attach(RECEIVES, source("q", UInt32(0), None, None, False, None, None, {Symbol("f"): 5}), target("x")), b"decode"),
    (attach(RECEIVES, source("q"), target("x")) * 2, b"amqp:invalid-field"),
    (flow(7, 10), b"amqp:invalid-field"),
    (transfer(0, b""), b"amqp:session:window-violation"),
    (frame(Described(UInt64(0x12), ["l", UInt32(0), True]), channel=9), b"amqp:not-allowed"),
    (frame(Described(UInt64(0x12), "no list")), b"amqp:connection:framing-error"),
    (frame(Described(UInt64(0x99), [])), b"amqp:connection:framing-error"),
    (frame([1, 2, 3]), b"amqp:connection:framing-error"),
    (frame(Described(UInt64(0x15), [True, UInt32(5), UInt32(0xFFFFFFFF), True, None])), b"illegal delivery range"),
]


async def answer(reader: asyncio.StreamReader, wanted: bytes) -> bytes:
    """What the broker writes until it names this error, or closes the connection."""
    data = b""
    async with asyncio.timeout(30):
        while wanted not in data and (received := await reader.read(65536)):
            data += received
    return data


def quiet(caplog: pytest.LogCaptureFixture) -> bool:
    """True if nothing was logged that is a fault of the broker."""
    return not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


@pytest.mark.parametrize(("frames", "condition"), REFUSED_LINKS)
async def test_a_link_that_cannot_be_is_refused_and_the_connection_kept(
    frames: bytes, condition: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(port=0, queues=["q"], management=3600) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + BEGIN + frames)
        assert condition in await answer(reader, condition)
        # The connection is as good as before: the next link is granted.
        writer.write(attach(SENDS, source("x"), target("amq.topic"), name="another", handle=1))
        assert b"another" in await answer(reader, b"another")
        assert quiet(caplog)
        assert broker.counters.failures == 0
        writer.close()


@pytest.mark.parametrize(("frames", "condition"), CLOSING)
async def test_a_frame_that_is_wrong_ends_its_connection_with_an_error(
    frames: bytes, condition: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(port=0, queues=["q"]) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + BEGIN + frames)
        assert condition in await answer(reader, condition)
        assert quiet(caplog)
        assert broker.counters.failures == 1
        writer.close()
        await usable(broker)


COORDINATOR = Described(UInt64(0x30), [[Symbol("amqp:local-transactions")]])
#: In a flow frame.
CREDIT = b"\x00\x53\x13"
DECLARE = b"\x00\x53\x77" + encode(Described(UInt64(0x31), []))


def discharge(*fields: object) -> bytes:
    return b"\x00\x53\x77" + encode(Described(UInt64(0x32), list(fields)))


@pytest.mark.parametrize(
    ("payload", "condition"),
    [
        (b"", b"amqp:not-implemented"),
        (b"\xff\xff", b"amqp:decode-error"),
        (b"\x00\x53\x77\xa1\x04text", b"amqp:not-implemented"),
        (discharge(), b"amqp:not-implemented"),
        (discharge("text"), b"amqp:not-implemented"),
        (discharge(b"unknown", False), b"amqp:transaction:unknown-id"),
        (discharge(b"x" * 100_000, True), b"amqp:transaction:unknown-id"),
        (b"\x00\x53\x77" + encode(Described(UInt64(0x31), "no list")), b"amqp:not-implemented"),
    ],
)
async def test_what_the_coordinator_does_not_understand_is_rejected(
    payload: bytes, condition: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(port=0) as broker:
        reader, writer = await connect(broker)
        size = 40_000
        parts = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        writer.write(AMQP + OPEN + BEGIN + attach(SENDS, source("x"), COORDINATOR))
        await answer(reader, CREDIT)
        for number, part in enumerate(parts):
            writer.write(transfer(0, part, more=number + 1 < len(parts)))
        assert condition in await answer(reader, condition)
        writer.write(transfer(0, DECLARE, b"u", id=1))
        await answer(reader, b"\x00\x53\x33")  # declared
        assert quiet(caplog)
        writer.close()


async def test_an_abandoned_transaction_is_rolled_back() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + BEGIN + attach(SENDS, source("x"), COORDINATOR))
        await answer(reader, CREDIT)
        writer.write(transfer(0, DECLARE))
        await answer(reader, b"\x00\x53\x33")
        id = (1).to_bytes(8)
        state = Described(UInt64(0x34), [id])
        sent = Described(UInt64(0x14), [UInt32(1), UInt32(1), b"m", UInt32(0), False, False, None, state])
        writer.write(attach(SENDS, source("x"), target("q"), name="sends", handle=1))
        await answer(reader, CREDIT)
        writer.write(frame(sent, b"\x00\x53\x77\xa1\x04text"))
        await answer(reader, b"\x00\x53\x15")  # the provisional outcome
        writer.close()
        await until(lambda: broker.connections == 0, "the end of the connection")
        (queue,) = broker.registry.queues
        assert depth_of(queue) == (0, 0)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(0, 2**32 - 1).map(UInt32)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from(["q", "amq.topic", "amq.match", "", "x" * 300, "new"])
    | st.binary(max_size=5)
    | st.sampled_from(["copy", "never", "link-detach", "queue", "create-on-demand", "shared", "global"]).map(Symbol)
    | st.lists(st.sampled_from(["queue", "create-on-demand", "shared"]).map(Symbol), max_size=3)
    | st.dictionaries(
        st.sampled_from(["lifetime-policy", "durable", "qpid.max_count", "x", "selector"]).map(Symbol),
        st.none() | st.booleans() | st.integers(-5, 5) | st.just("a = 1") | st.just(Described(SELECTOR, "a >")),
        max_size=3,
    )
)
TERMINI = st.builds(
    lambda code, address, fields: Described(UInt64(code), [address, *fields]),
    st.sampled_from([0x28, 0x29, 0x30]),
    st.sampled_from(["q", "amq.topic", None, "new", 5]),
    st.lists(VALUES, max_size=9),
)
LINKS = st.builds(
    lambda name, handle, role, source, target, more: frame(
        Described(UInt64(0x12), [name, UInt32(handle), role, None, None, source, target, *more])
    ),
    st.sampled_from(["a", "b", "c", None]),
    st.integers(0, 3),
    st.booleans(),
    st.none() | TERMINI,
    st.none() | TERMINI,
    st.lists(VALUES, max_size=7),
)
OTHERS = st.builds(
    lambda code, fields, payload: frame(Described(UInt64(code), fields), payload),
    st.sampled_from([0x13, 0x14, 0x15, 0x16]),
    st.lists(VALUES | st.integers(0, 3).map(UInt32), max_size=11),
    st.sampled_from([b"", b"\x00\x53\x77\xa1\x04text", DECLARE, discharge((1).to_bytes(8)), b"\xff"]),
)

NUMBERS = (st.integers(0, 3) | st.integers(0, 2**32 - 1)).map(UInt32)
#: Flows that ask for an answer, with counts that need not be right.
ECHOES = st.builds(
    lambda window, link, drain: frame(Described(UInt64(0x13), [*window, *link, drain, True])),
    st.lists(NUMBERS, min_size=4, max_size=4),
    st.just([None] * 4) | st.lists(NUMBERS, min_size=4, max_size=4),
    st.booleans(),
)
#: Messages with a format, some in several frames, some aborted.
FORMATS = st.builds(
    lambda handle, number, message_format, more, aborted, payload: frame(
        Described(
            UInt64(0x14),
            [UInt32(handle), UInt32(number), b"t", message_format, False, more, None, None, None, aborted],
        ),
        payload,
    ),
    st.integers(0, 1),
    st.integers(0, 2),
    NUMBERS,
    st.booleans(),
    st.booleans(),
    st.binary(max_size=300),
)


@pytest.mark.slow
@examples(60)
@given(frames=st.lists(LINKS | OTHERS | ECHOES | FORMATS, min_size=1, max_size=8))
def test_no_sequence_of_links_and_messages_raises_an_exception(frames: Sequence[bytes]) -> None:
    async def run() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        async with Broker(port=0, queues=["q"], management=3600) as broker:
            _, writer = await connect(broker)
            writer.write(AMQP + OPEN + BEGIN + b"".join(frames))
            writer.write_eof()
            await until(lambda: broker.counters.connections == 1 and broker.connections == 0, "the end")
            await usable(broker)
            writer.close()
        assert not faults

    asyncio.run(run())
