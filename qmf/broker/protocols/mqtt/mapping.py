"""Between messages of MQTT and the stored form of messages, which is AMQP 1.0's sections (docs/mqtt.md has the table).

The sections before the body are remembered in both directions: nearly all messages of a client have few different ones.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.message import Message
from qmf.broker.protocols.mqtt.codec.fields import encode_text
from qmf.broker.protocols.mqtt.codec.packets import Publish
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty, Properties, encode_properties
from qmf.broker.protocols.mqtt.codec.topics import topic_error
from qmf.codec import amqp10
from qmf.codec.message import DEFAULT_PRIORITY, Section, decode_message, encode_message, split_message
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.types import Symbol, UInt8, UInt16
from qmf.errors import DecodeError

#: Message annotations: the QoS that a client published with, where it is 2; that it asked to retain the message; that
#: the payload is text; all user properties in their order, where names are repeated; a content type that is not ASCII.
QOS, RETAIN, FORMAT, USER, CONTENT_TYPE = (
    "x-opt-mqtt-qos",
    "x-opt-mqtt-retain",
    "x-opt-mqtt-payload-format",
    "x-opt-mqtt-user-properties",
    "x-opt-mqtt-content-type",
)
#: Those of messages in the queue of a session: the filter of the one subscription that a retained message is for, the
#: packet id with which one of QoS 2 was sent, and in the queue of a shared subscription to whom.
RETAINED_FOR, PACKET_ID, SENT_TO = "x-opt-mqtt-retained-for", "x-opt-mqtt-packet-id", "x-opt-mqtt-sent-to"
#: And a packet id for QoS 1, where the one that follows from its place in the queue was in use.
KEPT_ID = "x-opt-mqtt-qos-1-packet-id"

#: The longest sections that are remembered, and how many.
_MAX_HEAD, _HEADS = 600, 2_000
#: Milliseconds of the longest time to live that a header holds.
_MAX_TTL = (1 << 32) - 1
_DATA8, _DATA32 = b"\x00\x53\x75\xa0", b"\x00\x53\x75\xb0"
_JSON = "application/json"


class UnmappableError(Exception):
    """A message of another protocol cannot be a message of MQTT; says why."""


@attrs.frozen
class Content:
    """What a message is for clients of MQTT, without its payload.

    Attributes:
        topic: encoded.
        name: the topic as text.
        qos: that it was published with.
        retain: it was published to be retained.
        properties: of MQTT 5, encoded, without those that differ for each receiver.
        retained_for: filter of the one subscription that it is for; None for a message that was just published.
        packet_id: with which it was sent with QoS 2 before; None for none.
        sent_to: id of the client that it was sent to, for a shared subscription; None for another one.
        kept_id: packet id for QoS 1, where it is not that of the message's place in its queue; None for none.
        delivered: it may have been delivered before the broker started, or has failed to be.
    """

    topic: bytes
    name: str
    qos: int
    retain: bool
    properties: bytes
    retained_for: str | None = None
    packet_id: int | None = None
    sent_to: str | None = None
    kept_id: int | None = None
    delivered: bool = False


# From MQTT


def to_message(
    topic: str,
    payload: bytes,
    qos: int,
    *,
    retain: bool,
    properties: Properties,
    exchange: str,
    now: float,
    origin: ClientInfo | None,
    retained_for: str | None = None,
) -> Message:
    """The stored form of a publication.

    Args:
        exchange: name of the exchange; replies are addressed to it.
        now: the broker's clock, in seconds.
        retained_for: see `Content`.
    """
    expiry = properties.get(PacketProperty.MESSAGE_EXPIRY) if properties else None
    head = head_of(topic, qos, retain=retain, properties=properties, exchange=exchange, retained_for=retained_for)
    size = len(payload)
    body = _DATA8 + bytes((size,)) if size < 0x100 else _DATA32 + size.to_bytes(4)
    return Message(
        head + body + payload,
        None,
        topic,
        None,
        None if expiry is None else now + expiry,
        bool(properties) and PacketProperty.CORRELATION_DATA in properties,
        qos > 0,
        origin=origin,
    )


def head_of(
    topic: str,
    qos: int,
    *,
    retain: bool,
    properties: Properties,
    exchange: str,
    retained_for: str | None = None,
) -> bytes:
    """What the stored form of a publication begins with, before its payload; arguments as of `to_message`."""
    if not properties and retained_for is None:
        return _plain_head(topic, qos, retain)
    return _head(topic, qos, retain, properties, exchange, retained_for)


def run_messages(pattern: Publish, stored: Sequence[bytes], now: float, origin: ClientInfo | None) -> list[Message]:
    """The messages of a run.

    Args:
        pattern: a publication whose like they are.
        stored: their stored forms.
        now, origin: as of `to_message`.
    """
    topic, properties, durable = pattern.topic, pattern.properties, pattern.qos > 0
    expiry = properties.get(PacketProperty.MESSAGE_EXPIRY) if properties else None
    expires = None if expiry is None else now + expiry
    correlated = bool(properties) and PacketProperty.CORRELATION_DATA in properties
    return [
        Message(data, None, topic, None, expires, correlated, durable, DEFAULT_PRIORITY, None, origin)
        for data in stored
    ]


def _head(topic: str, qos: int, retain: bool, properties: Properties, exchange: str, retained_for: str | None) -> bytes:
    annotations: dict[str, object] = {}
    if qos == 2:
        annotations[QOS] = UInt8(2)
    if retain:
        annotations[RETAIN] = True
    if retained_for is not None:
        annotations[RETAINED_FOR] = retained_for
    if (payload_format := properties.get(PacketProperty.PAYLOAD_FORMAT)) is not None:
        annotations[FORMAT] = UInt8(payload_format)
    user: tuple[tuple[str, str], ...] = properties.get(PacketProperty.USER_PROPERTY, ())
    named = dict(user)
    if len(named) < len(user):
        annotations[USER] = [text for pair in user for text in pair]
    content_type = properties.get(PacketProperty.CONTENT_TYPE)
    if content_type is not None and not content_type.isascii():
        annotations[CONTENT_TYPE] = content_type  # symbols are ASCII
        content_type = None
    expiry, reply = properties.get(PacketProperty.MESSAGE_EXPIRY), properties.get(PacketProperty.RESPONSE_TOPIC)
    fields = AmqpMessage(
        durable=qos > 0,
        ttl=None if expiry is None else min(expiry * 1000, _MAX_TTL) / 1000,
        message_annotations=annotations,
        subject=topic,
        reply_to=None if reply is None else f"{exchange}/{reply}",
        correlation_id=properties.get(PacketProperty.CORRELATION_DATA),
        content_type=content_type,
        application_properties=named,
    )
    return encode_message(fields)


@functools.lru_cache(maxsize=_HEADS)
def _plain_head(topic: str, qos: int, retain: bool) -> bytes:
    return _head(topic, qos, retain, {}, "", None)


def kept_id_annotation(packet_id: int) -> bytes:
    """The annotations of a message that is sent with QoS 1 and a packet id that does not follow from its place."""
    return amqp10.encode({Symbol(KEPT_ID): UInt16(packet_id)})


def packet_id_annotation(packet_id: int, sent_to: str | None) -> bytes:
    """The annotations of a message that is about to be sent with QoS 2, as a map; arguments as of `Content`."""
    found: dict[Symbol, object] = {Symbol(PACKET_ID): UInt16(packet_id)}
    if sent_to is not None:
        found[Symbol(SENT_TO)] = sent_to
    return amqp10.encode(found)


# To MQTT


def read_content(message: Message, exchange: str) -> tuple[Content, bytes]:
    """What a stored message is for clients of MQTT, and its payload; `exchange` as of `to_message`.

    Raises:
        UnmappableError: it cannot be one.
    """
    split = split_message(message.data)
    if split is None:
        return _read_rare(message, exchange)
    head, section, body = split
    content = _content(head, exchange) if len(head) > _MAX_HEAD else _remembered(head, exchange)
    if section is Section.DATA:
        assert isinstance(body, bytes)
        return content, body
    return _with_value(content, body)


class StoredContentReader:
    """Reads messages that come one after the other, most often with the same sections before the payload."""

    __slots__ = ("_content", "_exchange", "_head", "_repeated")

    def __init__(self, exchange: str) -> None:
        """Read for clients of an exchange, as of `to_message`."""
        self._exchange = exchange
        self._repeated = False
        self._head = b""
        self._content: Content | None = None

    @property
    def repeated(self) -> tuple[bytes, Content] | None:
        """What the last two messages, at least, have before their payload, and what that is; None if they differ."""
        return (self._head, self._content) if self._repeated and self._content is not None else None

    def read(self, message: Message) -> tuple[Content, bytes]:
        """As `read_content`."""
        self._repeated = True
        data, head, content = message.data, self._head, self._content
        place = len(head)
        if content is not None and data.startswith(head) and len(data) > place + 5:
            code = data[place]
            if code == 0xA0:
                if place + 2 + data[place + 1] == len(data):
                    return content, data[place + 2 :]
            elif code == 0xB0 and place + 5 + int.from_bytes(data[place + 1 : place + 5]) == len(data):
                return content, data[place + 5 :]
        self._repeated = False
        content, payload = read_content(message, self._exchange)
        place = len(data) - len(payload) - (2 if len(payload) < 0x100 else 5)
        if data[place - 3 : place] == _DATA8[:3] and place < _MAX_HEAD:
            self._head, self._content = data[:place], content
        return content, payload


def _content(head: bytes, exchange: str) -> Content:
    try:
        fields = decode_message(head, text=False)
    except DecodeError as error:
        raise UnmappableError(f"its sections are malformed: {error}") from error
    return _content_of(fields, exchange)


_remembered = functools.lru_cache(maxsize=_HEADS)(_content)


def _read_rare(message: Message, exchange: str) -> tuple[Content, bytes]:
    """A message in a layout that senders hardly use: several sections of data, a sequence, a footer, no body."""
    try:
        fields = decode_message(message.data, text=False)
    except DecodeError as error:
        raise UnmappableError(f"it is malformed: {error}") from error
    content = _content_of(fields, exchange)
    if fields.section is Section.DATA:
        assert isinstance(fields.body, bytes)
        return content, fields.body
    return _with_value(content, fields.body)


def _content_of(fields: AmqpMessage, exchange: str) -> Content:
    topic = fields.subject or ""
    if wrong := topic_error(topic):
        raise UnmappableError(f"its subject {topic[:100]!r} is no topic: {wrong}")
    annotations = {str(name): value for name, value in fields.message_annotations.items()}
    qos = annotations.get(QOS)
    if not isinstance(qos, int) or not 0 <= qos <= 2:
        qos = 1 if fields.durable else 0
    retained_for, packet_id = annotations.get(RETAINED_FOR), annotations.get(PACKET_ID)
    sent_to, kept_id = annotations.get(SENT_TO), annotations.get(KEPT_ID)
    try:
        properties = encode_properties(_properties(fields, annotations, exchange))
    except ValueError as error:
        raise UnmappableError(f"a property is too long: {error}") from error
    return Content(
        topic.encode(),
        topic,
        qos,
        annotations.get(RETAIN) is True,
        _without_length(properties),
        retained_for if isinstance(retained_for, str) else None,
        packet_id if isinstance(packet_id, int) else None,
        sent_to if isinstance(sent_to, str) else None,
        kept_id if isinstance(kept_id, int) and 0 < kept_id <= 0xFFFF else None,
        fields.delivery_count > 0,
    )


def _without_length(properties: bytes) -> bytes:
    start = next(place for place, byte in enumerate(properties) if byte < 0x80) + 1
    return properties[start:]


def _properties(fields: AmqpMessage, annotations: Mapping[str, object], exchange: str) -> Properties:
    found: dict[PacketProperty, Any] = {}
    if (payload_format := annotations.get(FORMAT)) in (0, 1):
        found[PacketProperty.PAYLOAD_FORMAT] = int(payload_format)
    if (content_type := annotations.get(CONTENT_TYPE, fields.content_type)) is not None:
        found[PacketProperty.CONTENT_TYPE] = _text(content_type)
    prefix = f"{exchange}/"
    if fields.reply_to is not None and fields.reply_to.startswith(prefix):
        reply = fields.reply_to.removeprefix(prefix)
        if not topic_error(reply):
            found[PacketProperty.RESPONSE_TOPIC] = reply
    if fields.correlation_id is not None:
        found[PacketProperty.CORRELATION_DATA] = _binary(fields.correlation_id)
    user = annotations.get(USER)
    if isinstance(user, list) and len(user) % 2 == 0:
        texts = [_text(value) for value in user]
        pairs = tuple(zip(texts[::2], texts[1::2], strict=True))
    else:
        pairs = tuple((_text(name), _text(value)) for name, value in fields.application_properties.items())
    if pairs:
        found[PacketProperty.USER_PROPERTY] = pairs
    return found


def _text(value: object) -> str:
    """A value as text: numbers, times and ids as AMQP's tools show them."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace").replace("\0", "\ufffd")
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("\0", "\ufffd")


def _binary(value: object) -> bytes:
    """A correlation id as binary: texts in UTF-8, numbers and UUIDs as they are written."""
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return str(value).encode()


def _with_value(content: Content, value: object) -> tuple[Content, bytes]:
    """The payload that a value of AMQP becomes: binary as it is, text in UTF-8, all else JSON."""
    if isinstance(value, bytes | memoryview):
        return content, bytes(value)
    if value is None:
        return content, b""
    # These two properties are the first ones, where there are any; none may be there twice.
    has_format = content.properties[:1] == b"\x01"
    as_text = b"" if has_format else b"\x01\x01"
    if isinstance(value, str):
        return attrs.evolve(content, properties=as_text + content.properties), value.encode()
    try:
        payload = json.dumps(value, default=_json_value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnmappableError(f"its body has no form in JSON: {error}") from error
    place = 2 if has_format else 0
    named = b"" if content.properties[place : place + 1] == b"\x03" else b"\x03" + encode_text(_JSON)
    return attrs.evolve(content, properties=as_text + named + content.properties), payload


def _json_value(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    return str(value)
