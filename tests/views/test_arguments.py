"""Values of arguments and properties as people write them."""

from __future__ import annotations

import pytest

from qmf.errors import ConstraintError
from qmf.schema import TYPES, Argument
from qmf.views.arguments import ArgumentError, checked_value


def value(kind: str, text: str) -> object:
    return checked_value(Argument(name="x", type=TYPES[kind]), text, "argument 'x'")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("uint32", " 0x10 ", 16),
        ("sstr", " a ", " a "),
        ("deltaTime", "5s", 5_000_000_000),
        ("deltaTime", "1m 30s", 90_000_000_000),
        ("deltaTime", "7", 7),
        ("deltaTime", "0xa", 10),
        ("absTime", "1700000000000000000", 1_700_000_000_000_000_000),
        ("absTime", "2026-05-01T12:00+00:00", 1_777_636_800_000_000_000),
        ("map", "{}", {}),
    ],
)
def test_values(kind: str, text: str, expected: object) -> None:
    assert value(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("uint32", "x", "not a whole number"),
        ("absTime", "soon", "must be a time such as 2026-05-01T12:00"),
        ("deltaTime", "5 parsecs", "must be a time such as 30s, 1m30s or 2h, not '5 parsecs'"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused_with_its_reason(kind: str, text: str, reason: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        value(kind, text)
    assert caught.value.reason == reason
    assert str(caught.value) == f"argument 'x' ({kind}): {reason}: {text!r}"


def test_bounds_are_checked() -> None:
    with pytest.raises(ConstraintError):
        value("uint8", "256")
