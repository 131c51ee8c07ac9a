"""Tolerance and errors of `decode`: messages that peers could send, made by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from qmf.codec import Message, Section, Symbol, amqp010, encode_message
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    AgentInfo,
    BrokerRequest,
    ContentError,
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
    ObjectDecoder,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    UnknownOpcode,
    V1Message,
    What,
    decode,
    encode,
)
from qmf.schema.model import ClassKey, Kind


def message(opcode: str, body: object, content: str | None = None, **fields: Any) -> bytes:
    properties = {"qmf.opcode": opcode} | ({} if content is None else {"qmf.content": content})
    return encode_message(Message(application_properties=properties, section=Section.VALUE, body=body, **fields))


def content(opcode: str, body: object, kind: str | None = None) -> object:
    envelope = decode(message(opcode, body, kind))
    assert isinstance(envelope, Envelope)
    return envelope.content


# -- what is tolerated -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "kind", "body", "expected"),
    [
        ("_agent_locate_request", None, [], LocateRequest()),
        ("_agent_locate_request", None, None, LocateRequest()),
        ("_agent_locate_request", None, "", LocateRequest()),
        ("_agent_locate_request", None, b"", LocateRequest()),
        ("_query_request", None, {"_what": "OBJECT"}, QueryRequest(what=What.OBJECT)),
        ("_query_request", None, {b"_what": b"SCHEMA", b"_where": None}, QueryRequest(what=What.SCHEMA)),
        (
            "_query_request",
            None,
            {"_what": "OBJECT", "_schema_id": {"_class_name": "c"}, "_select": ["a", b"b"]},
            QueryRequest(what=What.OBJECT, class_key=ClassKey("", "c"), select=("a", "b")),
        ),
        ("_query_request", None, {"_what": "OBJECT", "_schema_id": {}}, QueryRequest(what=What.OBJECT)),
        ("_query_response", None, [], ObjectsResponse([])),
        ("_query_response", "_data", [{}], ObjectsResponse([ObjectData(values={})])),
        ("_query_response", "_data", [{"_values": None}], ObjectsResponse([ObjectData(values={})])),
        (
            "_query_response",
            "_data",
            [{"_object_id": {"_object_name": b"\xffa"}}],
            ObjectsResponse([ObjectData(values={}, object_id=ObjectId("\udcffa"))]),
        ),
        (
            "_query_response",
            "_schema_id",
            [{"_class_name": "c", "_type": "_event", "_hash": "00000000-0000-0000-0000-000000000005"}],
            SchemaIdsResponse([ClassKey("", "c", Kind.EVENT, UUID(int=5))]),
        ),
        (
            "_query_response",
            "_schema_id",
            [{"_class_name": "c", "_hash": b"0123456789abcdef"}],
            SchemaIdsResponse([ClassKey("", "c", Kind.DATA, UUID(bytes=b"0123456789abcdef"))]),
        ),
        ("_method_request", None, {"_method_name": "m"}, MethodRequest(method="m")),
        ("_method_response", None, {}, MethodResponse()),
        ("_method_response", None, None, MethodResponse()),
        ("_exception", None, {}, ExceptionResponse(text="")),
        (
            "_exception",
            "_data",
            {"_values": {"error_text": "no"}},
            ExceptionResponse(text="no", values={"error_text": "no"}),
        ),
        (
            "_exception",
            None,
            {"_values": {"error_code": "seven"}},
            ExceptionResponse(text="", values={"error_code": "seven"}),
        ),
        ("_data_indication", None, [], ObjectsIndication([])),
        ("_data_indication", "_event", [{}], EventsIndication([EventData(values={})])),
        (
            "_data_indication",
            "_event",
            [{"_schema_id": {"_class_name": "e"}, "_severity": 0}],
            EventsIndication([EventData(values={}, class_key=ClassKey("", "e", Kind.EVENT), severity=0)]),
        ),
        ("_data_indication", "_event", [{"_severity": 20}], EventsIndication([EventData(values={}, severity=7)])),
        ("_data_indication", "_event", [{"_severity": -1}], EventsIndication([EventData(values={}, severity=0)])),
    ],
)
def test_what_peers_leave_out(opcode: str, kind: str | None, body: object, expected: object) -> None:
    assert content(opcode, body, kind) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"_name": "v:p:i"}, AgentInfo(name="v:p:i", vendor="v", product="p", instance="i")),
        ({"_name": "v:p:i:j"}, AgentInfo(name="v:p:i:j", vendor="v", product="p", instance="i:j")),
        ({"_name": "solo"}, AgentInfo(name="solo", vendor="solo")),
        ({"_vendor": "v", "_instance": "i"}, AgentInfo(name="v::i", vendor="v", instance="i")),
        ({"_name": "v:p:i", "_vendor": ""}, AgentInfo(name="v:p:i", product="p", instance="i")),
        (
            {"_name": "a", "epoch": 5, "timestamp": 6, "heartbeat_interval": 7},
            AgentInfo(name="a", vendor="a", epoch=5, timestamp=6, heartbeat_interval=7),
        ),
        (
            {"_name": "a", "epoch": 5, "_epoch": 6, "timestamp": "noon"},
            AgentInfo(name="a", vendor="a", epoch=6, attributes={"epoch": 5, "timestamp": "noon"}),
        ),
        ({"_name": "a", "_heartbeat_interval": 0.5}, AgentInfo(name="a", vendor="a", heartbeat_interval=0.5)),
        ({b"_name": b"a", b"site": b"lab"}, AgentInfo(name="a", vendor="a", attributes={"site": "lab"})),
    ],
)
def test_what_agents_say_of_themselves(fields: dict[object, object], expected: AgentInfo) -> None:
    assert content("_agent_heartbeat_indication", {"_values": fields}) == Heartbeat(expected)
    assert content("_agent_locate_response", {"_values": fields}) == LocateResponse(expected)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("amqp/map", amqp010.encode_map({"_what": "OBJECT"})),
        (None, amqp010.encode_map({"_what": "OBJECT"})),
        ("text/plain", amqp010.encode_map({"_what": "OBJECT"})),
    ],
)
def test_content_types_may_be_missing_or_wrong(content_type: str | None, body: bytes) -> None:
    data = encode_message(
        Message(
            application_properties={"qmf.opcode": b"_query_request"},
            content_type=content_type,
            section=Section.DATA,
            body=body,
        )
    )
    envelope = decode(data)
    assert isinstance(envelope, Envelope)
    assert envelope.content == QueryRequest(what=What.OBJECT)


@pytest.mark.parametrize("section", [Section.NONE, Section.DATA])
def test_an_empty_body_asks_everybody(section: Section) -> None:
    data = encode_message(
        Message(
            application_properties={"qmf.opcode": "_agent_locate_request"},
            section=section,
            body=b"" if section is Section.DATA else None,
        )
    )
    assert decode(data) == Envelope(content=LocateRequest())


def test_a_sequence_section_is_a_list() -> None:
    data = encode_message(
        Message(
            application_properties={"qmf.opcode": "_query_response"}, section=Section.SEQUENCE, body=[{"_values": {}}]
        )
    )
    assert decode(data) == Envelope(content=ObjectsResponse([ObjectData(values={})]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("7", "7"), (7, "7"), (b"7", "7"), (b"\xff", "\udcff"), (UUID(int=7), str(UUID(int=7)))],
)
def test_correlation_ids_come_as_text(value: object, expected: str | None) -> None:
    envelope = decode(message("_method_response", {}, correlation_id=value))
    assert isinstance(envelope, Envelope)
    assert envelope.correlation_id == expected


def test_neither_app_id_nor_method_is_asked_for() -> None:
    data = message("_method_request", {"_method_name": "m"}, to="exchange", reply_to="exchange/key", user_id=b"")
    assert decode(data) == Envelope(
        content=MethodRequest(method="m"), to="exchange", reply_to="exchange/key", user_id=None
    )


def test_qmfv1_may_come_in_an_amqp_value() -> None:
    for body in (b"AM2B\0\0\0\x05", b"AM2m\0\0\0\x05\xff"):
        decoded = decode(encode_message(Message(section=Section.VALUE, body=body)))
        assert isinstance(decoded, V1Message)
        assert decoded.frames[0].sequence == 5
    assert decode(encode_message(Message(section=Section.VALUE, body=b"AM2B\0\0\0\x05"))) == V1Message(
        frames=(BrokerRequest(5),)
    )


# -- what is not -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "kind", "body", "words"),
    [
        ("_agent_locate_request", None, {}, "body is a map, not a list"),
        ("_agent_locate_response", None, [], "body is a list, not a map"),
        ("_agent_locate_response", None, {}, "_name is missing"),
        ("_agent_locate_response", None, {"_values": []}, "_values is a list, not a map"),
        ("_agent_heartbeat_indication", None, {"_values": {"_name": 5}}, "_name is an integer, not a string"),
        ("_agent_heartbeat_indication", None, {"_values": {"_name": "a", "_epoch": "x"}}, "_epoch is a string"),
        ("_query_request", None, {}, "_what is missing"),
        ("_query_request", None, {"_what": "PACKAGES"}, "_what is 'PACKAGES'"),
        ("_query_request", None, {"_what": "OBJECT", "_object_id": {}}, "_object_name is missing"),
        ("_query_request", None, {"_what": "OBJECT", "_object_id": "a"}, "_object_id is a string, not a map"),
        ("_query_request", None, {"_what": "OBJECT", "_schema_id": {"_hash": 5}}, "_class_name is missing"),
        (
            "_query_request",
            None,
            {"_what": "OBJECT", "_schema_id": {"_class_name": "c", "_hash": "x"}},
            "_hash is a string, not a uuid",
        ),
        (
            "_query_request",
            None,
            {"_what": "OBJECT", "_schema_id": {"_class_name": "c", "_type": "_other"}},
            "_type is '_other'",
        ),
        ("_query_request", None, {"_what": "OBJECT", "_where": "x"}, "_where is a string, not a list"),
        ("_query_request", None, {"_what": "OBJECT", "_select": [1]}, "_select is an integer"),
        ("_query_request", None, {1: 2}, "body has keys that are no strings"),
        ("_query_response", "_data", [5], "object is an integer, not a map"),
        ("_query_response", "_data", [{"_values": 5}], "_values is an integer"),
        ("_query_response", "_data", [{"_update_ts": "x"}], "_update_ts is a string, not an integer"),
        ("_query_response", "_data", [{"_subtypes": {"a": 1}}], "a is an integer, not a string"),
        ("_query_response", "_schema_id", ["x"], "schema id is a string"),
        ("_query_response", "_schema", [{}], "_schema_id is missing"),
        ("_query_response", "_other", [], "qmf.content is '_other'"),
        ("_query_response", "_data", {}, "body is a map"),
        ("_method_request", None, {}, "_method_name is missing"),
        ("_method_request", None, {"_method_name": "m", "_arguments": []}, "_arguments is a list"),
        ("_method_request", None, {"_method_name": "m", "_object_id": {}}, "_object_name is missing"),
        ("_method_response", None, {"_arguments": 5}, "_arguments is an integer"),
        ("_exception", None, {"_values": {"error_text": 5}}, "error_text is an integer"),
        ("_exception", None, [], "body is a list"),
        ("_data_indication", "_event", ["x"], "event is a string"),
        ("_data_indication", "_event", [{"_severity": 1.5}], "_severity is a float"),
        ("_data_indication", "_schema", [], "qmf.content is '_schema'"),
    ],
)
def test_errors_name_opcode_and_key(opcode: str, kind: str | None, body: object, words: str) -> None:
    with pytest.raises(ContentError) as caught:
        decode(message(opcode, body, kind, reply_to="exchange/key", correlation_id="7"))
    assert str(caught.value).startswith(f"{opcode}: ")
    assert words in str(caught.value)
    # Enough to answer the sender.
    assert (caught.value.reply_to, caught.value.correlation_id) == ("exchange/key", "7")


def test_unknown_opcodes_are_named() -> None:
    with pytest.raises(UnknownOpcode, match="_package_request: unknown opcode") as caught:
        decode(message("_package_request", {}, reply_to="exchange/key", correlation_id=7))
    error = caught.value
    assert (error.opcode, error.reply_to, error.correlation_id) == ("_package_request", "exchange/key", "7")


@pytest.mark.parametrize(
    "foreign",
    [
        Message(),
        Message(section=Section.DATA, body=b"hello"),
        Message(section=Section.DATA, body=b""),
        Message(section=Section.VALUE, body="AM1"),
        Message(section=Section.VALUE, body={"_what": "OBJECT"}),
        Message(application_properties={"x-amqp-0-10.app-id": "qmf2"}, section=Section.VALUE, body={}),
        Message(application_properties={"qmf.opcode": 5}, section=Section.VALUE, body={}),
        Message(application_properties={"qmf.opcode": b"\xff"}, section=Section.VALUE, body={}),
    ],
)
def test_other_messages_are_no_qmf(foreign: Message) -> None:
    with pytest.raises(ProtocolError, match=r"not a QMF message|qmf.opcode is no string"):
        decode(encode_message(foreign))


def test_a_body_that_is_not_what_its_content_type_says() -> None:
    data = encode_message(
        Message(
            application_properties={"qmf.opcode": "_query_request"},
            content_type="amqp/list",
            section=Section.DATA,
            body=amqp010.encode_list([]),
        )
    )
    with pytest.raises(ContentError, match="_query_request: body is a list, not a map"):
        decode(data)
    broken = encode_message(
        Message(application_properties={"qmf.opcode": "_query_request"}, section=Section.DATA, body=b"{}")
    )
    with pytest.raises(DecodeError, match="inside the map"):
        decode(broken)


# -- what agents say, and by which brokers it came ---------------------------------------------------------------------


@pytest.mark.parametrize("opcode", ["_agent_locate_response", "_agent_heartbeat_indication"])
@pytest.mark.parametrize(
    ("annotations", "path"),
    [
        ({}, ()),
        ({"x-qpid.trace": "far"}, ("far",)),
        ({"x-qpid.trace": "far,middle", "x-other": 1}, ("far", "middle")),
        ({"x-qpid.trace": 7}, ()),
    ],
)
def test_the_path_of_an_agent(opcode: str, annotations: dict[str, object], path: tuple[str, ...]) -> None:
    body = {"_values": {"_name": "v:p:i"}}
    data = message(opcode, body, message_annotations={Symbol(name): value for name, value in annotations.items()})
    envelope = decode(data)
    assert isinstance(envelope, Envelope)
    assert isinstance(envelope.content, Heartbeat | LocateResponse)
    assert envelope.content.agent.path == path
    assert envelope.content.agent == AgentInfo(name="v:p:i", vendor="v", product="p", instance="i")


@pytest.mark.parametrize("pending", [True, False])
@pytest.mark.parametrize("decoder", [None, ObjectDecoder()], ids=["plain", "with a decoder"])
def test_objects_that_nobody_waits_for_are_left_out(decoder: ObjectDecoder | None, pending: bool) -> None:
    content = ObjectsResponse([ObjectData(values={"a": 1}, object_id=ObjectId("x"))])
    data = encode(Envelope(content=content, correlation_id="7", agent="a"))
    asked: list[str | None] = []

    def is_pending(number: str | None) -> bool:
        asked.append(number)
        return pending

    envelope = decode(data, decoder, is_pending)
    assert isinstance(envelope, Envelope)
    assert isinstance(envelope.content, ObjectsResponse)
    assert (len(envelope.content.objects), envelope.agent, asked) == (int(pending), "a", ["7"])
