"""QMFv1: the part that finds schemas (QMF2.md 8).

A QMFv1 body is a row of frames: "AM2", an opcode of one letter, a sequence number, fields. Frames say nothing of their
length, so those whose fields depend on a schema (objects, events, methods) are kept whole, with all that follows in the
body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import attrs

from qmf.codec.amqp010 import Reader, Writer
from qmf.codec.errors import EncodeError
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol.errors import UnknownOpcode
from qmf.protocol.v1_schemas import read_schema, write_schema
from qmf.schema.model import ClassKey, ClassSchema, EventSchema, Kind

#: What every frame begins with.
MAGIC = b"AM2"


@attrs.frozen
class BrokerRequest:
    """`B`: asks the broker for its id."""

    sequence: int = 0


@attrs.frozen
class BrokerResponse:
    """`b`: the broker's id."""

    broker_id: UUID
    sequence: int = 0


@attrs.frozen
class PackagesRequest:
    """`P`: asks the broker for the names of its packages."""

    sequence: int = 0


@attrs.frozen
class PackageResponse:
    """`p`: one package. A `CommandComplete` follows the last, in a message of its own."""

    package: str
    sequence: int = 0


@attrs.frozen
class ClassesRequest:
    """`Q`: asks the broker for the classes of a package."""

    package: str
    sequence: int = 0


@attrs.frozen
class ClassResponse:
    """`q`: one class or event class. A `CommandComplete` follows the last."""

    key: ClassKey
    sequence: int = 0


@attrs.frozen
class SchemaRequest:
    """`S`: asks for the schema with this key. The wire leaves its kind out; decoded keys are of kind DATA."""

    key: ClassKey
    sequence: int = 0


@attrs.frozen
class SchemaResponse:
    """`s`: a schema. Its event class has no severity, and counters are plain integers, as QMFv1 has them."""

    schema: ClassSchema | EventSchema
    sequence: int = 0


@attrs.frozen
class CommandComplete:
    """`z`: the end of an answer, or its failure when `code` is not 0."""

    code: int = 0
    text: str = "OK"
    sequence: int = 0


@attrs.frozen
class OpaqueFrame:
    """A frame of a known kind that this module does not take apart, with everything after it.

    Attributes:
        opcode: its letter.
        body: the bytes after the sequence number.
    """

    opcode: str
    body: bytes
    sequence: int = 0


Frame = (
    BrokerRequest
    | BrokerResponse
    | PackagesRequest
    | PackageResponse
    | ClassesRequest
    | ClassResponse
    | SchemaRequest
    | SchemaResponse
    | CommandComplete
    | OpaqueFrame
)


@attrs.frozen(kw_only=True)
class V1Message:
    """A QMFv1 message.

    Attributes:
        frames: at least one.
        to, subject, reply_to, user_id: as of `qmf.protocol.contents.Envelope`. Whatever its exchange, the key of
            `reply_to` gets most of qpidd's answers on `amq.direct` (QMF2.md 8.3).
        agent: name of the agent that answers, where sent (libqmf2 does).
    """

    frames: Sequence[Frame]
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    agent: str | None = None
    user_id: str | None = None


#: Opcodes of `OpaqueFrame`: objects, events, heartbeats, methods, queries, attaching of QMFv1 agents.
OPAQUE = frozenset("gcieh" + "mM" + "G" + "Aax")


def encode_frames(frames: Sequence[Frame]) -> bytes:
    """The body of a QMFv1 message.

    Raises:
        EncodeError: a text that is too long, a class key without hash, or a number that is too large.
    """
    writer = Writer()
    for frame in frames:
        opcode, write = _WRITERS.get(type(frame), ("", _write_nothing))
        writer.raw(MAGIC)
        writer.raw((frame.opcode if isinstance(frame, OpaqueFrame) else opcode).encode("latin-1"))
        writer.uint32(frame.sequence)
        write(writer, frame)
    return writer.getvalue()


def decode_frames(data: bytes) -> tuple[Frame, ...]:
    """The frames of a QMFv1 body.

    Raises:
        DecodeError: the bytes end inside a frame, or another frame should start where none does.
        UnknownOpcode: a frame of an unknown kind.
        ProtocolError: a schema with content that makes no sense.
    """
    reader = Reader(data)
    frames: list[Frame] = []
    while reader.remaining or not frames:
        start = reader.pos
        if reader.take(3) != MAGIC:
            raise DecodeError(f"no QMFv1 frame starts at offset {start}")
        opcode = reader.take(1).decode("latin-1")
        sequence = reader.uint32()
        read = _READERS.get(opcode)
        if read is not None:
            frames.append(read(reader, sequence))
        elif opcode in OPAQUE:
            frames.append(OpaqueFrame(opcode, reader.rest(), sequence))
        else:
            raise UnknownOpcode(f"QMFv1 {opcode!r}")
    return tuple(frames)


# -- fields ------------------------------------------------------------------------------------------------------------


def _write_key(writer: Writer, key: ClassKey) -> None:
    if key.hash is None:
        raise EncodeError(f"QMFv1 names classes with their hash; {key} has none")
    writer.str8(key.package)
    writer.str8(key.name)
    writer.uuid(key.hash)


def _read_key(reader: Reader, kind: Kind) -> ClassKey:
    return ClassKey(reader.str8(), reader.str8(), kind, reader.uuid())


def _write_nothing(writer: Writer, frame: object) -> None:  # noqa: ARG001 (requests without fields)
    return


def _write_kind_and_key(writer: Writer, frame: ClassResponse) -> None:
    writer.uint8(1 if frame.key.kind is Kind.DATA else 2)
    _write_key(writer, frame.key)


def _read_class(reader: Reader, sequence: int) -> ClassResponse:
    kind = reader.uint8()
    if kind not in (1, 2):
        raise ProtocolError(f"QMFv1 'q': kind of class is {kind}, not 1 or 2")
    return ClassResponse(_read_key(reader, Kind.DATA if kind == 1 else Kind.EVENT), sequence)


def _write_complete(writer: Writer, frame: CommandComplete) -> None:
    writer.uint32(frame.code)
    writer.str8(frame.text)


_WRITERS: dict[type, tuple[str, Callable[[Writer, Any], None]]] = {
    BrokerRequest: ("B", _write_nothing),
    BrokerResponse: ("b", lambda writer, frame: writer.uuid(frame.broker_id)),
    PackagesRequest: ("P", _write_nothing),
    PackageResponse: ("p", lambda writer, frame: writer.str8(frame.package)),
    ClassesRequest: ("Q", lambda writer, frame: writer.str8(frame.package)),
    ClassResponse: ("q", _write_kind_and_key),
    SchemaRequest: ("S", lambda writer, frame: _write_key(writer, frame.key)),
    SchemaResponse: ("s", lambda writer, frame: write_schema(writer, frame.schema)),
    CommandComplete: ("z", _write_complete),
    OpaqueFrame: ("", lambda writer, frame: writer.raw(frame.body)),
}

_READERS: dict[str, Callable[[Reader, int], Frame]] = {
    "B": lambda _, sequence: BrokerRequest(sequence),
    "b": lambda reader, sequence: BrokerResponse(reader.uuid(), sequence),
    "P": lambda _, sequence: PackagesRequest(sequence),
    "p": lambda reader, sequence: PackageResponse(reader.str8(), sequence),
    "Q": lambda reader, sequence: ClassesRequest(reader.str8(), sequence),
    "q": _read_class,
    "S": lambda reader, sequence: SchemaRequest(_read_key(reader, Kind.DATA), sequence),
    "s": lambda reader, sequence: SchemaResponse(read_schema(reader), sequence),
    "z": lambda reader, sequence: CommandComplete(reader.uint32(), reader.str8(), sequence),
}
