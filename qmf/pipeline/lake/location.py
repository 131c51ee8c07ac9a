"""Where a lake is: a folder, or a URL of an object store; and whether a folder has room for what is to be written."""

from __future__ import annotations

import shutil
from pathlib import Path

from qmf.pipeline.errors import NoSpaceError, PipelineError, lake_errors


def is_local(lake: str) -> bool:
    """True for paths, and for URLs of local files."""
    return "://" not in lake or lake.startswith("file://")


def local_path(lake: str) -> Path:
    """The path of a local lake; `PipelineError` if it is not local."""
    if not is_local(lake):
        raise PipelineError(f"{lake}: must be a folder of this machine, or one that is mounted on it")
    return Path(lake.removeprefix("file://")).absolute()


def absolute(place: str) -> str:
    """A path of this machine from its root, so that processes with other working directories find it; or a URL."""
    return str(local_path(place)) if is_local(place) else place.rstrip("/")


#: Bytes that must stay free: for the entry in the log, a checkpoint, and what other processes write meanwhile.
RESERVE = 1024 * 1024


def check_space(url: str, size: int) -> None:
    """Check that about so many bytes fit into the file system of a table; for object stores nothing is checked.

    It is asked before the library writes: where the disk becomes full meanwhile, its threads print their panics.

    Raises:
        NoSpaceError: they don't.
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
