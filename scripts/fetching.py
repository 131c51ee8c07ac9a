"""Getting the programs and libraries of others that tests use, into cache folders."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: Seconds that a download may take.
DOWNLOAD = 600


class Unavailable(Exception):
    """Why something cannot be had, in one line."""


@contextlib.contextmanager
def unpacking(home: Path) -> Iterator[Path]:
    """A folder to unpack something in that is moved to `home`: what was interrupted is never found there."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=home.parent) as folder:
        yield Path(folder)


def install(folder: Path, home: Path) -> None:
    """Move what was unpacked to its place, unless another process was quicker."""
    try:
        folder.rename(home)
    except OSError:
        if not home.exists():
            raise


def finish(
    command: Sequence[str], log: Path, environment: Mapping[str, str], timeout: float, folder: Path | None = None
) -> None:
    """Run a command to its end, its output in a file."""
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{Path(command[0]).name} did not end within {timeout} s") from None
    if done.returncode:
        raise Unavailable(f"{Path(command[0]).name} {command[1]} failed: {last_line(log)}")


def last_line(log: Path) -> str:
    """The last line of a log that has text."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"
