"""What subscriptions and numbering look like on the wire, and what of it is tolerated or refused."""

from __future__ import annotations

from typing import Any

import pytest

from qmf.codec import EncodeError, Message, Section, decode_message, encode_message
from qmf.protocol import (
    AgentInfo,
    BodyForm,
    Content,
    ContentError,
    Envelope,
    EventsIndication,
    Heartbeat,
    ObjectData,
    ObjectId,
    ObjectsIndication,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
    decode,
    encode,
)
from qmf.schema.model import ClassKey


def body(content: Content) -> object:
    return decode_message(encode(Envelope(content=content), form=BodyForm.VALUE)).body


def received(opcode: str, fields: object, **properties: object) -> Envelope:
    message = Message(
        application_properties={"qmf.opcode": opcode, **properties},
        section=Section.VALUE,
        body=fields,
        reply_to="exchange/key",
        correlation_id="7",
    )
    envelope = decode(encode_message(message))
    assert isinstance(envelope, Envelope)
    return envelope


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            SubscribeRequest(class_key=ClassKey("p", "c"), where=["true"], select=("a",), interval=0.2505, lifetime=60),
            {
                "_what": "OBJECT",
                "_schema_id": {"_package_name": "p", "_class_name": "c", "_type": "_data"},
                "_where": ["true"],
                "_select": ["a"],
                "_interval": 250,
                "_lifetime": 60,
            },
        ),
        (
            SubscribeRequest(object_id=ObjectId("o")),
            {"_what": "OBJECT", "_object_id": {"_object_name": "o"}, "_interval": 0, "_lifetime": 0},
        ),
        (
            SubscribeResponse(subscription_id="s", interval=2, lifetime=5),
            {"_subscription_id": "s", "_interval": 2000, "_lifetime": 5},
        ),
        (SubscribeRefresh(subscription_id="s", lifetime=9), {"_subscription_id": "s", "_lifetime": 9}),
        (SubscribeRefresh(subscription_id="s", bound=True), {"_subscription_id": "s", "_lifetime": 0, "_bound": True}),
        (
            SubscribeShare(subscription_id="s", shared_key="k", last_sequence=7, first_sequence=9),
            {"_subscription_id": "s", "_shared_key": "k", "_last_sequence": 7, "_first_sequence": 9},
        ),
        (SubscribeCancel(subscription_id="s"), {"_subscription_id": "s"}),
        (SubscribeCancel(subscription_id="s", reason="over"), {"_subscription_id": "s", "_reason": "over"}),
        (ObjectsIndication([ObjectData(values={}, left=True)]), [{"_values": {}, "_left": True}]),
    ],
)
def test_bodies(content: Content, expected: object) -> None:
    assert body(content) == expected


@pytest.mark.parametrize(
    ("opcode", "fields", "expected"),
    [
        ("_subscribe_request", {"_what": "OBJECT"}, SubscribeRequest()),
        ("_subscribe_request", {b"_what": b"OBJECT", "_interval": None}, SubscribeRequest()),
        (
            "_subscribe_response",
            {"_subscription_id": b"s"},
            SubscribeResponse(subscription_id="s", interval=0, lifetime=0),
        ),
        ("_subscribe_refresh_indication", {"_subscription_id": "s"}, SubscribeRefresh(subscription_id="s")),
        (
            "_subscribe_cancel_indication",
            {"_subscription_id": "s", "_reason": b"x", "more": 1},
            SubscribeCancel(subscription_id="s", reason="x"),
        ),
        (
            "_subscribe_share_indication",
            {"_subscription_id": "s", "_shared_key": "k"},
            SubscribeShare(subscription_id="s", shared_key="k"),
        ),
    ],
)
def test_what_is_left_out_has_a_default(opcode: str, fields: dict[Any, object], expected: Content) -> None:
    assert received(opcode, fields).content == expected


@pytest.mark.parametrize(
    ("opcode", "fields", "word"),
    [
        ("_subscribe_request", {}, "_what is missing"),
        ("_subscribe_request", {"_what": "SCHEMA"}, "only OBJECT can be subscribed to"),
        ("_subscribe_request", {"_what": "OBJECT", "_interval": -1}, "_interval is -1, not 0 to 4294967295"),
        ("_subscribe_request", {"_what": "OBJECT", "_lifetime": 1 << 32}, "_lifetime is 4294967296"),
        ("_subscribe_request", {"_what": "OBJECT", "_interval": "1"}, "_interval is a string, not an integer"),
        ("_subscribe_request", {"_what": "OBJECT", "_select": [1]}, "_select is an integer"),
        ("_subscribe_response", {}, "_subscription_id is missing"),
        ("_subscribe_refresh_indication", {"_subscription_id": 1}, "_subscription_id is an integer"),
        ("_subscribe_refresh_indication", {"_subscription_id": "s", "_lifetime": 2.5}, "_lifetime is a float"),
        ("_subscribe_share_indication", {"_subscription_id": "s"}, "_shared_key is missing"),
        (
            "_subscribe_share_indication",
            {"_subscription_id": "s", "_shared_key": "k", "_last_sequence": -1},
            "_last_se",
        ),
        ("_subscribe_cancel_indication", [], "body is a list, not a map"),
    ],
)
def test_invalid_content_names_its_key(opcode: str, fields: object, word: str) -> None:
    with pytest.raises(ContentError, match=word) as caught:
        received(opcode, fields)
    assert (caught.value.opcode, caught.value.reply_to, caught.value.correlation_id) == (opcode, "exchange/key", "7")


@pytest.mark.parametrize(
    "content",
    [
        SubscribeRequest(interval=1e7),
        SubscribeRequest(lifetime=-1),
        SubscribeRefresh(subscription_id="s", lifetime=1 << 32),
    ],
)
def test_times_must_fit(content: Content) -> None:
    with pytest.raises(EncodeError):
        encode(Envelope(content=content))


def test_numbering_on_the_wire() -> None:
    envelope = Envelope(content=EventsIndication([]), subscription="s", sequence=2**40, suppressed=3)
    properties = decode_message(encode(envelope)).application_properties
    assert {key: properties[key] for key in ("qmf.subscription", "qmf.sequence", "qmf.suppressed")} == {
        "qmf.subscription": "s",
        "qmf.sequence": 2**40,
        "qmf.suppressed": 3,
    }
    plain = decode_message(encode(Envelope(content=EventsIndication([])))).application_properties
    assert not {"qmf.subscription", "qmf.sequence", "qmf.suppressed"} & set(plain)


@pytest.mark.parametrize("value", [None, -1, "1", True, 1.0])
def test_numbering_of_a_wrong_type_is_ignored(value: object) -> None:
    envelope = received("_data_indication", [], **{"qmf.sequence": value, "qmf.suppressed": value})
    assert (envelope.sequence, envelope.suppressed) == (None, 0)


@pytest.mark.parametrize("value", [None, 5, ""])
def test_a_subscription_that_is_no_text_is_ignored(value: object) -> None:
    assert received("_data_indication", [], **{"qmf.subscription": value}).subscription is None


@pytest.mark.parametrize("seconds", [float("inf"), float("-inf"), float("nan"), 1e306])
def test_intervals_that_are_no_number_are_refused(seconds: float) -> None:
    contents: list[Content] = [
        SubscribeRequest(interval=seconds),
        SubscribeResponse(subscription_id="1", interval=seconds, lifetime=1),
        Heartbeat(AgentInfo(name="a", heartbeat_interval=seconds)),
    ]
    for content in contents:
        with pytest.raises(EncodeError):
            encode(Envelope(content=content))
