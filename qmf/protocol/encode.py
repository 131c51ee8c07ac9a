"""Building QMF messages (QMF2.md 3, 4, 8)."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

import qmf.protocol.wire_names as wire
from qmf.codec import amqp010, amqp10
from qmf.codec.amqp010 import encode_map_into
from qmf.codec.errors import escape
from qmf.codec.message import Message, Section, encode_content, encode_message
from qmf.codec.plain_maps import plain_maps
from qmf.codec.types import Symbol, UInt32, UInt64
from qmf.protocol.contents import (
    Envelope,
    EventsIndication,
    ExceptionResponse,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    MethodRequest,
    MethodResponse,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
)
from qmf.protocol.forms import BodyForm
from qmf.protocol.maps import (
    agent_to_map,
    class_key_to_map,
    object_id_to_map,
    wire_text,
    wire_value,
    wire_values,
)
from qmf.protocol.objects.general import block_to_map, event_to_map, object_to_map
from qmf.protocol.queries import (
    cancel_to_map,
    query_to_map,
    refresh_to_map,
    share_to_map,
    subscribe_to_map,
    subscribed_to_map,
)
from qmf.protocol.schemas import schema_to_map
from qmf.protocol.v1 import V1Message, encode_frames
from qmf.protocol.values import ObjectId

_Body = Mapping[str, object] | Sequence[object]

_PLAIN = plain_maps()

_REQUEST, _RESPONSE, _INDICATION = "request", "response", "indication"


def encode(message: Envelope | V1Message, *, form: BodyForm = BodyForm.DATA010, body: bytes | None = None) -> bytes:
    """Encode a QMF message as a complete AMQP 1.0 message.

    Values inside the content are Python values, `qmf.codec.types` where a width matters (`to_wire`), and object ids.

    Args:
        message: what to send. `to` and `subject` decide where it goes (QMF2.md 1.1).
        form: how the body is written; without meaning for QMFv1.
        body: the body of a QMFv2 message if it is encoded already, as an AMQP 0-10 map or list with its size field. The
            content then only gives the kind, and `form` must be left as it is.

    Raises:
        EncodeError: a value that the encoding cannot hold.
    """
    if isinstance(message, V1Message):
        return encode_message(_v1(message))
    kind = _KINDS[type(message.content)]
    encoded: object = body
    if body is None:
        value = kind.body(message.content)
        encoded = _data010(value) if form is BodyForm.DATA010 else value
    return encode_message(
        Message(
            ttl=message.ttl,
            user_id=None if message.user_id is None else escape(message.user_id),
            to=message.to,
            subject=message.subject,
            reply_to=message.reply_to,
            correlation_id=message.correlation_id,
            content_type=wire.MAP_TYPE if kind.is_map else wire.LIST_TYPE,
            application_properties=_properties(message, kind),
            section=Section.DATA if form is BodyForm.DATA010 else Section.VALUE,
            body=encoded,
        )
    )


def _data010(value: _Body) -> bytes:
    return amqp010.encode_map(value) if isinstance(value, Mapping) else amqp010.encode_list(value)


class MessageTemplate:
    """Encodes messages that differ in sequence number, number of events and body only.

    The bodies are encoded already, as AMQP 0-10 lists or maps with their size field.
    """

    def __init__(self, message: Envelope) -> None:
        """Encode what all messages have in common.

        Args:
            message: an example. Its content only gives the kind; it counts whether it has numbers, not which. It has
                a number of events only with a sequence number.
        """
        assert not message.suppressed
        has_events = message.events is not None
        if message.sequence is not None:
            message = attrs.evolve(message, sequence=_WIDEST, events=_WIDEST if has_events else None)
        # The last application properties are the number of events and the sequence number, in eight bytes since they
        # are that large; then the body follows.
        cut = len(_EMPTY_BODY) + (0 if message.sequence is None else 8)
        head = encode(message, body=b"")[:-cut]
        self._head, _, self._between = head.rpartition(_pack_u64(_WIDEST)) if has_events else (head, b"", b"")

    def encode(self, number: int | None, body: bytes, events: int | None = None) -> bytes:
        """One message; `number` and `events` are None when the example has none."""
        count = b"" if number is None else _pack_u64(number)
        total = b"" if events is None else _pack_u64(events)
        data = _pack_data32(0, 0x53, 0x75, 0xB0, len(body))
        return b"".join((self._head, total, self._between, count, data, body))


_WIDEST = (1 << 64) - 1
_EMPTY_BODY = b"\x00\x53\x75\xa0\x00"
_pack_u64 = struct.Struct(">Q").pack


#: Addresses that are remembered, and methods of objects; and the longest correlation id that is spliced in.
MAX_FRAMES, LONGEST_ID = 500, 100

_pack_list8, _pack_list32 = struct.Struct(">BBB").pack, struct.Struct(">BII").pack
_pack_data8, _pack_data32 = struct.Struct(">BBBBB").pack, struct.Struct(">BBBBI").pack
#: Bytes of an AMQP 0-10 map before its first entry: size and count.
_MAP_HEAD = 8


def encode_correlated(message: Envelope) -> bytes:
    """The same as ``encode(message)``; remembers what is the same in all requests or answers to one address.

    Of method calls it remembers what is the same in all of one method of an object, too.
    """
    number, content = message.correlation_id, message.content
    if number is None or not number.isascii() or len(number) > LONGEST_ID or not _is_plain(message):
        return encode(message)
    addresses = message.to, message.subject, message.reply_to
    user = message.user_id
    if isinstance(content, MethodRequest) and not content.subtypes and content.on_behalf_of is None:
        form = call_form(*addresses, message.agent, content.method, content.object_id, user)
        return form.encode(number, content.arguments, message.ttl)
    kind: type = type(content)
    frame = _frame(*addresses, kind, message.agent, user)
    return _join_parts(frame, number, message.ttl, (_data010(_KINDS[kind].body(content)),))


class CallForm:
    """The calls of one method of an object from one place: what is the same in all is encoded once."""

    __slots__ = ("_before", "_behind", "_frame", "_parts", "_size", "_ttl")

    def __init__(
        self,
        to: str | None,
        subject: str | None,
        reply_to: str | None,
        agent: str | None,
        method: str,
        object_id: ObjectId | None,
        user_id: str | None = None,
    ) -> None:
        """Encode what all calls have in common.

        Args:
            to, subject, reply_to, agent, user_id: as of `Envelope`.
            method, object_id: as of `MethodRequest`.
        """
        self._frame = _frame(to, subject, reply_to, MethodRequest, agent, user_id)
        # The body is a map of the method's name, the arguments, and the id of the object if there is one.
        entries = amqp010.encode_map({"_method_name": method})[_MAP_HEAD:] + b"\x0a_arguments\xa8"
        behind = b""
        if object_id is not None:
            behind = amqp010.encode_map({"_object_id": object_id_to_map(object_id)})[_MAP_HEAD:]
        #: Of the body without the arguments, as its size field counts.
        self._size = len(entries) + len(behind) + 4
        self._before, self._behind = (3 if behind else 2).to_bytes(4) + entries, behind
        #: For the compiled functions, with this time to live, which calls mostly have in common.
        self._ttl: float | None = None
        self._parts = (b"", *self._frame, self._before, behind)

    def encode(self, number: str, arguments: Mapping[str, object], ttl: float | None) -> bytes:
        """The same as `encode` of such an envelope.

        Args:
            number: correlation id: ASCII, at most `LONGEST_ID` characters.
            arguments, ttl: as of `MethodRequest` and `Envelope`.

        Raises:
            EncodeError: a value that the encoding cannot hold.
        """
        if _PLAIN is not None:
            if ttl != self._ttl:
                self._parts, self._ttl = (_header(ttl), *self._parts[1:]), ttl
            if (data := _PLAIN.encode_call(self._parts, number, arguments)) is not None:
                return data
        encoded = bytearray()
        encode_map_into(encoded, wire_values(arguments), 1)
        size = (self._size + len(encoded)).to_bytes(4)
        return _join_parts(self._frame, number, ttl, (size, self._before, encoded, self._behind))


def _join_parts(
    frame: tuple[bytes, bytes, bytes], number: str, ttl: float | None, body: tuple[bytes | bytearray, ...]
) -> bytes:
    """A message: what is around the correlation id, that, and the parts of the body."""
    before, behind, properties = frame
    size, length = len(before) + 2 + len(number) + len(behind), sum(map(len, body))
    head = _pack_list8(0xC0, size + 1, 7) if size < 0xFF else _pack_list32(0xD0, size + 4, 7)
    data = _pack_data8(0, 0x53, 0x75, 0xA0, length) if length <= 0xFF else _pack_data32(0, 0x53, 0x75, 0xB0, length)
    correlation_id = bytes((0xA1, len(number))) + number.encode()
    return b"".join((_header(ttl), b"\x00\x53\x73", head, before, correlation_id, behind, properties, data, *body))


@functools.lru_cache(MAX_FRAMES)
def call_form(
    to: str | None,
    subject: str | None,
    reply_to: str | None,
    agent: str | None,
    method: str,
    object_id: ObjectId | None,
    user_id: str | None = None,
) -> CallForm:
    """The form of such calls, remembered; arguments as of `CallForm`."""
    return CallForm(to, subject, reply_to, agent, method, object_id, user_id)


def _is_plain(message: Envelope) -> bool:
    """True when nothing but addresses, correlation id, user, time to live, agent and the body's content is set."""
    return not (
        message.partial
        or message.subscription is not None
        or message.sequence is not None
        or message.events is not None
        or message.suppressed
        or (isinstance(message.content, ObjectsResponse) and message.content.matched is not None)
    )


@functools.lru_cache(MAX_FRAMES)
def _header(ttl: float | None) -> bytes:
    """The header section; none without a time to live."""
    return b"" if ttl is None else encode_message(Message(ttl=ttl))


@functools.lru_cache(MAX_FRAMES)
def _frame(
    to: str | None, subject: str | None, reply_to: str | None, content: type, agent: str | None, user_id: str | None
) -> tuple[bytes, bytes, bytes]:
    """The encoded properties before and behind the correlation id, and the section of the application properties."""
    encode_message(Message(to=to, subject=subject, reply_to=reply_to))  # refuses what no message may have
    kind = _KINDS[content]
    user = None if user_id is None else escape(user_id)
    before = b"".join(amqp10.encode(item) for item in (None, user, to, subject, reply_to))
    behind = amqp10.encode(Symbol(wire.MAP_TYPE if kind.is_map else wire.LIST_TYPE))
    return before, behind, encode_content(_kind_properties(kind, agent), Section.NONE, None)


def _v1(message: V1Message) -> Message:
    # No app-id: with one, qpidd would take the body for QMFv2 (QMF2.md 8.1).
    return Message(
        user_id=None if message.user_id is None else escape(message.user_id),
        to=message.to,
        subject=message.subject,
        reply_to=message.reply_to,
        content_type="x-application/qmf",
        application_properties={} if message.agent is None else {wire.AGENT: message.agent},
        section=Section.DATA,
        body=encode_frames(message.frames),
    )


def _method_request(content: MethodRequest) -> _Body:
    out: dict[str, object] = {"_method_name": content.method, "_arguments": wire_values(content.arguments)}
    if content.object_id is not None:
        out["_object_id"] = object_id_to_map(content.object_id)
    if content.subtypes:
        out["_subtypes"] = dict(content.subtypes)
    if content.on_behalf_of is not None:
        out["_on_behalf_of"] = content.on_behalf_of
    return out


def _method_response(content: MethodResponse) -> _Body:
    out: dict[str, object] = {"_arguments": wire_values(content.arguments)}
    if content.subtypes:
        out["_subtypes"] = dict(content.subtypes)
    return out


def _exception(content: ExceptionResponse) -> _Body:
    values = wire_values(content.values)
    if content.text:
        values["error_text"] = wire_text(content.text)
    if content.code is not None:
        values["error_code"] = UInt32(content.code) if 0 <= content.code <= 0xFFFFFFFF else content.code
    out: dict[str, object] = {"_values": values}
    if content.class_key is not None:
        out["_schema_id"] = class_key_to_map(content.class_key)
    return out


@attrs.frozen
class _Kind:
    """How contents of one class are sent: opcode, `method`, `qmf.content`, what makes the body, and if it is a map."""

    opcode: str
    method: str
    content: str | None
    body: Callable[[Any], _Body]
    is_map: bool = True


def _kind_properties(kind: _Kind, agent: str | None = None) -> dict[str, object]:
    properties: dict[str, object] = {wire.METHOD: kind.method, wire.OPCODE: kind.opcode, wire.APP_ID: wire.QMF2}
    if agent is not None:
        properties[wire.AGENT] = agent
    if kind.content is not None:
        properties[wire.CONTENT] = kind.content
    return properties


def _properties(message: Envelope, kind: _Kind) -> dict[str, object]:
    properties = _kind_properties(kind, message.agent)
    if message.partial:
        properties[wire.PARTIAL] = ""
    if message.subscription is not None:
        properties[wire.SUBSCRIPTION] = message.subscription
    if message.events is not None:
        properties[wire.EVENTS] = UInt64(message.events)
    if message.sequence is not None:
        properties[wire.SEQUENCE] = UInt64(message.sequence)
    if message.suppressed:
        properties[wire.SUPPRESSED] = UInt64(message.suppressed)
    if isinstance(message.content, ObjectsResponse) and message.content.matched is not None:
        properties[wire.MATCHED] = UInt64(message.content.matched)
    return properties


def _objects(content: ObjectsResponse | ObjectsIndication) -> _Body:
    return [*map(object_to_map, content.objects), *map(block_to_map, content.blocks)]


_KINDS: dict[type, _Kind] = {
    LocateRequest: _Kind(wire.LOCATE_REQUEST, _REQUEST, None, lambda c: [wire_value(item) for item in c.where], False),
    LocateResponse: _Kind(wire.LOCATE_RESPONSE, _INDICATION, None, lambda c: {"_values": agent_to_map(c.agent)}),
    Heartbeat: _Kind(wire.HEARTBEAT, _INDICATION, None, lambda c: {"_values": agent_to_map(c.agent)}),
    QueryRequest: _Kind(wire.QUERY_REQUEST, _REQUEST, None, query_to_map),
    ObjectsResponse: _Kind(wire.QUERY_RESPONSE, _RESPONSE, wire.DATA, _objects, False),
    SchemaIdsResponse: _Kind(
        wire.QUERY_RESPONSE, _RESPONSE, wire.SCHEMA_ID, lambda c: [class_key_to_map(key) for key in c.keys], False
    ),
    SchemasResponse: _Kind(
        wire.QUERY_RESPONSE, _RESPONSE, wire.SCHEMA, lambda c: [schema_to_map(item) for item in c.schemas], False
    ),
    MethodRequest: _Kind(wire.METHOD_REQUEST, _REQUEST, None, _method_request),
    MethodResponse: _Kind(wire.METHOD_RESPONSE, _RESPONSE, None, _method_response),
    ExceptionResponse: _Kind(wire.EXCEPTION, _RESPONSE, wire.DATA, _exception),
    ObjectsIndication: _Kind(wire.DATA_INDICATION, _INDICATION, wire.DATA, _objects, False),
    EventsIndication: _Kind(
        wire.DATA_INDICATION, _INDICATION, wire.EVENT, lambda c: [event_to_map(item) for item in c.events], False
    ),
    SubscribeRequest: _Kind(wire.SUBSCRIBE_REQUEST, _REQUEST, None, subscribe_to_map),
    SubscribeResponse: _Kind(wire.SUBSCRIBE_RESPONSE, _RESPONSE, None, subscribed_to_map),
    SubscribeRefresh: _Kind(wire.SUBSCRIBE_REFRESH, _INDICATION, None, refresh_to_map),
    SubscribeShare: _Kind(wire.SUBSCRIBE_SHARE, _INDICATION, None, share_to_map),
    SubscribeCancel: _Kind(wire.SUBSCRIBE_CANCEL, _INDICATION, None, cancel_to_map),
}
