"""Between frames of STOMP and the stored form of messages: AMQP 1.0's sections (docs/stomp.md has the table)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from uuid import UUID

from qmf.broker.nodes.delivery_times import DELIVERY_DELAY, DELIVERY_TIME
from qmf.broker.nodes.message import Message
from qmf.broker.protocols.stomp.frames import Frame
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, decode_message, encode_message
from qmf.codec.types import Int64
from qmf.errors import DecodeError

#: Headers that belong to the frame, and not to the message.
_OF_FRAME = frozenset(
    {
        *("destination", "destination-type", "content-length", "receipt", "transaction", "message-id", "subscription"),
        *("redelivered", "ack"),
    }
)
#: Headers that are properties of AMQP, or of its header.
_PROPERTIES = frozenset(
    {
        *(
            "content-type",
            "correlation-id",
            "reply-to",
            "type",
            "priority",
            "persistent",
            "expires",
            "ttl",
            "timestamp",
        ),
        *("JMSXGroupID", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME"),
    }
)
_JSON, _TEXT = "application/json", "text/plain"
_MAX_TTL = (1 << 32) - 1


class InvalidHeader(Exception):
    """A header has a value that it can't have; says which."""


# From STOMP


def encode_stored(frame: Frame, key: str, reply_to: str | None) -> bytes:
    """The stored form of a message that a client sends.

    Args:
        frame: SEND.
        reply_to: address for replies, as clients of AMQP use it; None for none.

    Raises:
        InvalidHeader: a header has a wrong value.
    """
    headers = frame.headers
    expires, ttl = _number(headers, "expires"), _number(headers, "ttl")
    if expires:  # 0 is for ever
        ttl = max(1, expires - round(time.time() * 1000))
    annotations: dict[str, object] = {}
    for name, annotation in (("AMQ_SCHEDULED_DELAY", DELIVERY_DELAY), ("AMQ_SCHEDULED_TIME", DELIVERY_TIME)):
        if (number := _number(headers, name)) is not None:
            annotations[annotation] = Int64(number)
    priority = _number(headers, "priority")
    content_type = headers.get("content-type")
    named = {name: value for name, value in headers.items() if name not in _OF_FRAME and name not in _PROPERTIES}
    if content_type is not None and not content_type.isascii():
        raise InvalidHeader("content-type is not ASCII")
    section, body = _body(frame, content_type)
    fields = AmqpMessage(
        durable=headers.get("persistent") == "true" or None,
        priority=None if priority is None else min(priority, 9),
        ttl=None if not ttl else min(ttl, _MAX_TTL) / 1000,
        message_annotations=annotations,
        subject=key or headers.get("type"),
        reply_to=reply_to,
        correlation_id=headers.get("correlation-id"),
        content_type=content_type,
        creation_time=_number(headers, "timestamp"),
        group_id=headers.get("JMSXGroupID"),
        application_properties=named,
        section=section,
        body=body,
    )
    return encode_message(fields)


def _body(frame: Frame, content_type: str | None) -> tuple[Section, object]:
    """Text where the client says so, or says nothing at all; else bytes."""
    if content_type.startswith("text/") if content_type else "content-length" not in frame.headers:
        try:
            return Section.VALUE, frame.body.decode()
        except UnicodeDecodeError:
            pass
    return Section.DATA, frame.body


def _number(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise InvalidHeader(f"{name} is no number: {text[:20]!r}")
    return int(text)


# To STOMP


def read_stored(message: Message, *, with_type: bool) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of the frame that a stored message is for its receivers, without those of the delivery.

    Args:
        message: it. A body that is neither text nor bytes becomes JSON.
        with_type: its subject is the header `type`, and no key.
    """
    try:
        fields = decode_message(message.data, text=False)
    except DecodeError:  # of another format: its bytes are all that is known
        return [("content-length", str(len(message.data)))], message.data
    headers: list[tuple[str, str]] = []
    body, content_type, is_text = _read_body(fields)
    _add(headers, "content-type", fields.content_type or content_type)
    _add(headers, "correlation-id", fields.correlation_id)
    _add(headers, "reply-to", fields.reply_to)
    _add(headers, "type", fields.subject if with_type else None)
    if fields.durable:
        headers.append(("persistent", "true"))
    if fields.priority is not None:
        headers.append(("priority", str(fields.priority)))
    _add(headers, "timestamp", fields.creation_time)
    _add(headers, "JMSXGroupID", fields.group_id)
    if fields.ttl is not None and message.expires_at is not None:
        headers.append(("expires", str(round((time.time() + fields.ttl) * 1000))))
    known = {name for name, _ in headers} | _OF_FRAME
    for key, value in fields.application_properties.items():
        if (name := str(key)) not in known:
            headers.append((name, _as_text(value)))
    if not is_text:
        headers.append(("content-length", str(len(body))))
    return headers, body


def _read_body(fields: AmqpMessage) -> tuple[bytes, str | None, bool]:
    """The body, its content type where the message has none, and whether it is text without a NUL."""
    value = fields.body
    if isinstance(value, bytes | memoryview):
        return bytes(value), None, False
    if value is None:
        return b"", None, False
    if isinstance(value, str):
        return value.encode(), _TEXT, "\0" not in value
    return json.dumps(value, default=_json_value, ensure_ascii=False).encode(), _JSON, False


def _add(headers: list[tuple[str, str]], name: str, value: object) -> None:
    if value is not None:
        headers.append((name, _as_text(value)))


def _as_text(value: object) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _json_value(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    return str(value)
