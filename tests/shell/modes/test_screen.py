"""Each result in each style, at 80 and 40 columns; streams, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import attrs
import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.render.styles import MACHINE_READABLE, OutputStyle
from qmf_shell.results.result import (
    Details,
    Notice,
    QuitRequest,
    Result,
    ResultGroup,
    ResultStream,
)
from qmf_shell.session.context import Context
from rich.cells import cell_len
from shell.fakes import (
    FakeBackend,
    filesystem,
    full_event,
    make_output,
)
from shell.line_runner import view_of
from shell.render.samples import ANSI, LINE, RESULTS, TABLE, shown

from qmf.errors import DisconnectedError
from qmf.views.cells import (
    Collection,
    Duration,
    HiLoCell,
    MinMaxMeanCell,
    NamedValues,
    Quantity,
    ReferenceCell,
)


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_terminal_lines_fit(name: str, width: int) -> None:
    output = shown(RESULTS[name], OutputStyle.COLOUR, width)
    lines = [ANSI.sub("", line) for line in output.lines]
    assert lines
    assert all(cell_len(line) <= width for line in lines), lines


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {"evil"}))
@pytest.mark.parametrize("width", [40, 120])
def test_terminal_and_plain_print_the_same(name: str, width: int) -> None:
    def words(style: OutputStyle) -> list[str]:
        text = ANSI.sub("", shown(RESULTS[name], style, width).out.getvalue())
        return "".join(char for char in text if char not in "=─ \n").split()

    assert words(OutputStyle.COLOUR) == words(OutputStyle.PLAIN)


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
    rows = [json.loads(line) for line in shown(TABLE, OutputStyle.JSON, 40).lines]
    assert rows[0] == {"id": 101, "created": "2024-05-01T12:00:00.000000000Z", "destroyed": None, "index": "/"}
    cells = Details(
        (
            ("span", Duration(5)),
            ("amount", Quantity(1.5, "octet")),
            ("hilo", HiLoCell(1, 2, None)),
            ("mma", MinMaxMeanCell(1, 2, 3, 2.5)),
            ("link", ReferenceCell(101, "x", "org:x:1")),
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
        "link": "org:x:1",
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
    # In styles for programs, notices for people go to stderr.
    assert ("waiting" in output.out.getvalue()) is (style not in MACHINE_READABLE)
    assert ("waiting" in output.err.getvalue()) is (style in MACHINE_READABLE)


def test_quit_prints_nothing() -> None:
    assert shown(QuitRequest(), OutputStyle.PLAIN, 80).lines == []


def test_errors_are_one_clean_line() -> None:
    output = make_output(OutputStyle.PLAIN, 40)
    output.screen.error("agent said:\n \x1b[31mno")
    assert output.errors == ["error: agent said: \\x1b[31mno"]


def test_views_without_a_terminal_follow_each_other(context: Context, backend: FakeBackend) -> None:
    output = make_output()
    assert execute("watch -n 0.1 -c 2 filesystem columns threshold", context, output.screen) is LineOutcome.DONE
    assert [line for line in output.lines if line.startswith("org.")] == ["org.example:filesystem, 2 objects"] * 2
    output = make_output(OutputStyle.JSON)
    assert execute("watch -n 0.1 -c 2 / ", context, output.screen) is LineOutcome.DONE
    rows = [json.loads(line) for line in output.lines]
    assert len(rows) == 2
    assert [row["bytesRead"] for row in rows] == [1234567, 1234567]
    assert [row["rates"] for row in rows] == [{"bytesRead": None}, {"bytesRead": 0.0}]
    output = make_output(OutputStyle.CSV)
    assert execute("plot -n 0.1 -c 2 / threshold", context, output.screen) is LineOutcome.DONE
    assert output.lines[0] == "time,threshold"
    assert [line.split(",")[1] for line in output.lines[1:]] == ["90.0", "90.0"]


def test_changed_values_are_marked_without_colour(context: Context, backend: FakeBackend) -> None:
    view = view_of(context, "watch /home")
    view.frame()
    backend.records[0] = filesystem("/home", threshold=75)
    frame = view.frame()
    plain, colour = make_output(), make_output(OutputStyle.COLOUR, 100)
    plain.screen.show(frame)
    colour.screen.show(frame)
    assert any(re.search(r"threshold +75 % \*$", line) for line in plain.lines)
    assert sum(line.endswith("*") for line in plain.lines) == 1
    assert "\x1b[1;30;43m75 % *" in colour.out.getvalue()


def test_a_lost_connection_does_not_end_a_view(context: Context, backend: FakeBackend) -> None:
    output = make_output()
    frames = iter([None, DisconnectedError("amqp://mq1", "closed"), None])
    view = view_of(context, "watch -n 0.1 -c 3 filesystem")

    def frame() -> Result:
        error = next(frames)
        if error is not None:
            raise error
        return view.frame()

    output.screen.show(attrs.evolve(view, frame=frame))
    assert sum(line.startswith("org.") for line in output.lines) == 2
    assert output.errors == ["error: not connected to amqp://mq1: closed"]


@pytest.mark.parametrize("style", list(OutputStyle))
def test_every_command_in_every_style(context: Context, backend: FakeBackend, style: OutputStyle) -> None:
    backend.answer = {"sequence": 7, "body": "x"}
    context.events.add(full_event())
    lines = "agents,list,list filesystem,show 101 102,schema,schema filesystem,call 101 echo 7 x,events,help"
    for line in lines.split(","):
        output = make_output(style, 60)
        assert execute(line, context, output.screen) is LineOutcome.DONE
        assert output.lines
