"""`watch`: rates, marks, objects that come and go."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.results.result import Plot, Result
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem, make_output
from shell.line_runner import table, view_of

from qmf.views.cells import WatchedValue


def test_every_number_can_be_taken_for_a_counter(
    context: Context, backend: FakeBackend, clock: Callable[[float], None]
) -> None:
    view = view_of(context, "watch -r /home")
    view.frame()
    clock(10)
    backend.records[0] = filesystem("/home", threshold=70)
    result = view.frame()
    assert followed(result, "threshold").rate == -2
    assert followed(result, "uptime").rate is None
    assert isinstance(plot := view_of(context, "plot -r /home threshold").frame(), Plot)
    assert plot.series[0].name == "threshold per second"


def followed(result: Result, name: str, column: int = 2) -> WatchedValue:
    cell = next(row[column] for row in table(result).rows if row[1] == name)
    assert isinstance(cell, WatchedValue)
    return cell


def test_watch_an_object(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "watch -n 5 -c 7 /home")
    assert (view.interval, view.count) == (5, 7)
    first = view.frame()
    assert followed(first, "bytesRead").rate is None
    assert not followed(first, "bytesRead").changed
    clock(10)
    backend.records[0] = filesystem("/home", bytesRead=1234567 + 500, label="new")
    second = view.frame()
    assert (followed(second, "bytesRead").rate, followed(second, "bytesRead").changed) == (50, True)
    assert followed(second, "label").changed
    assert not followed(second, "threshold").changed
    assert followed(second, "threshold").rate is None
    assert table(second).title == "org.example:filesystem /home"


def test_watch_an_object_that_goes_and_comes_back(
    context: Context, backend: FakeBackend, clock: Callable[[float], None]
) -> None:
    view = view_of(context, "watch /home")
    view.frame()
    gone = backend.records.pop(0)
    clock(2)
    result = table(view.frame())
    assert result.note == "Gone: these are its last values."
    assert result.columns[2].title == "101 (gone)"
    assert any(row[1] == "gone since" for row in result.rows)
    backend.records.append(gone)
    assert table(view.frame()).note is None


def test_watch_a_class(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "watch filesystem where threshold > 5 columns bytesRead, threshold")
    assert [column.title for column in table(view.frame()).columns] == ["ID", "Index", "bytesRead", "threshold"]
    clock(1)
    backend.records = [filesystem("/", bytesRead=1234567 + 9), filesystem("/new")]
    result = table(view.frame())
    assert result.note == "new: /new; gone: /home"
    rows = {row[1]: row[2] for row in result.rows}
    cell = rows["/"]
    assert isinstance(cell, WatchedValue)
    assert (cell.changed, cell.rate, cell.counter) == (True, 9.0, True)


def test_watch_a_class_shows_its_first_statistics(context: Context) -> None:
    titles = [column.title for column in table(view_of(context, "watch filesystem").frame()).columns]
    assert titles == ["ID", "Index", "bytesRead", "openFiles", "latency", "uptime"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("top filesystem", ["STAT is missing"]),
        ("top filesystem by", ["write a class, by, and a statistic"]),
        ("top filesystem by nosuch", ["no value of filesystem 'nosuch'"]),
        ("plot / label", ["label is not a number", "bytesRead"]),
        ("plot /", ["STAT is missing"]),
        (
            "plot filesystem threshold",
            ["'filesystem' names 2 objects: 101 org.example:filesystem / and 102 "],
        ),
        (
            "refs process",
            ["names 2 objects: 101 org.example:process 1 and 102 org.example:process 4711; use"],
        ),
        ("watch -n x /", ["option -n needs seconds", "'x'"]),
        ("watch -c x /", ["option -c needs a number"]),
        ("watch /nosuch", ["no object '/nosuch'"]),
    ],
)
def test_mistakes(context: Context, line: str, parts: list[str]) -> None:
    output = make_output()
    assert execute(line, context, output.screen) is LineOutcome.FAILED
    (error,) = output.errors
    for part in parts:
        assert part in error
