"""Pages whose rows do not change: texts, the help, and the columns of another page, to choose from."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.views.text import clean
from qmf_shell.render.layout import wrap
from qmf_shell.results.result import Role
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row, ScreenColumn
from qmf_shell.screens.state import BACK, Page
from qmf_shell.session.context import Context

#: Seconds between updates that bring nothing.
_NEVER = 3600.0
#: The width of the lines of long texts.
_WIDTH = 76


class FixedPage(Page):
    """A page with rows that do not change; who opens one of them goes back."""

    changes = False
    chooses = True

    def __init__(self, context: Context, title: str, columns: Sequence[ScreenColumn], rows: Sequence[Row]) -> None:
        super().__init__(context, title, TableModel(columns), _NEVER)
        self.model.put(rows)
        self.loaded = True

    def load(self) -> object:
        return None

    def apply(self, news: object) -> None:
        del news

    def open(self, row: Row) -> Page | object | None:
        del row
        return BACK


class TextPage(FixedPage):
    """A long text, in lines."""

    def __init__(self, context: Context, title: str, text: str) -> None:
        """Make it; what is not printable in `text` is written as escapes."""
        column = ScreenColumn("text", "Text", lambda row: row.item, lambda row: row.order, fixed=True)
        lines = [part for line in text.split("\n") for part in wrap(clean(line), _WIDTH)]
        rows = [Row(number, line, order=number, search=line.lower()) for number, line in enumerate(lines)]
        super().__init__(context, title, (column,), rows)


_HELP = (
    ("Up Down j k", "one row", "move"),
    ("PgUp PgDn Home End", "one screen; to the first or last row", "move"),
    ("Left Right", "scroll the columns sideways", "move"),
    ("Enter", "open: a class, an object, a reference, an event", "move"),
    ("Esc Backspace", "back; first removes a filter", "move"),
    ("Tab Shift-Tab 1-9", "values, references and events of an object", "move"),
    ("/", "filter: part of a name, or a condition such as depth > 10k", "rows"),
    ("s", "choose what to sort by", "rows"),
    ("S", "sort the other way round", "rows"),
    ("< >", "sort by the column to the left or right", "rows"),
    ("x", "remove the rows of what is gone", "rows"),
    ("a", "what agents and consoles create for themselves", "rows"),
    ("c", "choose columns; Space shows or hides one", "columns"),
    ("r", "totals and rates, totals, or rates", "columns"),
    ("t", "thresholds of the column that sorts: warning, critical", "columns"),
    ("Space p", "pause, and go on", "screen"),
    ("R", "update now", "screen"),
    ("m", "leave the mouse to the terminal, or use it", "screen"),
    ("Mouse", "click a row, again to open it; a heading sorts; wheel", "screen"),
    ("q Ctrl-C", "leave", "screen"),
)


class HelpPage(FixedPage):
    """The keys."""

    def __init__(self, context: Context) -> None:
        columns = (
            ScreenColumn("key", "Key", lambda row: row.item[0], role=Role.NAME, fixed=True),
            ScreenColumn("meaning", "Meaning", lambda row: row.item[1]),
            ScreenColumn("for", "For", lambda row: row.item[2], role=Role.FAINT, spare=True),
        )
        rows = [Row(number, item, order=number, search=" ".join(item).lower()) for number, item in enumerate(_HELP)]
        super().__init__(context, "help", columns, rows)


_MEANING = ScreenColumn("meaning", "Meaning", lambda row: row.item.desc or None, role=Role.FAINT, prose=True)


class ColumnsPage(FixedPage):
    """The columns of another page."""

    def __init__(self, context: Context, page: Page) -> None:
        self._page = page
        columns = (
            ScreenColumn("shown", "Shown", self._sign, role=Role.ID, fixed=True),
            ScreenColumn("column", "Column", lambda row: row.item.title, role=Role.NAME),
            _MEANING,
        )
        super().__init__(context, f"columns of {page.title}", columns, column_rows(page))

    def _sign(self, row: Row) -> str:
        return "[x]" if row.key in self._page.model.shown else "[ ]"

    def toggle(self, row: Row) -> None:
        """Show or hide a column."""
        model = self._page.model
        key = str(row.key)
        shown = [item for item in model.shown if item != key] if key in model.shown else [*model.shown, key]
        if shown:
            model.shown = shown
            self._page.columns_chosen()


class SortPage(FixedPage):
    """The columns of another page, to sort by one of them."""

    def __init__(self, context: Context, page: Page) -> None:
        self._page = page
        columns = (
            ScreenColumn("column", "Sort by", lambda row: row.item.title, role=Role.NAME),
            ScreenColumn("now", "Now", self._sign, role=Role.ID),
            _MEANING,
        )
        shown = set(page.model.shown)
        rows = sorted(column_rows(page), key=lambda row: row.key not in shown)
        for number, row in enumerate(rows):
            row.order = number
        super().__init__(context, f"sort {page.title}", columns, rows)
        now = [row.key for row in self.model.arranged_rows()]
        if page.model.sort in now:
            self.model.move_to(now.index(page.model.sort))

    def _sign(self, row: Row) -> str | None:
        if row.key != self._page.model.sort:
            return None
        return "largest first" if self._page.model.descending else "smallest first"

    def toggle(self, row: Row) -> None:
        """Sort by a column, or by the same the other way round."""
        self._page.model.sort_by(str(row.key))

    def open(self, row: Row) -> Page | object | None:
        """Sort by a column and go back."""
        if row.key != self._page.model.sort:
            self.toggle(row)
        return BACK


def column_rows(page: Page) -> list[Row]:
    """The columns of a page as rows."""
    return [
        Row(item.key, item, order=number, search=f"{item.title} {item.desc}".lower())
        for number, item in enumerate(page.model.columns)
    ]
