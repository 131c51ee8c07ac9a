"""Durations and points in time as text, and durations as users write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.views.times import brief_duration, duration_text, instant_ns, instant_text, parse_duration, parse_instant

SECOND = 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("90s", 90 * SECOND),
        ("1m30s", 90 * SECOND),
        (" 1m 30s ", 90 * SECOND),
        ("1m500ms", 60_500 * 10**6),
        ("2h", 7200 * SECOND),
        ("1d", 86_400 * SECOND),
        ("1w", 7 * 86_400 * SECOND),
        ("0.5s", SECOND // 2),
        ("10 minutes", 600 * SECOND),
        ("5 min", 300 * SECOND),
        ("1 week 2 days", 9 * 86_400 * SECOND),
        ("3 milliseconds", 3 * 10**6),
        ("17ns", 17),
        ("80us", 80_000),
        ("80µs", 80_000),
        ("9007199254740993ns", 9007199254740993),
    ],
)
def test_durations_of_users(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "10", "m", "1 year", "1s; drop", "-1s", "1m30", "1e3s", "٣s", "9" * 5000 + "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time such as 30s"):
        parse_duration(text)


@given(st.text("0123456789.nuµmsihdwe ") | st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("ns", "text", "brief"),
    [
        (0, "0s", "0s"),
        (17, "17ns", "17ns"),
        (80_000, "80µs", "80µs"),
        (999_700_000, "1s", "1s"),
        (5_214_000_000, "5.21s", "5.21s"),
        (59_940_000_000, "59.9s", "59.9s"),
        (59_960_000_000, "1m", "1m"),
        (89_999_999_999.9, "1m 30s", "1m 30s"),
        (90 * SECOND, "1m 30s", "1m 30s"),
        (97_925 * SECOND, "1d 3h 12m 5s", "1d 3h"),
        (-3 * SECOND, "-3s", "-3s"),
    ],
)
def test_durations_for_people(ns: float, text: str, brief: str) -> None:
    assert duration_text(ns) == text
    assert brief_duration(ns) == brief


@given(st.integers(0, 2**63))
def test_a_shown_duration_can_be_typed(ns: int) -> None:
    tolerance = max(SECOND / 2, 0) if ns >= 59 * SECOND else ns * 0.006
    assert parse_duration(duration_text(ns).replace(",", "")) == pytest.approx(ns, abs=tolerance)


def test_points_in_time() -> None:
    noon = 1_900_000_000 * SECOND + 1
    assert instant_text(noon, UTC) == "2030-03-17 17:46:40"
    assert instant_text(noon, timezone(timedelta(hours=-1))) == "2030-03-17 16:46:40"
    assert instant_text(noon, UTC, date=False) == "17:46:40"
    assert instant_text(2**70, UTC) == f"{2**70} ns"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-02", 86_400 * SECOND),
        ("1970-01-01T00:00:01", SECOND),
        ("1970-01-01T01:00:01+01:00", SECOND),
        ("1970-01-01T00:00:00.000001Z", 1000),
        ("9999-12-31T23:59:59.999999", 253_402_300_799_999_999_000),
        ("1969-12-31T23:59:59", -SECOND),
    ],
)
def test_points_in_time_as_users_write_them(text: str, ns: int) -> None:
    assert parse_instant(text, UTC) == ns


@pytest.mark.parametrize("text", ["", "x", "12:00", "2030-13-01", "2030-01-01T25:00", "10m"])
def test_what_is_no_point_in_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_instant(text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_written_point_in_time_is_exact(moment: datetime) -> None:
    assert parse_instant(moment.isoformat()) == instant_ns(moment) == instant_ns(moment.replace(tzinfo=None), UTC)
    assert moment == EPOCH + timedelta(microseconds=instant_ns(moment) // 1000)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [
        ("2024-05-01T12:00:30.5Z", 500_000_000),
        ("2024-05-01T12:00:30.000000001Z", 1),
        ("2024-05-01 12:00:30,1234567899+00:00", 123_456_789),
        ("2024-05-01T12:00:30Z", 0),
    ],
)
def test_instants_have_nine_digits_of_a_second(text: str, fraction: int) -> None:
    assert parse_instant(text) == 1_714_564_830 * 10**9 + fraction


@pytest.mark.parametrize("text", ["2024-05-01T12:00:30.Z", "2024-05-01T12:00:30,", "2024-05-01T12:00:30.+00:00"])
def test_a_fraction_of_a_second_has_digits(text: str) -> None:
    with pytest.raises(ValueError, match="without digits"):
        parse_instant(text)
