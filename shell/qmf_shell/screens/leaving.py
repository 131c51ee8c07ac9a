"""What stays on the terminal after a live screen is left: the rows that were on it, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf_shell.results.result import CellForm, Role, Table, TableColumn
from qmf_shell.screens.rows import Row, ScreenColumn, table_column
from qmf_shell.screens.state import Page


def table_of(page: Page, rows: Sequence[Row]) -> Table:
    """Rows of a page as a table, with the columns that are shown."""
    shown = page.model.shown_columns
    columns = [
        item for item in shown if not item.key.startswith("\0") or any(item.cell(row) is not None for row in rows)
    ]
    headings = tuple(_heading(item, spare=item.spare or (item.right and not item.fixed)) for item in columns)
    title = f"{page.title}, {page.summary}" if page.summary else page.title
    left = len(page.model.arranged()) - len(rows)
    return Table(
        headings,
        tuple(tuple(item.cell(row) for item in columns) for row in rows),
        title=title,
        empty=page.empty,
        note=f"{left:,} more" if left > 0 else None,
    )


def _heading(item: ScreenColumn, *, spare: bool) -> TableColumn:
    """The column of a table; as on the screen, times of today are without the date, and texts are shortened."""
    column = attrs.evolve(table_column(item), spare=spare, shortens=not item.right)
    return attrs.evolve(column, form=CellForm.BRIEF) if item.role is Role.TIME else column
