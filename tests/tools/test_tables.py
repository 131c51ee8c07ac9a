"""Numbers and tables as the tools print them."""

from __future__ import annotations

import pytest

from qmf.tools.tables import CellFormat, TextColumn, duration, format_cell, short_number, table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "   0"),
        (999, " 999"),
        (1000, "1.00k"),
        (9_994, "9.99k"),
        (15_000, "15.0k"),
        (150_000, " 150k"),
        (999_999, " 999k"),
        (1_500_000, "1.50m"),
        (25_000_000_000, "25.0g"),
    ],
)
def test_short_numbers(value: int, text: str) -> None:
    assert short_number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m 0s"), (3600, "1h 0m 0s"), (90061, "1d 1h 1m 1s")],
)
def test_durations(seconds: int, text: str) -> None:
    assert duration(seconds * 1_000_000_000 + 999) == text


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (CellFormat.PLAIN, 5, "5"),
        (CellFormat.PLAIN, None, ""),
        (CellFormat.YES_NO, False, "N"),
        (CellFormat.YES, False, ""),
        (CellFormat.YES, True, "Y"),
        (CellFormat.GROUPED, 1234567, "1,234,567"),
        (CellFormat.GROUPED, "text", "?"),
        (CellFormat.DURATION, 5_000_000_000, "5s"),
    ],
)
def test_cells(form: CellFormat, value: object, text: str) -> None:
    assert format_cell(form, value) == text


def test_a_table() -> None:
    columns = [TextColumn("queue"), TextColumn("msg", CellFormat.SHORT)]
    assert list(table("Queues", columns, [["orders", 5], ["q", 1200]])) == [
        "Queues",
        "  queue   msg",
        "  ===============",
        "  orders     5",
        "  q       1.20k",
    ]
    assert list(table("Queues", columns, [])) == ["Queues"]
