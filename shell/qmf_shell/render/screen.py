"""Where results go: one object that knows the streams, the width and whether there is colour."""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
from collections.abc import Iterable, Mapping
from typing import TextIO

from qmf_shell.render.formatting import Formatter
from qmf_shell.render.jsonlines import json_lines
from qmf_shell.render.layout import wrap
from qmf_shell.render.plain import plain_lines
from qmf_shell.results import Quit, Result, Stream
from qmf_shell.text import clean, one_line


class Look(enum.Enum):
    """How results are written."""

    COLOUR = "colour"
    PLAIN = "plain"
    JSON = "json"


def choose_look(out: TextIO, environ: Mapping[str, str], *, no_color: bool, as_json: bool) -> Look:
    """Colour only on a terminal that can do it, and only without NO_COLOR (any value that is not empty)."""
    if as_json:
        return Look.JSON
    if no_color or environ.get("NO_COLOR") or environ.get("TERM") == "dumb" or not out.isatty():
        return Look.PLAIN
    return Look.COLOUR


class Screen:
    """Prints results and errors.

    Attributes:
        look: how.
    """

    def __init__(
        self, out: TextIO, err: TextIO, look: Look, *, width: int | None = None, formatter: Formatter | None = None
    ) -> None:
        """
        Args:
            out, err: where results and errors go.
            look: how results are written.
            width: columns; None asks the terminal each time, and sets no limit where there is none.
            formatter: writes cells; by default in the machine's time zone.
        """
        self.look = look
        self._out = out
        self._err = err
        self._fixed_width = width
        self._formatter = formatter or Formatter()

    @property
    def width(self) -> int | None:
        """Columns of the terminal at this moment, or None for no limit."""
        if self._fixed_width is not None:
            return self._fixed_width
        if not self._out.isatty():
            return None
        with contextlib.suppress(OSError, ValueError):
            return max(20, os.get_terminal_size(self._out.fileno()).columns or 80)
        return max(20, shutil.get_terminal_size().columns)

    def show(self, result: Result) -> None:
        """Print a result. A stream is printed until it ends, or until Ctrl-C, which is its normal end.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        if isinstance(result, Quit):
            return
        if isinstance(result, Stream):
            self._show_stream(result)
            return
        self._show_one(result)
        self._out.flush()

    def error(self, text: str) -> None:
        """Print one line about what went wrong, to stderr; a long line is not cut."""
        line = f"error: {one_line(text)}"
        self._err.write(f"\x1b[31m{line}\x1b[0m\n" if self.look is Look.COLOUR and self._err.isatty() else f"{line}\n")
        self._err.flush()

    def after_ctrl_c(self) -> None:
        """Begin a new line where the terminal has echoed ``^C``."""
        if self._out.isatty():
            self._out.write("\n")
            self._out.flush()

    def _show_one(self, result: Result) -> None:
        if self.look is Look.COLOUR:
            from qmf_shell.render.terminal import Terminal

            Terminal(self._out, self.width or 80, self._formatter).show(result)
        elif self.look is Look.JSON:
            self._write(json_lines(result))
        else:
            self._write(plain_lines(result, self._formatter, self.width))

    def _write(self, lines: Iterable[str]) -> None:
        self._out.writelines(f"{line}\n" for line in lines)

    def _show_stream(self, stream: Stream) -> None:
        if stream.title and self.look is not Look.JSON:
            self._write(wrap(clean(stream.title), self.width or 10_000))
            self._out.flush()
        try:
            for item in stream.items:
                self._show_one(item)
                self._out.flush()
        except KeyboardInterrupt:
            self.after_ctrl_c()
        finally:
            close = getattr(stream.items, "close", None)
            if close is not None:
                close()
