"""Values against types and bounds."""

from __future__ import annotations

import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.errors import ConstraintError
from qmf.schema import TYPES, QmfType, check_value, zero_value

UUID_1 = UUID(int=1)

GOOD: list[tuple[str, object]] = [
    ("uint8", 0),
    ("uint8", 255),
    ("int64", -(2**63)),
    ("hilo32", 2**32 - 1),
    ("mmaTime", 0),
    ("absTime", -1),
    ("bool", True),
    ("sstr", "ü" * 127),
    ("lstr", "x" * 65535),
    ("sstr", "raw \udcff byte"),
    ("double", math.inf),
    ("float", 3.4028234663852886e38),
    ("uuid", UUID_1),
    ("map", {"a": object()}),
    ("list", [1]),
    ("list", (1,)),
    ("objId", object()),
]

BAD: list[tuple[str, object, str]] = [
    ("uint8", 256, "must be 0 to 255"),
    ("uint8", -1, "must be 0 to 255"),
    ("int8", -129, "must be -128 to 127"),
    ("count16", 65536, "must be 0 to 65535"),
    ("deltaTime", -1, "must be 0 to 18446744073709551615"),
    ("uint8", True, "must be a whole number"),
    ("uint8", 1.0, "must be a whole number"),
    ("uint8", "1", "must be a whole number"),
    ("uint8", None, "must be a whole number"),
    ("bool", 1, "must be True or False"),
    ("sstr", b"x", "must be a string"),
    ("sstr", "ü" * 128, "must be at most 255 bytes long"),
    ("lstr", "x" * 65536, "must be at most 65535 bytes long"),
    ("sstr", "\ud800", "must be text that UTF-8 can encode"),
    ("double", "1", "must be a number"),
    ("double", True, "must be a number"),
    ("double", 10**400, "is too large"),
    ("float", 1e39, "is too large for 32 bits"),
    ("uuid", str(UUID_1), "must be a UUID"),
    ("map", [("a", 1)], "must be a mapping"),
    ("map", {1: 1}, "must have strings as keys"),
    ("list", "abc", "must be a list"),
    ("list", {1}, "must be a list"),
]


@pytest.mark.parametrize(("type_name", "value"), GOOD)
def test_values_that_fit_come_back(type_name: str, value: object) -> None:
    assert check_value(TYPES[type_name], value, where="x") is value


@pytest.mark.parametrize(("type_name", "value", "reason"), BAD)
def test_values_that_do_not_fit(type_name: str, value: object, reason: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        check_value(TYPES[type_name], value, where="thing.p")
    error = caught.value
    assert (error.where, error.type_name, error.value, error.reason) == ("thing.p", type_name, value, reason)


@pytest.mark.parametrize(
    ("type_name", "value", "minimum", "maximum", "reason"),
    [
        ("uint8", 0, 1, 100, "must be 1 to 100"),
        ("uint8", 101, 1, 100, "must be 1 to 100"),
        ("uint8", 0, 1, None, "must be at least 1"),
        ("uint8", 9, None, 8, "must be at most 8"),
        ("double", 0.5, 1.5, None, "must be at least 1.5"),
        ("double", math.inf, None, 2.5, "must be at most 2.5"),
    ],
)
def test_bounds(type_name: str, value: float, minimum: float | None, maximum: float | None, reason: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        check_value(TYPES[type_name], value, where="x", minimum=minimum, maximum=maximum)
    assert caught.value.reason == reason


def test_bounds_are_inclusive() -> None:
    assert [check_value(TYPES["uint8"], n, where="x", minimum=1, maximum=3) for n in (1, 2, 3)] == [1, 2, 3]


def test_max_len_counts_bytes() -> None:
    assert check_value(TYPES["sstr"], "üü", where="x", max_len=4) == "üü"
    with pytest.raises(ConstraintError, match="must be at most 3 bytes long"):
        check_value(TYPES["sstr"], "üü", where="x", max_len=3)


@pytest.mark.parametrize("type_name", ["float", "double"])
def test_whole_numbers_become_floats(type_name: str) -> None:
    result = check_value(TYPES[type_name], 3, where="x", minimum=3)
    assert result == 3.0
    assert type(result) is float


def test_nan_is_never_compared() -> None:
    result = check_value(TYPES["double"], math.nan, where="x", minimum=1, maximum=2)
    assert isinstance(result, float)
    assert math.isnan(result)


@pytest.mark.parametrize("type_name", [name for name in TYPES if name != "objId"])
def test_zero_values_fit_their_types(type_name: str) -> None:
    type = TYPES[type_name]
    zero = zero_value(type)
    assert check_value(type, zero, where="x") == zero
    assert not zero or zero == UUID(int=0)


def test_an_unset_reference_is_none() -> None:
    assert zero_value(TYPES["objId"]) is None


@given(type=st.sampled_from([t for t in TYPES.values() if t.is_integer]), value=st.integers(-(2**65), 2**65))
def test_integers_fit_exactly_when_in_range(type: QmfType, value: int) -> None:
    assert type.minimum is not None
    assert type.maximum is not None
    if type.minimum <= value <= type.maximum:
        assert check_value(type, value, where="x") == value
    else:
        with pytest.raises(ConstraintError):
            check_value(type, value, where="x")
