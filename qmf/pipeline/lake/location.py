"""Where a lake is, a folder or a URL of an object store, and where its tables lie in it; what room a folder has.

::

    LAKE/objects/PACKAGE/CLASS    one Delta table for each class, with all its versions
    LAKE/events/PACKAGE/CLASS     the same
    LAKE/heartbeats               and untyped, agents, schemas, gaps: one Delta table each
    LAKE/_tables/JOB/...          what jobs produce

A version of a class whose columns contradict the types of the class's table has a table of its own,
``CLASS@HASH``. The table `schemas` names the table of each version.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote, unquote

from qmf.pipeline.errors import NoSpaceError, PipelineError, lake_errors
from qmf.pipeline.kinds import RowKind


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
    """Check that about so many bytes fit into the file system of a table in a folder; `NoSpaceError` if they don't.

    It is asked before the library writes: where the disk becomes full meanwhile, its threads print their panics.
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


#: The folder of what jobs produce.
JOB_TABLES = "_tables"

#: The folder of the checkpoint of a stream on Spark, in that of its table: without the table, the stream begins anew.
CHECKPOINT = "_checkpoint"

#: Characters of a version's hash in the name of its own table: enough to tell the versions of one class apart.
_HASH_CHARACTERS = 8


def kind_path(kind: RowKind) -> str:
    """The path of the table of a kind without classes."""
    return kind.value


def class_path(kind: RowKind, package: str, name: str, hash: str = "") -> str:
    """The path of the table of a class of objects or events; with a hash of a version that has a table of its own."""
    own = f"@{_escape(hash.replace('-', '')[:_HASH_CHARACTERS])}" if hash else ""
    return f"{kind.value}/{_escape(package)}/{_escape(name)}{own}"


def class_of_path(path: str) -> tuple[RowKind, str, str]:
    """Kind, package and name of a class from the path of its table; `ValueError` if it is not one."""
    kind, package, name = path.split("/")
    return RowKind(kind), _unescape(package), _unescape(name.partition("@")[0])


def job_path(job: str, *names: str) -> str:
    """The path of a table that a job produces, ``_tables/JOB/NAME``."""
    return "/".join([JOB_TABLES, job, *(_escape(name) for name in names)])


def _escape(value: str) -> str:
    """A value as one part of a path, with all but plain characters as $XX: Delta encodes % once more."""
    escaped = quote(value, safe="").replace("~", "%7E")
    if escaped.startswith((".", "_")):
        # Readers skip names that begin so.
        escaped = f"%{ord(escaped[0]):02X}{escaped[1:]}"
    return escaped.replace("%", "$")


def _unescape(part: str) -> str:
    return unquote(part.replace("$", "%"))
