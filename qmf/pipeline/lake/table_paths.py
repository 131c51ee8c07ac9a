"""Where the tables of a lake lie in it. Pure: no file is touched here.

::

    LAKE/objects/PACKAGE/CLASS    one Delta table for each class, with all its versions
    LAKE/events/PACKAGE/CLASS     the same
    LAKE/heartbeats               and untyped, agents, schemas, gaps: one Delta table each
    LAKE/_tables/JOB/...          what jobs produce

A version of a class whose columns contradict the types of the class's table has a table of its own,
``CLASS@HASH``. The table `schemas` names the table of each version.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from qmf.pipeline.kinds import RowKind

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
