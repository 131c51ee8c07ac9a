"""Captured QMFv2 messages: what they mean, and that ours look the same.

The meaning is compared with the JSON beside each message, through functions that turn our values back into its maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from support.vectors import NAMES, Vector, agrees, is_cut, parametrized

from qmf.codec import Message, Section, amqp010, decode_message
from qmf.protocol import (
    AgentInfo,
    BodyForm,
    Envelope,
    EventData,
    EventsIndication,
    ExceptionResponse,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    MethodRequest,
    MethodResponse,
    ObjectData,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    What,
    decode,
    encode,
)
from qmf.schema.model import ClassKey, ClassSchema, EventSchema

V2 = [name for name in NAMES if "-v1" not in name]


def decoded(name: str) -> tuple[Vector, Envelope]:
    vector = Vector(name)
    envelope = decode(vector.data)
    assert isinstance(envelope, Envelope)
    return vector, envelope


# -- our values as the JSON's maps -------------------------------------------------------------------------------------


def some(**fields: object) -> dict[str, object]:
    """The fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


def id_map(object_id: ObjectId) -> dict[str, object]:
    return some(
        _object_name=object_id.object_name,
        _agent_name=object_id.agent_name,
        _agent_epoch=object_id.agent_epoch or None,
    )


def key_map(key: ClassKey) -> dict[str, object]:
    return some(_package_name=key.package, _class_name=key.name, _type=key.kind.value, _hash=key.hash)


def object_map(data: ObjectData) -> dict[str, object]:
    stamps = {"_update_ts": data.update_ts, "_create_ts": data.create_ts, "_delete_ts": data.delete_ts}
    return some(
        _values=data.values,
        _object_id=None if data.object_id is None else id_map(data.object_id),
        _schema_id=None if data.class_key is None else key_map(data.class_key),
        **(stamps if any(stamps.values()) else {}),
    )


def event_map(event: EventData) -> dict[str, object]:
    return some(
        _values=event.values,
        _timestamp=event.timestamp,
        _severity=event.severity,
        _schema_id=None if event.class_key is None else key_map(event.class_key),
        _object_id=None if event.object_id is None else id_map(event.object_id),
    )


def agent_map(agent: AgentInfo) -> dict[str, object]:
    return some(
        _name=agent.name,
        _vendor=agent.vendor,
        _product=agent.product,
        _instance=agent.instance,
        _epoch=agent.epoch,
        _heartbeat_interval=agent.heartbeat_interval,
        _timestamp=agent.timestamp,
        _schema_updated=agent.schema_updated or None,
        _direct_subject=agent.direct_subject,
        **{"qmf.agent_capability": agent.capability or None, **agent.attributes},
    )


def query_map(query: QueryRequest) -> dict[str, object]:
    return some(
        _what=query.what.value,
        _schema_id=None if query.class_key is None else key_map(query.class_key),
        _object_id=None if query.object_id is None else id_map(query.object_id),
        _where=query.where or None,
        _select=query.select or None,
    )


def schema_map(schema: ClassSchema | EventSchema) -> dict[str, object]:
    if isinstance(schema, EventSchema):
        assert schema.severity is not None
        members: dict[str, Any] = {"_default_severity": int(schema.severity), "_methods": []}
        items: Any = schema.arguments
    else:
        assert schema.statistics == ()  # libqmf2 sends them as properties
        methods = [
            some(
                _name=method.name,
                _desc=method.desc,
                _arguments=[{**member_map(item), "_access": "RO"} for item in method.arguments],
            )
            for method in schema.methods
        ]
        members, items = {"_methods": methods}, schema.properties
    maps = [{"_access": "RO", "_dir": "I", **member_map(item)} for item in items]
    return some(_schema_id=key_map(schema.key), _desc=schema.desc, _properties=maps, **members)


def member_map(item: Any) -> dict[str, object]:
    return some(
        _name=item.name,
        _type=item.type.v2,
        _subtype=item.type.subtype,
        _unit=item.unit,
        _desc=item.desc,
        _index=True if getattr(item, "index", False) else None,
        _access=item.access.value if hasattr(item, "access") else None,
        _dir=item.direction.value if hasattr(item, "direction") else None,
    )


def method_map(call: MethodRequest) -> dict[str, object]:
    return some(
        _method_name=call.method,
        _object_id=None if call.object_id is None else id_map(call.object_id),
        _arguments=call.arguments,
        _subtypes=call.subtypes or None,
    )


BODIES: dict[type, Callable[[Any], object]] = {
    LocateRequest: lambda c: list(c.where),
    LocateResponse: lambda c: {"_values": agent_map(c.agent)},
    Heartbeat: lambda c: {"_values": agent_map(c.agent)},
    QueryRequest: query_map,
    ObjectsResponse: lambda c: [object_map(item) for item in c.objects],
    ObjectsIndication: lambda c: [object_map(item) for item in c.objects],
    EventsIndication: lambda c: [event_map(item) for item in c.events],
    SchemaIdsResponse: lambda c: [key_map(key) for key in c.keys],
    SchemasResponse: lambda c: [schema_map(item) for item in c.schemas],
    MethodRequest: method_map,
    MethodResponse: lambda c: some(_arguments=c.arguments, _subtypes=c.subtypes or None),
    ExceptionResponse: lambda c: some(
        _values=c.values, _schema_id=None if c.class_key is None else key_map(c.class_key)
    ),
}

CLASSES: dict[str, dict[str | None, type]] = {
    "_agent_locate_request": {None: LocateRequest},
    "_agent_locate_response": {None: LocateResponse},
    "_agent_heartbeat_indication": {None: Heartbeat},
    "_query_request": {None: QueryRequest},
    "_query_response": {"_data": ObjectsResponse, "_schema_id": SchemaIdsResponse, "_schema": SchemasResponse},
    "_method_request": {None: MethodRequest},
    "_method_response": {None: MethodResponse},
    "_exception": {None: ExceptionResponse, "_data": ExceptionResponse},
    "_data_indication": {"_data": ObjectsIndication, "_event": EventsIndication},
}


def without_type(body: Any, expected: Any) -> Any:
    """`body` without a `_type` in class keys where the sender left it out."""
    if isinstance(body, dict) and isinstance(expected, dict):
        return {
            key: without_type(item, expected.get(key))
            for key, item in body.items()
            if key != "_type" or key in expected
        }
    if isinstance(body, list | tuple) and isinstance(expected, list) and not any(map(is_cut, expected)):
        return [without_type(*pair) for pair in zip(body, expected, strict=True)]
    return body


@parametrized(V2)
def test_the_content_is_what_the_capture_says(name: str) -> None:
    vector, envelope = decoded(name)
    properties = vector.sections["application-properties"]
    assert properties["qmf.opcode"] == vector.json["opcode"]
    assert type(envelope.content) is CLASSES[vector.json["opcode"]][properties.get("qmf.content")]
    expected = vector.json["body"]
    body = BODIES[type(envelope.content)](envelope.content)
    assert agrees(without_type(body, expected), expected)


@parametrized(V2)
def test_the_envelope_is_what_the_capture_says(name: str) -> None:
    vector, envelope = decoded(name)
    sections = vector.sections
    properties, application = sections["properties"], sections["application-properties"]
    assert envelope.to == properties.get("to")
    assert envelope.subject == properties.get("subject")
    assert envelope.reply_to == properties.get("reply-to")
    assert envelope.correlation_id == properties.get("correlation-id")
    assert envelope.user_id == (properties.get("user-id") or None)
    assert envelope.agent == application.get("qmf.agent")
    assert envelope.partial is ("partial" in application)
    ttl = sections["header"].get("ttl")
    assert envelope.ttl == (None if ttl is None else ttl / 1000)


@parametrized(V2)
@pytest.mark.parametrize("form", BodyForm)
def test_our_encoding_of_it_decodes_to_the_same(name: str, form: BodyForm) -> None:
    _, envelope = decoded(name)
    assert decode(encode(envelope, form=form)) == envelope


# -- our messages look like theirs -------------------------------------------------------------------------------------

#: Senders whose messages we write alike: headers and all. qpidd sends no app-id, legacy Python consoles no `method`.
ALIKE = [name for name in V2 if name.startswith(("req-", "libqmf2-"))]

#: Keys that we add to bodies: the type of a class key, and what libqmf2's schemas cannot say.
OUR_KEYS = {"_type", "_qmf_type"}


def body_of(message: Message) -> Any:
    """The body in whatever form."""
    if message.section is not Section.DATA:
        return message.body
    assert isinstance(message.body, bytes)
    if message.content_type == "amqp/list":
        return amqp010.decode_list(message.body, text=True)
    return amqp010.decode_map(message.body, text=True)


def common(ours: Any, theirs: Any) -> Any:
    """Our body without the keys that only we send."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {
            key: common(item, theirs.get(key)) for key, item in ours.items() if key in theirs or key not in OUR_KEYS
        }
    if isinstance(ours, list) and isinstance(theirs, list):
        return [common(*pair) for pair in zip(ours, theirs, strict=True)]
    return ours


@parametrized(ALIKE)
@pytest.mark.parametrize("form", BodyForm)
def test_we_write_the_sections_that_peers_write(name: str, form: BodyForm) -> None:
    vector, envelope = decoded(name)
    theirs = decode_message(vector.data)
    ours = decode_message(encode(envelope, form=form))
    assert ours.section is (Section.DATA if form is BodyForm.DATA010 else Section.VALUE)
    # `qpid.subject` is the broker's doing, of `partial` only the presence counts, and an empty user id says nothing.
    expected = {key: value or "" for key, value in theirs.application_properties.items() if key != "qpid.subject"}
    assert ours.application_properties == expected
    for field in ("to", "subject", "reply_to", "correlation_id", "content_type", "ttl"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert (ours.user_id or b"") == (theirs.user_id or b"")
    assert common(body_of(ours), body_of(theirs)) == body_of(theirs)


# -- single messages, written out --------------------------------------------------------------------------------------


@parametrized(["libqmf2-010-heartbeat"] if NAMES else [])
def test_a_heartbeat_in_full(name: str) -> None:
    _, envelope = decoded(name)
    assert envelope == Envelope(
        content=Heartbeat(
            AgentInfo(
                name="example.org:widget-agent:inst-010",
                vendor="example.org",
                product="widget-agent",
                instance="inst-010",
                epoch=1,
                heartbeat_interval=3,
                timestamp=1795209032516483807,
                schema_updated=1795209030354611165,
                capability=1,
                direct_subject="direct-agent.route.86c5c1b6-080f-431c-9100-a34574b24e5d",
                attributes={"site": "lab"},
            )
        ),
        to="qmf.default.topic",
        subject="agent.ind.heartbeat.example.org.widget-agent",
        agent="example.org:widget-agent:inst-010",
    )


@parametrized(["req-query-where-data010"] if NAMES else [])
def test_a_query_in_full(name: str) -> None:
    _, envelope = decoded(name)
    assert attrs.evolve(envelope, reply_to=None) == Envelope(
        content=QueryRequest(
            what=What.OBJECT,
            class_key=ClassKey("org.example.widgets", "widget"),
            where=["and", ["eq", "name", ["quote", "widget-3"]], ["ge", "count", ["quote", 3]]],
        ),
        to="qmf.default.direct",
        subject="example.org:widget-agent:inst-010",
        correlation_id="40",
    )


@parametrized(["libqmf2-10-exception-data"] if NAMES else [])
def test_an_exception_in_full(name: str) -> None:
    _, envelope = decoded(name)
    content = envelope.content
    assert isinstance(content, ExceptionResponse)
    assert (content.text, content.code) == ("widget jammed", 42)
    assert content.class_key is not None
    assert content.class_key.name == "fault"


@parametrized(["qpidd-query_response-partial-1of2"] if NAMES else [])
def test_a_part_of_an_answer_holds_all_its_objects(name: str) -> None:
    _, envelope = decoded(name)
    content = envelope.content
    assert envelope.partial
    assert isinstance(content, ObjectsResponse)
    assert len(content.objects) == 100
    assert len({item.object_id for item in content.objects}) == 100
    assert {item.class_key.name for item in content.objects if item.class_key} == {"binding"}
