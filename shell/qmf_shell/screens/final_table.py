"""What stays on the terminal after a live screen is left: the rows that were on it, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.views.cells import CellForm
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row, ScreenColumn, table_column


def table_of(title: str, empty: str, model: TableModel, rows: Sequence[Row]) -> Table:
    """Rows of a page as a table, with the columns that are shown.

    Args:
        title: the line above.
        empty: printed instead if there are no rows.
        model: the table of the page.
        rows: those to print.
    """
    shown = model.shown_columns
    columns = [
        item for item in shown if not item.key.startswith("\0") or any(item.cell(row) is not None for row in rows)
    ]
    headings = tuple(_heading(item, spare=item.spare or (item.right and not item.fixed)) for item in columns)
    left = len(model.arranged_rows()) - len(rows)
    return Table(
        headings,
        tuple(tuple(item.cell(row) for item in columns) for row in rows),
        title=title,
        empty=empty,
        note=f"{left:,} more" if left > 0 else None,
    )


def _heading(item: ScreenColumn, *, spare: bool) -> TableColumn:
    """The column of a table; as on the screen, times of today are without the date, and texts are shortened."""
    column = attrs.evolve(table_column(item), spare=spare, shortens=not item.right)
    return attrs.evolve(column, form=CellForm.BRIEF) if item.role is Role.TIME else column
