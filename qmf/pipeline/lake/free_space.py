"""Whether the file system of a lake has room for what is to be written.

It is asked before the library writes: where the disk becomes full meanwhile, threads of the library print their panics.
"""

from __future__ import annotations

import shutil

from qmf.pipeline.errors import NoSpaceError, lake_errors
from qmf.pipeline.lake.location import is_local, local_path

#: Bytes that must stay free: for the entry in the log, a checkpoint, and what other processes write meanwhile.
RESERVE = 1024 * 1024


def check_space(url: str, size: int) -> None:
    """Check that something fits; for object stores nothing is checked.

    Args:
        url: of a table.
        size: in bytes, about.

    Raises:
        NoSpaceError: it doesn't.
    """
    if not is_local(url):
        return
    folder = path = local_path(url)
    while not folder.exists():
        folder = folder.parent
    with lake_errors(path):
        free = shutil.disk_usage(folder).free
    if free < size + RESERVE:
        needed = f"{(size + RESERVE) / 1e6:.1f} MB are needed, and {free / 1e6:.1f} MB are free"
        raise NoSpaceError(f"{path}: no space left on the device: {needed}")
