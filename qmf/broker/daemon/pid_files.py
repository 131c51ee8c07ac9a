"""Files with the process id of a running daemon. The process holds a lock on its file, so that a file that was left
behind is recognised, whoever has its process id now.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds between two looks at a process that is to end.
_PAUSE = 0.01


class DaemonError(Exception):
    """A daemon cannot be started, found or stopped; the message says why."""


def default_folder() -> Path:
    """The folder for the files of this user."""
    return Path(os.environ.get("HOME") or "/tmp") / ".qmf-broker"


def port_file(folder: Path, port: int) -> Path:
    """The file of the daemon that listens on a port."""
    return folder / f"qmf-broker.{port}.pid"


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Write the id of this process to a file, which is locked within the block and removed at its end.

    Raises:
        DaemonError: the file cannot be written, or another process holds it.
    """
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DaemonError(f"cannot write {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DaemonError(f"{path} belongs to the running process {_read(path) or 'of another broker'}") from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def running(path: Path) -> int | None:
    """The id of the process that holds a file; None if none does.

    Raises:
        DaemonError: the file cannot be read, or has no process id.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DaemonError(f"cannot read {path}: {error.strerror}") from error
    try:
        if not _is_locked(descriptor):
            return None
    finally:
        os.close(descriptor)
    pid = _read(path)
    if pid is None:
        raise DaemonError(f"{path} has no process id")
    return pid


def stop(path: Path, number: signal.Signals, timeout: float) -> bool:
    """Send a signal to the process that holds a file, and wait for its end.

    Args:
        path: of the file.
        number: SIGINT or SIGKILL.
        timeout: seconds to wait.

    Returns:
        False if there is no such process.

    Raises:
        DaemonError: the process may not be stopped, or is still running after that time.
    """
    pid = running(path)
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except OSError as error:
        raise DaemonError(f"cannot stop process {pid}: {error.strerror}") from error
    deadline = time.monotonic() + timeout
    while running(path) is not None:
        if time.monotonic() > deadline:
            raise DaemonError(f"process {pid} has not ended within {timeout:g} s")
        time.sleep(_PAUSE)
    return True


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise DaemonError(f"cannot lock the file of a process id: {error.strerror}") from error
        return True
    return False


def _read(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
