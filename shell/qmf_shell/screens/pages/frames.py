"""The page of a view without rows to work in, such as a plot: its frames, each in place of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from qmf_shell.results.result import LiveView, Result, ResultGroup, Table
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row
from qmf_shell.screens.state import Page
from qmf_shell.session.context import Context

#: More rows than a terminal has; formatting thousands that cannot be shown would take most of the time of a view.
_MOST_ROWS = 200


class FramesPage(Page):
    """The frames of a view."""

    def __init__(self, context: Context, title: str, view: LiveView) -> None:
        """Make the page, which is not loaded yet.

        Args:
            view: makes the frames; the first one here, so that its errors come before the terminal changes.

        Raises:
            QmfError: there is no first frame.
        """
        super().__init__(context, title, TableModel(()), view.interval)
        self._view = view
        self._first: Result | None = crop(view.frame())
        self.frame: Result = self._first

    def load(self) -> object:
        """The next frame."""
        first, self._first = self._first, None
        return first or crop(self._view.frame())

    def apply(self, news: Any) -> None:
        """Show it."""
        self.frame = news

    def result(self, rows: Sequence[Row]) -> Result:
        """The last frame."""
        del rows
        return self.frame


def crop(frame: Result) -> Result:
    """A frame without the rows of tables that fit on no terminal; a note counts them."""
    match frame:
        case Table(rows=rows) if len(rows) > _MOST_ROWS:
            notes = [f"{len(rows) - _MOST_ROWS:,} more rows", *([frame.note] if frame.note else [])]
            return attrs.evolve(frame, rows=rows[:_MOST_ROWS], note="; ".join(notes))
        case ResultGroup(parts):
            return attrs.evolve(frame, parts=tuple(map(crop, parts)))
        case _:
            return frame
