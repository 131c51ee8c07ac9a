"""Each result in each look, at 80 and 40 columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.render.output_style import MACHINE_READABLE, OutputStyle, choose_output_style
from qmf_shell.results.cells import (
    Collection,
    Duration,
    HiLo,
    Instant,
    MinMaxMean,
    NamedValues,
    Quantity,
    ReferenceCell,
)
from qmf_shell.results.result import (
    Column,
    Details,
    Notice,
    NoticeLevel,
    QuitRequest,
    Result,
    ResultGroup,
    ResultStream,
    Role,
    StreamLine,
    Table,
)
from rich.cells import cell_len
from shell.world import NOON, Output, make_output

COLUMNS = (
    Column("ID", Role.ID),
    Column("Created", Role.TIME),
    Column("Destroyed", Role.TIME),
    Column("Index", Role.NAME, wraps=True),
)
LONG = "/a/very/long/path/that/does/not/fit/into/forty/columns"
TABLE = Table(COLUMNS, ((101, Instant(NOON), None, "/"), (102, Instant(NOON), None, LONG)), "2 objects", note="done")
EVIL = "a\x1b[31mred\nline"
LINE = StreamLine(
    (Column("Time", Role.TIME), Column("Severity", Role.SEVERITY), Column("Event", Role.NAME)),
    (Instant(NOON), "warn", "full"),
)
RESULTS: dict[str, Result] = {
    "table": TABLE,
    "empty": Table(COLUMNS, (), "none", empty="No objects."),
    "wide": Table(tuple(Column(f"c{n}") for n in range(8)), (tuple(f"value {n}" for n in range(8)),)),
    "details": Details((("sequence", 7), ("body", LONG)), "echo of 101"),
    "message": Notice("first\nsecond", NoticeLevel.GOOD),
    "group": ResultGroup((Notice("a"), TABLE)),
    "line": LINE,
    "evil": ResultGroup(
        (Table((Column(EVIL),), ((EVIL,),), EVIL, note=EVIL), Details(((EVIL, EVIL),), EVIL), Notice(EVIL))
    ),
}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def shown(result: Result, style: OutputStyle, width: int | None) -> Output:
    output = make_output(style, width)
    output.screen.show(result)
    return output


def test_plain_table_looks_like_qpid_tools() -> None:
    assert shown(TABLE, OutputStyle.PLAIN, None).lines == [
        "2 objects",
        "     ID  Created              Destroyed  Index",
        "    " + "=" * 91,
        "    101  2024-05-01 12:00:00  -          /",
        f"    102  2024-05-01 12:00:00  -          {LONG}",
        "done",
    ]


def test_plain_table_on_forty_columns_leaves_out_what_says_nothing_and_wraps() -> None:
    assert shown(TABLE, OutputStyle.PLAIN, 40).lines == [
        "2 objects",
        " ID  Created              Index",
        "=" * 40,
        "101  2024-05-01 12:00:00  /",
        "102  2024-05-01 12:00:00  /a/very/long/p",
        "                          ath/that/does/",
        "                          not/fit/into/f",
        "                          orty/columns",
        "done",
    ]


def test_a_table_that_cannot_fit_becomes_records() -> None:
    lines = shown(RESULTS["wide"], OutputStyle.PLAIN, 40).lines
    assert lines == [f"c{n}  value {n}" for n in range(8)]


def test_details_on_forty_columns() -> None:
    assert shown(RESULTS["details"], OutputStyle.PLAIN, 40).lines == [
        "echo of 101",
        "sequence  7",
        "body      /a/very/long/path/that/does/no",
        "          t/fit/into/forty/columns",
    ]


def test_details_narrower_than_names_go_below_them() -> None:
    lines = shown(Details((("aVeryLongArgumentName", "value of it"),)), OutputStyle.PLAIN, 24).lines
    assert lines == ["aVeryLongArgumentName", "  value of it"]


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_terminal_lines_fit(name: str, width: int) -> None:
    output = shown(RESULTS[name], OutputStyle.COLOUR, width)
    lines = [ANSI.sub("", line) for line in output.lines]
    assert lines
    assert all(cell_len(line) <= width for line in lines), lines


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {"evil"}))
@pytest.mark.parametrize("width", [40, 120])
def test_terminal_and_plain_say_the_same(name: str, width: int) -> None:
    def words(style: OutputStyle) -> list[str]:
        text = ANSI.sub("", shown(RESULTS[name], style, width).out.getvalue())
        return "".join(char for char in text if char not in "=─ \n").split()

    assert words(OutputStyle.COLOUR) == words(OutputStyle.PLAIN)


@given(rows=st.lists(st.tuples(st.text(max_size=9), st.integers(), st.text(max_size=30)), min_size=1, max_size=4))
@pytest.mark.parametrize("width", [40, 80])
def test_rows_with_and_without_colour_say_the_same(rows: list[tuple[str, int, str]], width: int) -> None:
    columns = (Column("Name"), Column("Count", Role.NUMBER), Column("Text", Role.NAME, wraps=True))
    plain, coloured = (
        shown(Table(columns, tuple(rows)), style, width).lines for style in (OutputStyle.PLAIN, OutputStyle.COLOUR)
    )
    assert [line.replace("─", "=") for line in plain] == [
        ANSI.sub("", line).rstrip().replace("─", "=") for line in coloured
    ]


@pytest.mark.parametrize("style", [OutputStyle.PLAIN, OutputStyle.COLOUR])
def test_no_control_character_of_a_peer_is_printed(style: OutputStyle) -> None:
    text = ANSI.sub("", shown(RESULTS["evil"], style, 80).out.getvalue())
    assert "\x1b" not in text
    assert "\\x1b[31mred\\nline" in text


def test_plain_has_no_escape_at_all() -> None:
    assert all("\x1b" not in shown(result, OutputStyle.PLAIN, 80).out.getvalue() for result in RESULTS.values())


def test_colour_is_there_on_terminals() -> None:
    assert "\x1b[" in shown(TABLE, OutputStyle.COLOUR, 80).out.getvalue()


def test_json() -> None:
    rows = json.loads(shown(TABLE, OutputStyle.JSON, 40).out.getvalue())
    assert rows[0] == {"id": 101, "created": "2024-05-01T12:00:00.000000000Z", "destroyed": None, "index": "/"}
    cells = Details(
        (
            ("span", Duration(5)),
            ("amount", Quantity(1.5, "octet")),
            ("hilo", HiLo(1, 2, None)),
            ("mma", MinMaxMean(1, 2, 3, 2.5)),
            ("link", ReferenceCell(101, "x")),
            ("data", Collection({"a": (1, float("nan"))})),
            ("fields", NamedValues({"b": Duration(7)})),
            ("evil", "\x1b"),
        )
    )
    text = shown(cells, OutputStyle.JSON, None).out.getvalue()
    assert "\x1b" not in text
    assert json.loads(text) == {
        "span": 5,
        "amount": 1.5,
        "hilo": {"value": 1, "high": 2, "low": None},
        "mma": {"count": 1, "min": 2, "max": 3, "mean": 2.5},
        "link": {"id": 101, "name": "x"},
        "data": {"a": [1, None]},
        "fields": {"b": 7},
        "evil": "\x1b",
    }
    assert [
        json.loads(line) for line in shown(ResultGroup((Notice("a"), Notice("b"), LINE)), OutputStyle.JSON, None).lines
    ] == [
        {"time": "2024-05-01T12:00:00.000000000Z", "severity": "warn", "event": "full"},
    ]


@pytest.mark.parametrize("style", list(OutputStyle))
def test_a_stream_is_printed_as_it_comes_and_ctrl_c_ends_it(style: OutputStyle) -> None:
    output = make_output(style, 80)
    closed: list[bool] = []

    def items() -> Iterator[Result]:
        try:
            yield LINE
            assert "full" in output.out.getvalue()
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    output.screen.show(ResultStream(items(), "waiting"))
    assert closed == [True]
    # Messages for people go to stderr where stdout is for programs.
    assert ("waiting" in output.out.getvalue()) is (style not in MACHINE_READABLE)
    assert ("waiting" in output.err.getvalue()) is (style in MACHINE_READABLE)


def test_quit_prints_nothing() -> None:
    assert shown(QuitRequest(), OutputStyle.PLAIN, 80).lines == []


def test_errors_are_one_clean_line() -> None:
    output = make_output(OutputStyle.PLAIN, 40)
    output.screen.error("agent said:\n \x1b[31mno")
    assert output.errors == ["error: agent said: \\x1b[31mno"]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "environ", "no_color", "wanted", "style"),
    [
        (Tty(), {}, False, "table", OutputStyle.COLOUR),
        (Tty(), {"NO_COLOR": ""}, False, "table", OutputStyle.COLOUR),
        (Tty(), {"NO_COLOR": "1"}, False, "table", OutputStyle.PLAIN),
        (Tty(), {"TERM": "dumb"}, False, "table", OutputStyle.PLAIN),
        (Tty(), {}, True, "table", OutputStyle.PLAIN),
        (Tty(), {}, False, "json", OutputStyle.JSON),
        (Tty(), {}, False, "csv", OutputStyle.CSV),
        (io.StringIO(), {}, False, "table", OutputStyle.PLAIN),
    ],
)
def test_look(out: io.StringIO, environ: dict[str, str], no_color: bool, wanted: str, style: OutputStyle) -> None:
    assert choose_output_style(out, environ, no_color=no_color, output=wanted) is style
