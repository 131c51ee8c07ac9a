"""Columns, rows and cells of the tables of pages; the table in the browser (`DataTable`) shows them as they are."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

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


def _text_cell(text: str) -> dict[str, object]:
    """What is shown of a text; also all of it, if that is more."""
    shown = cut(text)
    return {"t": shown} if shown == text else {"t": shown, "f": text}
