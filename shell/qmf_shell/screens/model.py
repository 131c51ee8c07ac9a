"""The state of a table that people work in: rows, order, filter, cursor, columns. Knows no terminal and no time.

Thousands of rows are arranged once a second, so a row keeps its rank and whether it passes the filter until it changes,
and the previous order is the start of the next sort.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from qmf.views.fields import SortKey, sort_by, sort_key
from qmf_shell.screens.rows import Row, ScreenColumn

RowTest = Callable[[Row], bool]


class TableModel:
    """A table.

    Attributes:
        columns: all columns that exist, in order.
        shown: keys of the columns that are shown, in order.
        sort: key of the column that sorts; None for the order of the rows themselves.
        descending: the largest first.
        further: values that sort rows which are equal in `sort`, each with whether the largest comes first; they go
            with the order that the table has at first.
        filter: the text of the filter.
        cursor: number of the row that is chosen, among the arranged ones.
        top: number of the first row on the screen.
        left: how many columns are scrolled out to the left.
        limit: how many rows there are at most, the first ones; None for all.
    """

    def __init__(
        self,
        columns: Sequence[ScreenColumn],
        shown: Collection[str] | None = None,
        *,
        sort: str | None = None,
        descending: bool = False,
    ) -> None:
        """Make a table without rows; `shown`: None for all."""
        self.columns = tuple(columns)
        self.shown = [item.key for item in columns if shown is None or item.key in shown]
        self.sort = sort
        self.descending = descending
        self.further: Sequence[tuple[Callable[[Row], object], bool]] = ()
        self.filter = ""
        self.cursor = 0
        self.top = 0
        self.left = 0
        self.limit: int | None = None
        self._rows: dict[Hashable, Row] = {}
        self._test: RowTest | None = None
        self._all: list[Row] = []  # arranged, without the filter
        self._arranged: list[Row] = []
        self._fresh: list[Row] = []  # not arranged yet
        self._stale = False  # they must be arranged again
        self._removed = False  # some of them were removed
        self._held: Hashable | None = None

    def __len__(self) -> int:
        return len(self._rows)

    # -- rows

    def row(self, key: Hashable) -> Row | None:
        """The row with this key, or None."""
        return self._rows.get(key)

    @property
    def rows(self) -> Collection[Row]:
        """All rows, in no particular order."""
        return self._rows.values()

    def put(self, rows: Iterable[Row]) -> None:
        """Add rows, or note that they have changed."""
        for row in rows:
            known = self._rows.get(row.key)
            if known is not row:
                self._removed |= known is not None
                self._fresh.append(row)
                self._rows[row.key] = row
            row.rank = row.passes = None
            self._stale = True

    def replace(self, rows: Collection[Row]) -> None:
        """These are all rows now."""
        self.remove(self._rows.keys() - {row.key for row in rows})
        self.put(rows)

    def rerank(self, rows: Iterable[Row]) -> None:
        """Note that the value that sorts may have changed with time, as a rate does."""
        for row in rows:
            row.rank = None
            self._stale = True

    def remove(self, keys: Iterable[Hashable]) -> None:
        """Remove rows; unknown keys are ignored."""
        for key in keys:
            if self._rows.pop(key, None) is not None:
                self._removed = self._stale = True

    def arranged_rows(self) -> Sequence[Row]:
        """The rows that pass the filter, in order."""
        if self._stale:
            self._arrange()
        return self._arranged

    def _arrange(self) -> None:
        rows = self._all
        if self._removed:
            rows = [row for row in rows if self._rows.get(row.key) is row]
            self._fresh = [row for row in self._fresh if self._rows.get(row.key) is row]
        if self._fresh:
            rows = sorted([*rows, *self._fresh], key=attrgetter("order"))
            self._fresh = []
        self._removed = self._stale = False
        self._all = rows = self._sort(rows)
        test = self._test
        if test is not None:
            for row in rows:
                if row.passes is None:
                    row.passes = test(row)
            rows = [row for row in rows if row.passes]
        self._arranged = rows if self.limit is None else rows[: self.limit]
        self._restore_cursor()

    def _start_again(self) -> None:
        """Have all rows arranged from their own order: equal ones must not keep that of an earlier column."""
        self._all, self._fresh = [], list(self._rows.values())
        self._stale = True

    def _sort(self, rows: list[Row]) -> list[Row]:
        for value_of, descending in reversed(self.further):
            rows = sort_by(rows, value_of, descending=descending)
        column = self.column(self.sort)
        if column is None:
            if self.descending:
                rows = sorted(rows, key=attrgetter("order"), reverse=True)
            return rows
        value = column.value
        ranked: list[tuple[SortKey, Row]] = []
        missing: list[Row] = []
        for row in rows:
            rank = row.rank
            if rank is None:
                rank = row.rank = sort_key(value(row))
            if rank[0]:
                ranked.append((rank, row))
            else:
                missing.append(row)
        alike = len({rank[0] for rank, _ in ranked}) < 2
        ranked.sort(key=_value if alike else itemgetter(0), reverse=self.descending)
        return [row for _, row in ranked] + missing

    # -- order and filter

    def column(self, key: str | None) -> ScreenColumn | None:
        """The column with this key, or None."""
        return next((item for item in self.columns if item.key == key), None)

    @property
    def shown_columns(self) -> list[ScreenColumn]:
        """The columns that are shown, in order."""
        known = {item.key: item for item in self.columns}
        return [known[key] for key in self.shown if key in known]

    def sort_by(self, key: str | None, *, descending: bool | None = None) -> None:
        """Sort by a column: numbers the largest first, texts the smallest; by the same column again, reversed."""
        if descending is None:
            column = self.column(key)
            descending = (
                not self.descending if key == self.sort else column is not None and column.right and not column.fixed
            )
        self.sort, self.descending, self.further = key, descending, ()
        for row in self._rows.values():
            row.rank = None
        self._start_again()

    def sort_beside(self, step: int) -> None:
        """Sort by the next column (1) or the previous one (-1) of those that are shown."""
        keys = [item.key for item in self.shown_columns]
        if keys:
            at = keys.index(self.sort) + step if self.sort in keys else 0 if step > 0 else len(keys) - 1
            self.sort_by(keys[at % len(keys)])

    def reverse(self) -> None:
        """Sort the other way round."""
        self.sort_by(self.sort, descending=not self.descending)

    def set_filter(self, text: str, test: RowTest | None) -> None:
        """Show only rows that pass a test; None for all."""
        self.filter, self._test = text, test
        for row in self._rows.values():
            row.passes = None
        self._stale = True

    def set_columns(self, columns: Sequence[ScreenColumn], shown: Sequence[str]) -> None:
        """Replace the columns that exist, and choose those that are shown."""
        self.columns = tuple(columns)
        self.shown = [key for key in shown if self.column(key) is not None]
        self.left = 0
        if self.sort is not None and self.column(self.sort) is None:
            self.sort_by(None, descending=False)

    # -- cursor

    @property
    def current(self) -> Row | None:
        """The row at the cursor; None without rows."""
        rows = self.arranged_rows()
        return rows[self.cursor] if rows else None

    def move_to(self, number: int) -> None:
        """Put the cursor on a row; from then on it stays with that row, except on the first one."""
        rows = self.arranged_rows()
        self.cursor = max(0, min(number, len(rows) - 1))
        # At the top, people want to see what comes to the top.
        self._held = rows[self.cursor].key if rows and self.cursor else None

    def move(self, step: int) -> None:
        """Move the cursor by so many rows."""
        self.arranged_rows()
        self.move_to(self.cursor + step)

    def _restore_cursor(self) -> None:
        row = None if self._held is None else self._rows.get(self._held)
        if row is not None and row.passes is not False:
            with contextlib.suppress(ValueError):  # it is beyond the limit
                self.cursor = self._arranged.index(row)
                return
        self.move_to(self.cursor)

    def window(self, height: int) -> tuple[int, Sequence[Row]]:
        """The rows on a screen with room for `height`, around the cursor: the number of the first, and the rows."""
        rows = self.arranged_rows()
        height = max(1, height)
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + height:
            self.top = self.cursor - height + 1
        self.top = max(0, min(self.top, len(rows) - height))
        return self.top, rows[self.top : self.top + height]

    def scroll(self, step: int, height: int) -> None:
        """Move what is on the screen by so many rows, and the cursor with it if it would be outside."""
        rows = self.arranged_rows()
        self.top = max(0, min(self.top + step, len(rows) - max(1, height)))
        if not self.top <= self.cursor < self.top + height:
            self.move_to(max(self.top, min(self.cursor, self.top + height - 1)))

    def scroll_sideways(self, step: int) -> None:
        """Scroll the columns that are not fixed."""
        most = sum(not item.fixed for item in self.shown_columns) - 1
        self.left = max(0, min(self.left + step, most))


def _value(pair: tuple[SortKey, Row]) -> Any:
    return pair[0][1]
