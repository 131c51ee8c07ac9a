"""Tables and details as lines of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.render.styles import OutputStyle
from qmf_shell.results.result import (
    Details,
    Role,
    Table,
    TableColumn,
)
from shell.render.samples import ANSI, LONG, RESULTS, TABLE, shown


def test_plain_table_is_like_that_of_qpid_tool() -> None:
    assert shown(TABLE, OutputStyle.PLAIN, None).lines == [
        "2 objects",
        "     ID  Created              Destroyed  Index",
        "    " + "=" * 91,
        "    101  2024-05-01 12:00:00  -          /",
        f"    102  2024-05-01 12:00:00  -          {LONG}",
        "done",
    ]


def test_plain_table_on_forty_columns_leaves_out_empty_columns_and_wraps() -> None:
    assert shown(TABLE, OutputStyle.PLAIN, 40).lines == [
        "2 objects",
        " ID  Created              Index",
        "=" * 40,
        "101  2024-05-01 12:00:00  /",
        "102  2024-05-01 12:00:00  /a/very/long/",
        "                          path/that/",
        "                          does/not/fit/",
        "                          into/forty/",
        "                          columns",
        "done",
    ]


def test_a_table_that_cannot_fit_becomes_records() -> None:
    lines = shown(RESULTS["wide"], OutputStyle.PLAIN, 40).lines
    assert lines == [f"c{n}  value {n}" for n in range(8)]


def test_details_on_forty_columns() -> None:
    assert shown(RESULTS["details"], OutputStyle.PLAIN, 40).lines == [
        "echo of 101",
        "sequence  7",
        "body      /a/very/long/path/that/does/",
        "          not/fit/into/forty/columns",
    ]


def test_details_narrower_than_names_go_below_them() -> None:
    lines = shown(Details((("aVeryLongArgumentName", "value of it"),)), OutputStyle.PLAIN, 24).lines
    assert lines == ["aVeryLongArgumentName", "  value of it"]


@given(rows=st.lists(st.tuples(st.text(max_size=9), st.integers(), st.text(max_size=30)), min_size=1, max_size=4))
@pytest.mark.parametrize("width", [40, 80])
def test_rows_with_and_without_colour_are_the_same(rows: list[tuple[str, int, str]], width: int) -> None:
    columns = (TableColumn("Name"), TableColumn("Count", Role.NUMBER), TableColumn("Text", Role.NAME, wraps=True))
    plain, coloured = (
        shown(Table(columns, tuple(rows)), style, width).lines for style in (OutputStyle.PLAIN, OutputStyle.COLOUR)
    )
    assert [line.replace("─", "=") for line in plain] == [
        ANSI.sub("", line).rstrip().replace("─", "=") for line in coloured
    ]
