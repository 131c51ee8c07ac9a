"""Silences: their states, their JSON, their times."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.silences import (
    Silence,
    SilenceState,
    find_silence,
    format_time,
    parse_time,
)


def silence(start: int, end: int, *matchers: str, id: str = "1") -> Silence:
    return Silence(
        id=id, matchers=parse_matchers(matchers), starts_ns=start, ends_ns=end, created_by="me", comment="why",
        updated_ns=0,
    )  # fmt: skip


def test_the_states_of_a_silence() -> None:
    of = silence(10, 20, "a=1")
    assert [of.state(now) for now in (9, 10, 19, 20)] == [
        SilenceState.PENDING, SilenceState.ACTIVE, SilenceState.ACTIVE, SilenceState.EXPIRED,
    ]  # fmt: skip
    assert [find_silence([of], {"a": "1"}, now) is of for now in (9, 10, 20)] == [False, True, False]
    assert find_silence([of], {"a": "2"}, 15) is None
    assert of.expire(15).state(15) is of.expire(5).state(5) is SilenceState.EXPIRED
    assert of.expire(30).ends_ns == 20


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_silence_survives_its_json(start: int, end: int) -> None:
    of = silence(start, end, "a=1", 'b=~"x|y"')
    assert Silence.from_json(of.to_json()) == of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:01.000000005Z", 10**9 + 5),
        ("1970-01-01 01:00:01.5+01:00", 15 * 10**8),
        ("1970-01-02", 86_400 * 10**9),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


def test_a_time_is_written_as_the_standard_says() -> None:
    at = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC)
    assert format_time(int(at.timestamp()) * 10**9 + 5 * 10**8) == "2030-01-31T12:00:00.5Z"


@pytest.mark.parametrize("text", ["", "now", "2030-13-01", "2030-01-01T00:00:00.Z"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        parse_time(text)
