"""Bus URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.bus import BusUrl, UrlError, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("broker", BusUrl("broker", 5672)),
        ("broker:1234", BusUrl("broker", 1234)),
        ("amqp://broker", BusUrl("broker", 5672)),
        ("AMQP://broker/", BusUrl("broker", 5672)),
        ("amqps://broker", BusUrl("broker", 5671, tls=True)),
        ("amqps://broker:1", BusUrl("broker", 1, tls=True)),
        ("guest@broker", BusUrl("broker", username="guest")),
        ("guest/secret@broker", BusUrl("broker", username="guest", password="secret")),
        ("guest:secret@broker:99", BusUrl("broker", 99, username="guest", password="secret")),
        ("amqp://guest:p%40ss%2Fword@broker", BusUrl("broker", username="guest", password="p@ss/word")),
        ("guest/p%40ss@broker", BusUrl("broker", username="guest", password="p%40ss")),
        ("guest:a@b:c@broker", BusUrl("broker", username="guest", password="a@b:c")),
        ("amqp://guest:@broker", BusUrl("broker", username="guest", password="")),
        ("[::1]", BusUrl("::1", 5672)),
        ("amqp://[fe80::1]:5000", BusUrl("fe80::1", 5000)),
        (" broker ", BusUrl("broker")),
        ("ws://broker", BusUrl("broker", 80, path="/")),
        ("wss://guest:p%40ss@[::1]:99/a/b@c?q=1", BusUrl("::1", 99, True, "guest", "p@ss", "/a/b@c?q=1")),
    ],
)
def test_valid(text: str, url: BusUrl) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "host is missing"),
        ("amqp://", "host is missing"),
        (":5672", "host is missing"),
        ("http://broker", "unknown scheme 'http'"),
        ("broker:0", "port '0'"),
        ("broker:65536", "port '65536'"),
        ("broker:amqp", "port 'amqp'"),
        ("broker:", "port ''"),
        ("::1", "brackets"),
        ("[::1", "brackets"),
        ("[broker]", "'broker' is not an IPv6 address"),
        ("broker/vhost", "'/' cannot be part"),
        ("two words", "' ' cannot be part"),
        ("ws://broker/two words", "' ' cannot be part of a path"),
        ("ws:///path", "host is missing"),
        ("@broker", "user before '@' is empty"),
        (":secret@broker", "user before '@' is empty"),
    ],
)
def test_invalid(text: str, reason: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse_url(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "text", ["amqp://guest:hidden@bro ker", "guest/hidden@bro ker", "amqp://guest:hid@den@x:y", "guest:hidden@:1"]
)
def test_no_error_shows_the_password(text: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse_url(text)
    assert "hid" not in str(caught.value)
    assert "den" not in str(caught.value).replace("hidden", "")
    assert "guest" in str(caught.value)


def test_neither_text_nor_repr_shows_the_password() -> None:
    url = parse_url("amqps://guest:hidden@[::1]:7")
    assert str(url) == "amqps://guest@[::1]:7"
    assert "hidden" not in repr(url)


@given(st.text())
def test_any_text_is_a_url_or_an_error(text: str) -> None:
    try:
        url = parse_url(text)
    except UrlError:
        return
    assert url.host
    assert 0 < url.port < 65536


@given(
    st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True),
    st.integers(1, 65535),
    st.booleans(),
    st.none() | st.just("me"),
)
def test_what_is_shown_can_be_read_again(host: str, port: int, tls: bool, username: str | None) -> None:
    url = BusUrl(host, port, tls, username)
    assert parse_url(str(url)) == url
