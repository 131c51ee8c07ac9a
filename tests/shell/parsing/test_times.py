"""Points in time as users write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.parsing.times import Period, PeriodError, TimeError, TimeReference, parse_time, split_period, takes_time

from qmf.views.conditions.words import split_line

NOW = datetime(2026, 11, 22, 14, 30, 15, tzinfo=UTC)
CLOCK = TimeReference(round(NOW.timestamp()) * 10**9, UTC)


def period(text: str) -> Period | None:
    """The period that a line names."""
    return split_period(split_line(text), CLOCK)[1]


def parsed(text: str) -> str:
    """The time that a text stands for, with the number of words if it is not all of them."""
    words = text.split()
    time, used = parse_time(words, CLOCK)
    rest = "" if used == len(words) else f" and {len(words) - used} left"
    return datetime.fromtimestamp(time / 1e9, UTC).strftime("%m-%d %H:%M:%S") + rest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "11-22 14:30:15"),
        ("-10m", "11-22 14:20:15"),
        ("-1h30m", "11-22 13:00:15"),
        ("-2d", "11-20 14:30:15"),
        ("-0.5h", "11-22 14:00:15"),
        ("14:05", "11-22 14:05:00"),
        ("9:05:07", "11-22 09:05:07"),
        ("14:31", "11-21 14:31:00"),
        ("2026-11-20", "11-20 00:00:00"),
        ("2026-11-20 23:15", "11-20 23:15:00"),
        ("2026-11-20T23:15:01", "11-20 23:15:01"),
        ("2026-11-20T23:15+02:00", "11-20 21:15:00"),
        ("yesterday", "11-21 00:00:00"),
        ("Yesterday 15:00", "11-21 15:00:00"),
        ("today 15:00", "11-22 15:00:00"),
        ("14:05 list queue", "11-22 14:05:00 and 2 left"),
        ("yesterday list queue", "11-21 00:00:00 and 2 left"),
        ("2026-11-20 14:05 14:06 queue", "11-20 14:05:00 and 2 left"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "queue", "25:00", "14:60", "14:5", "-10", "-10x", "-", "2026-13-01", "yesterday 25:00", "10m", "tomorrow"],
)
def test_other_texts_are_refused_with_the_forms_of_times(text: str) -> None:
    with pytest.raises(
        TimeError, match=r"is not a time: write 14:05, 14:05:30, 2026-11-22 14:05, yesterday 14:05, -10m"
    ):
        parse_time(text.split(), CLOCK)


def test_times_are_in_the_zone_of_the_clock() -> None:
    zone = timezone(timedelta(hours=-5))
    time, _ = parse_time(["9:00"], TimeReference(CLOCK.now, zone))
    assert datetime.fromtimestamp(time / 1e9, UTC) == NOW.replace(hour=14, minute=0, second=0)


def test_the_end_of_a_period_is_the_first_such_time_after_its_beginning() -> None:
    night = period("from yesterday 23:00 to 01:00")
    assert night is not None
    assert (night.last - night.first) / 3600e9 == 2
    assert period("") is None
    assert period("from -10m") == Period(CLOCK.now - 600 * 10**9, CLOCK.now)
    assert period("to -1h") == Period(CLOCK.now - 7200 * 10**9, CLOCK.now - 3600 * 10**9)


def test_a_period_must_not_end_before_it_begins() -> None:
    with pytest.raises(PeriodError, match="'-10m' is before 'now'"):
        period("from now to -10m")
    with pytest.raises(TimeError):
        period("from more")


@given(st.lists(st.text(max_size=8), max_size=3))
def test_any_words_are_a_time_or_refused(words: list[str]) -> None:
    used = takes_time(words)
    assert 0 <= used <= len(words)


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)))
def test_written_times_are_read_back(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    time, used = parse_time([moment.isoformat()], CLOCK)
    assert used == 1
    assert time == round(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000
