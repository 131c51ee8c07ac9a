"""How events are printed."""

from __future__ import annotations

from uuid import UUID

import pytest

from qmf.console.events import date, quote, severity, value_text
from qmf.schema import TYPES


@pytest.mark.parametrize(
    ("number", "word"),
    [
        *enumerate(["EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG"]),
        (8, "INV-8"),
        (-1, "INV--1"),
    ],
)
def test_severities(number: int, word: str) -> None:
    assert severity(number) == word


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, None, "T"),
        (False, None, "F"),
        (5, None, "5"),
        ("x", None, "x"),
        (1_233_258_799_000_000_000, "absTime", "Thu Jan 29 19:53:19 2009"),
        (5, "deltaTime", "5"),
        ({"a": 1}, "map", "{'a': 1}"),
        (UUID(int=1), "uuid", "00000000-0000-0000-0000-000000000001"),
        (None, None, "None"),
    ],
)
def test_values_are_shown(value: object, kind: str | None, text: str) -> None:
    assert value_text(value, TYPES[kind] if kind else None) == text


def test_dates_and_quotes() -> None:
    assert date(1_233_258_799_000_000_000) == "Thu Jan 29 19:53:19 2009"
    assert (quote("a b"), quote("ab")) == ('"a b"', "ab")
