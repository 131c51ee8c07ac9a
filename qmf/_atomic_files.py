"""Files that are replaced in one step: readers, and a program after a crash, find the old content or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: What names of files begin with that are being written; a killed process leaves one.
TEMPORARY = ".tmp-"
#: Permissions of new files, before the process's mask.
USUAL = 0o666
#: Permissions of files that only their owner may read.
PRIVATE = 0o600


@contextlib.contextmanager
def replaced_file(path: Path, *, mode: int = USUAL, sync: bool = False) -> Iterator[BinaryIO]:
    """A new file that takes a name when the block ends; an error in it leaves what has the name as it is.

    The block may close the file.

    Args:
        path: the name; its folder exists.
        mode: permissions, before the process's mask.
        sync: the content and the name are on the disk when the block has ended; it must not close the file.

    Raises:
        OSError: it cannot be written.
    """
    # Of a long name only the beginning, since names have a largest length.
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(4)}-{path.name[:32]}")
    # Not `tempfile`: the mask of the process could be read only by changing it, also for other threads.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        sync_folder(path.parent)


def replace_file(path: Path, content: bytes, *, mode: int = USUAL, sync: bool = False) -> None:
    """Write a whole file, as `replaced_file`."""
    with replaced_file(path, mode=mode, sync=sync) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder through to the disk: a file that is synced can be found after a failure of the power.

    Raises:
        OSError: it failed.
    """
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
