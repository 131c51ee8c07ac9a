"""Pictures that follow each other in place on a terminal, and the keys that end them.

Draws on the terminal's second screen, so that what was there before comes back; the last picture is for the caller to
leave behind. Ctrl-C or q ends it.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

#: Seconds between looks at the size of the terminal while waiting.
_GLANCE = 0.2
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"

Size = tuple[int, int]


@contextlib.contextmanager
def alternate_screen(out: TextIO) -> Iterator[None]:
    """The terminal's second screen, without a cursor, for the block."""
    out.write(_ENTER)
    out.flush()
    try:
        yield
    finally:
        out.write(_LEAVE)
        out.flush()


@contextlib.contextmanager
def single_keys() -> Iterator[int | None]:
    """Keys one by one and unseen for the block: the file to read them from, or None where there is no keyboard."""
    fd: int | None = None
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            fd = sys.stdin.fileno()
    if fd is None:
        yield None
        return
    try:
        import termios
    except ImportError:  # no POSIX terminal
        yield None
        return
    before = termios.tcgetattr(fd)
    mode = termios.tcgetattr(fd)
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    try:
        yield fd
    finally:
        # What was typed meanwhile was for the view, not for the prompt.
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)


def wait_for_key(keys: int | None, seconds: float, size: Callable[[], Size]) -> str:
    """Wait for the next picture.

    Returns:
        ``time`` when it is due, ``size`` when the terminal has another size, ``quit`` when the user wants to leave.
    """
    end = time.monotonic() + seconds
    before = size()
    while (left := end - time.monotonic()) > 0:
        step = min(left, _GLANCE)
        if keys is None:
            time.sleep(step)
        elif select.select([keys], [], [], step)[0]:
            typed = os.read(keys, 64)
            if typed in (b"q", b"Q", b"\x1b", b"\x04"):
                return "quit"
            if not typed:
                keys = None  # the keyboard is gone
        if size() != before:
            return "size"
    return "time"


def draw_screen(out: TextIO, lines: Sequence[str], status: str, size: Size, left: int = 0) -> None:
    """Draw lines from the top of the screen, the status below; what does not fit is counted.

    Args:
        out: the terminal.
        lines: the picture.
        status: the last line.
        size: columns and lines of the terminal.
        left: how many lines were not even drawn.
    """
    _, height = size
    room = max(1, height - 1)
    shown = list(lines[:room])
    if len(lines) > room:
        shown[-1] = f"... {len(lines) - room + 1 + left:,} more lines"
    text = "\x1b[H" + "".join(f"{line}\x1b[0m\x1b[K\r\n" for line in shown) + f"{status}\x1b[K\x1b[J"
    out.write(text)
    out.flush()
