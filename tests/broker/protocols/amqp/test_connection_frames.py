"""What passes the broker bit by bit, message formats among it; flows that ask for an answer. With frames as bytes."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from broker.raw_clients import AMQP, Client, connect, frame, usable
from broker.visible_broker import VisibleBroker

from qmf.broker import Broker
from qmf.bus.engine.events import CreditChanged, Delivery, LinkAttached, OutcomeReceived
from qmf.bus.engine.values import Outcome, Terminus
from qmf.codec import Described, UInt8, UInt32, UInt64
from qmf.codec.amqp10 import decode, encode

#: As senders of batches use it.
FORMAT = 0x80013700
TEXT = b"\x00\x53\x77\xa1\x04text"
#: No sections at all.
OPAQUE = b"\xff\xfe opaque \x00\x53\x75"


@contextlib.asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    client = Client(*await connect(broker))
    yield client
    client.writer.close()


async def send(client: Client, messages: Sequence[tuple[bytes, int]], node: str = "q", **options: bytes) -> None:
    """Send messages with their formats, and wait until they are accepted."""
    link = client.engine.links.attach(f"to-{node}-{len(client.seen)}", is_sender=True, terminus=Terminus(node))
    credit = sum(isinstance(event, CreditChanged) for event in client.seen)
    await client.exchange(CreditChanged, credit + 1)
    before = sum(isinstance(event, OutcomeReceived) for event in client.seen)
    for data, message_format in messages:
        client.engine.deliveries.send(link, data, message_format=message_format, **options)  # type: ignore[arg-type]
    await client.exchange(OutcomeReceived, before + len(messages))
    outcomes = [event for event in client.seen if isinstance(event, OutcomeReceived)][before:]
    assert [event.outcome for event in outcomes] == [Outcome.ACCEPTED] * len(messages), outcomes


async def receive(client: Client, count: int, *, browse: bool = False, node: str = "q") -> list[Delivery]:
    """Messages of a queue."""
    terminus = Terminus(node, browse=browse)
    link = client.engine.links.attach(f"from-{len(client.seen)}", is_sender=False, terminus=terminus, credit=count)
    found: list[Delivery] = []
    while len(found) < count:
        await client.exchange(Delivery, sum(isinstance(event, Delivery) for event in client.seen) + 1)
        found = [event for event in client.seen if isinstance(event, Delivery) and event.link is link]
    return found


def seen(deliveries: Sequence[Delivery]) -> list[tuple[bytes, int]]:
    return [(delivery.data, delivery.message_format) for delivery in deliveries]


def accept(client: Client, deliveries: Sequence[Delivery], outcome: Outcome = Outcome.ACCEPTED) -> None:
    for delivery in deliveries:
        assert delivery.delivery_tag is not None
        client.engine.decisions.settle(delivery.link, delivery.delivery_tag, outcome)


MESSAGES = [
    (TEXT, FORMAT),
    (TEXT, 0),
    (OPAQUE, 1),
    (b"", 0xFFFFFFFF),
    (TEXT * 30_000, 7),
    (TEXT, 0),
    (OPAQUE * 20_000, FORMAT),
]


async def test_messages_keep_their_format_through_a_queue_and_browsing() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await send(client, MESSAGES)
        assert seen(await receive(client, len(MESSAGES), browse=True)) == MESSAGES
        received = await receive(client, len(MESSAGES))
        assert seen(received) == MESSAGES
        accept(client, received[:3])
        accept(client, received[3:], Outcome.RELEASED)
        assert seen(await receive(client, len(MESSAGES) - 3)) == MESSAGES[3:]
        await usable(broker)


async def test_messages_keep_their_format_through_an_exchange_and_a_transaction() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        coordinator = client.engine.links.attach("c", is_sender=True, terminus=Terminus(coordinator=True))
        await client.exchange(CreditChanged)
        client.engine.deliveries.send(coordinator, b"\x00\x53\x77" + encode(Described(UInt64(0x31), [])))
        await client.exchange(OutcomeReceived)
        (declared,) = [event for event in client.seen if isinstance(event, OutcomeReceived)]
        assert declared.transaction is not None
        await send(client, MESSAGES, transaction=declared.transaction)
        discharge = Described(UInt64(0x32), [declared.transaction, False])
        client.engine.deliveries.send(coordinator, b"\x00\x53\x77" + encode(discharge))
        assert seen(await receive(client, len(MESSAGES))) == MESSAGES


async def test_failed_deliveries_of_a_format_that_the_broker_cannot_read_are_counted() -> None:
    arguments = {"qpid.maximum_delivery_count": 2, "alternate-exchange": "amq.fanout"}
    async with VisibleBroker(port=0) as broker, client_of(broker) as client:
        target = Terminus("limited", capabilities=("queue", "create-on-demand"), properties=arguments)
        client.engine.links.attach("make", is_sender=True, terminus=target)
        await client.exchange(LinkAttached)
        rejected = client.engine.links.attach("rejected", is_sender=False, terminus=Terminus("amq.fanout"), credit=5)
        await client.exchange(LinkAttached, 2)
        await send(client, [(OPAQUE, FORMAT)], node="limited")
        for _ in range(2):
            (delivery,) = await receive(client, 1, node="limited")
            assert seen([delivery]) == [(OPAQUE, FORMAT)]
            assert delivery.delivery_tag is not None
            client.engine.decisions.modify(delivery.link, delivery.delivery_tag, failed=True, undeliverable=False)
            client.engine.links.detach(delivery.link)
        await client.exchange(Delivery, 3)
        last = [event for event in client.seen if isinstance(event, Delivery)][-1]
        assert (last.link, last.data, last.message_format) == (rejected, OPAQUE, FORMAT)


async def test_formats_are_in_the_store(tmp_path: Path) -> None:
    durable = b"\x00\x53\x70\xc0\x02\x01\x41"
    messages = [(durable + TEXT, FORMAT), (durable + TEXT, 0), (durable + TEXT * 30_000, 9)]
    async with Broker(port=0, data_dir=tmp_path) as broker, client_of(broker) as client:
        target = Terminus("q", capabilities=("queue", "create-on-demand"), properties={"durable": True})
        client.engine.links.attach("make", is_sender=True, terminus=target)
        await client.exchange(LinkAttached)
        await send(client, messages)
    async with Broker(port=0, data_dir=tmp_path) as broker, client_of(broker) as client:
        assert seen(await receive(client, 3)) == messages


async def test_formats_of_messages_on_the_disk(tmp_path: Path) -> None:
    """Of a queue that flows to disk."""
    arguments = {"qpid.policy_type": "flow_to_disk", "qpid.max_count": 1}
    async with Broker(port=0, data_dir=tmp_path) as broker, client_of(broker) as client:
        target = Terminus("q", capabilities=("queue", "create-on-demand"), properties=arguments)
        client.engine.links.attach("make", is_sender=True, terminus=target)
        await client.exchange(LinkAttached)
        await send(client, MESSAGES)
        received = await receive(client, len(MESSAGES))
        assert seen(received) == MESSAGES


# Bit by bit


def _section(code: int, *pairs: bytes) -> bytes:
    body = b"".join(pairs)
    return bytes((0, 0x53, code, 0xD1)) + struct.pack(">II", len(body) + 4, len(pairs)) + body


def _symbol(name: str) -> bytes:
    return bytes((0xA3, len(name))) + name.encode()


def _string(name: str) -> bytes:
    return bytes((0xA1, len(name))) + name.encode()


#: Encodings that a decoder loses or does not have, and those that another encoder writes in another way.
VALUES = [
    b"\xe0\x05\x03\x52\x01\x02\x03",  # arrays: of small numbers, of described values, of none
    b"\xf0\x00\x00\x00\x09\x00\x00\x00\x02\x60\x00\x01\x00\x02",
    b"\xe0\x08\x02\x00\xa3\x01x\x52\x01\x02",
    b"\xf0\x00\x00\x00\x05\x00\x00\x00\x00\x40",
    b"\x74\x22\x50\x00\x01",  # decimals
    b"\x84" + b"\x22" * 8,
    b"\x94" + b"\x33" * 16,
    b"\x00\xa3\x03foo\x00\x80\x00\x00\x00\x00\x00\x00\x00\x63\xc0\x03\x02\x41\x40",  # described, nested
    b"\x72\x7f\xc0\x00\x01",  # a NaN with a payload
    b"\x73\x00\x01\xf6\x00",
    b"\x98" + b"u" * 16,
    b"\x80\x00\x00\x00\x00\x00\x00\x00\x01",  # numbers in more bytes than needed
    b"\x70\x00\x00\x00\x00",
    b"\x56\x01",
    b"\x45",
    b"\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x40",
    b"\xb0\x00\x00\x00\x01z",
    b"\xb3\x00\x00\x00\x01z",
    b"\x83" + b"\xff" * 8,
    b"\xc1\x07\x02\x43\xc1\x03\x02\x40\x41",
]


def _message(durable: bool) -> bytes:
    symbols = [part for number, value in enumerate(VALUES) for part in (_symbol(f"x-opt-{number}"), value)]
    simple = [part for number, value in enumerate(VALUES) for part in (_string(f"p{number}"), value)]
    header = b"\x00\x53\x70\xd0\x00\x00\x00\x07\x00\x00\x00\x02" + (b"\x41\x50\x04" if durable else b"\x42\x50\x04")
    properties = b"\x00\x53\x73\xd0\x00\x00\x00\x0b\x00\x00\x00\x01\xb1\x00\x00\x00\x02id"
    annotations = _section(0x71, *symbols) + _section(0x72, b"\x80" + b"\x00" * 7 + b"\x05", b"\x40", *symbols)
    body = b"\x00\x53\x75\xa0\x03one" + b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xb0\x00\x00\x00\x03two"
    return header + annotations + properties + _section(0x74, *simple) + body + _section(0x78, *symbols, *symbols)


def _attach(name: str, handle: int, *, receives: bool, node: str = "q") -> bytes:
    source, target = Described(UInt64(0x28), [node]), Described(UInt64(0x29), [node])
    count = [] if receives else [None, None, UInt32(0)]
    fields = [name, UInt32(handle), receives, UInt8(2), UInt8(0), source, target, *count]
    return frame(Described(UInt64(0x12), fields))


def _flow(handle: int | None, count: int, credit: int, *, echo: bool = False) -> bytes:
    window = [UInt32(0), UInt32(1000), UInt32(0), UInt32(1000)]
    link = [None, None, None] if handle is None else [UInt32(handle), UInt32(count), UInt32(credit)]
    return frame(Described(UInt64(0x13), [*window, *link, None, False, echo]))


def _transfer(number: int, payload: bytes, message_format: int = 0, *, more: bool = False) -> bytes:
    fields = [UInt32(0), UInt32(number), b"t%d" % number, UInt32(message_format), False, more]
    return frame(Described(UInt64(0x14), fields), payload)


BEGIN = frame(Described(UInt64(0x11), [None, UInt32(0), UInt32(1000), UInt32(1000)]))


class Raw:
    """A client that writes bytes, and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_frame: int = 65536) -> None:
        self.reader, self.writer = reader, writer
        opening = frame(Described(UInt64(0x10), ["raw", None, UInt32(max_frame)]))
        writer.write(AMQP + opening + BEGIN)
        self.payloads: list[bytes] = []

    async def read(self, code: int) -> list[object]:
        """The fields of the next frame of this kind; payloads of transfers are kept."""
        async with asyncio.timeout(30):
            while True:
                head = await self.reader.readexactly(8)
                if head == AMQP:
                    continue
                body = await self.reader.readexactly(int.from_bytes(head[:4]) - 8)
                if not body:
                    continue
                performative, end = decode(body)
                assert isinstance(performative, Described)
                assert isinstance(performative.value, list)
                if performative.descriptor == 0x14:
                    self.payloads.append(body[end:])
                if performative.descriptor == code:
                    return performative.value


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("message_format", [0, FORMAT])
async def test_every_byte_of_a_message_passes(tmp_path: Path, restart: bool, message_format: int) -> None:
    data = _message(restart)
    capabilities = ("queue", "create-on-demand")
    async with contextlib.AsyncExitStack() as stack:
        broker = await stack.enter_async_context(Broker(port=0, data_dir=tmp_path))
        async with client_of(broker) as client:
            node = Terminus("q", capabilities=capabilities, properties={"durable": True})
            client.engine.links.attach("make", is_sender=True, terminus=node)
            await client.exchange(LinkAttached)
        raw = Raw(*await connect(broker))
        raw.writer.write(_attach("s", 0, receives=False))
        await raw.read(0x13)
        middle = len(data) // 2
        raw.writer.write(_transfer(0, data[:middle], message_format, more=True) + _transfer(0, data[middle:], 0))
        outcome = await raw.read(0x15)
        assert isinstance(outcome[4], Described)
        assert outcome[4].descriptor == 0x24, outcome
        raw.writer.close()
        if restart:
            await stack.aclose()
            broker = await stack.enter_async_context(Broker(port=0, data_dir=tmp_path))
        raw = Raw(*await connect(broker), 512)
        raw.writer.write(_attach("r", 0, receives=True) + _flow(0, 0, 1))
        formats = set()
        while True:
            fields = [*await raw.read(0x14), None, None]
            formats.add(fields[3])
            if not fields[5]:
                break
        assert b"".join(raw.payloads) == data
        assert len(raw.payloads) > 2
        assert formats == {message_format}
        raw.writer.close()


# Echo


async def test_a_receiver_learns_what_waits_and_what_credit_is_left() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await send(client, [(TEXT, 0)] * 5)
        raw = Raw(*await connect(broker))
        raw.writer.write(_attach("r", 0, receives=True) + _flow(0, 0, 2))
        await raw.read(0x14)
        await raw.read(0x14)
        raw.writer.write(_flow(0, 2, 0, echo=True))
        answer = await raw.read(0x13)
        assert (answer[4:7], answer[7]) == ([0, 2, 0], 3)
        assert len(answer) < 10 or not answer[9]
        raw.writer.write(_flow(0, 2, 10, echo=True))
        # The state is told at once, the messages that the credit is for may come before or after.
        answer = await raw.read(0x13)
        count, credit = answer[5], answer[6]
        assert isinstance(count, int)
        assert isinstance(credit, int)
        assert count + credit == 12
        while len(raw.payloads) < 5:
            await raw.read(0x14)
        raw.writer.write(_flow(0, 5, 7, echo=True))
        assert (await raw.read(0x13))[4:8] == [0, 5, 7, 0]
        raw.writer.write(_flow(None, 0, 0, echo=True))
        answer = await raw.read(0x13)
        assert answer[:4] == [0, 0x7FFFFFFF, 5, 0x7FFFFFFF]
        assert all(field is None for field in answer[4:])
        raw.writer.close()
        await usable(broker)


async def test_a_sender_learns_its_credit() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        raw = Raw(*await connect(broker))
        raw.writer.write(_attach("s", 0, receives=False))
        granted = await raw.read(0x13)
        raw.writer.write(_transfer(0, TEXT) + _flow(0, 1, 0, echo=True))
        answer = await raw.read(0x13)
        assert isinstance(granted[6], int)
        assert answer[4:7] == [granted[4], 1, granted[6] - 1]
        raw.writer.close()


async def test_many_echoes_at_once_are_all_answered() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        raw = Raw(*await connect(broker))
        raw.writer.write(_attach("r", 0, receives=True))
        await raw.read(0x12)
        raw.writer.write(_flow(0, 0, 1, echo=True) * 500)
        for _ in range(500):
            assert (await raw.read(0x13))[4:7] == [0, 0, 1]
        raw.writer.close()
        await usable(broker)
