"""Shows output that is longer than the terminal in the user's pager."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping

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


def page(parts: Iterable[str], command: list[str]) -> bool:
    """Show text in a pager until the user leaves it; False if it cannot be started.

    Args:
        parts: of the text; each is made when there is room for it.
        command: the pager.

    Raises:
        QmfError: a part could not be made; the user has seen those before.
    """
    with terminal_echo(True):
        return _page(parts, command)


def _page(parts: Iterable[str], command: list[str]) -> bool:
    # As git does: show colours, leave the text on the screen, and exit at once if the text fits.
    env = {"LESS": "FRX", **os.environ}
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env=env, text=True, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        return False
    assert process.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            for part in parts:
                process.stdin.write(part)
                process.stdin.flush()
    finally:
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            process.stdin.close()
        _wait(process)
    return True


def _wait(process: subprocess.Popen[str]) -> None:
    while True:
        # Ctrl-C is sent to all processes on the terminal; here it is for the pager.
        with contextlib.suppress(KeyboardInterrupt):
            process.wait()
            return
