"""Runs of packets: what the compiled functions read and write is what the functions in Python read and write."""

from __future__ import annotations

import contextlib
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing import FEW, MANY, changed

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.protocols.mqtt.codec.fields import encode_text, encode_variable
from qmf.broker.protocols.mqtt.codec.packets import MessageAnswer, Packet, Ping, Publish
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty, encode_properties
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.runs import AcknowledgementRun, PublicationRun, Runs, compiled_runs
from qmf.broker.protocols.mqtt.codec.values import MqttError, PacketType, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.broker.protocols.mqtt.mapping import head_of, read_content, run_messages, to_message

pytestmark = pytest.mark.skipif(compiled_runs() is None, reason="not compiled (scripts/c_extensions.py)")

_USER = {PacketProperty.USER_PROPERTY: (("a", "1"),)}
PACKETS: list[Packet] = [
    *(Publish("a", b"x" * size, qos, packet_id=5 if qos else None) for size in (0, 3, 300) for qos in range(3)),
    Publish("a", b"y", 1, duplicate=True, packet_id=6),
    Publish("a", b"z", 1, True, packet_id=7),
    Publish("ab", b"x", 1, packet_id=8, properties=_USER),
    Publish("a", b"x", 1, packet_id=9, properties={PacketProperty.TOPIC_ALIAS: 1}),
    *(MessageAnswer(PacketType.PUBACK, number) for number in (1, 2, 0xFFFF)),
    MessageAnswer(PacketType.PUBACK, 3, 0x10),
    MessageAnswer(PacketType.PUBREC, 4),
    Ping(),
]


def compiled() -> Runs:
    found = compiled_runs()
    assert found is not None
    return found


def prefix_of(packet: Publish) -> bytes:
    return head_of(packet.topic, packet.qos, retain=packet.retain, properties=packet.properties, exchange="mqtt")


def stored(packet: Publish) -> Message:
    return to_message(
        packet.topic,
        packet.payload,
        packet.qos,
        retain=packet.retain,
        properties=packet.properties,
        exchange="mqtt",
        now=5.0,
        origin=None,
    )


def read_one_by_one(data: bytes, version: Version, size: int) -> list[object]:
    """Packets, with publications as they are stored; and the error at the end, if there is one."""
    reader, found = PacketReader(1_000, version), list[object]()
    try:
        for begin in range(0, len(data), size):
            reader.feed(data[begin : begin + size])
            while (packet := reader.next_packet()) is not None:
                if isinstance(packet, Publish):
                    found.append((stored(packet).data, packet.packet_id))
                else:
                    found.append(packet)
    except MqttError as error:
        found.append((error.code, error.reason))
    return found


def read_in_runs(data: bytes, version: Version, size: int) -> tuple[list[object], int]:
    """As `read_one_by_one`; and how many packets came in runs."""
    reader, found, together = PacketReader(1_000, version), list[object](), 0
    try:
        for begin in range(0, len(data), size):
            reader.feed(data[begin : begin + size])
            while True:
                run = reader.next_run(3)
                if isinstance(run, PublicationRun):
                    assert len(run.messages) <= 3
                    together += len(run.messages)
                    ids: list[int] | list[None] = run.packet_ids or [None] * len(run.messages)
                    found += list(zip(run.messages, ids, strict=True))
                elif isinstance(run, AcknowledgementRun):
                    together += len(run.packet_ids)
                    found += [MessageAnswer(PacketType.PUBACK, packet_id) for packet_id in run.packet_ids]
                elif (packet := reader.next_packet()) is None:
                    break
                elif isinstance(packet, Publish):
                    found.append((stored(packet).data, packet.packet_id))
                    reader.expect_run(packet, prefix_of(packet))
                else:
                    found.append(packet)
    except MqttError as error:
        found.append((error.code, error.reason))
    return found, together


def compare(data: bytes, version: Version, size: int) -> int:
    found, together = read_in_runs(data, version, size)
    assert found == read_one_by_one(data, version, size), data
    return together


@given(
    st.lists(st.tuples(st.sampled_from(PACKETS), st.integers(1, 5)), max_size=6),
    st.sampled_from(Version),
    st.sampled_from([1, 7, 100, 100_000]),
)
def test_packets_are_those_that_are_read_one_by_one(
    packets: list[tuple[Packet, int]], version: Version, size: int
) -> None:
    compare(b"".join(encode_packet(packet, version) * count for packet, count in packets), version, size)


def test_most_packets_come_in_runs() -> None:
    publish = encode_packet(Publish("a", b"x", 1, packet_id=5), Version.V3)
    answer = encode_packet(MessageAnswer(PacketType.PUBACK, 5), Version.V3)
    assert compare(publish * 10 + answer * 10 + publish * 5, Version.V3, 100_000) == 9 + 10 + 5


def test_another_publication_ends_a_run() -> None:
    """With an alias, the same bytes may be of another topic then."""
    alias = {PacketProperty.TOPIC_ALIAS: 1}
    reader = PacketReader(version=Version.V5)
    packets = [
        Publish("a", b"1", properties=alias),
        Publish("", b"2", properties=alias),
        Publish("b", b"3", properties=alias),
        Publish("", b"4", properties=alias),
    ]
    reader.feed(b"".join(encode_packet(packet, Version.V5) for packet in packets))
    assert reader.next_packet() is not None
    second = reader.next_packet()
    assert isinstance(second, Publish)
    reader.expect_run(second, b"topic a")
    assert reader.next_run(10) is None
    assert reader.next_packet() == packets[2]
    assert reader.next_run(10) is None
    assert reader.next_packet() == packets[3]


def compare_many(count: int) -> None:
    chance = Random(count)
    for _ in range(count):
        version = chance.choice(list(Version))
        parts = [encode_packet(packet, version) * chance.randrange(1, 4) for packet in chance.choices(PACKETS, k=4)]
        data = b"".join(parts)
        compare(changed(chance, data) if chance.randrange(3) else data, version, chance.choice([5, 60, 100_000]))


@pytest.mark.slow
def test_changed_packets() -> None:
    compare_many(FEW)


@pytest.mark.slow
@pytest.mark.soak
def test_many_changed_packets() -> None:
    compare_many(MANY)


@given(
    st.lists(st.binary(max_size=300) | st.just(b"y" * 20_000), min_size=1, max_size=8),
    st.integers(0, 1),
    st.sampled_from([{}, _USER]),
    st.sampled_from([50, 400, 1_000_000]),
)
def test_publications_are_those_that_are_written_one_by_one(
    payloads: list[bytes], qos: int, properties: dict[PacketProperty, object], max_size: int
) -> None:
    packets = [Publish("t/ü", payload, qos, properties=properties) for payload in payloads]
    messages = [stored(packet) for packet in packets]
    content, _ = read_content(messages[0], "mqtt")
    entries = [Entry(message, number, len(message.data)) for number, message in enumerate(messages)]
    ids = list(range(7, 7 + len(payloads)))
    data = messages[0].data
    head = data[: len(data) - len(payloads[0]) - (2 if len(payloads[0]) < 0x100 else 5)]
    encoded = encode_variable(len(content.properties)) + content.properties
    written, count = compiled().write_publications(
        entries, 0, head, 0x30 | qos << 1, encode_text("t/ü"), encoded, ids if qos else None, max_size, 1_000_000
    )
    whole = [
        encode_packet(attrs.evolve(packet, packet_id=packet_id if qos else None), Version.V5)
        for packet, packet_id in zip(packets, ids, strict=True)
    ]
    assert written == b"".join(whole[:count])
    assert count == len(whole) or len(whole[count]) > max_size - 5
    assert encode_properties(properties) == encoded


def test_what_is_not_alike_is_left() -> None:
    packets = [Publish("a", b"1"), Publish("a", b"2"), Publish("b", b"3")]
    messages = [stored(packet) for packet in packets]
    entries = [Entry(message, number, len(message.data)) for number, message in enumerate(messages)]
    head = messages[0].data[:-3]
    run = compiled().write_publications

    def written(start: int = 0, backlog: int = 1_000, ids: list[int] | None = None) -> tuple[bytes, int]:
        return run(entries, start, head, 0x30 if ids is None else 0x32, b"\0\1a", b"", ids, 100, backlog)

    assert written() == (b"\x30\4\0\1a1\x30\4\0\1a2", 2)
    assert written(start=1) == (b"\x30\4\0\1a2", 1)
    assert written(start=2) == (b"", 0)
    assert written(start=5) == (b"", 0)
    assert written(backlog=1) == (b"\x30\4\0\1a1", 1)
    assert written(ids=[0x102]) == (b"\x32\6\0\1a\1\x021", 1)
    messages[1].expires_at = 7.0
    assert written() == (b"\x30\4\0\1a1", 1)
    messages[0].data += b"\0"
    assert written() == (b"", 0)


def test_wrong_arguments() -> None:
    run = compiled()
    entry = Entry(stored(Publish("a", b"1")), 1, 1)
    head = entry.message.data[:-3]
    with pytest.raises(ValueError, match="a packet id is out of range"):
        run.write_acknowledgements([1, 0x10000])
    with pytest.raises(TypeError, match="packet ids are not in a list"):
        run.write_acknowledgements((1,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a packet id is out of range"):
        run.write_publications([entry], 0, head, 0x32, b"\0\1a", b"", [0], 100, 100)
    with pytest.raises(TypeError, match="packet ids are not in a list"):
        run.write_publications([entry], 0, head, 0x32, b"\0\1a", b"", (1,), 100, 100)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="message"):
        run.write_publications([None], 0, head, 0x30, b"\0\1a", b"", None, 100, 100)
    assert run.write_acknowledgements([1, 0x203]) == b"\x40\2\0\1\x40\2\2\3"
    assert run.read_acknowledgements(b"\x40\2\0\1\x40\2\0\0", 0) == ([1], 4)
    assert run.read_acknowledgements(b"\x40\2", 0) == ([], 0)


def test_messages_of_a_run() -> None:
    properties = {PacketProperty.MESSAGE_EXPIRY: 10, PacketProperty.CORRELATION_DATA: b"c"}
    pattern = Publish("a", b"1", 1, packet_id=1, properties=properties)
    one = stored(pattern)
    [message] = run_messages(pattern, [one.data], 5.0, None)
    assert message == one or attrs.asdict(message) == attrs.asdict(one)
    read = read_message(message.data, 5.0)
    assert (message.subject, message.expires_at, message.correlated, message.durable) == (
        read.subject,
        read.expires_at,
        read.correlated,
        read.durable,
    )
    with contextlib.suppress(KeyError):
        del properties[PacketProperty.MESSAGE_EXPIRY]
    [message] = run_messages(attrs.evolve(pattern, properties={}, qos=0), [one.data], 5.0, None)
    assert (message.expires_at, message.correlated, message.durable) == (None, False, False)
