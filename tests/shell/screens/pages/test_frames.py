"""Views without rows to work in, on a live screen."""

from __future__ import annotations

import re

import pytest
from qmf_shell.results.result import LiveView, Notice, Plot, Result, ResultGroup, Table
from qmf_shell.screens.pages.frames import FramesPage, crop
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import view_of
from shell.looked import Looked

from qmf.errors import CallerError


def test_a_plot_fills_the_screen(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "plot -n 3 filesystem:/ bytesRead")
    backend.records = [filesystem("/", bytesRead=7)]
    looked.update()
    lines = looked.lines(60, 14)
    assert lines[0].startswith(" plot")
    assert re.search(r"^\d+ filesystem /$", lines[1])
    assert sum("│" in line or "┤" in line for line in lines) > 6
    assert [key for key, _ in looked.navigator.keys] == ["q", "?", "Space"]
    assert isinstance(looked.navigator.page.result(()), Plot)


def test_the_first_frame_is_made_once_and_its_errors_come_before_the_screen(context: Context) -> None:
    made: list[Result] = []

    def frame() -> Result:
        made.append(Notice(str(len(made))))
        return made[-1]

    page = FramesPage(context, "numbers", LiveView(frame, 2))
    assert (page.load(), page.load()) == (Notice("0"), Notice("1"))

    def failing() -> Result:
        raise CallerError("there is nothing")

    with pytest.raises(CallerError, match="there is nothing"):
        FramesPage(context, "nothing", LiveView(failing, 2))


def test_what_does_not_fit_is_counted(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem(f"/{number}") for number in range(500)]
    frame = view_of(context, "watch filesystem").frame()
    small = crop(frame)
    assert isinstance(small, Table)
    assert (len(small.rows), small.note) == (200, "300 more rows")
    both = crop(ResultGroup((frame, frame)))
    assert isinstance(both, ResultGroup)
    assert [len(part.rows) for part in both.parts if isinstance(part, Table)] == [200, 200]
