"""Running a program in the background: a process of its own session, which tells its parent when it is ready."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterable

from qmf.broker.daemon.pid_files import DaemonError

_READY, _FAILED = b"+", b"-"

#: Called by the program when it is ready, with what its parent is to print.
Ready = Callable[[str], None]


def start_in_background(run: Callable[[Ready], int], timeout: float, close: Iterable[int] = ()) -> str:
    """Start a program in a child process. To be called before there are threads.

    Args:
        run: the program, which calls what it gets once it is ready, and whose result is the exit code. An exception
            before that is reported to the parent.
        timeout: seconds until it has to be ready.
        close: file descriptors that it does not need.

    Returns:
        what the program passed to `Ready`.

    Raises:
        DaemonError: it failed or was not ready in time; then it was ended.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run_child(run, writing, close)
    os.close(writing)
    try:
        return _wait(reading, pid, timeout)
    finally:
        os.close(reading)


def _run_child(run: Callable[[Ready], int], writing: int, close: Iterable[int]) -> None:
    """The child's process; it does not return."""
    code = 1
    told = False

    def tell(kind: bytes, text: str) -> None:
        nonlocal told
        if not told:
            told = True
            with contextlib.suppress(OSError):  # the parent has given up
                os.write(writing, kind + text.encode())
            os.close(writing)

    try:
        os.setsid()
        os.umask(0o027)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        for descriptor in close:
            if descriptor != writing:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        code = run(lambda text: tell(_READY, text))
        tell(_FAILED, f"it ended with code {code}")
    except BaseException as error:  # noqa: BLE001 - reported to the parent; this process must not go on as another parent
        tell(_FAILED, str(error) or type(error).__name__)
    finally:
        os._exit(code)


def _wait(reading: int, pid: int, timeout: float) -> str:
    deadline = time.monotonic() + timeout
    data = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            _end(pid)
            raise DaemonError(f"the broker was not ready within {timeout:g} s")
        piece = os.read(reading, 4096)
        if not piece:
            break
        data += piece
    if data.startswith(_READY):
        return data[1:].decode()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    raise DaemonError(data[1:].decode() or "the broker ended at its start")


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
