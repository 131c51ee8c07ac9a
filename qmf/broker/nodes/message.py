"""A message in the broker: its bytes, which are never changed, and the fields that routing needs.

Routing needs two properties and the time to live. They are read straight from the bytes of a message in the common
layout; the codec reads messages in any other layout, and the application properties when a headers exchange needs them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import ClassVar

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.delivery_times import InvalidAnnotation, delivery_time
from qmf.broker.nodes.sections import APPLICATION_PROPERTIES, MESSAGE_ANNOTATIONS, add_value, merge_annotations
from qmf.broker.nodes.traces import add_to_trace, end_of_trace
from qmf.codec import amqp10
from qmf.codec.errors import EncodeError
from qmf.codec.message import DEFAULT_PRIORITY, decode_message
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.type_codes import AMQP10, AMQP10_BY_NAME
from qmf.codec.types import Described, Int64, UInt8, UInt32, UInt64
from qmf.errors import DecodeError


@attrs.define(eq=False)
class Message:
    """One message. It is never changed; it is not frozen, since frozen objects take longer to create.

    Attributes:
        data: the encoded message, as received and as it will be sent.
        to: address of the node that the message is for, or None.
        subject: routing key; empty when the message has none.
        expires_at: time at which its time to live ends, in seconds of the broker's clock; None for never.
        correlated: it has a correlation id, as requests and their answers have.
        durable: its header asks to keep it over a restart of the broker.
        priority: that of its header; 4 is the usual one.
        deliver_at: time from which on it may be delivered, by the same clock; None for at once.
        origin: the client that sent it; None for one of the broker itself, or of an earlier run.
        message_format: of its transfer: what the bytes mean, in 32 bits; 0 for a message as AMQP defines it.
        user_id: whom its properties name as the sender; known of a message that was just received.
        paged: its data is on the disk.
    """

    paged: ClassVar[bool] = False

    data: bytes
    to: str | None
    subject: str
    _fields: AmqpMessage | None
    expires_at: float | None
    correlated: bool = False
    durable: bool = False
    priority: int = DEFAULT_PRIORITY
    deliver_at: float | None = None
    origin: ClientInfo | None = None
    message_format: int = 0
    user_id: bytes | None = None

    @property
    def fields(self) -> AmqpMessage:
        """The message without its body.

        Raises:
            DecodeError: it is malformed; only at the first access.
        """
        if self._fields is None:
            self._fields = decode_message(self.data, body=False)
        return self._fields

    @property
    def headers(self) -> Mapping[str, object]:
        """Application properties, which headers exchanges match; errors as of `fields`."""
        return self.fields.application_properties

    def header_text(self, name: str) -> str:
        """An application property as text; empty where it is missing, or where the properties are malformed."""
        try:
            value = self.headers.get(name)
        except DecodeError:
            return ""
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    @property
    def delivery_count(self) -> int:
        """Failed deliveries, according to its header."""
        if self.opaque:
            return self.fields.delivery_count
        return _count_in_header(self.data[: _end_of_header(self.data)])

    @property
    def opaque(self) -> bool:
        """True for bytes of a format that the broker cannot read: it never changes them."""
        return type(self._fields) is OpaqueFields

    def with_annotation(self, name: str, value: int | str) -> Message:
        """The same message with a message annotation, a long or a string."""
        if self.opaque:
            return self
        encoded = value if isinstance(value, str) else Int64(value)
        return self._with_data(add_value(self.data, MESSAGE_ANNOTATIONS, name, encoded))

    def with_annotations(self, annotations: bytes) -> Message:
        """The same message with more message annotations, an encoded map; its values replace those of the same keys.

        Raises:
            DecodeError: the message is malformed, or the annotations are no map.
        """
        if self.opaque:
            return self
        return self._with_data(merge_annotations(self.data, annotations))

    def with_sequence(self, name: str, value: int) -> Message:
        """The same message with a number as message annotation, and as application property."""
        if self.opaque:
            return self
        data = add_value(self.data, APPLICATION_PROPERTIES, name, Int64(value))
        return self._with_data(add_value(data, MESSAGE_ANNOTATIONS, name, Int64(value)))

    def after_broker(self, broker: str) -> Message:
        """The same message with a broker, by its id, at the end of its trace.

        Raises:
            DecodeError: the message is malformed, or its trace is not a text, or too long.
        """
        if self.opaque:
            return self
        return self._with_data(add_to_trace(self.data, broker))

    def is_expired(self, now: float) -> bool:
        """True when its time to live has ended."""
        return self.expires_at is not None and now >= self.expires_at

    def data_to_send(self, now: float) -> bytes:
        """The bytes as they are sent at a time: with what is left of the time to live (AMQP 1.0, part 3.2.1).

        Who receives a call knows by it until when its caller waits.
        """
        if self.expires_at is None or self.opaque:
            return self.data
        return with_time_left(self.data, self.expires_at - now)

    def after_failure(self) -> Message:
        """The same message with one more failed delivery in its header."""
        return self._with_count(self.delivery_count + 1)

    def after_restart(self) -> Message:
        """The same message with a failed delivery, at least: it may have been delivered before the broker started."""
        return self if self.delivery_count else self._with_count(1)

    def _with_count(self, count: int) -> Message:
        if self.opaque:
            return self._with_data(self.data, OpaqueFields(delivery_count=count))
        end = _end_of_header(self.data)
        return self._with_data(_header_with_count(self.data[:end], count) + self.data[end:])

    def _with_data(self, data: bytes, fields: OpaqueFields | None = None) -> Message:
        return Message(
            data,
            self.to,
            self.subject,
            fields,
            self.expires_at,
            self.correlated,
            self.durable,
            self.priority,
            self.deliver_at,
            self.origin,
            self.message_format,
        )


@attrs.frozen(kw_only=True)
class OpaqueFields(AmqpMessage):
    """Stands for the fields of a message of a format that the broker cannot read; it counts the failed deliveries."""


def with_time_left(data: bytes, left: float) -> bytes:
    """A message with what is left of its time to live; one that has none, or whose header is malformed, as it is.

    Args:
        data: the encoded message.
        left: in seconds; nothing less than a millisecond is sent.
    """
    end = _end_of_header(data)
    milliseconds = max(1, math.ceil(left * 1000))
    try:
        if _ttl_in_header(data[:end]) - milliseconds < _UNNOTICED:
            return data
        return _header_with_ttl(data[:end], milliseconds) + data[end:]
    except (DecodeError, EncodeError):  # routing does not read all fields, and nobody else minded
        return data


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def read_message(data: bytes, now: float, message_format: int = 0) -> Message:
    """Read what routing needs. Of the sections behind the properties only the sizes are checked.

    Args:
        data: the encoded message.
        now: when it was received, in seconds of the broker's clock.
        message_format: see `Message`. A message with a format need not have sections as AMQP defines them.

    Raises:
        DecodeError: the bytes are not a valid message.
        InvalidAnnotation: an annotation that the broker reads has a wrong type.
    """
    if not message_format:
        return _read_sections(data, now)
    try:
        message = _read_sections(data, now)
        _ = message.fields  # whole, since only the broker's own guess says that there are sections
    except InvalidAnnotation:
        raise
    except DecodeError:
        return Message(data, None, "", OpaqueFields(), None, message_format=message_format)
    message.message_format = message_format
    return message


def _read_sections(data: bytes, now: float) -> Message:
    try:
        return _read_common_layout(data, now)
    except (_OtherLayoutError, IndexError, UnicodeDecodeError):
        message = decode_message(data, body=False)
        return Message(
            data=data,
            to=message.to,
            subject=message.subject or "",
            fields=message,
            expires_at=None if message.ttl is None else now + message.ttl,
            correlated=message.correlation_id is not None,
            durable=bool(message.durable),
            priority=DEFAULT_PRIORITY if message.priority is None else message.priority,
            deliver_at=delivery_time(message.message_annotations, now) if message.message_annotations else None,
            user_id=message.user_id.encode() if isinstance(message.user_id, str) else message.user_id,
        )


class _OtherLayoutError(DecodeError):
    """The bytes may be a valid message, but not in the common layout."""


def _codes(names: str) -> list[int]:
    return [AMQP10_BY_NAME[name].code for name in names.split()]


_NULL, _UINT0, _SMALLUINT, _UINT = _codes("null uint0 smalluint uint")
_TRUE, _BOOLEAN, _UBYTE = _codes("true boolean ubyte")
_LONG_TRUE = bytes((_BOOLEAN, 1))
_BINARY8, _STRING8, _BINARY32, _STRING32 = _codes("vbin8 str8-utf8 vbin32 str32-utf8")
_LIST0, _LIST8, _LIST32, _MAP8, _MAP32 = _codes("list0 list8 list32 map8 map32")
_VARIABLE8, _VARIABLE32 = frozenset({_BINARY8, _STRING8}), frozenset({_BINARY32, _STRING32})
#: Bytes after the code of each fixed-width encoding that may stand in header or properties.
_WIDTHS = {
    code: AMQP10[code].width
    for code in _codes(
        "null true false boolean ubyte uint0 smalluint uint ulong0 smallulong ulong timestamp uuid",
    )
}
#: First bytes of sections, in the short form of their descriptors (part 3.2).
_HEADER, _PROPERTIES, _APPLICATION = b"\x00\x53\x70", b"\x00\x53\x73", b"\x00\x53\x74"
_BODY = (b"\x00\x53\x75", b"\x00\x53\x76", b"\x00\x53\x77")


#: Milliseconds that a message may wait before its time to live is sent as what is left of it: nobody notices less.
_UNNOTICED = 10

#: Heads whose fields are remembered: most senders send many messages with the same one. And the longest of them.
_HEADS, _MAX_HEAD = 1_000, 200


def _read_common_layout(data: bytes, now: float) -> Message:
    pos = 0
    if data.startswith(_HEADER):
        pos = _end_of_list(data, 3)
    repeated = True
    if data.startswith(_PROPERTIES, pos):
        # With a message id, no other message has the same head.
        repeated = data[pos + 3] == _LIST8 and data[pos + 6] == _NULL
        pos = _end_of_list(data, pos + 3)
    elif data[pos + 2] == MESSAGE_ANNOTATIONS and (end := end_of_trace(data, pos)):
        message = _read_common_layout(data[:pos] + data[end:], now)
        message.data = data
        return message
    head = data[:pos]
    to, subject, ttl, correlated, durable, priority, user = (
        _remembered_head(head) if repeated and pos <= _MAX_HEAD else _read_head(head)
    )
    if data.startswith(_APPLICATION, pos):
        _, _, pos = _compound(data, pos + 3, _MAP8, _MAP32)
    if not data.startswith(_BODY, pos):
        raise _OtherLayoutError("another section than expected")
    expires = None if ttl is None else now + ttl
    return Message(data, to, subject, None, expires, correlated, durable, priority, None, None, 0, user)


def _read_head(data: bytes) -> tuple[str | None, str, float | None, bool, bool, int, bytes | None]:
    """The fields of the sections before the application properties: to, subject, time to live in seconds, whether there
    is a correlation id, durable, priority, user id.
    """
    pos = 0
    ttl = to = subject = user = None
    correlated = durable = False
    priority = DEFAULT_PRIORITY
    if data.startswith(_HEADER):
        count, pos, end = _compound(data, 3, _LIST8, _LIST32)
        if count:
            durable = data[pos] == _TRUE or data.startswith(_LONG_TRUE, pos)
            pos = _end_of_value(data, pos)
        if count > 1:
            if data[pos] == _UBYTE:
                priority = data[pos + 1]
            pos = _end_of_value(data, pos)
        if count > 2:
            ttl = _number(data, pos)
        pos = end
    if data.startswith(_PROPERTIES, pos):
        count, pos, end = _compound(data, pos + 3, _LIST8, _LIST32)
        if count > 1:
            user, pos = _binary(data, _end_of_value(data, pos))
        if count > 2:
            to, pos = _text(data, pos)
        if count > 3:
            subject, pos = _text(data, pos)
        if count > 5:
            pos = _end_of_value(data, pos)
            correlated = data[pos] != _NULL
        if pos > end:
            raise _OtherLayoutError("a field longer than its section")
    return to, subject or "", None if ttl is None else ttl / 1000, correlated, durable, priority, user


_remembered_head = functools.lru_cache(maxsize=_HEADS)(_read_head)


def _end_of_header(data: bytes) -> int:
    """Position behind the header; 0 if there is none."""
    if not data.startswith(_HEADER):
        return 0
    return 4 if data[3] == _LIST0 else _end_of_list(data, 3)


def _header_fields(header: bytes) -> list[object]:
    """The five fields of a header, which may be missing."""
    value = amqp10.decode(header, len(_HEADER))[0] if header else []
    fields = list(value) if isinstance(value, list) else []
    return [*fields, *[None] * (5 - len(fields))]


@functools.lru_cache(maxsize=_HEADS)
def _count_in_header(header: bytes) -> int:
    """The failed deliveries in a header."""
    return _int(_header_fields(header)[4])


@functools.lru_cache(maxsize=_HEADS)
def _ttl_in_header(header: bytes) -> int:
    """The time to live in a header, in milliseconds; 0 for none."""
    return _int(_header_fields(header)[2])


def _header_with_ttl(header: bytes, ttl: int) -> bytes:
    """A header with another time to live, in milliseconds."""
    durable, priority, _, first, count = _header_fields(header)
    return _encode_header(durable, priority, ttl, first, count)


@functools.lru_cache(maxsize=_HEADS)
def _header_with_count(header: bytes, count: int) -> bytes:
    """A header with another number of failed deliveries; that of a message without header is empty."""
    durable, priority, ttl, *_ = _header_fields(header)
    return _encode_header(durable, priority, ttl, False, count)


def _encode_header(durable: object, priority: object, ttl: object, first: object, count: object) -> bytes:
    numbers = [None if value is None else UInt32(_int(value)) for value in (ttl, count)]
    level = None if priority is None else UInt8(_int(priority))
    return amqp10.encode(Described(UInt64(0x70), [durable, level, numbers[0], first, numbers[1]]))


def _end_of_list(data: bytes, pos: int) -> int:
    """Position behind the list at `pos`."""
    return pos + 2 + data[pos + 1] if data[pos] == _LIST8 else _compound(data, pos, _LIST8, _LIST32)[2]


def _compound(data: bytes, pos: int, short: int, long: int) -> tuple[int, int, int]:
    """Reads the head of the list or map at `pos`.

    Returns:
        number of values, position of the first one, position behind the last one.
    """
    code = data[pos]
    if code == short:
        return data[pos + 2], pos + 3, pos + 2 + data[pos + 1]
    if code == long:
        size = int.from_bytes(data[pos + 1 : pos + 5])
        return int.from_bytes(data[pos + 5 : pos + 9]), pos + 9, pos + 5 + size
    raise _OtherLayoutError("another type than expected")


def _end_of_value(data: bytes, pos: int) -> int:
    """Position behind the value at `pos`."""
    code = data[pos]
    if (width := _WIDTHS.get(code)) is not None:
        return pos + 1 + width
    if code in _VARIABLE8:
        return pos + 2 + data[pos + 1]
    if code in _VARIABLE32:
        return pos + 5 + int.from_bytes(data[pos + 1 : pos + 5])
    raise _OtherLayoutError("another type than expected")


def _text(data: bytes, pos: int) -> tuple[str | None, int]:
    """The string at `pos`, or None for null, and the position behind it."""
    code = data[pos]
    end = _end_of_value(data, pos)
    if code == _STRING8:
        return data[pos + 2 : end].decode(), end
    if code == _STRING32:
        return data[pos + 5 : end].decode(), end
    if code == _NULL:
        return None, end
    raise _OtherLayoutError("another type than expected")


def _binary(data: bytes, pos: int) -> tuple[bytes | None, int]:
    """The bytes at `pos`, or None for null, and the position behind them."""
    code = data[pos]
    if code == _NULL:
        return None, pos + 1
    end = _end_of_value(data, pos)
    if code == _BINARY8:
        return data[pos + 2 : end], end
    if code == _BINARY32:
        return data[pos + 5 : end], end
    raise _OtherLayoutError("another type than expected")


def _number(data: bytes, pos: int) -> int | None:
    """The unsigned number at `pos`, or None for null."""
    code = data[pos]
    if code == _NULL:
        return None
    if code == _UINT0:
        return 0
    if code == _SMALLUINT:
        return data[pos + 1]
    if code == _UINT:
        return int.from_bytes(data[pos + 1 : pos + 5])
    raise _OtherLayoutError("another type than expected")
