"""Where results go: one object that knows the streams, the width and whether there is colour."""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import attrs

from qmf.errors import QmfError
from qmf_shell.render.formatting import Formatter
from qmf_shell.render.layout import wrap
from qmf_shell.render.progress_line import ProgressLine
from qmf_shell.render.styles import Styler
from qmf_shell.render.text_lines import TextOptions, text_lines
from qmf_shell.results.result import (
    Instant,
    LiveView,
    Notice,
    QuitRequest,
    Result,
    ResultGroup,
    ResultStream,
    Table,
    TranscriptRequest,
)
from qmf_shell.settings import Settings
from qmf_shell.text import clean, one_line

if TYPE_CHECKING:
    from qmf_shell.render.csv_lines import CsvWriter


class OutputStyle(enum.Enum):
    """How results are written."""

    COLOUR = "colour"
    PLAIN = "plain"
    JSON = "json"
    CSV = "csv"


#: Looks for programs: messages for people go to stderr.
MACHINE_READABLE = (OutputStyle.JSON, OutputStyle.CSV)


def choose_output_style(
    out: TextIO, environ: Mapping[str, str], *, no_color: bool, output: str = "table"
) -> OutputStyle:
    """The look of an output format (``table``, ``json`` or ``csv``).

    Colour only on a terminal that can do it, and only without NO_COLOR (any value that is not empty).
    """
    if output != "table":
        return OutputStyle(output)
    if no_color or environ.get("NO_COLOR") or environ.get("TERM") == "dumb" or not out.isatty():
        return OutputStyle.PLAIN
    return OutputStyle.COLOUR


def cropped(frame: Result, height: int) -> tuple[Result, int]:
    """A picture for a screen of so many lines, and how many rows it lost.

    Drawing thousands of rows that there is no room for would take most of the time of a view.
    """
    match frame:
        case Table(rows=rows) if len(rows) > height:
            return attrs.evolve(frame, rows=rows[:height]), len(rows) - height
        case ResultGroup(parts):
            pieces = [cropped(part, height) for part in parts]
            return attrs.evolve(frame, parts=tuple(part for part, _ in pieces)), sum(left for _, left in pieces)
        case _:
            return frame, 0


class Screen:
    """Prints results and errors.

    Attributes:
        look: how.
        settings: what the user has set; read with each result.
        progress: the line that is shown while a command takes long.
        paging: long output goes through a pager: for sessions with somebody at the terminal.
        interrupted: Ctrl-C ended the last stream or view that was shown: for a prompt its normal end, for a script not.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        style: OutputStyle,
        *,
        width: int | None = None,
        formatter: Formatter | None = None,
        settings: Settings | None = None,
        paging: bool = False,
        cursor: bool | None = None,
    ) -> None:
        """
        Args:
            out, err: where results and errors go.
            look: how results are written.
            width: columns; None asks the terminal each time, and sets no limit where there is none.
            formatter: writes cells; by default in the machine's time zone.
            settings: what the user has set.
            paging: see the attribute.
            cursor: the terminal's cursor can be moved; None finds out.
        """
        self.style = style
        self.settings = settings or Settings()
        if style in MACHINE_READABLE:
            self.settings.change("output", style.value)
        self.paging = paging
        self.interrupted = False
        self._plain = OutputStyle.COLOUR if style is OutputStyle.COLOUR else OutputStyle.PLAIN
        self._out = out
        self._err = err
        self._fixed_width = width
        self._formatter = formatter or Formatter()
        able = os.environ.get("TERM", "dumb") != "dumb" if cursor is None else cursor
        self._cursor = able and out.isatty()
        self.progress = ProgressLine(err, enabled=able and err.isatty())
        self._record: TextIO | None = None
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
        """Print a result. A stream or a view goes on until it ends, or until Ctrl-C, which is its normal end.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        self._follow_settings()
        self.interrupted = False
        match result:
            case QuitRequest():
                return
            case ResultStream():
                self._show_stream(result)
            case LiveView():
                self._show_view(result)
            case TranscriptRequest(path):
                self._start_record(path)
            case _:
                self._show_whole(result)

    def error(self, text: str) -> None:
        """Print one line about what went wrong, to stderr; a long line is not cut."""
        line = f"error: {one_line(text)}"
        self._err.write(f"\x1b[31m{line}\x1b[0m\n" if self._red() else f"{line}\n")
        self._err.flush()
        self._note([line])

    def line(self, text: str) -> None:
        """Take note of the line that is run now: a recording has it before its result."""
        self._note([f"qmf> {clean(text.strip())}"])

    def after_ctrl_c(self) -> None:
        """Begin a new line where the terminal has echoed ``^C``."""
        if self._out.isatty():
            self._out.write("\n")
            self._out.flush()

    def close(self) -> None:
        """End a recording."""
        if self._record is not None:
            self._record.close()
            self._record = None

    # -- one result

    def _show_whole(self, result: Result) -> None:
        self._messages(result)
        if self.paging and self._cursor and self.style not in MACHINE_READABLE and self.settings["pager"] == "auto":
            with self.progress.busy():
                text = self._text(result, self.width or 80)
            if text.count("\n") >= self._size()[1] and self._paged(text):
                self._note(self._plain_lines(result))
                return
            self._out.write(text)
        else:
            self._write(self._lines(result))
        self._out.flush()
        self._note(self._plain_lines(result))

    def _messages(self, result: Result) -> None:
        """In the looks for programs, what is meant for people goes to stderr."""
        if self.style not in MACHINE_READABLE:
            return
        if isinstance(result, Notice):
            self._err.write("".join(f"{clean(line)}\n" for line in result.text.split("\n")))
            self._err.flush()
        elif isinstance(result, ResultGroup) and result.data is None:
            for part in result.parts:
                self._messages(part)

    def _lines(self, result: Result, once: bool = False) -> Iterable[str]:
        """A result as lines without their ends, in the look of this screen."""
        if self.style is OutputStyle.JSON:
            from qmf_shell.render.json_lines import json_lines

            return json_lines(result)
        if self.style is OutputStyle.CSV:
            if not once or self._csv is None:
                from qmf_shell.render.csv_lines import CsvWriter

                self._csv = CsvWriter(once=once)
            return self._csv.lines(result)
        return self._text(result, self.width).splitlines()

    def _text(self, result: Result, width: int | None, height: int = 20) -> str:
        paint = Styler(self.style is OutputStyle.COLOUR)
        sheet = TextOptions(formatter=self._formatter, width=width, height=height, paint=paint, braille=self._braille())
        return "".join(f"{line}\n" for line in text_lines(result, sheet))

    def _plain_lines(self, result: Result) -> list[str]:
        """For a recording; nothing where there is none, as drawing costs time."""
        return [] if self._record is None else list(text_lines(result, TextOptions(formatter=self._formatter)))

    def _write(self, texts: Iterable[str]) -> None:
        self._out.writelines(f"{text}\n" for text in texts)

    def _paged(self, text: str) -> bool:
        from qmf_shell.render.pager import page, pager_command

        command = pager_command(os.environ)
        self._out.flush()
        return command is not None and page(text, command)

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
                self._write(self._lines(item, once=True))
                self._out.flush()
                self._note(self._plain_lines(item))
        except KeyboardInterrupt:
            self.interrupted = True
            self.after_ctrl_c()
        finally:
            close = getattr(stream.items, "close", None)
            if close is not None:
                close()

    def _show_view(self, view: LiveView) -> None:
        if self._cursor and self.style not in MACHINE_READABLE:
            last = self._draw_view(view)
            if last is not None:
                width, height = self._size()
                self._write(self._text(cropped(last, height)[0], width, min(20, height - 2)).splitlines()[:height])
                self._out.flush()
                self._note(self._plain_lines(last))
            return
        self._csv = None
        number = 0
        with self._interruptible():
            while view.count is None or number < view.count:
                if number:
                    time.sleep(view.interval)
                    if self.style is OutputStyle.PLAIN:
                        self._write([""])
                number += 1
                try:
                    frame = view.frame()
                except QmfError as error:
                    if number == 1:
                        raise
                    self.error(str(error))
                    continue
                self._messages(frame)
                self._write(self._lines(frame, once=True))
                self._out.flush()
                self._note(self._plain_lines(frame))

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """A block that Ctrl-C ends."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    def _draw_view(self, view: LiveView) -> Result | None:
        """Pictures in place, until the end; the last one."""
        from qmf_shell.render.in_place import alternate_screen, draw_screen, single_keys, wait_for_key

        # Before the terminal changes its look: what is wrong with the first picture is an error like others.
        with self.progress.busy():
            last = view.frame()
        trouble = ""
        number = 1
        with self._interruptible(), single_keys() as keys, alternate_screen(self._out):
            while True:
                width, height = self._size()
                frame, left = cropped(last, height)
                shown = self._text(frame, width, height - 1).splitlines()
                draw_screen(self._out, shown, self._status(view, trouble), (width, height), left)
                if view.count is not None and number >= view.count:
                    break
                why = wait_for_key(keys, view.interval, self._size)
                if why == "quit":
                    break
                if why == "size":
                    continue
                number += 1
                try:
                    last, trouble = view.frame(), ""
                except QmfError as error:
                    trouble = one_line(str(error))
        return last

    def _status(self, view: LiveView, trouble: str) -> str:
        width = self._size()[0]
        if trouble:
            text = trouble[: width - 1]
            return f"\x1b[31m{text}\x1b[0m" if self.style is OutputStyle.COLOUR else text
        every = f"{view.interval:g} s"
        now = attrs.evolve(self._formatter, short=True).text(Instant(time.time_ns()))
        text = f"{now}  every {every}  q or Ctrl-C ends it"[: width - 1]
        return f"\x1b[2m{text}\x1b[0m" if self.style is OutputStyle.COLOUR else text

    # -- recording

    def _start_record(self, path: Path | None) -> None:
        self.close()
        if path is None:
            self._write(self._lines(Notice("not recording any more")))
            return
        from qmf_shell.settings import SettingsError

        try:
            # Lines may hold what nobody else should read.
            file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        except OSError as error:
            raise SettingsError(f"cannot record to {path}: {error.strerror or error}") from None
        self._record = os.fdopen(file, "a", encoding="utf-8", errors="backslashreplace", buffering=1)
        self._messages(Notice(f"recording to {path}"))
        self._write(self._lines(Notice(f"recording to {path}")))

    def _note(self, texts: Iterable[str]) -> None:
        if self._record is None:
            return
        try:
            self._record.writelines(f"{text}\n" for text in texts)
        except OSError as error:
            self.close()
            self.error(f"recording ended: {error.strerror or error}")

    # -- the terminal

    def _size(self) -> tuple[int, int]:
        with contextlib.suppress(OSError, ValueError):
            size = os.get_terminal_size(self._out.fileno())
            if size.columns:
                return max(20, size.columns), max(4, size.lines)
        size = shutil.get_terminal_size()
        return max(20, size.columns), max(4, size.lines)

    def _braille(self) -> bool:
        """Whether the output can show more than ASCII."""
        encoding = (getattr(self._out, "encoding", None) or "utf-8").lower().replace("-", "")
        return encoding.startswith(("utf", "cp65001"))

    def _red(self) -> bool:
        return self.style is OutputStyle.COLOUR and self._err.isatty()

    def _follow_settings(self) -> None:
        self._formatter = attrs.evolve(self._formatter, short=self.settings["time-format"] == "short")
        output = self.settings["output"]
        self.style = self._plain if output == "table" else OutputStyle(output)
