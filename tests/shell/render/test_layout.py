"""Widths of columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.render.layout import (
    GAP,
    NARROWEST,
    ColumnPlan,
    fit_widths,
    halves,
    natural_widths,
    pad,
    plan_columns,
    wrap,
)
from qmf_shell.results.result import Role, TableColumn
from rich.cells import cell_len


def test_natural_counts_columns_of_the_terminal_not_characters() -> None:
    assert natural_widths(["a", "bb"], [["漢字", "x"]]) == [4, 2]


def leasts(widths: list[int], wraps: list[bool]) -> list[int]:
    return [min(width, NARROWEST) if may else width for width, may in zip(widths, wraps, strict=True)]


@pytest.mark.parametrize(
    ("widths", "wraps", "room", "result"),
    [
        ([5, 40], [False, True], None, [5, 40]),
        ([5, 40], [False, True], 60, [5, 40]),
        ([5, 40], [False, True], 30, [5, 23]),
        ([40, 30], [True, True], 52, [25, 25]),
        ([5, 40], [False, True], 15, None),
        ([40, 40], [False, False], 60, None),
    ],
)
def test_fit(widths: list[int], wraps: list[bool], room: int | None, result: list[int] | None) -> None:
    assert fit_widths(widths, leasts(widths, wraps), room) == result


@given(
    st.lists(st.tuples(st.integers(1, 100), st.booleans()), min_size=1, max_size=6),
    st.integers(10, 200),
)
def test_what_fits_fits(columns: list[tuple[int, bool]], room: int) -> None:
    widths = [width for width, _ in columns]
    wraps = [may for _, may in columns]
    result = fit_widths(widths, leasts(widths, wraps), room)
    smallest = [min(width, NARROWEST) if may else width for width, may in columns]
    if result is None:
        assert sum(smallest) + GAP * (len(columns) - 1) > room
    else:
        assert sum(result) + GAP * (len(columns) - 1) <= room
        assert all(low <= got <= high for low, got, high in zip(smallest, result, widths, strict=True))


def test_empty_columns_are_removed_first() -> None:
    columns = [TableColumn("ID"), TableColumn("Destroyed"), TableColumn("Index")]
    planned = plan_columns(columns, [["101", "-", "/"], ["102", "", "/home"]], 12)
    assert planned.shown == (0, 2)
    assert planned.widths == (3, 5)


def test_empty_columns_stay_if_they_fit() -> None:
    assert plan_columns([TableColumn("ID"), TableColumn("Destroyed")], [["101", "-"]], 40).shown == (0, 1)


def test_spare_columns_go_before_anything_is_wrapped() -> None:
    columns = [TableColumn("Agent", wraps=True), TableColumn("Instance", spare=True), TableColumn("Broker", wraps=True)]
    rows = [["a" * 20, "i" * 10, "b" * 20]]
    assert plan_columns(columns, rows, 54) == ColumnPlan((0, 1, 2), (20, 10, 20))
    assert plan_columns(columns, rows, 53) == ColumnPlan((0, 2), (20, 20))


def test_spare_columns_stay_where_text_is_wrapped_anyway_and_reads_well() -> None:
    columns = [TableColumn("Type", spare=True), TableColumn("Element"), TableColumn("101", wraps=True)]
    rows = [["config", "options", "x" * 90]]
    assert plan_columns(columns, rows, 60) == ColumnPlan((0, 1, 2), (6, 7, 43))
    assert plan_columns(columns, rows, 50) == ColumnPlan((1, 2), (7, 41))


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("abc", 5, ["abc"]),
        ("aa bb cc", 5, ["aa bb", "cc"]),
        ("abcdefgh ij", 3, ["abc", "def", "gh", "ij"]),
        ("漢字漢字", 4, ["漢字", "漢字"]),
    ],
)
def test_wrap(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


@given(st.text(alphabet=st.characters(exclude_categories=("C", "M", "Z")), max_size=60), st.integers(2, 30))
def test_wrapped_lines_fit(text: str, width: int) -> None:
    assert all(cell_len(line) <= width for line in wrap(text, width))


def test_pad() -> None:
    assert (pad("漢", 4), pad("7", 3, right=True)) == ("漢  ", "  7")


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("2.7 GB (high 2.93 GB, low 2.7 GB)", 29, ["2.7 GB (high 2.93 GB, low", "2.7 GB)"]),
        ("about 5 % of it", 7, ["about", "5 % of", "it"]),
        ("at 10 so 12 k", 5, ["at 10", "so", "12 k"]),
        ("12 messages", 5, ["12", "messa", "ges"]),
    ],
)
def test_numbers_stay_with_their_units(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


def test_headings_of_two_lines_keep_columns_that_would_be_left_out() -> None:
    columns = [
        TableColumn("ID", Role.ID),
        *(TableColumn(name, Role.NUMBER, spare=True) for name in ("msgDepth", "msgTotalEnqueues")),
    ]
    rows = [["101", "5", "7"]]
    assert plan_columns(columns, rows, 31) == ColumnPlan((0, 1, 2), (3, 8, 16))
    planned = plan_columns(columns, rows, 20)
    assert planned == ColumnPlan((0, 1, 2), (3, 5, 8), split=True)
    assert planned.headings(["ID", "msgDepth", "msgTotalEnqueues"]) == [
        ["", "msg", "msgTotal"],
        ["ID", "Depth", "Enqueues"],
    ]
    assert plan_columns(columns, rows, 14) == ColumnPlan((0, 1), (3, 8))


def test_long_headings_take_two_lines() -> None:
    assert halves("msgTotalEnqueues") == ("msgTotal", "Enqueues")
    assert halves("msgTotalEnqueues ▼") == ("msgTotal", "Enqueues ▼")
    assert halves("depth") == ("", "depth")
