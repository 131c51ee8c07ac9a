"""Columns, rows, cells and pages of tables; the table in the browser (`DataTable`) shows them as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import attrs

#: Characters of a name or value that are shown in a table or a heading; who wants the rest points at it or copies it.
LONGEST_SHOWN = 120


def cut(text: str) -> str:
    """A text as it is shown: a long one ends after `LONGEST_SHOWN` characters, with ``…``."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


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


T = TypeVar("T")


@attrs.frozen
class PageOf(Generic[T]):
    """A page: its items, its number from 1, and how many pages there are."""

    items: Sequence[T]
    number: int
    pages: int


def page_of(items: Sequence[T], number: int, size: int) -> PageOf[T]:
    """Page `number` of `size` items each; the last one if there are fewer."""
    pages = max(1, -(-len(items) // size))
    number = min(max(1, number), pages)
    return PageOf(items[(number - 1) * size : number * size], number, pages)
