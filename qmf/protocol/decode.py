"""Reading QMF messages (QMF2.md 3, 4, 8).

A message is QMFv2 when it has an opcode among its application properties, and QMFv1 when its body starts with "AM2".
Nothing else is asked of it: app-id and `method` are missing from some peers' messages, and content types lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

import attrs

import qmf.protocol.wire_names as wire
from qmf._compile import fast_constructor
from qmf.codec import amqp010
from qmf.codec.message import Section, decode_fields
from qmf.codec.plain_maps import Answer, plain_maps
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol.contents import (
    Content,
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
    SchemaIdsResponse,
    SchemasResponse,
)
from qmf.protocol.errors import ContentError, UnknownOpcode
from qmf.protocol.fields import Map, get_map, get_text, get_texts, mapping, need_text, sequence
from qmf.protocol.maps import (
    agent_from_map,
    class_key_from_map,
    get_class_key,
    get_object_id,
)
from qmf.protocol.objects.decoder import ObjectDecoder
from qmf.protocol.objects.general import event_from_map, objects_from_list
from qmf.protocol.queries import (
    cancel_from_map,
    query_from_map,
    refresh_from_map,
    share_from_map,
    subscribe_from_map,
    subscribed_from_map,
)
from qmf.protocol.schemas import schema_from_map
from qmf.protocol.v1 import MAGIC, V1Message, decode_frames
from qmf.protocol.values import AgentInfo


class _Parts:
    """What QMF reads of a message; types are those of `qmf.codec.Message`, which takes longer to make."""

    __slots__ = (
        "annotations",
        "application_properties",
        "body",
        "content_type",
        "correlation_id",
        "reply_to",
        "section",
        "subject",
        "to",
        "ttl",
        "user_id",
    )

    def __init__(self, fields: dict[str, Any]) -> None:
        get = fields.get
        self.annotations: Mapping[object, object] = get("message_annotations", _NOTHING)
        self.application_properties: Mapping[str, object] = get("application_properties", _NOTHING)
        self.body: object = get("body")
        self.content_type: str | None = get("content_type")
        self.correlation_id: object = get("correlation_id")
        self.reply_to: str | None = get("reply_to")
        self.section: Section = get("section", Section.NONE)
        self.subject: str | None = get("subject")
        self.to: str | None = get("to")
        self.ttl: float | None = get("ttl")
        self.user_id: bytes | None = get("user_id")


_NOTHING: Mapping[str, object] = MappingProxyType({})

_PLAIN = plain_maps()

#: Of the body of a method's answer; and digits of correlation ids that are numbers.
_ARGUMENTS, _MAX_DIGITS = "_arguments", 18


def decode(
    data: bytes, decoder: ObjectDecoder | None = None, is_pending: Callable[[str | None], bool] | None = None
) -> Envelope | V1Message:
    """Decode a QMF message of either version.

    Args:
        data: a complete AMQP 1.0 message.
        decoder: remembers what objects and events look like, where many are received: the values of those that look
            like earlier ones stay bytes until they are read. The result is the same without.
        is_pending: says of a correlation id whether its answer is waited for: of others, the objects are left out.

    Raises:
        DecodeError: not an AMQP message, or its body is not encoded as its content type promises.
        UnknownOpcode: QMFv2 of a kind that this project does not know.
        ContentError: QMFv2 whose content is not what its opcode promises; names the key.
        ProtocolError: not a QMF message at all.
    """
    message = _Parts(decode_fields(data, memory=None if decoder is None else decoder.sections))
    properties = message.application_properties
    opcode = properties.get(wire.OPCODE)
    if opcode is None:
        return _v1(message)
    if not isinstance(opcode, str):
        raise ProtocolError(f"{wire.OPCODE} is no string")
    correlation_id = _id(message.correlation_id)
    read = _READERS.get(opcode)
    if read is None:
        raise UnknownOpcode(opcode, message.reply_to, correlation_id)
    try:
        if is_pending is not None and opcode == wire.QUERY_RESPONSE and not is_pending(correlation_id):
            content: Content = ObjectsResponse(())
        else:
            content = (_by_decoder(opcode, message, decoder) if decoder is not None else None) or read(message)
    except ContentError:
        raise
    except ProtocolError as error:
        raise ContentError(opcode, str(error), message.reply_to, correlation_id) from error
    return _make_envelope(
        content,
        message.to,
        message.subject,
        message.reply_to,
        correlation_id,
        _agent(message),
        _user_id(message),
        wire.PARTIAL in properties,
        message.ttl,
        _subscription(properties),
        _count(properties, wire.SEQUENCE),
        _count(properties, wire.EVENTS),
        _count(properties, wire.SUPPRESSED) or 0,
    )


#: In the order of its fields.
_make_envelope = fast_constructor(Envelope)


def decode_answers(messages: list[bytes], decoder: ObjectDecoder) -> list[Answer | bytes]:
    """Correlation id, outputs and agent of those messages that are answers of methods like earlier ones.

    These are such as differ from a message that was decoded with the same `decoder` in correlation id and body only,
    whose correlation id is a number, and whose body has the outputs alone.

    Returns:
        for each message the same as `decode` finds, of which this is a faster form; the message itself if it is any
        other, or not valid.
    """
    found = messages if _PLAIN is None else _PLAIN.read_answers(messages, decoder.answer_heads, _ARGUMENTS)
    return [_decode_answer(item, decoder) or item if isinstance(item, bytes) else item for item in found]


def _decode_answer(data: bytes, decoder: ObjectDecoder) -> Answer | None:
    found = decoder.sections.split(data)
    if found is None:
        return None
    head, correlation_id, body = found
    kind = head.kind
    if kind is None:
        kind = head.kind = _kind_of_answer(_Parts(head.fields))
        if isinstance(kind, _AnswerKind):
            decoder.learn_answer((head.before, head.size, head.behind, kind.agent))
    if not isinstance(kind, _AnswerKind) or not body or not correlation_id.isdigit() or head.size > _MAX_DIGITS:
        return None
    try:
        response = _method_response_of(amqp010.decode_map(body, text=True))
    except (DecodeError, ProtocolError):
        return None
    if response.subtypes or not isinstance(response.arguments, dict):
        return None
    return int(correlation_id), response.arguments, kind.agent


class _AnswerKind:
    """What the heads of answers of methods say; ``False`` stands for all other heads."""

    __slots__ = ("agent",)

    def __init__(self, agent: str | None) -> None:
        self.agent = agent


def _kind_of_answer(message: _Parts) -> _AnswerKind | bool:
    properties = message.application_properties
    whole = properties.get(wire.OPCODE) == wire.METHOD_RESPONSE and wire.PARTIAL not in properties
    return _AnswerKind(_agent(message)) if whole and message.content_type != wire.LIST_TYPE else False


def _v1(message: _Parts) -> V1Message:
    body = message.body
    if isinstance(body, str):
        # An amqp-value binary that happened to be UTF-8 (QMF2.md 8.1).
        body = body.encode()
    if not isinstance(body, bytes) or not body.startswith(MAGIC):
        raise ProtocolError(f"not a QMF message: neither {wire.OPCODE} nor a QMFv1 body")
    return V1Message(
        frames=decode_frames(body),
        to=message.to,
        subject=message.subject,
        reply_to=message.reply_to,
        agent=_agent(message),
        user_id=_user_id(message),
    )


def _agent(message: _Parts) -> str | None:
    agent = message.application_properties.get(wire.AGENT)
    return agent if isinstance(agent, str) and agent else None


def _user_id(message: _Parts) -> str | None:
    return message.user_id.decode(errors="surrogateescape") if message.user_id else None


def _subscription(properties: Mapping[str, object]) -> str | None:
    value = properties.get(wire.SUBSCRIPTION)
    return value if isinstance(value, str) and value else None


def _count(properties: Mapping[str, object], key: str) -> int | None:
    """A count among the properties. It only helps along, so one of a wrong type does not spoil the message."""
    value = properties.get(key)
    return value if type(value) is int and value >= 0 else None


def _id(value: object) -> str | None:
    """A correlation id as text; what is no text becomes what qpidd would make of it (QMF2.md 3.1)."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return str(value) if isinstance(value, (int, UUID)) else None


# -- bodies ------------------------------------------------------------------------------------------------------------


def _body(message: _Parts, *, is_map: bool) -> object:
    """The body out of whatever section it is in. A missing or empty one is None: libqmf2's first locate request."""
    if message.section is not Section.DATA:
        return message.body if message.body not in ("", b"") else None
    body = message.body
    if not isinstance(body, bytes) or not body:
        return None
    if message.content_type in (wire.MAP_TYPE, wire.LIST_TYPE):
        is_map = message.content_type == wire.MAP_TYPE
    return amqp010.decode_map(body, text=True) if is_map else amqp010.decode_list(body, text=True)


def _map_body(message: _Parts) -> Map:
    body = _body(message, is_map=True)
    return {} if body is None else mapping(body, "body")


def _list_body(message: _Parts) -> list[object]:
    body = _body(message, is_map=False)
    return [] if body is None else sequence(body, "body")


# -- contents ----------------------------------------------------------------------------------------------------------


def _locate_request(message: _Parts) -> Content:
    return LocateRequest(_list_body(message) or ())


def _locate_response(message: _Parts) -> Content:
    return LocateResponse(_agent_info(message))


def _heartbeat(message: _Parts) -> Content:
    return Heartbeat(_agent_info(message))


def _agent_info(message: _Parts) -> AgentInfo:
    info = agent_from_map(get_map(_map_body(message), "_values") or {})
    trace = message.annotations.get(wire.TRACE) if message.annotations else None
    if not isinstance(trace, str) or not trace:
        return info
    return attrs.evolve(info, path=tuple(trace.replace(",", " ").split()))


def _query_response(message: _Parts) -> Content:
    kind = message.application_properties.get(wire.CONTENT, wire.DATA)
    items = _list_body(message)
    if kind == wire.DATA:
        return ObjectsResponse(objects_from_list(items), matched=_count(message.application_properties, wire.MATCHED))
    if kind == wire.SCHEMA_ID:
        return SchemaIdsResponse([class_key_from_map(mapping(item, "schema id")) for item in items])
    if kind == wire.SCHEMA:
        return SchemasResponse([schema_from_map(item) for item in items])
    raise ProtocolError(f"{wire.CONTENT} is {kind!r}")


def _method_request(message: _Parts) -> Content:
    fields = _map_body(message)
    return MethodRequest(
        method=need_text(fields, "_method_name"),
        object_id=get_object_id(fields),
        arguments=get_map(fields, "_arguments") or {},
        subtypes=get_texts(fields, "_subtypes"),
        on_behalf_of=get_text(fields, "_on_behalf_of"),
    )


def _method_response(message: _Parts) -> Content:
    return _method_response_of(_map_body(message))


def _method_response_of(fields: Map) -> MethodResponse:
    return _make_response(get_map(fields, _ARGUMENTS) or {}, get_texts(fields, "_subtypes"))


#: One is made for every call; it takes the fields in their order.
_make_response = fast_constructor(MethodResponse)


def _exception(message: _Parts) -> Content:
    fields = _map_body(message)
    values = get_map(fields, "_values") or {}
    code = values.get("error_code")
    return ExceptionResponse(
        text=get_text(values, "error_text") or "",
        code=code if type(code) is int else None,
        values=values,
        class_key=get_class_key(fields),
    )


def _data_indication(message: _Parts) -> Content:
    kind = message.application_properties.get(wire.CONTENT, wire.DATA)
    items = _list_body(message)
    if kind == wire.DATA:
        return ObjectsIndication(objects_from_list(items))
    if kind == wire.EVENT:
        return EventsIndication([event_from_map(item) for item in items])
    raise ProtocolError(f"{wire.CONTENT} is {kind!r}")


def _by_decoder(opcode: str, message: _Parts, decoder: ObjectDecoder) -> Content | None:
    """Objects or events of a body that the object decoder reads; None for everything else."""
    body = message.body
    if message.section is not Section.DATA or message.content_type == wire.MAP_TYPE:
        return None
    if not isinstance(body, bytes) or not body:
        return None
    kind = message.application_properties.get(wire.CONTENT, wire.DATA)
    if opcode == wire.QUERY_RESPONSE and kind == wire.DATA:
        return ObjectsResponse(decoder.objects(body), matched=_count(message.application_properties, wire.MATCHED))
    if opcode == wire.DATA_INDICATION and kind == wire.DATA:
        return ObjectsIndication(decoder.objects(body))
    if opcode == wire.DATA_INDICATION and kind == wire.EVENT:
        return EventsIndication(decoder.events(body))
    return None


_READERS: dict[str, Callable[[_Parts], Content]] = {
    wire.LOCATE_REQUEST: _locate_request,
    wire.LOCATE_RESPONSE: _locate_response,
    wire.HEARTBEAT: _heartbeat,
    wire.QUERY_REQUEST: lambda message: query_from_map(_map_body(message)),
    wire.QUERY_RESPONSE: _query_response,
    wire.METHOD_REQUEST: _method_request,
    wire.METHOD_RESPONSE: _method_response,
    wire.EXCEPTION: _exception,
    wire.DATA_INDICATION: _data_indication,
    wire.SUBSCRIBE_REQUEST: lambda message: subscribe_from_map(_map_body(message)),
    wire.SUBSCRIBE_RESPONSE: lambda message: subscribed_from_map(_map_body(message)),
    wire.SUBSCRIBE_REFRESH: lambda message: refresh_from_map(_map_body(message)),
    wire.SUBSCRIBE_SHARE: lambda message: share_from_map(_map_body(message)),
    wire.SUBSCRIBE_CANCEL: lambda message: cancel_from_map(_map_body(message)),
}
