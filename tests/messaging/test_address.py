"""Errors of addresses, in the words of the published API."""

from __future__ import annotations

from typing import Any

import pytest

from qmf.messaging import Connection, InvalidOption, MalformedAddress
from qmf.messaging.address import ParseError, parse


@pytest.mark.parametrize("address", [None, 7, b"queue"])
def test_what_is_no_text_is_malformed(embedded: str, address: Any) -> None:
    with Connection.establish(embedded, timeout=10) as connection:
        session = connection.session()
        for make in (session.sender, session.receiver):
            with pytest.raises(MalformedAddress):
                make(address)
        session.sender("amq.topic").close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("name/subject; {bad options", "expecting COLON, got ID('options') line:1,19:name/subject; {bad options"),
        ("\x00", "unrecognized characters ('\\x00' must be inside of quotes) line:1,0:\x00"),
    ],
)
def test_malformed_addresses(address: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(address)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "{create: always, node: {this-property-does-not-exist: 3}}",
            "node: this-property-does-not-exist: illegal key",
        ),
        ("{create: asdf}", "create: asdf not in ('always', 'sender', 'receiver', 'never')"),
        ("{mode: peek}", "mode: peek not in ('browse', 'consume')"),
        ("{node: asdf}", "node: asdf is not a map"),
        ("{node: {durable: []}}", "node: durable: [] is not a bool"),
    ],
)
def test_invalid_options(embedded: str, options: str, message: str) -> None:
    with Connection.establish(embedded, timeout=10) as connection:
        session = connection.session()
        for make in (session.sender, session.receiver):
            with pytest.raises(InvalidOption) as caught:
                make(f"name; {options}")
            assert str(caught.value) == f"error in options: {message}"


def test_the_parser() -> None:
    assert parse("name") == ("name", None, None)
    assert parse("name/subject; {node: {type: queue}, x: [1, 2.5]}") == (
        "name",
        "subject",
        {"node": {"type": "queue"}, "x": [1, 2.5]},
    )
