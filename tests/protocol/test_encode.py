"""Invented messages there and back, in both forms; and what a message looks like on the wire."""

from __future__ import annotations

from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import examples

from qmf.codec import EncodeError, Message, Section, UInt8, amqp010, decode_message
from qmf.protocol import (
    AgentInfo,
    BodyForm,
    BrokerRequest,
    Content,
    Envelope,
    EventData,
    EventsIndication,
    ExceptionResponse,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    MessageTemplate,
    MethodRequest,
    MethodResponse,
    ObjectData,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
    V1Message,
    What,
    decode,
    encode,
)
from qmf.protocol.objects.general import event_to_map
from qmf.schema.model import ClassKey, Kind

# -- invented contents -------------------------------------------------------------------------------------------------

NUMBERS = st.integers(0, 2**64 - 1)
#: Seconds, as whole milliseconds of 32 bits give them.
MILLISECONDS = st.integers(0, 2**32 - 1).map(lambda ms: ms / 1000)
#: Text in values: any, also what came as binary that was no UTF-8.
NAMES = wire.TEXTS | st.binary(max_size=10).map(lambda raw: raw.decode(errors="surrogateescape"))
#: Binary in values that is UTF-8 would come back as text.
VALUES = st.dictionaries(
    wire.TEXTS,
    st.recursive(
        wire.SCALARS.filter(lambda value: not isinstance(value, bytes)) | st.just(b"\xff\xfe"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(wire.TEXTS, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=5,
)
TEXT_MAPS = st.dictionaries(wire.TEXTS, wire.TEXTS, max_size=2)
OBJECT_IDS = st.builds(ObjectId, NAMES, st.none() | NAMES, NUMBERS)


def keys(kind: st.SearchStrategy[Kind]) -> st.SearchStrategy[ClassKey]:
    return st.builds(ClassKey, wire.TEXTS, wire.TEXTS, kind, st.none() | st.uuids())


OBJECTS = st.builds(
    ObjectData,
    values=VALUES,
    object_id=st.none() | OBJECT_IDS,
    class_key=st.none() | keys(st.just(Kind.DATA)),
    update_ts=NUMBERS,
    create_ts=NUMBERS,
    delete_ts=NUMBERS,
    subtypes=TEXT_MAPS,
    left=st.booleans(),
)
EVENTS = st.builds(
    EventData,
    values=VALUES,
    class_key=st.none() | keys(st.just(Kind.EVENT)),
    timestamp=NUMBERS,
    severity=st.integers(0, 7),
    object_id=st.none() | OBJECT_IDS,
)
AGENTS = st.builds(
    AgentInfo,
    name=NAMES,
    vendor=NAMES,
    product=NAMES,
    instance=NAMES,
    epoch=NUMBERS,
    heartbeat_interval=st.integers(0, 2**32 - 1),
    timestamp=NUMBERS,
    schema_updated=NUMBERS,
    capability=st.integers(0, 5),
    direct_subject=st.none() | NAMES,
    attributes=VALUES,
)
PREDICATES = st.lists(st.recursive(wire.TEXTS | st.booleans(), lambda inner: st.lists(inner, max_size=3)), max_size=3)
EXCEPTIONS = st.builds(
    lambda text, code, values, key: ExceptionResponse(
        text=text,
        code=code,
        values={
            **values,
            **({"error_text": text} if text else {}),
            **({} if code is None else {"error_code": code}),
        },
        class_key=key,
    ),
    wire.TEXTS,
    st.none() | st.integers(-5, 2**40),
    VALUES,
    st.none() | keys(st.just(Kind.DATA)),
)
CONTENTS: st.SearchStrategy[Content] = st.one_of(
    st.builds(LocateRequest, PREDICATES.map(lambda where: where or ())),
    st.builds(LocateResponse, AGENTS),
    st.builds(Heartbeat, AGENTS),
    st.builds(
        QueryRequest,
        what=st.sampled_from(What),
        class_key=st.none() | keys(st.sampled_from(Kind)),
        object_id=st.none() | OBJECT_IDS,
        where=PREDICATES.map(lambda where: where or ()),
        select=st.lists(wire.TEXTS, max_size=3).map(tuple),
    ),
    st.builds(ObjectsResponse, st.lists(OBJECTS, max_size=3)),
    st.builds(ObjectsIndication, st.lists(OBJECTS, max_size=3)),
    st.builds(SchemaIdsResponse, st.lists(keys(st.sampled_from(Kind)), max_size=3)),
    st.builds(
        MethodRequest,
        method=wire.TEXTS,
        object_id=st.none() | OBJECT_IDS,
        arguments=VALUES,
        subtypes=TEXT_MAPS,
        on_behalf_of=st.none() | wire.TEXTS,
    ),
    st.builds(MethodResponse, arguments=VALUES, subtypes=TEXT_MAPS),
    EXCEPTIONS,
    st.builds(EventsIndication, st.lists(EVENTS, max_size=3)),
    st.builds(
        SubscribeRequest,
        class_key=st.none() | keys(st.just(Kind.DATA)),
        object_id=st.none() | OBJECT_IDS,
        where=PREDICATES.map(lambda where: where or ()),
        select=st.lists(wire.TEXTS, max_size=3).map(tuple),
        interval=MILLISECONDS,
        lifetime=st.integers(0, 2**32 - 1),
        can_share=st.booleans(),
    ),
    st.builds(SubscribeResponse, subscription_id=NAMES, interval=MILLISECONDS, lifetime=st.integers(0, 2**32 - 1)),
    st.builds(SubscribeRefresh, subscription_id=NAMES, lifetime=st.integers(0, 2**32 - 1), bound=st.booleans()),
    st.builds(
        SubscribeShare,
        subscription_id=NAMES,
        shared_key=NAMES,
        last_sequence=st.integers(0, 2**32 - 1),
        first_sequence=st.integers(0, 2**32 - 1),
    ),
    st.builds(SubscribeCancel, subscription_id=NAMES, reason=wire.TEXTS),
)
ENVELOPES = st.builds(
    Envelope,
    content=CONTENTS,
    to=st.none() | wire.TEXTS,
    subject=st.none() | wire.TEXTS,
    reply_to=st.none() | wire.TEXTS,
    correlation_id=st.none() | NAMES,
    agent=st.none() | wire.TEXTS.filter(bool),
    user_id=st.none() | NAMES.filter(bool),
    partial=st.booleans(),
    ttl=st.none() | st.integers(0, 1000).map(float),
    subscription=st.none() | wire.TEXTS.filter(bool),
    sequence=st.none() | NUMBERS,
    suppressed=NUMBERS,
)


@pytest.mark.slow
@pytest.mark.parametrize("form", BodyForm)
@examples(190)
@given(envelope=ENVELOPES)
def test_what_is_encoded_comes_back(form: BodyForm, envelope: Envelope) -> None:
    assert decode(encode(envelope, form=form)) == envelope


# -- on the wire -------------------------------------------------------------------------------------------------------


def value_body(content: Content) -> object:
    message = decode_message(encode(Envelope(content=content), form=BodyForm.VALUE))
    assert message.section is Section.VALUE
    return message.body


def test_a_request_carries_what_peers_need() -> None:
    envelope = Envelope(
        content=MethodRequest(method="m", object_id=ObjectId("o"), arguments={"a": UInt8(1)}),
        to="qmf.default.direct",
        subject="v:p:i",
        reply_to="qmf.default.topic/direct-console.1",
        correlation_id="7",
        ttl=2.5,
    )
    message = decode_message(encode(envelope))
    assert message == Message(
        ttl=2.5,
        to="qmf.default.direct",
        subject="v:p:i",
        reply_to="qmf.default.topic/direct-console.1",
        correlation_id="7",
        content_type="amqp/map",
        application_properties={
            "method": "request",
            "qmf.opcode": "_method_request",
            "x-amqp-0-10.app-id": "qmf2",
        },
        section=Section.DATA,
        body=amqp010.encode_map(
            {"_method_name": "m", "_arguments": {"a": UInt8(1)}, "_object_id": {"_object_name": "o"}}
        ),
    )


@pytest.mark.parametrize(
    ("content", "method", "opcode", "kind", "type_name"),
    [
        (LocateRequest(), "request", "_agent_locate_request", None, "amqp/list"),
        (LocateResponse(AgentInfo(name="a")), "indication", "_agent_locate_response", None, "amqp/map"),
        (Heartbeat(AgentInfo(name="a")), "indication", "_agent_heartbeat_indication", None, "amqp/map"),
        (QueryRequest(what=What.OBJECT), "request", "_query_request", None, "amqp/map"),
        (ObjectsResponse([]), "response", "_query_response", "_data", "amqp/list"),
        (SchemaIdsResponse([]), "response", "_query_response", "_schema_id", "amqp/list"),
        (MethodResponse(), "response", "_method_response", None, "amqp/map"),
        (ExceptionResponse(text="no"), "response", "_exception", "_data", "amqp/map"),
        (ObjectsIndication([]), "indication", "_data_indication", "_data", "amqp/list"),
        (EventsIndication([]), "indication", "_data_indication", "_event", "amqp/list"),
        (SubscribeRequest(), "request", "_subscribe_request", None, "amqp/map"),
        (
            SubscribeResponse(subscription_id="s", interval=1, lifetime=1),
            "response",
            "_subscribe_response",
            None,
            "amqp/map",
        ),
        (SubscribeRefresh(subscription_id="s"), "indication", "_subscribe_refresh_indication", None, "amqp/map"),
        (
            SubscribeShare(subscription_id="s", shared_key="k"),
            "indication",
            "_subscribe_share_indication",
            None,
            "amqp/map",
        ),
        (SubscribeCancel(subscription_id="s"), "indication", "_subscribe_cancel_indication", None, "amqp/map"),
    ],
)
@pytest.mark.parametrize("form", BodyForm)
def test_headers_of_every_kind(
    content: Content, method: str, opcode: str, kind: str | None, type_name: str, form: BodyForm
) -> None:
    message = decode_message(encode(Envelope(content=content, agent="v:p:i", partial=True), form=form))
    expected = {
        "method": method,
        "qmf.opcode": opcode,
        "qmf.agent": "v:p:i",
        "partial": "",
        "x-amqp-0-10.app-id": "qmf2",
    }
    assert message.application_properties == expected | ({} if kind is None else {"qmf.content": kind})
    assert message.content_type == type_name


def test_object_ids_become_maps_wherever_they_are() -> None:
    inner = ObjectId("o", "a", 2**40)
    as_map = {"_object_name": "o", "_agent_name": "a", "_agent_epoch": 2**40}
    content = MethodRequest(method="m", arguments={"ref": inner, "refs": [inner], "more": {"x": (inner,)}})
    body = value_body(content)
    assert isinstance(body, dict)
    assert body["_arguments"] == {"ref": as_map, "refs": [as_map], "more": {"x": [as_map]}}


@pytest.mark.parametrize("text", ["a" * 65536, "é" * 40000])
def test_long_text_goes_out_as_binary(text: str) -> None:
    # As a string it would close the connection when converted to AMQP 0-10.
    envelope = Envelope(content=MethodResponse(arguments={"t": text, "short": "é"}))
    data = encode(envelope, form=BodyForm.VALUE)
    body = decode_message(data, text=False).body
    assert isinstance(body, dict)
    assert body["_arguments"] == {"t": text.encode(), "short": "é"}
    assert decode(data) == envelope


def test_an_exception_says_text_and_code_once() -> None:
    content = ExceptionResponse(text="no", code=6, values={"error_text": "old", "more": 1})
    assert value_body(content) == {"_values": {"error_text": "no", "error_code": 6, "more": 1}}


def test_an_agent_is_not_what_its_attributes_say() -> None:
    body = value_body(Heartbeat(AgentInfo(name="v:p:i", vendor="v", heartbeat_interval=0.2, attributes={"_name": "x"})))
    assert body == {
        "_values": {
            "_name": "v:p:i",
            "_vendor": "v",
            "_product": "",
            "_instance": "",
            "_epoch": 0,
            "_timestamp": 0,
            "_heartbeat_interval": 1,
        }
    }


def test_time_stamps_are_sent_all_or_none() -> None:
    assert value_body(ObjectsResponse([ObjectData(values={}), ObjectData(values={}, create_ts=5)])) == [
        {"_values": {}},
        {"_values": {}, "_create_ts": 5, "_update_ts": 0, "_delete_ts": 0},
    ]


def test_qmfv1_has_neither_opcode_nor_app_id() -> None:
    message = V1Message(frames=(BrokerRequest(5),), to="qpid.management", subject="broker", reply_to="amq.direct/k")
    assert decode_message(encode(message)) == Message(
        to="qpid.management",
        subject="broker",
        reply_to="amq.direct/k",
        content_type="x-application/qmf",
        section=Section.DATA,
        body=b"AM2B\0\0\0\x05",
    )


@pytest.mark.parametrize(
    "content",
    [
        MethodRequest(method="m", arguments={"a": object()}),
        MethodRequest(method="m", arguments={"a": 2**64}),
        MethodRequest(method="m", arguments={"a": "\ud800"}),
        MethodRequest(method="\ud800"),
        EventsIndication([EventData(values={}, severity=256)]),
        EventsIndication([EventData(values={}, timestamp=-1)]),
        LocateRequest([[UUID]]),
    ],
)
@pytest.mark.parametrize("form", BodyForm)
def test_what_cannot_be_sent_is_an_error(content: Content, form: BodyForm) -> None:
    with pytest.raises(EncodeError):
        encode(Envelope(content=content), form=form)


def test_values_inside_themselves_are_an_error() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(EncodeError, match="inside each other"):
        encode(Envelope(content=MethodResponse(arguments={"a": endless})))


@pytest.mark.parametrize("number", [None, 0, 1, 255, 2**40, 2**64 - 1])
@pytest.mark.parametrize("size", [0, 10, 300])
@pytest.mark.parametrize("counted", [True, False])
def test_a_template_encodes_messages_that_differ_in_numbers_and_body(
    number: int | None, size: int, counted: bool
) -> None:
    events = [EventData(values={"text": "x" * size}, timestamp=1)] if size else []
    body = amqp010.encode_list([event_to_map(event) for event in events])
    total = None if number is None or not counted else number // 2
    example = Envelope(
        content=EventsIndication(()),
        to="t",
        subject="s",
        agent="a:b:c",
        sequence=None if number is None else 7,
        events=None if total is None else 8,
    )
    template = MessageTemplate(example)
    for _ in range(2):
        message = decode(template.encode(number, body, total))
        assert message == attrs.evolve(example, content=EventsIndication(events), sequence=number, events=total)
