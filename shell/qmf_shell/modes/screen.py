"""Prints results and errors: one object that knows the streams, their width, and the style of output."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import attrs

from qmf.errors import QmfError
from qmf.views.formatting import Formatter
from qmf.views.text import clean, one_line
from qmf_shell.render.layout import wrap
from qmf_shell.render.progress_line import ProgressLine
from qmf_shell.render.styles import MACHINE_READABLE, OutputStyle, Styler
from qmf_shell.render.text_lines import TextOptions, text_lines
from qmf_shell.render.transcript import Transcript
from qmf_shell.results.result import (
    ClearRequest,
    LiveScreen,
    LiveView,
    Notice,
    QuitRequest,
    Result,
    ResultGroup,
    ResultStream,
    ScriptRequest,
    TranscriptRequest,
)
from qmf_shell.settings import ShellSettings

if TYPE_CHECKING:
    from qmf_shell.render.csv_lines import CsvWriter


#: Lines that are made before they are written: at first, and later.
_FIRST_LINES = 20
_LINES_AT_ONCE = 200


class Screen:
    """Prints results and errors.

    Attributes:
        style: the style of output.
        settings: the user's settings; read before each result.
        progress: the line that shows the progress of a long command.
        paging: long output goes through a pager: for sessions at a terminal.
        interrupted: Ctrl-C ended the last stream or view: at a prompt its normal end, in a script not.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        style: OutputStyle,
        *,
        width: int | None = None,
        formatter: Formatter | None = None,
        settings: ShellSettings | None = None,
        paging: bool = False,
        cursor: bool | None = None,
    ) -> None:
        """Take the streams, and how results are shown on them.

        Args:
            out, err: streams for results and errors.
            width: columns; None: those of the terminal, or no limit without one.
            formatter: formats cells; by default in the machine's time zone.
            cursor: the terminal's cursor can be moved; None: detected.
        """
        self.style = style
        self.settings = settings or ShellSettings()
        if style in MACHINE_READABLE:
            self.settings.change("output", style.value)
        self.paging = paging
        self.interrupted = False
        self._table_style = OutputStyle.COLOUR if style is OutputStyle.COLOUR else OutputStyle.PLAIN
        self._out = out
        self._err = err
        self._fixed_width = width
        self._formatter = formatter or Formatter()
        able = os.environ.get("TERM", "dumb") != "dumb" if cursor is None else cursor
        self._cursor = able and out.isatty()
        self.progress = ProgressLine(err, enabled=able and err.isatty())
        self._transcript = Transcript()
        self._csv: CsvWriter | None = None

    @property
    def width(self) -> int | None:
        """Columns of the terminal at this moment, or None for no limit."""
        if self._fixed_width is not None:
            return self._fixed_width
        if not self._out.isatty():
            return None
        return self._size()[0]

    def show(self, result: Result) -> None:
        """Print a result. A stream or a view goes on until it ends, or until Ctrl-C.

        Raises:
            BrokenPipeError: the reader of the output has ended.
        """
        self._apply_settings()
        self.interrupted = False
        match result:
            case QuitRequest() | ScriptRequest():
                return
            case ClearRequest():
                self._clear()
            case ResultStream():
                self._show_stream(result)
            case LiveView():
                self._show_view(result)
            case LiveScreen():
                self._show_screen(result)
            case TranscriptRequest(path):
                self._change_transcript(path)
            case _:
                self._show_whole(result)

    def error(self, text: str) -> None:
        """Print one line about an error, to stderr; a terminal gets it in lines that fit."""
        line = f"error: {one_line(text)}"
        terminal = self._err.isatty()
        red = self.style is OutputStyle.COLOUR and terminal
        for part in wrap(line, self._size()[0]) if terminal else [line]:
            self._err.write(f"\x1b[31m{part}\x1b[0m\n" if red else f"{part}\n")
        self._err.flush()
        self._record([line])

    def line(self, text: str) -> None:
        """Write a line that will be run to the transcript, before its result."""
        self._record([f"qmf> {clean(text.strip())}"])

    def after_ctrl_c(self) -> None:
        """Begin a new line after the terminal has echoed ``^C``."""
        if self._out.isatty():
            self._out.write("\n")
            self._out.flush()

    @contextlib.contextmanager
    def redirect(self, out: TextIOBase) -> Iterator[None]:
        """In the block, results go to `out`, which is no terminal: without colour, pager and limit of width."""
        before = self._out, self._table_style, self._cursor, self.paging, self._fixed_width
        self._out, self._table_style, self._cursor = cast(TextIO, out), OutputStyle.PLAIN, False
        self.paging, self._fixed_width = False, None
        try:
            yield
        finally:
            self._out, self._table_style, self._cursor, self.paging, self._fixed_width = before

    @contextlib.contextmanager
    def use_format(self, output: str | None) -> Iterator[None]:
        """In the block, results have this format, one of those of the setting ``output``; None: that of the setting."""
        if output is None:
            yield
            return
        before = self.settings["output"]
        self.settings.change("output", output)
        try:
            yield
        finally:
            self.settings.change("output", before)
            self._apply_settings()

    def close(self) -> None:
        """Close the transcript."""
        self._transcript.close()

    # -- one result

    def _show_whole(self, result: Result) -> None:
        self._show_notices(result)
        if self.paging and self._cursor and self.style not in MACHINE_READABLE and self.settings["pager"] == "auto":
            lines = self._text_lines(result, self.width or 80)
            with self.progress.busy():
                shown = list(itertools.islice(lines, self._size()[1]))
            if len(shown) >= self._size()[1] and self._page(itertools.chain(shown, lines)):
                self._record_result(result)
                return
            self._write(itertools.chain(shown, lines))
        else:
            self._write(self._lines(result))
        self._out.flush()
        self._record_result(result)

    def _show_notices(self, result: Result) -> None:
        """In the styles for programs, print notices for people to stderr."""
        if self.style not in MACHINE_READABLE:
            return
        if isinstance(result, Notice):
            self._err.write("".join(f"{clean(line)}\n" for line in result.text.split("\n")))
            self._err.flush()
        elif isinstance(result, ResultGroup) and result.data is None:
            for part in result.parts:
                self._show_notices(part)

    def _lines(self, result: Result, continued: bool = False) -> Iterable[str]:
        """A result as lines without their ends, in the style of this screen.

        Args:
            continued: it follows others of the same stream or view, so CSV headings are not repeated.
        """
        if self.style is OutputStyle.JSON:
            from qmf_shell.render.json_lines import json_lines

            return json_lines(result)
        if self.style is OutputStyle.YAML:
            from qmf_shell.render.json_lines import yaml_lines

            return yaml_lines(result)
        if self.style is OutputStyle.CSV:
            if not continued or self._csv is None:
                from qmf_shell.render.csv_lines import CsvWriter

                self._csv = CsvWriter(merge_headings=continued)
            return self._csv.lines(result)
        return self._text_lines(result, self.width)

    def _text_lines(self, result: Result, width: int | None, height: int = 20) -> Iterator[str]:
        styler = Styler(self.style is OutputStyle.COLOUR)
        options = TextOptions(
            formatter=self._formatter, width=width, height=height, styler=styler, braille=self._braille()
        )
        return text_lines(result, options)

    def _write(self, lines: Iterable[str]) -> None:
        """Write lines, those of a screen first, whatever the others take."""
        rest, count = iter(lines), min(_FIRST_LINES, _LINES_AT_ONCE)
        while part := list(itertools.islice(rest, count)):
            self._out.writelines(f"{line}\n" for line in part)
            self._out.flush()
            count = _LINES_AT_ONCE

    def _page(self, lines: Iterator[str]) -> bool:
        from qmf_shell.modes.output_target import page, pager_command

        command = pager_command(os.environ)
        self._out.flush()
        if command is None:
            return False
        parts = iter(lambda: "".join(f"{line}\n" for line in itertools.islice(lines, _LINES_AT_ONCE)), "")
        return page(parts, command)

    # -- streams and views

    def _show_stream(self, stream: ResultStream) -> None:
        if stream.title:
            title = wrap(clean(stream.title), self.width or 10_000)
            if self.style in MACHINE_READABLE:
                self._err.writelines(f"{line}\n" for line in title)
                self._err.flush()
            else:
                self._write(title)
            self._out.flush()
        self._csv = None
        try:
            for item in stream.items:
                self._write(self._lines(item, continued=True))
                self._out.flush()
                self._record_result(item)
        except KeyboardInterrupt:
            self.interrupted = True
            self.after_ctrl_c()
        finally:
            close = getattr(stream.items, "close", None)
            if close is not None:
                close()

    def _show_view(self, view: LiveView) -> None:
        self._csv = None
        number = 0
        with self._interruptible():
            while view.count is None or number < view.count:
                if number:
                    time.sleep(view.interval)
                    if self.style not in MACHINE_READABLE:
                        self._write([""])
                number += 1
                try:
                    frame = view.frame()
                except QmfError as error:
                    if number == 1:
                        raise
                    self.error(str(error))
                    continue
                self._show_notices(frame)
                self._write(self._lines(frame, continued=True))
                self._out.flush()
                self._record_result(frame)

    def _show_screen(self, screen: LiveScreen) -> None:
        """Fill the terminal; without one, show lines."""
        keyboard = sys.stdin is not None and sys.stdin.isatty() and self._out is sys.stdout
        if not keyboard or not self._cursor or self.style in MACHINE_READABLE or self.settings["screens"] == "off":
            self.show(screen.lines)
            return
        from qmf_shell.screens.app import ScreenApp

        with self.progress.busy():
            page = screen.page()
        app = ScreenApp(
            screen.context,
            page,
            formatter=attrs.evolve(self._formatter, exact=self._formatter.exact or screen.exact),
            colour=self.style is OutputStyle.COLOUR,
            wide_characters=self._braille(),
        )
        left = app.run()
        self.interrupted = left.interrupted
        width, height = self._size()
        self._write(itertools.islice(self._text_lines(left.last, width, min(20, height - 2)), height - 1))
        self._out.flush()
        self._record_result(left.last)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """A block that Ctrl-C ends."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    # -- transcript

    def _change_transcript(self, path: Path | None) -> None:
        if path is None:
            self._transcript.close()
            self._write(self._lines(Notice("recording stopped")))
            return
        self._transcript.open(path)
        notice = Notice(f"recording to {path}")
        self._show_notices(notice)
        self._write(self._lines(notice))

    def _record_result(self, result: Result) -> None:
        if self._transcript.active:
            self._record(text_lines(result, TextOptions(formatter=self._formatter)))

    def _record(self, lines: Iterable[str]) -> None:
        try:
            self._transcript.write(lines)
        except OSError as error:
            self.close()
            self.error(f"recording stopped: {error.strerror or error}")

    # -- the terminal

    def _clear(self) -> None:
        if self._cursor:
            self._out.write("\x1b[H\x1b[2J\x1b[3J")
            self._out.flush()

    def _size(self) -> tuple[int, int]:
        with contextlib.suppress(OSError, ValueError):
            size = os.get_terminal_size(self._out.fileno())
            if size.columns:
                return max(20, size.columns), max(4, size.lines)
        size = shutil.get_terminal_size()
        return max(20, size.columns), max(4, size.lines)

    def _braille(self) -> bool:
        """True if the encoding of the output has more than ASCII."""
        encoding = (getattr(self._out, "encoding", None) or "utf-8").lower().replace("-", "")
        return encoding.startswith(("utf", "cp65001"))

    def _apply_settings(self) -> None:
        self._formatter = attrs.evolve(
            self._formatter,
            short=self.settings["time-format"] == "short",
            exact=self.settings["numbers"] == "exact",
        )
        output = self.settings["output"]
        self.style = self._table_style if output == "table" else OutputStyle(output)
