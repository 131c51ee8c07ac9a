"""HTTP messages as messages of the bus, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.messaging import Message
from qmf.messaging.contents import decode, encode
from qmf.web.messages.contents import DeliveryOptions, is_shown, property_name, to_http, to_message


def passed_on(message: Message) -> Message:
    """As a receiver gets it."""
    return decode(encode(message))


def test_headers_are_properties_and_headers_again() -> None:
    headers = [("Content-Type", "application/xml"), ("Content-Language", "de"), ("X-Order-Kind", "tea")]
    message = passed_on(to_message(b"<order/>", headers, DeliveryOptions()))
    assert message.properties["http_x$order$kind"] == "tea"
    assert message.properties["http_content$type"] == "application/xml"
    assert (message.content, message.content_type) == (b"<order/>", "application/xml")
    found = to_http(message)
    assert (found.body, found.content_type) == (b"<order/>", "application/xml")
    assert found.headers == {"content-language": "de", "x-order-kind": "tea"}


def test_several_headers_of_one_name_are_one_property() -> None:
    message = to_message(b"", [("x-a", "1"), ("X-A", "2")], DeliveryOptions())
    assert message.properties == {"http_x$a": "1, 2"}


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Cookie",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Accept-Wait",
        "Sec-Fetch-Site",
        "msg-x",
    ],
)
def test_headers_of_the_request_itself_are_no_properties(name: str) -> None:
    assert to_message(b"", [(name, "1")], DeliveryOptions()).properties == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("set-cookie", "a=b"),
        ("location", "http://elsewhere"),
        ("access-control-allow-origin", "*"),
        ("msg-consume-next", "http://elsewhere"),
        ("content-length", "3"),
        ("content-security-policy", "none"),
        ("x-a", "1\r\nset-cookie: a=b"),
        ("x a", "1"),
        ("x-a", "\u20ac"),
    ],
)
def test_no_message_sets_what_changes_the_answer(name: str, value: str) -> None:
    message = Message(b"", properties={property_name(name): value})
    assert not is_shown(name, value)
    assert to_http(message).headers == {}


def test_how_a_message_is_sent() -> None:
    message = passed_on(to_message(b"", [], DeliveryOptions(durable=True, priority=9, ttl=1.5)))
    assert (message.durable, message.priority, message.ttl) == (True, 9, 1.5)
    assert passed_on(to_message(b"", [], DeliveryOptions(), "mine")).id == "mine"


@pytest.mark.parametrize(
    ("body", "given_type", "content"),
    [
        ("grün".encode(), "text/plain", "grün"),
        ("grün".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grün"),
        (b"\xff", "text/plain", b"\xff"),
        (b"\xff", "text/plain; charset=nonsense", b"\xff"),
        (b"{}", "application/json", b"{}"),
        (b"\x00\x01", "amqp/map", b"\x00\x01"),
    ],
)
def test_bodies_come_back_as_they_were(body: bytes, given_type: str, content: object) -> None:
    message = passed_on(to_message(body, [("content-type", given_type)], DeliveryOptions()))
    assert message.content == content
    found = to_http(message)
    assert found.body == body
    expected = given_type if "charset" in given_type or not isinstance(content, str) else f"{given_type}; charset=utf-8"
    assert found.content_type == expected


@given(st.binary(max_size=200), st.sampled_from([None, "text/plain", "application/json", "amqp/list", "a/b; c=d"]))
def test_every_body_comes_back(body: bytes, given_type: str | None) -> None:
    headers = [] if given_type is None else [("content-type", given_type)]
    assert to_http(passed_on(to_message(body, headers, DeliveryOptions()))).body == body


@pytest.mark.parametrize(
    ("content", "content_type", "body", "shown"),
    [
        ("text", "text/plain", b"text", "text/plain; charset=utf-8"),
        ("text", None, b"text", "text/plain; charset=utf-8"),
        ({"a": 2**60, "b": [True, None]}, None, b'{"a": "1152921504606846976", "b": [true, null]}', "application/json"),
        ([1, "x"], "amqp/list", b'[1, "x"]', "application/json"),
        (b"\x00", None, b"\x00", "application/octet-stream"),
        (b"<a/>", "application/xml", b"<a/>", "application/xml"),
        (b"x", "bad\r\ntype", b"x", "application/octet-stream"),
        (None, None, b"", "application/octet-stream"),
    ],
)
def test_messages_of_others(content: object, content_type: str | None, body: bytes, shown: str) -> None:
    found = to_http(Message(content, content_type))
    assert (found.body, found.content_type) == (body, shown)
