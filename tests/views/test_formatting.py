"""Cells as text."""

from __future__ import annotations

import math
from datetime import UTC, timedelta, timezone

import pytest

from qmf.views.cells import (
    Cell,
    CellForm,
    Collection,
    Duration,
    HiLoCell,
    Instant,
    MinMaxMeanCell,
    NamedValues,
    Quantity,
    ReferenceCell,
    WatchedValue,
)
from qmf.views.formatting import Formatter
from qmf.views.times import duration_text
from qmf.views.units import number_text

SECOND = 1_000_000_000
#: 2024-05-01 12:00 in UTC.
NOON = 1_714_564_800 * SECOND


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (17, "17ns"),
        (80_000, "80µs"),
        (12_500_000, "12.5ms"),
        (1_250_000, "1.25ms"),
        (SECOND, "1s"),
        (5_210_000_000, "5.21s"),
        (59_400_000_000, "59.4s"),
        (60 * SECOND, "1m"),
        (3600 * SECOND, "1h"),
        (97_925 * SECOND, "1d 3h 12m 5s"),
        (86_400 * SECOND, "1d"),
        (1500 * 86_400 * SECOND, "1,500d"),
        (-5 * SECOND, "-5s"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert duration_text(ns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (-1234, "-1,234"),
        (0.0, "0"),
        (0.25, "0.25"),
        (0.0123456, "0.01235"),
        (12.5, "12.5"),
        (1234567.8912, "1,234,567.891"),
        (100.0, "100"),
        (1e20, "1e+20"),
        (1e-9, "1e-09"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        (True, "true"),
        (False, "false"),
        (4711, "4711"),
        (12.5, "12.5"),
        ("plain", "plain"),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        (Instant(0), "-"),
        (Instant(NOON), "2024-05-01 12:00:00"),
        (Instant(2**63 - 1), "2262-04-11 23:47:16"),
        (Instant(2**70), f"{2**70} ns"),
        (Duration(5 * SECOND), "5s"),
        (Quantity(1234, "octet"), "1,234 B"),
        (Quantity(1, "process"), "1 process"),
        (Quantity(2, "process"), "2 processes"),
        (Quantity(2, "switch"), "2 switches"),
        (Quantity(2400, "megahertz"), "2.4 GHz"),
        (Quantity(12.5, "percent"), "12.5 %"),
        (Quantity(7), "7"),
        (HiLoCell(12, 20, 3, "file"), "12 files (high 20, low 3)"),
        (HiLoCell(12, None, None), "12"),
        (HiLoCell(None, 20, None), "- (high 20)"),
        (MinMaxMeanCell(0, 0, 0, 0), "no samples"),
        (MinMaxMeanCell(1, 2, 2, 2, "octet"), "2 B (min 2 B, max 2 B, 1 sample)"),
        (MinMaxMeanCell(4, 80_000, 12_500_000, 3_200_000, duration=True), "3.2ms (min 80µs, max 12.5ms, 4 samples)"),
        (ReferenceCell(101, "filesystem /", "x"), "101 (filesystem /)"),
        (Collection({"ro": True, "n": [1, "ä"]}), '{"ro": true, "n": [1, "ä"]}'),
        (Collection({"x": b"\x00"}), '{"x": "b\'\\\\x00\'"}'),
        (NamedValues({"a": "x y", "b": 3, "c": ""}), 'a="x y" b=3 c=""'),
    ],
)
def test_cells(cell: Cell, text: str) -> None:
    assert Formatter(UTC).text(cell) == text


def test_times_are_in_the_formatters_zone() -> None:
    assert Formatter(timezone(timedelta(hours=2))).text(Instant(NOON)) == "2024-05-01 14:00:00"


def test_long_data_is_cut() -> None:
    text = Formatter(UTC).text(Collection(["x" * 100] * 1000))
    assert len(text) < 4100
    assert text.endswith("...")


@pytest.mark.parametrize(
    ("cell", "brief", "wide", "exact"),
    [
        (Quantity(12_500_000, "octet"), "12.5 MB", "12.5 MB", "12,500,000"),
        (Quantity(10_234, "message"), "10.2 k", "10.2 k", "10,234"),
        (Quantity(98.76, "percent"), "98.8 %", "98.8 %", "98.76 %"),
        (0.123456, "0.12", "0.12", "0.1235"),
        (4711, "4711", "4711", "4711"),
        (Duration(97_925 * SECOND), "1d 3h", "1d 3h", "97,925,000,000,000 ns"),
        (HiLoCell(12, 20, 3, "file"), "12", "12 (high 20, low 3)", "12"),
        (HiLoCell(None, 20, 3, "file"), "-", "- (high 20, low 3)", "-"),
        (MinMaxMeanCell(2, 1, 3, 2, "octet"), "2 B", "2 B (min 1 B, max 3 B, 2 samples)", "2"),
        (MinMaxMeanCell(0, 0, 0, 0, "octet"), "-", "-", "-"),
        (WatchedValue(Quantity(10_234, "octet"), rate=54_162.0), "10.2 kB (+54.2 kB/s)", "10.2 kB (+54.2 kB/s)", None),
    ],
)
def test_cells_of_columns(cell: Cell, brief: str, wide: str, exact: str | None) -> None:
    assert Formatter(UTC).text_as(cell, CellForm.BRIEF) == brief
    assert Formatter(UTC).text_as(cell, CellForm.WIDE) == wide
    if exact is not None:
        assert Formatter(UTC, exact=True).text_as(cell, CellForm.BRIEF) == exact
    assert Formatter(UTC).text_as(cell, CellForm.FULL) == Formatter(UTC).text(cell)


def test_times_of_today_have_no_date_in_brief_columns() -> None:
    assert Formatter(UTC).text_as(Instant(NOON), CellForm.BRIEF) == "2024-05-01 12:00:00"
    assert Formatter(UTC).text_as(Instant(0), CellForm.BRIEF) == "-"


def test_empty_and_minor_values_of_short_lines() -> None:
    cell = NamedValues({"user": "ops", "name": "a b", "alt": "", "args": Collection({}), "n": 0}, frozenset({"user"}))
    assert Formatter(UTC).telling_values(cell) == [("name", '"a b"'), ("n", "0"), ("user", "ops")]
    assert Formatter(UTC).telling_values(NamedValues({"alt": ""})) == [("alt", '""')]
