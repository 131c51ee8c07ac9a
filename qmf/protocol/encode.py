"""Building QMF messages (QMF2.md 3, 4, 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from qmf.codec import amqp010
from qmf.codec.errors import escaped
from qmf.codec.message import Message, Section, encode_message
from qmf.codec.types import UInt32, UInt64
from qmf.protocol import words
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
)
from qmf.protocol.forms import BodyForm
from qmf.protocol.maps import (
    agent_to_map,
    class_key_to_map,
    event_to_map,
    object_id_to_map,
    object_to_map,
    wire_text,
    wire_value,
    wire_values,
)
from qmf.protocol.queries import (
    cancel_to_map,
    query_to_map,
    refresh_to_map,
    subscribe_to_map,
    subscribed_to_map,
)
from qmf.protocol.schemas import schema_to_map
from qmf.protocol.v1 import V1Message, encode_frames

_Body = Mapping[str, object] | Sequence[object]

_REQUEST, _RESPONSE, _INDICATION = "request", "response", "indication"


def encode(message: Envelope | V1Message, *, form: BodyForm = BodyForm.DATA010) -> bytes:
    """Encode a QMF message as a complete AMQP 1.0 message.

    Values inside the content are Python values, `qmf.codec.types` where a width matters (`to_wire`), and object ids.

    Args:
        message: what to send. `to` and `subject` decide where it goes (QMF2.md 1.1).
        form: how the body is written; without meaning for QMFv1.

    Raises:
        EncodeError: a value that the encoding cannot hold.
    """
    if isinstance(message, V1Message):
        return encode_message(_v1(message))
    kind = _KINDS[type(message.content)]
    body = kind.body(message.content)
    properties: dict[str, object] = {words.METHOD: kind.method, words.OPCODE: kind.opcode, words.APP_ID: words.QMF2}
    if message.agent is not None:
        properties[words.AGENT] = message.agent
    if kind.content is not None:
        properties[words.CONTENT] = kind.content
    if message.partial:
        properties[words.PARTIAL] = ""
    if message.subscription is not None:
        properties[words.SUBSCRIPTION] = message.subscription
    if message.sequence is not None:
        properties[words.SEQUENCE] = UInt64(message.sequence)
    if message.suppressed:
        properties[words.SUPPRESSED] = UInt64(message.suppressed)
    is_map = isinstance(body, Mapping)
    encoded: object = body
    if form is BodyForm.DATA010:
        encoded = amqp010.encode_map(body) if isinstance(body, Mapping) else amqp010.encode_list(body)
    return encode_message(
        Message(
            ttl=message.ttl,
            user_id=None if message.user_id is None else escaped(message.user_id),
            to=message.to,
            subject=message.subject,
            reply_to=message.reply_to,
            correlation_id=message.correlation_id,
            content_type=words.MAP_TYPE if is_map else words.LIST_TYPE,
            application_properties=properties,
            section=Section.DATA if form is BodyForm.DATA010 else Section.VALUE,
            body=encoded,
        )
    )


def _v1(message: V1Message) -> Message:
    # No app-id: with one, qpidd would take the body for QMFv2 (QMF2.md 8.1).
    return Message(
        user_id=None if message.user_id is None else escaped(message.user_id),
        to=message.to,
        subject=message.subject,
        reply_to=message.reply_to,
        content_type="x-application/qmf",
        application_properties={} if message.agent is None else {words.AGENT: message.agent},
        section=Section.DATA,
        body=encode_frames(message.frames),
    )


def _method_request(content: MethodRequest) -> _Body:
    out: dict[str, object] = {"_method_name": content.method, "_arguments": wire_values(content.arguments)}
    if content.object_id is not None:
        out["_object_id"] = object_id_to_map(content.object_id)
    if content.subtypes:
        out["_subtypes"] = dict(content.subtypes)
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
    """How contents of one class are sent: opcode, `method`, `qmf.content`, and what makes the body."""

    opcode: str
    method: str
    content: str | None
    body: Callable[[Any], _Body]


_KINDS: dict[type, _Kind] = {
    LocateRequest: _Kind(words.LOCATE_REQUEST, _REQUEST, None, lambda c: [wire_value(item) for item in c.where]),
    LocateResponse: _Kind(words.LOCATE_RESPONSE, _INDICATION, None, lambda c: {"_values": agent_to_map(c.agent)}),
    Heartbeat: _Kind(words.HEARTBEAT, _INDICATION, None, lambda c: {"_values": agent_to_map(c.agent)}),
    QueryRequest: _Kind(words.QUERY_REQUEST, _REQUEST, None, query_to_map),
    ObjectsResponse: _Kind(
        words.QUERY_RESPONSE, _RESPONSE, words.DATA, lambda c: [object_to_map(item) for item in c.objects]
    ),
    SchemaIdsResponse: _Kind(
        words.QUERY_RESPONSE, _RESPONSE, words.SCHEMA_ID, lambda c: [class_key_to_map(key) for key in c.keys]
    ),
    SchemasResponse: _Kind(
        words.QUERY_RESPONSE, _RESPONSE, words.SCHEMA, lambda c: [schema_to_map(item) for item in c.schemas]
    ),
    MethodRequest: _Kind(words.METHOD_REQUEST, _REQUEST, None, _method_request),
    MethodResponse: _Kind(words.METHOD_RESPONSE, _RESPONSE, None, _method_response),
    ExceptionResponse: _Kind(words.EXCEPTION, _RESPONSE, words.DATA, _exception),
    ObjectsIndication: _Kind(
        words.DATA_INDICATION, _INDICATION, words.DATA, lambda c: [object_to_map(item) for item in c.objects]
    ),
    EventsIndication: _Kind(
        words.DATA_INDICATION, _INDICATION, words.EVENT, lambda c: [event_to_map(item) for item in c.events]
    ),
    SubscribeRequest: _Kind(words.SUBSCRIBE_REQUEST, _REQUEST, None, subscribe_to_map),
    SubscribeResponse: _Kind(words.SUBSCRIBE_RESPONSE, _RESPONSE, None, subscribed_to_map),
    SubscribeRefresh: _Kind(words.SUBSCRIBE_REFRESH, _INDICATION, None, refresh_to_map),
    SubscribeCancel: _Kind(words.SUBSCRIBE_CANCEL, _INDICATION, None, cancel_to_map),
}
