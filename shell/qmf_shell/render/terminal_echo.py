"""Whether the terminal shows the keys that are typed while no prompt reads them.

While a command runs, keys are kept for the next prompt, which shows them: the terminal must not show them before. A
program that is started, such as a pager, finds the terminal as usual.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def terminal_echo(on: bool) -> Iterator[None]:
    """In the block, the terminal shows the keys that are typed, or does not. Does nothing without a terminal."""
    try:
        import termios
    except ImportError:  # not a POSIX terminal
        yield
        return
    try:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
    except (AttributeError, OSError, ValueError, termios.error):  # no stdin, or it is not a terminal
        yield
        return
    mode = termios.tcgetattr(fd)
    mode[3] = mode[3] | termios.ECHO if on else mode[3] & ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSANOW, before)
