"""Objects, events and blocks of rows for the tests of `ObjectDecoder`, and ways to read them."""

from __future__ import annotations

import struct
from uuid import UUID

from qmf.codec import (
    UInt32,
    UInt64,
)
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    Content,
    Envelope,
    EventData,
    EventsIndication,
    ObjectBlock,
    ObjectData,
    ObjectDecoder,
    ObjectId,
    ObjectsIndication,
    V1Message,
    decode,
    encode,
)
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.schema import ClassKey, Kind

AGENT = "example.org:widgets:1"
KEY = ClassKey("org.example", "widget", Kind.DATA, UUID(int=7))
ALARM = ClassKey("org.example", "alarm", Kind.EVENT, UUID(int=8))


def thing(number: int, **fields: object) -> ObjectData:
    values = {"name": f"w{number}", "count": UInt32(number), "total": UInt64(number << 40), "map": {"k": number}}
    options: dict[str, object] = {
        "values": values,
        "object_id": ObjectId(f"org.example:widget:w{number}", AGENT, 3),
        "class_key": KEY,
        "update_ts": 1_795_000_000_000_000_000 + number,
        "create_ts": 1_794_000_000_000_000_000,
    }
    return ObjectData(**{**options, **fields})  # type: ignore[arg-type]


def alarm(number: int, **fields: object) -> EventData:
    values = {"level": UInt32(number), "name": f"w{number}"}
    options: dict[str, object] = {"values": values, "class_key": ALARM, "timestamp": number + 1, "severity": 3}
    return EventData(**{**options, **fields})  # type: ignore[arg-type]


def read(reader: ObjectDecoder, content: Content) -> Envelope:
    """Send and receive; the result is compared with that of the general functions."""
    data = encode(Envelope(content=content))
    envelope = decode(data, reader)
    assert isinstance(envelope, Envelope)
    assert envelope == decode(data)
    return envelope


def objects(reader: ObjectDecoder, *items: ObjectData) -> list[ObjectData]:
    content = read(reader, ObjectsIndication(items)).content
    assert isinstance(content, ObjectsIndication)
    return list(content.objects)


def events(reader: ObjectDecoder, *items: EventData) -> list[EventData]:
    content = read(reader, EventsIndication(items)).content
    assert isinstance(content, EventsIndication)
    return list(content.events)


def is_lazy(item: ObjectData | EventData) -> bool:
    return isinstance(item.values, LazyValues)


def outcome(data: bytes, reader: ObjectDecoder | None) -> Envelope | V1Message | type[Exception]:
    try:
        return decode(data, reader)
    except (DecodeError, ProtocolError) as error:
        return type(error)


def shown(found: object) -> str:
    """In full, and NaN is like NaN."""
    return repr(found).replace("mappingproxy({})", "{}")


def known_names(reader: ObjectDecoder) -> list[list[tuple[str, ...]]]:
    """Names of the values of the forms known, by class."""
    return [[form.shape.names for form, _ in forms] for forms in reader.object_forms.functions.values()]


def block(columns: tuple[str, ...], codes: bytes, rows: bytes) -> ObjectBlock:
    return ObjectBlock(class_key=KEY, agent_name=AGENT, agent_epoch=3, columns=columns, codes=codes, rows=rows)


def row(name: bytes, number: int, text: bytes) -> bytes:
    fixed = struct.pack(">1sqqqIII", b"\x03", 3, 2, 1, number, len(name), len(text))
    return (len(fixed) + len(name) + len(text)).to_bytes(4, "big") + fixed + name + text


COLUMNS, CODES = ("count", "name"), b"\x22\x95"
ROWS = b"".join(row(b"w%d" % number, number, b"text") for number in range(3))
