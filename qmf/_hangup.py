"""What a program that runs on does on SIGHUP."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable


def hangup_handler(reload: Callable[[], object], end: Callable[[], object]) -> Callable[[], None]:
    """What to do on SIGHUP. To be called at the start.

    Args:
        reload: called when somebody sends the signal.
        end: called when the terminal is closed on which the program was started, as that ends programs.
    """
    interactive = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _on_terminal()

    def handle() -> None:
        if interactive and not _on_terminal():
            end()
        else:
            reload()

    return handle


def _on_terminal() -> bool:
    """True while the standard input is a terminal that is there."""
    try:
        return sys.stdin is not None and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):  # it has no file, or is closed
        return False
