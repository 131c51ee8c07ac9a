"""A program: starts commands of this project as processes of their own, which are forks of it.

Loading its modules takes most of the time of a short command. So they are loaded once here. What it is asked for comes
by the socket that is its standard input: a JSON object with `words` (the script and its arguments, or what Python gets
to run a module), `modules` (which the script is about to load), `environment`, `folder` and `terminal` (whether the
standard streams are one), and with it the command's standard streams and a pipe, to which two lines are written: its
process id, and its exit code when it has ended. With the end of the socket it ends.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import termios
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

#: Bytes of the largest request.
_MOST = 1 << 20


def listen(requests: socket.socket) -> dict[str, Any]:
    """Start commands as they are asked for; returns in each command's process, with what it is about."""
    running: dict[int, int] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = selectors.DefaultSelector()
    waiting.register(requests, selectors.EVENT_READ)
    waiting.register(ended, selectors.EVENT_READ)
    while True:
        ready = {key.fileobj for key, _ in waiting.select()}
        if ended in ready:
            os.read(ended, 1024)
            report_ends(running)
        if requests not in ready:
            continue
        text, files, _, _ = socket.recv_fds(requests, _MOST, 4)
        if not text:
            sys.exit()
        request: dict[str, Any] = json.loads(text)
        for module in request["modules"]:
            importlib.import_module(module)
        gc.freeze()
        if process := os.fork():
            os.write(files[3], f"{process}\n".encode())
            running[process] = files[3]
            for file in files[:3]:
                os.close(file)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        for file in (*files, *running.values(), ended, wake):
            os.close(file)
        waiting.close()
        requests.close()
        return request


def report_ends(running: dict[int, int]) -> None:
    """Write the exit codes of the commands that have ended."""
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            break
        answers = running.pop(process)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(answers)


def become(request: dict[str, Any]) -> None:
    """Make this process what a new one would be, and run what it is about."""
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)
    words: list[str] = request["words"]
    if words[0] == "-W":
        sys.argv = words[3:]
        sys.path.insert(0, request["folder"])
        runpy.run_module(words[3], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")


def forget(own: AbstractSet[str]) -> None:
    """Leave what all modules but these have to the operating system.

    The interpreter would clear them one by one before its end, and so copy all memory that forks share.
    """
    for name in sys.modules.keys() - own:
        del sys.modules[name]


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    if not sys.warnoptions:  # what is cleared may warn
        # First, and so called last, after all else that a command does at its end.
        atexit.register(forget, frozenset(sys.modules))
    with socket.socket(fileno=os.dup(0)) as asked:
        request = listen(asked)
    become(request)
