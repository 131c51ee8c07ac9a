"""What stays on the terminal after a live screen is left: the rows that were on it, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf_shell.results.result import Table
from qmf_shell.screens.rows import Row, table_column
from qmf_shell.screens.state import Page


def table_of(page: Page, rows: Sequence[Row]) -> Table:
    """Rows of a page as a table, with the columns that are shown."""
    columns = page.model.shown_columns
    headings = tuple(
        attrs.evolve(table_column(item), spare=not item.fixed and number >= len(columns) // 2)
        for number, item in enumerate(columns)
    )
    title = f"{page.title}, {page.summary}" if page.summary else page.title
    left = len(page.model.arranged()) - len(rows)
    return Table(
        headings,
        tuple(tuple(item.cell(row) for item in columns) for row in rows),
        title=title,
        empty=page.empty,
        note=f"{left:,} more" if left > 0 else None,
    )
