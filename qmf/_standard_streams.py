"""Standard output of the commands: a reader that has ended, e.g. `head`, ends a command without a message."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path


def open_missing_streams() -> None:
    """Make stdout and stderr safe to write to, even if the program was started with closed ones."""
    if sys.stdout is None or sys.stderr is None:
        # The output of a closed stream is not wanted.
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere


def discard_output() -> None:
    """Redirect stdout to nowhere, since Python flushes it at exit, and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def until_unread(run: Callable[[], int]) -> int:
    """Run a program until its end, or until nobody reads its output any more.

    Returns:
        its exit code; 0 if the reader of its output has ended.

    Raises:
        OSError: the output cannot be written, e.g. to a full disk.
    """
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return 0
    except SystemExit:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            discard_output()
        raise
    return code
