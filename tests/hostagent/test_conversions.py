"""Conversions from psutil's values."""

from __future__ import annotations

import pytest
from hostagent.fakes import Times
from hypothesis import given
from hypothesis import strategies as st

from qmf.hostagent.conversions import clip, cpu_time_parts, milliseconds, nanoseconds, percent


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, 0), (1.5, 1_500_000_000), (-3.0, 0), (1_795_212_895.19, 1_795_212_895_190_000_000)],
)
def test_seconds_become_nanoseconds(seconds: float, expected: int) -> None:
    assert nanoseconds(seconds) == expected


def test_milliseconds_become_nanoseconds() -> None:
    assert milliseconds(3) == 3_000_000
    assert milliseconds(-1) == 0


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("short", 255, "short"), ("abcdef", 3, "abc"), ("aé", 2, "a"), ("\udcff-name", 255, "?-name")],
)
def test_clip(text: str, limit: int, expected: str) -> None:
    assert clip(text, limit) == expected


@given(st.text(), st.integers(0, 40))
def test_clipped_text_always_fits(text: str, limit: int) -> None:
    assert len(clip(text, limit).encode()) <= limit


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(1, 4, 25.0), (5, 0, 0.0), (9, 3, 100.0), (-1, 3, 0.0), (0, 3, 0.0)]
)
def test_percent(part: float, whole: float, expected: float) -> None:
    assert percent(part, whole) == expected


def test_parts_of_a_processors_time() -> None:
    times = Times(user=1, nice=2, system=4, irq=8, softirq=16, iowait=32, steal=64, idle=128)
    assert cpu_time_parts(times) == (3, 28, 32, 64, 128)
