"""Frames of pages: what a live screen shows, as tables that follow each other."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.session.context import Context
from shell.fakes import SECOND, FakeBackend, filesystem, process
from shell.line_runner import table, view_of
from shell.looked import Looked

from qmf.views.cells import CellForm, WatchedValue


@pytest.mark.parametrize("order", ["threshold desc, bytesRead", "threshold desc"])
def test_frames_have_the_rows_of_the_screen_in_its_order(context: Context, backend: FakeBackend, order: str) -> None:
    line = f"watch filesystem sort {order}"
    backend.records = [
        filesystem("/a", threshold=1, bytesRead=3),
        filesystem("/b", threshold=2, bytesRead=2),
        filesystem("/c", threshold=2, bytesRead=1),
    ]
    page = Looked(context, line).navigator.page
    rows = [row.item.identity.index for row in page.model.arranged_rows()]
    assert rows == (["/c", "/b", "/a"] if "bytesRead" in order else ["/b", "/c", "/a"])
    assert [row[1] for row in table(view_of(context, line).frame()).rows] == rows


def test_another_order_of_the_user_replaces_all_values_that_sorted(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/a", threshold=2, bytesRead=2), filesystem("/b", threshold=2, bytesRead=1)]
    model = Looked(context, "watch filesystem sort threshold, bytesRead").navigator.page.model
    assert [row.item.identity.index for row in model.arranged_rows()] == ["/b", "/a"]
    model.sort_by("threshold")
    assert [row.item.identity.index for row in model.arranged_rows()] == ["/a", "/b"]


def test_a_rate_is_that_of_the_time_between_two_frames(
    context: Context, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    backend.records = [filesystem("/", bytesRead=100)]
    view = view_of(context, "watch filesystem columns bytesRead")
    view.frame()
    now[0] += 100
    view.frame()
    # The agent says when the value changed: long after the value before, which was asked for two seconds ago.
    now[0] += 2
    changed = filesystem("/", bytesRead=120)
    backend.records = [attrs.evolve(changed, updated=changed.updated + 101 * SECOND)]
    cell = table(view.frame()).rows[0][2]
    assert isinstance(cell, WatchedValue)
    assert cell.rate == 10


def test_high_and_low_values_are_shown_wide(context: Context) -> None:
    column = table(view_of(context, "watch filesystem columns openFiles wide").frame()).columns[2]
    assert (column.form, column.wraps, column.shortens) == (CellForm.WIDE, True, False)


def test_objects_of_several_classes_are_a_table_each(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/"), filesystem("/home"), process(1)]
    frame = view_of(context, "watch filesystem:/ process:1 filesystem:/home").frame()
    assert [part.title for part in frame.parts] == [  # type: ignore[union-attr]
        "org.example:filesystem",
        "org.example:process 1",
    ]


def test_what_an_agent_does_not_answer_is_said(context: Context, backend: FakeBackend) -> None:
    backend.failures = {"example.org:host:beta": "no answer"}
    view_of(context, "watch filesystem").frame()
    assert context.warnings == ["incomplete: agent example.org:host:beta did not answer: no answer"]
