"""Shows output that is longer than the terminal in the user's pager."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping

from qmf_shell.render.terminal_echo import terminal_echo


def pager_command(environ: Mapping[str, str]) -> list[str] | None:
    """The pager: that of ``QMF_SHELL_PAGER`` or ``PAGER``, else less; None without one, or if the variable is empty."""
    for name in ("QMF_SHELL_PAGER", "PAGER"):
        if name in environ:
            try:
                words = shlex.split(environ[name])
            except ValueError:
                return None
            return words if words and words[0] != "cat" and shutil.which(words[0]) else None
    found = shutil.which("less")
    return [found] if found else None


def page(text: str, command: list[str]) -> bool:
    """Show text in a pager until the user leaves it; False if it cannot be started."""
    with terminal_echo(True):
        return _page(text, command)


def _page(text: str, command: list[str]) -> bool:
    # As git does: show colours, leave the text on the screen, and exit at once if the text fits.
    env = {"LESS": "FRX", **os.environ}
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env=env, text=True, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        return False
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        process.stdin.write(text)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        process.stdin.close()
    while True:
        # Ctrl-C is sent to all processes on the terminal; here it is for the pager.
        with contextlib.suppress(KeyboardInterrupt):
            process.wait()
            return True
