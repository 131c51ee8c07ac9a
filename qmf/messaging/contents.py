"""Messages of this API to and from AMQP 1.0 messages. No I/O.

Bytes are sent in a data section, all other content in an amqp-value section, as Apache's C++ client does. Peers that
only know AMQP 0-10 read maps and lists in that encoding: a message with the property ``x-amqp-0-10.app-id``, which
management messages have, carries them so, in a data section with their content type.

Source: High Level Client API, "Messaging Properties"; AMQP 1.0, part 3.2.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

from qmf.codec import amqp010
from qmf.codec.message import IdForm, Section, decode_fields, encode_content, encode_message, fits_form, split_message
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.types import Timestamp
from qmf.errors import DecodeError as CodecDecodeError
from qmf.messaging.addresses import Address
from qmf.messaging.exceptions import DecodeError, EncodeError
from qmf.messaging.message import Message, implied_content_type

#: A message with this property is meant for an application that reads AMQP 0-10.
APP_ID = "x-amqp-0-10.app-id"

#: The property that carries the subject in AMQP 0-10.
SUBJECT = "qpid.subject"

#: Properties that stand for parts of an AMQP 1.0 message without an attribute here, named as by Apache's C++ client:
#: they are sent and shown as these parts. Maps, where it is said; times are milliseconds since 1970.
_PARTS = {
    "x-amqp-first-acquirer": "first_acquirer",
    "x-amqp-delivery-count": "delivery_count",
    "x-amqp-delivery-annotations": "delivery_annotations",  # a map
    "x-amqp-message-annotations": "message_annotations",  # a map, such as of x-opt-delivery-delay
    "x-amqp-content-encoding": "content_encoding",
    "x-amqp-absolute-expiry-time": "absolute_expiry_time",
    "x-amqp-creation-time": "creation_time",
    "x-amqp-group-id": "group_id",
    "x-amqp-group-sequence": "group_sequence",
    "x-amqp-reply-to-group-id": "reply_to_group_id",
}
_NAMES = {part: name for name, part in _PARTS.items()}
#: It can be set as well, and goes before the attribute. Of a received message, `to` has it.
_TO = "x-amqp-to"
_SENT_PARTS = {**_PARTS, _TO: "to"}
_NUMBERS = frozenset({"delivery_count", "absolute_expiry_time", "creation_time", "group_sequence"})
_MAPS = frozenset({"delivery_annotations", "message_annotations"})

_MAP, _LIST = "amqp/map", "amqp/list"


class FormattedData(bytes):
    """An encoded message with a format.

    Attributes:
        message_format: see `Message`.
    """

    message_format: int

    def __new__(cls, data: bytes, message_format: int) -> Self:
        """See the attributes."""
        made = super().__new__(cls, data)
        made.message_format = message_format
        return made


def encode_formatted(message: Message) -> FormattedData:
    """The bytes of a message with a format.

    Raises:
        EncodeError: the content is no bytes, or the format no number of 32 bits.
    """
    content, message_format = message.content, message.message_format
    if not isinstance(content, bytes):
        kind = type(content).__name__
        raise EncodeError(text=f"message cannot be encoded: with a format its content has to be bytes, not {kind}")
    if type(message_format) is not int or not 0 < message_format < 1 << 32:
        raise EncodeError(text=f"message cannot be encoded: its format {message_format!r} is no number of 32 bits")
    return FormattedData(content, message_format)


def decode_formatted(data: FormattedData, kind: type[Message] = Message) -> Message:
    """The message of such bytes; `kind` is its class."""
    message = kind(bytes(data))
    message.message_format = data.message_format
    return message


def encode(
    message: Message,
    subject: str | None = None,
    to: str | None = None,
    *,
    durable: bool | None = None,
    lists_as_data: bool = False,
) -> bytes:
    """The encoded message.

    Args:
        message: what to send; it is not changed.
        subject: for a message that has none.
        to: the node it is sent to, for a message that names none.
        durable: of a message that does not say; False as None: its header does not say, either.
        lists_as_data: encode a list as AMQP 0-10 does, for a broker that cannot pass on one of AMQP 1.0.

    Raises:
        EncodeError: a property or the content cannot be encoded; names it.
    """
    section, body = _body(message, lists_as_data=lists_as_data)
    implied = section is not Section.DATA and message.content_type == implied_content_type(message.content)
    try:
        properties, parts = _properties(message.properties)
        leading = encode_leading(message, subject, to, durable, None if implied else message.content_type, parts)
        return leading + encode_content(properties, section, body)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise EncodeError(text=f"message cannot be encoded: {error}") from error


def encode_leading(
    message: Message,
    subject: str | None,
    to: str | None,
    durable: bool | None,
    content_type: str | None,
    parts: Mapping[str, Any] | None = None,
) -> bytes:
    """The sections of a message before the application's: header and properties.

    Args:
        message, subject, to, durable: see `encode`.
        content_type: that is sent.
        parts: further ones, by their names in `qmf.codec.message.Message`.

    Raises:
        EncodeError, ValueError, TypeError, OverflowError: a property cannot be encoded.
    """
    durable = durable or None if message.durable is None else bool(message.durable)
    priority, ttl, user_id = message.priority, message.ttl, message.user_id
    to = to if message.to is None else message.to
    subject = _subject(message, subject)
    address = message.reply_to
    reply_to = None if address is None else _reply_to(address)
    id, correlation_id = message.id, message.correlation_id
    if parts:
        to = parts.get("to", to)
        return _encode_leading(
            durable, priority, ttl, id, user_id, to, subject, reply_to, correlation_id, content_type, parts
        )
    if id is None and correlation_id is None:
        return _remembered_leading(durable, priority, ttl, None, user_id, to, subject, reply_to, None, content_type)
    if fits_form(id) and fits_form(correlation_id):
        sample_id, sample_correlation = None if id is None else "", None if correlation_id is None else ""
        form = _remembered_form(
            durable, priority, ttl, sample_id, user_id, to, subject, reply_to, sample_correlation, content_type
        )
        if form is not None:
            return form.join(*(text for text in (id, correlation_id) if type(text) is str))
    return _encode_leading(durable, priority, ttl, id, user_id, to, subject, reply_to, correlation_id, content_type)


def _subject(message: Message, otherwise: str | None) -> str | None:
    """That of a message, else the other one, else the message's property."""
    subject = otherwise if message.subject is None else message.subject
    return message.properties.get(SUBJECT) if subject is None else subject


def _encode_leading(
    durable: bool | None,
    priority: int | None,
    ttl: float | None,
    id: object,
    user_id: str | None,
    to: str | None,
    subject: str | None,
    reply_to: str | None,
    correlation_id: object,
    content_type: str | None,
    parts: Mapping[str, Any] | None = None,
) -> bytes:
    return encode_message(
        AmqpMessage(
            **{name: value for name, value in (parts or {}).items() if name != "to"},
            durable=durable,
            priority=None if priority is None else _priority(priority),
            ttl=None if ttl is None else _ttl(ttl),
            message_id=_id("id", id),
            user_id=None if user_id is None else user_id.encode(),
            to=to,
            subject=subject,
            reply_to=reply_to,
            correlation_id=_id("correlation_id", correlation_id),
            content_type=content_type,
        )
    )


#: Messages of one sender usually have the same sections, but for their ids.
_remembered_leading = functools.lru_cache(maxsize=64, typed=True)(_encode_leading)


@functools.lru_cache(maxsize=64, typed=True)
def _remembered_form(*values: Any) -> IdForm | None:
    return IdForm.of(_encode_leading(*values))


def decode(data: bytes, kind: type[Message] = Message) -> Message:
    """The message that was received.

    Args:
        data: encoded.
        kind: the class of the message.

    Raises:
        DecodeError: the bytes are not a message, or the content does not match its content type.
    """
    try:
        fields, section, body = _read(data)
        content = _content(section, body, fields.get("content_type"))
    except CodecDecodeError as error:
        raise DecodeError(text=f"message cannot be decoded: {error}") from error
    get = fields.get
    user_id, reply_to = get("user_id"), get("reply_to")
    message = kind(
        content,
        get("content_type") or implied_content_type(content),
        id=get("message_id"),
        subject=get("subject"),
        user_id=None if user_id is None else user_id.decode(errors="replace"),
        correlation_id=get("correlation_id"),
        durable=get("durable"),
        priority=get("priority"),
        ttl=get("ttl"),
        properties=get("application_properties"),
        to=get("to"),
    )
    if reply_to is not None:
        message.reply_to = _address(reply_to)
    if message.subject is None and SUBJECT in message.properties:
        message.subject = message.properties[SUBJECT]
    if _TIME_CODE in data:
        message.content, message.properties = _with_times(message.content), _with_times(message.properties)
    for part in fields.keys() & _NAMES.keys():
        value = fields[part]
        if part == "message_annotations":
            value = _without_numbers(value, message.properties)
        if part not in _MAPS:
            message.properties[_NAMES[part]] = value
        elif value:
            message.properties[_NAMES[part]] = dict(value)
    if get("delivery_count", 0) > 0:
        message.redelivered = True
    return message


def _without_numbers(annotations: Mapping[object, Any], properties: dict[str, Any]) -> Mapping[object, Any]:
    """Message annotations without the sequence numbers of qpidd's nodes, which become properties, as in AMQP 0-10.

    Their names are ``qpid.msg_sequence``, and those that programs choose for queues: all that do not begin with ``x-``,
    as the names of other annotations do. They go before properties of the same name.
    """
    others: dict[object, Any] = {}
    for name, value in annotations.items():
        if isinstance(name, str) and not name.startswith("x-"):
            properties[name] = value
        else:
            others[name] = value
    return others


def _body(message: Message, *, lists_as_data: bool) -> tuple[Section, object]:
    content, kind = message.content, message.content_type
    if isinstance(content, str):
        return _text_body(content, kind)
    if isinstance(content, Mapping | list | tuple):
        return _compound_body(message, lists_as_data=lists_as_data)
    if isinstance(content, bytes | bytearray | memoryview):
        return Section.DATA, bytes(content)
    if content is None:
        return Section.VALUE, None
    if not isinstance(content, _SCALARS):
        raise EncodeError(text=f"content must be {_CONTENT}, not {type(content).__name__}")
    if kind is not None:
        raise _mismatch(content, kind)
    return Section.VALUE, content


def _text_body(content: str, kind: str | None) -> tuple[Section, object]:
    if kind is None or is_text(kind):
        return Section.VALUE, content
    try:
        return Section.DATA, content.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(text=f"content cannot be encoded: {error}") from error


def _compound_body(message: Message, *, lists_as_data: bool) -> tuple[Section, object]:
    """Of a map or list."""
    content, kind = message.content, message.content_type
    is_map = isinstance(content, Mapping)
    if kind not in (_MAP if is_map else _LIST, None):
        raise _mismatch(content, kind)
    if APP_ID not in message.properties and (is_map or not lists_as_data):
        return Section.VALUE, content
    try:
        return Section.DATA, amqp010.encode_map(content) if is_map else amqp010.encode_list(content)
    except (ValueError, TypeError, RecursionError) as error:
        raise EncodeError(text=f"content cannot be encoded: {error}") from error


def _mismatch(content: object, kind: str | None) -> EncodeError:
    return EncodeError(text=f"content of {type(content).__name__} does not match content type {kind!r}")


#: Content that is one value of AMQP, besides text and None.
_SCALARS = (bool, int, float, datetime, Decimal, UUID)
_CONTENT = "str, bytes, dict, list, int, float, bool, datetime, Decimal, UUID or None"


def is_text(content_type: str | None) -> bool:
    """Whether a content type is one of text."""
    return content_type is not None and content_type.partition(";")[0].strip().lower().startswith("text/")


def _read(data: bytes) -> tuple[Mapping[str, Any], Section | None, object]:
    """The fields of a message before its body, the kind of its body section, and the body."""
    if (parts := split_message(data)) is not None and len(parts[0]) <= _MAX_HEAD:
        head, section, body = parts
        if (known := _remembered_fields(head)) is not None:
            return known, section, body
    # The fields alone, since a `codec.Message` of them would cost as much as decoding them.
    fields: dict[str, Any] = decode_fields(data, text=False)
    return fields, fields.get("section"), fields.get("body")


#: Bytes before a body whose fields are remembered: most messages of a sender have the same.
_MAX_HEAD = 200


@functools.lru_cache(maxsize=256)
def _remembered_fields(head: bytes) -> Mapping[str, Any] | None:
    """The fields; None if programs could change one of them, which each message has for itself then."""
    fields: dict[str, Any] = decode_fields(head, text=False)
    annotated = any(part in fields for part in _MAPS)
    return None if annotated or has_nested(fields.get("application_properties", {})) else fields


def has_nested(properties: Mapping[str, object]) -> bool:
    """Whether a property is a list or a map, which programs could change."""
    return any(isinstance(value, list | dict) for value in properties.values())


#: The type code of timestamps; without this byte, a message has none.
_TIME_CODE = b"\x83"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _with_times(value: Any) -> Any:
    """The value with times in place of timestamps; those that are before year 1 or after year 9999 stay numbers."""
    if isinstance(value, dict):
        return {_with_times(key): _with_times(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_times(item) for item in value]
    if isinstance(value, Timestamp):
        try:
            return _EPOCH + timedelta(milliseconds=value)
        except OverflowError:
            return value
    return value


def _content(section: Section | None, body: object, kind: str | None) -> object:
    if section is not Section.DATA or not isinstance(body, bytes):
        return body
    if kind == _MAP:
        return amqp010.decode_map(body, text=True)
    if kind == _LIST:
        return amqp010.decode_list(body, text=True)
    if is_text(kind):
        try:
            return body.decode()
        except UnicodeDecodeError:
            return body
    return body


def _priority(value: object) -> int:
    if isinstance(value, int) and 0 <= value <= 255:
        return value
    raise EncodeError(text=f"priority must be 0 to 255, not {value!r}")


def _ttl(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * 1000 < 2**32:
        return value
    raise EncodeError(text=f"ttl must be a number of seconds below {2**32 // 1000}, not {value!r}")


def _id(name: str, value: object) -> object:
    if value is None or isinstance(value, str | UUID | bytes) or (isinstance(value, int) and 0 <= value < 2**64):
        return value
    raise EncodeError(text=f"{name} must be str, UUID, bytes or an unsigned 64-bit int, not {value!r}")


def _properties(values: Mapping[str, object]) -> tuple[Mapping[str, object], Mapping[str, Any] | None]:
    """The properties of the application, and the other parts of the message that are among the properties."""
    if not isinstance(values, Mapping):
        raise EncodeError(text=f"message cannot be encoded: properties must be a dict, not {values!r:.60}")
    parts: dict[str, object] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise EncodeError(text=f"the name of a property must be str, not {name!r}")
        if (part := _SENT_PARTS.get(name)) is not None:
            parts[part] = _part(name, part, value)
        elif value is not None and not isinstance(value, _PROPERTY_TYPES):
            raise EncodeError(text=f"property {name!r} cannot be of type {type(value).__name__}")
    if not parts:
        return values, None
    return {name: value for name, value in values.items() if name not in _SENT_PARTS}, parts


#: Without `Decimal`: qpidd closes the connection of a client that sends one as a property.
_PROPERTY_TYPES = (str, bytes, bool, int, float, datetime, UUID, list, tuple, Mapping)


def _part(name: str, part: str, value: object) -> object:
    if part in _MAPS:
        if not isinstance(value, Mapping) or not all(isinstance(key, str | int) for key in value):
            raise EncodeError(text=f"property {name!r} must be a map with names or numbers as keys, not {value!r:.60}")
    elif part == "first_acquirer":
        if not isinstance(value, bool):
            raise EncodeError(text=f"property {name!r} must be True or False, not {value!r:.60}")
    elif part in _NUMBERS:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise EncodeError(text=f"property {name!r} must be a number, not {value!r:.60}")
    elif not isinstance(value, str):
        raise EncodeError(text=f"property {name!r} must be text, not {value!r:.60}")
    return value


def _reply_to(address: Address) -> str:
    """A node's name, with the subject that answers are to have behind a slash, as Apache's clients read it."""
    return address.name if address.subject is None else f"{address.name}/{address.subject}"


@functools.lru_cache(maxsize=256)
def _address(text: str) -> Address:
    """An address from the wire: name and subject are separated by the first slash."""
    name, slash, subject = text.partition("/")
    return Address.of(name, subject) if slash and name else Address.of(text)
