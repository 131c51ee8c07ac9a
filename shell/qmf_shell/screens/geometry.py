"""What the drawing of a page needs and notes besides the page."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.views.formatting import Formatter


@attrs.define
class Geometry:
    """Where things are on the screen, for the mouse, and the widths of columns, which only grow while it stays.

    Attributes:
        size: columns and lines.
        body: number of the first line with a row, and how many there are.
        head: number of the line with the headings.
        heads: the first and last column of each heading, with the key of its column.
        keys: the same of what the last line names, with the key that it stands for.
        tabs: the same of the tabs, with their numbers.
        widths: the widths of columns by key.
        basis: what the widths are for.
    """

    size: tuple[int, int] = (80, 24)
    body: tuple[int, int] = (0, 0)
    head: int = -1
    heads: list[tuple[int, int, str]] = attrs.field(factory=list)
    keys: list[tuple[int, int, str]] = attrs.field(factory=list)
    tabs: list[tuple[int, int, int]] = attrs.field(factory=list)
    widths: dict[str, int] = attrs.field(factory=dict)
    basis: object = None

    def begin(self, width: int, height: int) -> None:
        """A page is drawn in this size: forget where things were."""
        self.size = width, height
        self.body, self.head = (0, 0), -1
        self.heads, self.keys, self.tabs = [], [], []

    def keep_widths(self, basis: object) -> None:
        """Keep the widths of columns, unless they are for something else."""
        if self.basis != basis:
            self.basis, self.widths = basis, {}


@attrs.frozen(kw_only=True)
class ScreenContext:
    """What is drawn besides the page.

    Attributes:
        formatter: makes text of cells.
        printing: makes text of frames, as of what is printed.
        colour: the terminal has colours; without them, marks follow values.
        trail: titles of the pages below this one.
        right: what the first line has at its end: the time, and whether the screen is paused.
        message: in place of the keys on the last line; its style and text.
        keys: what the last line names: key and meaning.
        wide_characters: the encoding has more than ASCII.
    """

    formatter: Formatter
    printing: Formatter = attrs.field(factory=Formatter)
    colour: bool = True
    trail: Sequence[str] = ()
    right: str = ""
    message: tuple[str, str] | None = None
    keys: Sequence[tuple[str, str]] = ()
    wide_characters: bool = True

    @property
    def left_out(self) -> str:
        """Stands for a part of a text that is left out."""
        return "…" if self.wide_characters else "~"
