"""What a page of a live screen is: a table with a title that loads itself and opens others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.errors import CallerError
from qmf.views.cells import CellForm
from qmf_shell.results.result import Result, Role, Table, TableColumn
from qmf_shell.screens.model import RowTest, TableModel
from qmf_shell.screens.rows import Row, ScreenColumn, table_column

if TYPE_CHECKING:
    from qmf_shell.session.context import Context

#: What `Page.open` returns to go back to the page below.
BACK = object()


class FilterError(CallerError):
    """What was typed as a filter is not one; the message says why."""


@attrs.frozen
class PageNote:
    """What a page says about itself besides its rows.

    Attributes:
        text: in a few words.
        bad: something is wrong.
    """

    text: str
    bad: bool = False


class Page:
    """A page: base class.

    `load` runs on a thread of its own, everything else on the thread of the screen.

    Attributes:
        title: its title.
        model: its table.
        interval: seconds between updates.
        tabs: pages about the same thing, this one among them; none for a page without.
        loaded: it was updated at least once.
        own_left_out: how many things that agents and consoles create for themselves are left out.
        notes: what it says besides its rows.
        empty: shown in place of rows.
        at_once: what is new is shown at once, so the interval says nothing.
        changes: it is updated; False for what stays as it is.
        chooses: its rows are chosen from, and the space bar does not pause.
        frame: shown instead of rows; None for a page with rows.
    """

    tabs: Sequence[tuple[str, Page]] = ()
    empty = "Nothing to show."
    chooses = False
    frame: Result | None = None
    changes = True
    at_once = False

    def __init__(self, context: Context, title: str, model: TableModel, interval: float) -> None:
        self.context = context
        self.title = title
        self.model = model
        self.interval = interval
        self.loaded = False
        self.own_left_out = 0
        self.notes: tuple[PageNote, ...] = ()

    def load(self) -> object:
        """What is new, or None; may wait for the bus.

        Raises:
            QmfError: there is no answer.
        """
        raise NotImplementedError

    def apply(self, news: object) -> None:
        """Take over what `load` returned."""
        raise NotImplementedError

    def open(self, row: Row) -> Page | object | None:
        """The page about a row; `BACK` to go back; None if there is nothing more to see."""
        del row
        return None

    def test_of(self, text: str) -> RowTest:
        """The test for the text of a filter.

        Raises:
            FilterError: it is not valid.
        """
        wanted = text.lower()
        return lambda row: wanted in row.search

    @property
    def summary(self) -> str:
        """How many rows there are, in a few words."""
        return ""

    @property
    def can_show_rates(self) -> bool:
        """True if counters can be shown with their rates."""
        return any(item.rate for item in self.model.columns)

    def next_rates(self) -> str:
        """Show totals and rates, then totals alone, then rates alone; returns what is shown now."""
        return ""

    def thresholds(self, key: str) -> Sequence[float]:
        """From which values on a column warns, and is critical; none if it has no limits."""
        del key
        return ()

    def set_thresholds(self, key: str, limits: Sequence[float]) -> None:
        """Set from which values on a column warns, and is critical; none for no limits."""
        del key, limits

    def toggle(self, row: Row) -> None:
        """Choose a row, or no longer; only if `chooses`."""

    def columns_chosen(self) -> None:
        """The user has chosen other columns: a page may remember them."""

    def toggle_own(self) -> bool | None:
        """Show what agents and consoles create for themselves, or leave it out, from the next `load` on.

        Returns:
            True if it is shown from now on; None if there is no such thing here.
        """
        return None

    def clear_gone(self) -> None:
        """Remove the rows of what is gone."""
        self.model.remove([row.key for row in self.model.rows if row.mark.gone])

    def result(self, rows: Sequence[Row]) -> Result:
        """Rows as a table with the columns that are shown, to be printed after the screen is left."""
        columns = [
            item
            for item in self.model.shown_columns
            if not item.key.startswith("\0") or any(item.cell(row) is not None for row in rows)
        ]
        left = len(self.model.arranged_rows()) - len(rows)
        return Table(
            tuple(_heading(item, spare=item.spare or (item.right and not item.fixed)) for item in columns),
            tuple(tuple(item.cell(row) for item in columns) for row in rows),
            title=f"{self.title}, {self.summary}" if self.summary else self.title,
            empty=self.empty,
            note=f"{left:,} more" if left > 0 else None,
        )

    def close(self) -> None:
        """End what the page keeps up to date. Does not wait."""


def _heading(item: ScreenColumn, *, spare: bool) -> TableColumn:
    """The column of a table; as on the screen, times of today are without the date, and texts are shortened."""
    column = attrs.evolve(table_column(item), spare=spare, shortens=not item.right)
    return attrs.evolve(column, form=CellForm.BRIEF) if item.role is Role.TIME else column
