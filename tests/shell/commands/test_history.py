"""`history`: values of an object over time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from qmf_shell.modes.executor import evaluate
from qmf_shell.render.styles import OutputStyle
from qmf_shell.results.result import Plot, Result, ResultGroup, Table
from qmf_shell.session.context import Context
from shell.line_runner import failure, printed, run
from shell.recorded import Put, T, when

if TYPE_CHECKING:
    from pipeline.lakes import Shop

AGENT = "example.org:shop:1"
PERIOD = f"from {when(0)} to {when(60)}"


def parts(result: Result | None) -> tuple[Plot, Table]:
    """The plot and the table of a result."""
    assert isinstance(result, ResultGroup)
    plot, table = result.parts
    assert isinstance(plot, Plot)
    assert isinstance(table, Table)
    return plot, table


def rows(context: Context, line: str) -> list[list[str]]:
    """The rows of the table, without their first column."""
    lines = printed(context, line)
    at = next(number for number, text in enumerate(lines) if text.lstrip().startswith("Time "))
    return [text.split()[2:] for text in lines[at + 2 :] if text.startswith("  ")]


def test_a_gauge_as_plot_and_table(past: Context, put: Put) -> None:
    put("one", (1, 1), queue=5)
    put("one", (11, 1), queue=8)
    plot, table = parts(evaluate(f"history one queue {PERIOD}", past))
    assert [(round(at - T), value) for at, value in plot.series[0].points] == [(1, 5.0), (11, 8.0)]
    assert plot.first is not None
    assert plot.first.ns == T * 10**9
    assert len(table.rows) == 3
    lines = printed(past, f"history one queue {PERIOD}")
    assert lines[0] == "101 till one"
    assert any(line.split()[:2] == ["──", "queue"] for line in lines)


def test_a_counter_has_its_rate(past: Context, put: Put) -> None:
    put("one", (1, 10), (11, 30), (21, 130))
    assert rows(past, f"history one sales {PERIOD}") == [
        ["-", "-", "agent", "found"],
        ["10", "-", "-"],
        ["30", "2", "-"],
        ["130", "10", "-"],
    ]
    plot, _ = parts(evaluate(f"history one sales {PERIOD}", past))
    assert [value for _, value in plot.series[0].points] == [None, 2.0, 10.0]
    total, _ = parts(evaluate(f"history -t one sales {PERIOD}", past))
    assert [value for _, value in total.series[0].points] == [10.0, 30.0, 130.0]


def test_resets_and_restarts_are_named_and_counted_from_zero(past: Context, shop: Shop, put: Put) -> None:
    put("one", (1, 1000), (11, 20))
    shop.agent(T + 15, "restarted", agent=AGENT, epoch=2)
    put("one", (21, 50), epoch=2)
    found = rows(past, f"history one sales {PERIOD}")
    assert found == [
        ["-", "-", "agent", "found"],
        ["1,000", "-", "-"],
        ["20", "2", "sales", "began", "again", "at", "0"],
        ["-", "-", "agent", "restarted"],
        ["50", "5", "sales", "began", "again", "at", "0"],
    ]


def test_lost_agents_and_deleted_objects_leave_gaps(past: Context, shop: Shop, put: Put) -> None:
    put("one", (1, 10), (2, 20))
    shop.agent(T + 5, "removed", reason="silent", agent=AGENT)
    shop.agent(T + 10, "added", agent=AGENT)
    put("one", (11, 100), (12, 110))
    put("one", (15, 110), delete=15)
    put("one", (20, 3))
    plot, table = parts(evaluate(f"history one sales {PERIOD}", past))
    assert [row[-1] for row in table.rows if row[-1]] == ["agent found", "agent lost", "agent found", "deleted"]
    # Growth is not computed across a gap.
    assert [value for _, value in plot.series[0].points] == [None, 10.0, None, None, 10.0, 0.0, None, None]


def test_an_object_that_no_longer_exists_is_found(past: Context, put: Put) -> None:
    put("one", (1, 10), (2, 20))
    put("one", (5, 20), delete=5)
    assert rows(past, f"history one sales {PERIOD}")[-1] == ["-", "-", "deleted"]
    put("brief", (10, 10), (20, 20))
    put("brief", (25, 20), delete=25)
    assert rows(past, f"history brief sales {PERIOD}")[-1] == ["-", "-", "deleted"]


def test_rows_are_limited(past: Context, put: Put) -> None:
    put("one", *((at, at) for at in range(1, 51)))
    lines = printed(past, f"history one sales {PERIOD}")
    assert lines[-1] == "31 earlier ones; history -l 0 shows all"
    assert len(rows(past, f"history -l 3 one sales {PERIOD}")) == 3
    assert len(rows(past, f"history -l 0 one sales {PERIOD}")) == 51


def test_json_and_csv_have_the_rows(past: Context, put: Put) -> None:
    put("one", (11, 10), (21, 30))
    period = f"from {when(5)} to {when(60)}"
    output = run(past, f"history one sales {period}", style=OutputStyle.JSON)
    values = [row for line in output.lines for row in as_list(json.loads(line))]
    assert [(row["sales"], row["sales per second"]) for row in values] == [(10, None), (30, 2)]
    output = run(past, f"history one sales {period}", style=OutputStyle.CSV)
    assert output.lines[0] == "time,sales,sales per second"
    assert output.lines[2].endswith(",30,2.0")


def as_list(value: object) -> list[dict[str, object]]:
    if isinstance(value, list):
        return value
    assert isinstance(value, dict)
    return [value]


def test_texts_and_several_values(past: Context, put: Put) -> None:
    put("one", (1, 10), limit=7)
    put("one", (5, 20), limit=9)
    assert rows(past, f"history one name limit from {when(1)} to {when(60)}") == [["one", "7"], ["one", "9"]]


def test_nothing_recorded(past: Context, put: Put) -> None:
    put("one", (1, 10))
    assert printed(past, f"history one sales from {when(30)} to {when(60)}") == [
        "Nothing was recorded of till one in this period."
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("history one", "VALUE is missing"),
        (f"history one {PERIOD}", "write an object and a value"),
        ("history one wrong", "no value of Till 'wrong'"),
        (f"history none sales {PERIOD}", "no object 'none'"),
        ("history one sales from", "is not a time"),
        ("history -l x one sales", "needs a number"),
    ],
)
def test_mistakes_are_named(past: Context, put: Put, line: str, message: str) -> None:
    put("one", (1, 10))
    assert message in failure(past, line)
