"""Cells as text."""

from __future__ import annotations

import math
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.render.formatting import Formatter, duration_text, number_text
from qmf_shell.results.cells import (
    Cell,
    Collection,
    Duration,
    HiLo,
    Instant,
    MinMaxMean,
    NamedValues,
    Quantity,
    ReferenceCell,
)
from qmf_shell.text import clean, listing, one_line, plural

S = 1_000_000_000
NOON = 1_714_564_800 * S


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (17, "17ns"),
        (80_000, "80µs"),
        (12_500_000, "12.5ms"),
        (1_250_000, "1.25ms"),
        (S, "1s"),
        (5_210_000_000, "5.21s"),
        (59_400_000_000, "59.4s"),
        (60 * S, "1m"),
        (3600 * S, "1h"),
        (97_925 * S, "1d 3h 12m 5s"),
        (86_400 * S, "1d"),
        (1500 * 86_400 * S, "1,500d"),
        (-5 * S, "-5s"),
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
        (Duration(5 * S), "5s"),
        (Quantity(1234, "octet"), "1,234 octets"),
        (Quantity(1, "process"), "1 process"),
        (Quantity(2, "process"), "2 processes"),
        (Quantity(2, "switch"), "2 switches"),
        (Quantity(2400, "megahertz"), "2,400 megahertz"),
        (Quantity(12.5, "percent"), "12.5 %"),
        (Quantity(7), "7"),
        (HiLo(12, 20, 3, "file"), "12 files (high 20, low 3)"),
        (HiLo(12, None, None), "12"),
        (HiLo(None, 20, None), "- (high 20)"),
        (MinMaxMean(0, 0, 0, 0), "no samples"),
        (MinMaxMean(1, 2, 2, 2, "octet"), "2 octets (min 2, max 2, 1 sample)"),
        (MinMaxMean(4, 80_000, 12_500_000, 3_200_000, duration=True), "3.2ms (min 80µs, max 12.5ms, 4 samples)"),
        (ReferenceCell(101, "filesystem /"), "101 (filesystem /)"),
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
    ("text", "cleaned"),
    [
        ("grüße 漢字 🙂", "grüße 漢字 🙂"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("a\u202eb", "a\\u202eb"),
        ("\u2028", "\\u2028"),
        ("\x7f", "\\x7f"),
    ],
)
def test_control_characters_become_visible(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text())
def test_nothing_that_moves_a_cursor_gets_through(text: str) -> None:
    result = clean(text)
    assert all(ord(char) >= 0x20 and not 0x7F <= ord(char) <= 0x9F for char in result)
    result.encode("utf-8")


def test_one_line() -> None:
    assert one_line("  a\n   b\x00 ") == "a b\\x00"


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (list("abc"), "a, b or c")]
)
def test_listing(words: str, text: str) -> None:
    assert listing(words) == text


def test_plural() -> None:
    assert [plural(1, "agent"), plural(0, "agent"), plural(1200, "agent")] == ["1 agent", "0 agents", "1,200 agents"]
