"""Secrets do not get into the audit log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf._masking import MASK, MAX_ENTRIES, MAX_TEXT, mask, without_secrets

NAMES = ["password", "userPassword", "PASSWD", "secretKey", "client_secret", "apiKey", "token", "pin", "pass", "pwd"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["hunter2", ["hunter2"], {"a": "hunter2"}, b"hunter2", 7])
def test_what_is_called_a_secret(name: str, value: object) -> None:
    values = {"host": "a", "options": {"list": [{name: value}]}}
    assert mask(values) == {"host": "a", "options": {"list": [{name: MASK}]}}
    assert "hunter2" not in without_secrets("not 'hunter2' either", {"arguments": {name: "hunter2"}})


@pytest.mark.parametrize("name", ["passive", "authMechanism", "spinning", "key", "bindingKey", "pinned", "compass"])
def test_what_is_none(name: str) -> None:
    assert mask({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("amqp://ann:hunter2@host:5672/a", "amqp://***@host:5672/a"),
        ("https://ann@host, https://b:hunter2@other", "https://***@host, https://***@other"),
        ("host=a password=hunter2 x=y", "host=a password=*** x=y"),
        ("user@example.org", "user@example.org"),
    ],
)
def test_secrets_in_texts(text: str, found: str) -> None:
    assert mask(text) == found
    assert mask({"url": [text]}) == {"url": [found]}


@given(st.dictionaries(st.text(max_size=300), JSON, max_size=50))
def test_every_value_becomes_short_json(values: dict[str, object]) -> None:
    found: Any = mask(values)
    json.dumps(found)
    assert len(found) <= MAX_ENTRIES + 1
    assert all(len(item) < MAX_TEXT + 50 for item in found.values() if isinstance(item, str))


@given(JSON)
def test_a_secret_of_any_form(value: object) -> None:
    assert mask({"a": [{"adminPassword": value}]}) == {"a": [{"adminPassword": MASK}]}
