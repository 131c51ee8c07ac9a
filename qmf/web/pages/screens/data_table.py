"""`DataTable`: a plain HTML table in the browser whose rows are replaced as a whole, while focus and selection stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from qmf.web.pages.views.data_rows import DataColumn, DataRow


class DataTable(Element, component="data_table.js"):
    """The table. Rows are set by `show`, which sends nothing if nothing changed."""

    def __init__(
        self,
        label: str,
        columns: Sequence[DataColumn] = (),
        *,
        empty: str = "",
        on_sort: Callable[[str], object] | None = None,
        on_act: Callable[[str], object] | None = None,
        cards: bool = True,
        marked: bool = False,
    ) -> None:
        """Make an empty table.

        Args:
            label: what it contains, for readers of the screen.
            columns: of the table; `show` can set others.
            empty: what stands there without any row.
            on_sort: called with the name of a column whose heading was pressed; None: it cannot be sorted.
            on_act: called with the `button` of a cell that was pressed.
            cards: on a narrow screen each row becomes a card.
            marked: values that change are marked for a moment.
        """
        super().__init__()
        self._columns: Sequence[DataColumn] = ()
        self._rows: Sequence[DataRow] = ()
        self.props["label"] = label
        self.props["empty"] = empty
        self.props["sortable"] = on_sort is not None
        self.props["cards"] = cards
        self.props["marked"] = marked
        self.props["columns"] = []
        self.props["rows"] = []
        if on_sort is not None:
            self.on("sort", _with_text(on_sort))
        if on_act is not None:
            self.on("act", _with_text(on_act))
        if columns:
            self.show((), columns=columns)

    def show(
        self,
        rows: Sequence[DataRow],
        *,
        columns: Sequence[DataColumn] | None = None,
        sort: str = "",
        descending: bool = False,
        busy: bool = False,
        empty: str | None = None,
    ) -> None:
        """Show these rows; `sort` is the name of the column that orders them."""
        rows = tuple(rows)
        columns = self._columns if columns is None else tuple(columns)
        state = {"sort": sort, "descending": descending, "busy": busy}
        if empty is not None:
            state["empty"] = empty
        same = all(self.props.get(name) == value for name, value in state.items())
        if same and rows == self._rows and columns == self._columns:
            return
        self._rows, self._columns = rows, columns
        self.props.update(state)
        self.props["columns"] = [attrs.asdict(column) for column in columns]
        self.props["rows"] = [
            {"key": row.key, "k": row.kind, "cells": [cell.to_browser() for cell in row.cells]} for row in rows
        ]
        self.update()


def _with_text(handler: Callable[[str], object]) -> Callable[[GenericEventArguments], object]:
    return lambda event: handler(str(event.args))


class Pager:
    """The bar below a table: how much it has, and two buttons, which the keys ``[`` and ``]`` press, with the number of
    the page between them.
    """

    def __init__(self, on_turn: Callable[[int], object]) -> None:
        """`on_turn` is called with -1 or 1."""
        with ui.element("div").classes("qmf-bar") as self.bar:
            self._count = ui.label().classes("qmf-count").props('role="status"')
            ui.element("div").classes("qmf-grow")
            self._previous = ui.button("Previous", on_click=lambda: on_turn(-1))
            self._previous.props("flat dense id=qmf-previous no-caps")
            self._number = ui.label().classes("qmf-count")
            self._next = ui.button("Next", on_click=lambda: on_turn(1)).props("flat dense id=qmf-next no-caps")

    def show(self, count: str, page: int, pages: int) -> None:
        """Show how much there is, in words, and that this is page `page` of `pages`, from 1."""
        self._count.set_text(count)
        self._number.set_text(f"page {page:,} of {pages:,}")
        self._previous.set_enabled(page > 1)
        self._next.set_enabled(page < pages)
