"""The colours of results on a terminal.

Only the 16 colours of the palette: they follow the theme of the terminal, light or dark. Text is broken and padded
before it is coloured, so that widths are never computed with escape sequences in it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TextIO

import attrs

from qmf.views.formatting import ABSENT
from qmf_shell.results.result import NoticeLevel, Role, TableColumn


class OutputStyle(enum.Enum):
    """How results are printed."""

    COLOUR = "colour"
    PLAIN = "plain"
    JSON = "json"
    CSV = "csv"
    YAML = "yaml"


#: Styles for programs: notices for people go to stderr.
MACHINE_READABLE = (OutputStyle.JSON, OutputStyle.CSV, OutputStyle.YAML)


def choose_output_style(
    out: TextIO, environ: Mapping[str, str], *, no_color: bool, output: str = "table"
) -> OutputStyle:
    """The style for an output format (``table``, ``json``, ``csv`` or ``yaml``).

    Colour only on a terminal that supports it, and only if NO_COLOR is unset or empty.
    """
    if output != "table":
        return OutputStyle(output)
    if no_color or environ.get("NO_COLOR") or environ.get("TERM") == "dumb" or not out.isatty():
        return OutputStyle.PLAIN
    return OutputStyle.COLOUR


#: Follows values that have changed, so that they are marked without colour, too.
CHANGED_MARK = " *"

_OFF = "\x1b[0m"
_BOLD, _DIM = "\x1b[1m", "\x1b[2m"
_ROLES: Mapping[Role, str] = {Role.ID: "\x1b[1;32m", Role.NAME: _BOLD, Role.FAINT: _DIM}
_SEVERITIES = {
    "emerg": "\x1b[1;37;41m",
    "alert": "\x1b[1;37;41m",
    "crit": "\x1b[1;31m",
    "error": "\x1b[31m",
    "warn": "\x1b[33m",
    "notice": "\x1b[36m",
    "inform": "\x1b[32m",
    "debug": _DIM,
}
_LEVELS = {NoticeLevel.PLAIN: "", NoticeLevel.GOOD: "\x1b[32m", NoticeLevel.WARNING: "\x1b[33m"}
_CHANGED = "\x1b[1;30;43m"
#: Colours of the lines of a plot.
_LINES = ("\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m", "\x1b[31m", "\x1b[34m")


@attrs.frozen
class Styler:
    """Adds colours to texts; without colour, texts stay unchanged.

    Attributes:
        colour: the terminal supports colours.
    """

    colour: bool = False

    @property
    def rule(self) -> str:
        """The character of the line below headings."""
        return "─" if self.colour else "="

    def title(self, text: str) -> str:
        """A title."""
        return self._with("\x1b[1;36m", text)

    def head(self, text: str) -> str:
        """A heading."""
        return self._with(_BOLD, text)

    def faint(self, text: str) -> str:
        """Secondary text: names of details, notes, rules."""
        return self._with(_DIM, text)

    def notice(self, level: NoticeLevel, text: str) -> str:
        """A notice."""
        return self._with(_LEVELS[level], text)

    def cell(self, column: TableColumn, whole: str, part: str) -> str:
        """A part of a cell.

        Args:
            whole: the whole text of the cell, which determines the colour.
            part: the part to be coloured.
        """
        if not self.colour or not part:
            return part
        if whole == ABSENT:
            return self._with(_DIM, part)
        if whole.endswith(CHANGED_MARK):
            return self._with(_CHANGED, part)
        if column.role is Role.SEVERITY:
            return self._with(_SEVERITIES.get(whole.strip(), ""), part)
        return self._with(_ROLES.get(column.role, ""), part)

    def series(self, number: int | None, text: str) -> str:
        """A segment of a plot, of the line with this number."""
        return text if number is None else self._with(_LINES[number % len(_LINES)], text)

    def _with(self, escape: str, text: str) -> str:
        return f"{escape}{text}{_OFF}" if self.colour and escape and text else text
