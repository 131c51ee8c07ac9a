"""Text files that users write: read whole, with the reason where that fails, and again after they were changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def read_text(path: str | Path, error: Callable[[str], Exception]) -> str:
    """The text of a file.

    Args:
        path: of the file.
        error: makes the error of a message, which names the file and the reason.

    Raises:
        Exception: as `error` makes it: the file cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as reason:
        raise error(f"{path}: {reason.strerror or reason}") from reason
    except UnicodeDecodeError as reason:
        raise error(f"{path}: not UTF-8") from reason


def file_version(path: str | Path) -> tuple[int, int, int] | None:
    """What is different after a file was changed or replaced; None where it is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
