"""Frames on a screen."""

from __future__ import annotations

import io

from qmf_shell.render.formatting import Formatter
from qmf_shell.render.in_place import cropped, draw_screen
from qmf_shell.render.text_lines import TextOptions, text_lines
from qmf_shell.results.result import ResultGroup, Table
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import view_of


def test_pictures_are_cropped_to_the_screen(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem(f"/{number}") for number in range(500)]
    frame = view_of(context, "watch filesystem").frame()
    small, left = cropped(frame, 20)
    assert isinstance(small, Table)
    assert (len(small.rows), left) == (20, 480)
    both, left = cropped(ResultGroup((frame, frame)), 20)
    assert isinstance(both, ResultGroup)
    assert left == 960
    out = io.StringIO()
    draw_screen(out, list(text_lines(small, TextOptions(formatter=Formatter()))), "now", (80, 20), 480)
    assert "... 486 more lines" in out.getvalue()
