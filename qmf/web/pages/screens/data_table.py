"""`DataTable`: a plain HTML table in the browser whose rows are replaced as a whole, while focus and selection stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from qmf.web.pages.views.long_texts import cut


@attrs.frozen
class DataColumn:
    """A column.

    Attributes:
        name: for sorting.
        title, unit, desc: its heading, what stands below it, and what is shown when it is pointed at.
        right: its values stand on the right.
    """

    name: str
    title: str
    unit: str = ""
    desc: str = ""
    right: bool = False


@attrs.frozen
class Part:
    """A named text in a cell, with the page that it leads to, or empty."""

    name: str
    text: str
    href: str = ""

    def to_browser(self) -> Mapping[str, object]:
        """As the component gets it; what is empty is left out."""
        return {"n": self.name, **_text_cell(self.text), "h": self.href}


@attrs.frozen
class Cell:
    """A cell.

    Attributes:
        text: what it says. Of a long one the beginning is shown, unless it is `whole`; people can copy all of it.
        href: the page that it leads to, or empty.
        kind: CSS classes.
        parts: named texts after it.
        plot: points of a small plot, or empty; `plot_name` describes it.
        button: what the handler of `on_act` gets when its button is pressed; empty for none. `button_text` is on it.
        quiet: changes are not marked.
        whole: all of the text is shown, as of descriptions.
    """

    text: str = ""
    href: str = ""
    kind: str = ""
    parts: tuple[Part, ...] = ()
    plot: str = ""
    plot_name: str = ""
    button: str = ""
    button_text: str = ""
    quiet: bool = False
    whole: bool = False

    def to_browser(self) -> Mapping[str, object]:
        """As the component gets it; what is empty is left out."""
        found = {
            **({"t": self.text} if self.whole else _text_cell(self.text)),
            "h": self.href,
            "k": self.kind,
            "parts": [part.to_browser() for part in self.parts],
            "p": self.plot,
            "n": self.plot_name,
            "b": self.button,
            "bt": self.button_text,
            "q": self.quiet,
        }
        return {name: value for name, value in found.items() if value or name == "t"}


@attrs.frozen
class DataRow:
    """A row: a key that is unique in the table, its cells, and CSS classes."""

    key: str
    cells: tuple[Cell, ...]
    kind: str = ""


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


def _text_cell(text: str) -> dict[str, object]:
    """What is shown of a text; also all of it, if that is more."""
    shown = cut(text)
    return {"t": shown} if shown == text else {"t": shown, "f": text}


def _with_text(handler: Callable[[str], object]) -> Callable[[GenericEventArguments], object]:
    return lambda event: handler(str(event.args))
