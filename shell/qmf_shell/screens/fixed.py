"""Pages whose rows do not change."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.views.text import clean
from qmf_shell.render.layout import wrap
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row, ScreenColumn
from qmf_shell.screens.state import BACK, Page
from qmf_shell.session.context import Context

#: Seconds between updates that bring nothing.
_NEVER = 3600.0
#: The width of the lines of long texts.
_WIDTH = 76


class FixedPage(Page):
    """A page with rows that do not change."""

    changes = False

    def __init__(self, context: Context, title: str, columns: Sequence[ScreenColumn], rows: Sequence[Row]) -> None:
        super().__init__(context, title, TableModel(columns), _NEVER)
        self.model.put(rows)
        self.loaded = True

    def load(self) -> object:
        """Nothing is new."""
        return None

    def apply(self, news: object) -> None:
        """Nothing is new."""


class TextPage(FixedPage):
    """A long text, in lines."""

    chooses = True

    def __init__(self, context: Context, title: str, text: str) -> None:
        """Make it; what is not printable in `text` is written as escapes."""
        column = ScreenColumn("text", "Text", lambda row: row.item, lambda row: row.order, fixed=True)
        lines = [part for line in text.split("\n") for part in wrap(clean(line), _WIDTH)]
        rows = [Row(number, line, order=number, search=line.lower()) for number, line in enumerate(lines)]
        super().__init__(context, title, (column,), rows)

    def open(self, row: Row) -> Page | object | None:
        """Go back."""
        del row
        return BACK
