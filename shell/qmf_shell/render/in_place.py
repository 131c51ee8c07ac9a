"""Refreshes a view in place on a terminal, until Ctrl-C, ``q`` or a number of frames.

Draws on the terminal's alternate screen, so that its previous contents come back; the caller prints the last frame
below them.
"""

from __future__ import annotations

import contextlib
import enum
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

import attrs

from qmf.errors import QmfError
from qmf.views.text import one_line
from qmf_shell.render.formatting import Formatter
from qmf_shell.results.cells import Instant
from qmf_shell.results.result import LiveView, Result, ResultGroup, Table

#: Seconds between checks of the terminal's size.
_SIZE_CHECK = 0.2
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"

Size = tuple[int, int]


class WaitResult(enum.Enum):
    """Why waiting for the next frame ended."""

    TIME = "time"  #: the frame is due
    RESIZED = "resized"  #: the terminal has another size
    QUIT = "quit"  #: the user pressed a key that ends the view


@attrs.frozen(kw_only=True)
class InPlaceDisplay:
    """Shows views on a terminal.

    Attributes:
        out: the terminal.
        size: returns its columns and lines.
        lines: makes the lines of a result, for a number of columns and lines.
        formatter: formats times.
        colour: the terminal supports colours.
    """

    out: TextIO
    size: Callable[[], Size]
    lines: Callable[[Result, int, int], Sequence[str]]
    formatter: Formatter
    colour: bool

    def show(self, view: LiveView, first: Result, on_frame: Callable[[Result], None]) -> None:
        """Show a view until it ends.

        Args:
            view: the view.
            first: its first frame.
            on_frame: called with each further frame.

        Raises:
            KeyboardInterrupt: Ctrl-C ended it.
        """
        frame, failure, number = first, "", 1
        with single_keys() as keys, alternate_screen(self.out):
            while True:
                width, height = self.size()
                shown, left_out = cropped(frame, height)
                status = self._status(view, failure, width)
                draw_screen(self.out, self.lines(shown, width, height - 1), status, (width, height), left_out)
                if view.count is not None and number >= view.count:
                    return
                reason = wait_for_key(keys, view.interval, self.size)
                if reason is WaitResult.QUIT:
                    return
                if reason is WaitResult.RESIZED:
                    continue
                number += 1
                try:
                    frame, failure = view.frame(), ""
                    on_frame(frame)
                except QmfError as error:
                    failure = one_line(str(error))

    def _status(self, view: LiveView, failure: str, width: int) -> str:
        if failure:
            return self._coloured("\x1b[31m", failure[: width - 1])
        now = attrs.evolve(self.formatter, short=True).text(Instant(time.time_ns()))
        return self._coloured("\x1b[2m", f"{now}  every {view.interval:g} s  q or Ctrl-C ends it"[: width - 1])

    def _coloured(self, escape: str, text: str) -> str:
        return f"{escape}{text}\x1b[0m" if self.colour else text


def cropped(frame: Result, height: int) -> tuple[Result, int]:
    """A frame without the rows that do not fit into `height` lines, and how many rows it lost.

    Formatting thousands of rows that cannot be shown would take most of the time of a view.
    """
    match frame:
        case Table(rows=rows) if len(rows) > height:
            return attrs.evolve(frame, rows=rows[:height]), len(rows) - height
        case ResultGroup(parts):
            pieces = [cropped(part, height) for part in parts]
            return attrs.evolve(frame, parts=tuple(part for part, _ in pieces)), sum(left for _, left in pieces)
        case _:
            return frame, 0


@contextlib.contextmanager
def alternate_screen(out: TextIO) -> Iterator[None]:
    """Use the terminal's alternate screen, without a cursor, in the block."""
    out.write(_ENTER)
    out.flush()
    try:
        yield
    finally:
        out.write(_LEAVE)
        out.flush()


@contextlib.contextmanager
def single_keys() -> Iterator[int | None]:
    """Read keys one by one and without echo in the block: gives the file to read from, or None without a keyboard."""
    fd: int | None = None
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            fd = sys.stdin.fileno()
    if fd is None:
        yield None
        return
    try:
        import termios
    except ImportError:  # not a POSIX terminal
        yield None
        return
    before = termios.tcgetattr(fd)
    mode = termios.tcgetattr(fd)
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    try:
        yield fd
    finally:
        # Keys typed meanwhile were for the view, not for the prompt.
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)


def wait_for_key(keys: int | None, seconds: float, size: Callable[[], Size]) -> WaitResult:
    """Wait until the next frame is due, a key ends the view, or the terminal is resized."""
    end = time.monotonic() + seconds
    before = size()
    while (left := end - time.monotonic()) > 0:
        step = min(left, _SIZE_CHECK)
        if keys is None:
            time.sleep(step)
        elif select.select([keys], [], [], step)[0]:
            typed = os.read(keys, 64)
            if typed in (b"q", b"Q", b"\x1b", b"\x04"):
                return WaitResult.QUIT
            if not typed:
                keys = None  # the keyboard was closed
        if size() != before:
            return WaitResult.RESIZED
    return WaitResult.TIME


def draw_screen(out: TextIO, lines: Sequence[str], status: str, size: Size, left_out: int = 0) -> None:
    """Draw lines from the top of the screen, and the status below; lines that do not fit are counted.

    Args:
        out: the terminal.
        lines: the lines.
        status: the last line.
        size: columns and lines of the terminal.
        left_out: how many further lines there would be.
    """
    _, height = size
    room = max(1, height - 1)
    shown = list(lines[:room])
    if len(lines) > room:
        shown[-1] = f"... {len(lines) - room + 1 + left_out:,} more lines"
    text = "\x1b[H" + "".join(f"{line}\x1b[0m\x1b[K\r\n" for line in shown) + f"{status}\x1b[K\x1b[J"
    out.write(text)
    out.flush()
