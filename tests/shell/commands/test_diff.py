"""`diff`: what came, went and changed between two times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from shell.line_runner import failure, printed, run
from shell.recorded import Put, T, when

if TYPE_CHECKING:
    from pipeline.lakes import Shop


def cells(lines: list[str]) -> list[list[str]]:
    """The rows of a table."""
    return [line.split() for line in lines[3:]]


@pytest.fixture
def changed(put: Put) -> None:
    """One till that stays the same, one that changes, one that comes and one that goes."""
    put("same", (1, 5))
    put("busy", (1, 10), (20, 35), limit=7)
    put("gone", (1, 1))
    put("gone", (15, 1), delete=15)
    put("new", (16, 2))


@pytest.mark.usefixtures("changed")
def test_what_came_went_and_changed(past: Context) -> None:
    lines = printed(past, f"diff {when(5)} {when(25)} till")
    assert lines[0] == "org.example.shop:till, 1 came, 1 went, 1 changed"
    assert cells(lines) == [
        ["changed", "101", "busy", "sales", "10", "35", "25"],
        ["went", "102", "gone", "-", "-", "-", "-"],
        ["came", "103", "new", "-", "-", "-", "-"],
    ]


@pytest.mark.usefixtures("changed")
def test_between_equal_states_there_are_no_differences(past: Context) -> None:
    assert printed(past, f"diff {when(5)} {when(6)} till") == ["No differences of org.example.shop:till."]
    assert printed(past, f"diff {when(5)} {when(6)}") == ["No differences of org.example.shop:till."]


@pytest.mark.usefixtures("changed")
def test_a_condition_selects_at_either_time(past: Context) -> None:
    lines = printed(past, f"diff {when(5)} {when(25)} till where sales > 30")
    assert [row[2] for row in cells(lines)] == ["busy"]
    lines = printed(past, f"diff {when(5)} {when(25)} till where sales = 1")
    assert [row[:3:2] for row in cells(lines)] == [["went", "gone"]]


@pytest.mark.usefixtures("changed")
def test_columns_limits_and_single_objects(past: Context) -> None:
    period = f"{when(5)} {when(25)}"
    assert printed(past, f"diff {period} till columns opened")[0].endswith("1 came, 1 went")
    lines = printed(past, f"diff {period} till limit 1")
    assert len(cells(lines)) == 2
    assert lines[-1] == "2 more beyond the limit"
    assert cells(printed(past, f"diff {period} busy"))[0][2:4] == ["busy", "sales"]
    assert cells(printed(past, f"diff {period} gone"))[0][0] == "went"
    assert failure(past, f"diff {period} till columns wrong").startswith("error: no value of Till 'wrong'")


def test_a_counter_that_began_again_grew_from_zero(past: Context, shop: Shop, put: Put) -> None:
    put("one", (1, 1000))
    shop.agent(T + 10, "restarted", agent="example.org:shop:1", epoch=2)
    put("one", (11, 1200), epoch=2)
    put("two", (12, 5), epoch=2)
    rows = cells(printed(past, f"diff {when(5)} {when(25)} till"))
    assert rows[0][3:] == ["sales", "1,000", "1,200", "1,200"]


def test_differences_of_times_gauges_and_references(past: Context, put: Put) -> None:
    put("one", (1, 1), queue=5, serviceAvg=1000, opened_ns=10**18, nextRef="a")
    put("one", (10, 1), queue=2, serviceAvg=3000, opened_ns=10**18 + 5 * 10**9, nextRef="b")
    output = run(past, f"diff {when(5)} {when(25)} till", style=OutputStyle.JSON)
    rows = [row for line in output.lines for row in as_list(json.loads(line))]
    assert {row["value"]: row["difference"] for row in rows} == {
        "opened": 5 * 10**9,
        "queue": -3,
        "serviceAvg": 2000,
        "nextRef": None,
    }
    assert {row["change"] for row in rows} == {"changed"}


def as_list(value: object) -> list[dict[str, object]]:
    if isinstance(value, list):
        return value
    assert isinstance(value, dict)
    return [value]


@pytest.mark.usefixtures("changed")
def test_wrong_times_are_refused(past: Context) -> None:
    assert "is before" in failure(past, f"diff {when(25)} {when(5)} till")
    assert "TIME is missing" in failure(past, "diff -10m")
    assert "is not a time" in failure(past, "diff -10m till")
    assert "nothing was recorded" in failure(past, f"diff {when(-5)} {when(5)} till")
