"""Where a lake is: a folder, or a URL that only Spark can read. Pure."""

from __future__ import annotations

from pathlib import Path

from qmf.pipeline.errors import PipelineError


def is_local(lake: str) -> bool:
    """True for paths, and for URLs of local files."""
    return "://" not in lake or lake.startswith("file://")


def local_path(lake: str) -> Path:
    """The path of a local lake.

    Raises:
        PipelineError: the lake is not local.
    """
    if not is_local(lake):
        raise PipelineError(f"{lake}: must be a folder of this machine, or one that is mounted on it")
    return Path(lake.removeprefix("file://")).absolute()


def absolute(place: str) -> str:
    """A path of this machine from its root, so that processes with other working directories find it; or a URL."""
    return str(local_path(place)) if is_local(place) else place.rstrip("/")
