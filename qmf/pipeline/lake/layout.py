"""The paths of a lake. Pure: no file is touched here.

::

    LAKE/objects/qmf_package=P/qmf_class=C/qmf_hash=H/qmf_date=2030-01-31/NAME-RUN-NUMBER.parquet
    LAKE/events/...                    the same
    LAKE/heartbeats/qmf_date=.../...   and untyped, agents, schemas, gaps
    LAKE/_log/...                      the transaction log, see `transaction_log`
    LAKE/_trash/...                    files that were compacted or are too old, until they are deleted
"""

from __future__ import annotations

import datetime
import re
from urllib.parse import quote, unquote

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.row_columns import CLASS_KINDS, PARTITION_COLUMNS

#: Stands for the hash of a class whose agent sent none.
NO_HASH = "none"

LOG = "_log"
TRASH = "_trash"
SUFFIX = ".parquet"

#: Matches the files that recorders wrote, and not those that compaction made.
RECORDED_FILES = f"*[0-9]{SUFFIX}"

#: The prefix of temporary files: Spark, pyarrow and DuckDB skip names that begin with a dot.
TEMPORARY = ".tmp-"

#: The syntax of a writer's name: it becomes part of file names, and "-" separates their parts.
WRITER_NAME = re.compile(r"[A-Za-z0-9_.]{1,64}")

_NS_PER_DAY = 86_400 * 10**9
_EPOCH = datetime.date(1970, 1, 1)


@attrs.frozen
class LakePartition:
    """The folder of the rows of one kind, class and day.

    Attributes:
        kind: of the rows.
        package, name, hash: of the class; empty for kinds without one.
        date: day in UTC, ``2030-01-31``; empty for the folder above those of the days.
    """

    kind: RowKind
    package: str = ""
    name: str = ""
    hash: str = ""
    date: str = ""

    @property
    def folder(self) -> str:
        """Path of the folder inside the lake."""
        values = (self.package, self.name, self.hash or NO_HASH, self.date)
        if self.kind not in CLASS_KINDS:
            values = ("", "", "", self.date)
        parts = [f"{key}={_escape(value)}" for key, value in zip(PARTITION_COLUMNS, values, strict=True) if value]
        return "/".join([self.kind.value, *parts])


def class_folder(kind: RowKind, package: str = "", name: str = "", hash: str = "") -> str:
    """The folder of a kind, of a class with all its versions, or of one version, with a slash at its end."""
    values = zip(PARTITION_COLUMNS, (package, name, hash), strict=False)
    return "/".join([kind.value, *(f"{key}={_escape(value)}" for key, value in values if value)]) + "/"


def class_of(path: str) -> tuple[str, str, str]:
    """Package, name and hash in a file's path."""
    values = [unquote(part.partition("=")[2]) for part in path.split("/")[1:4]]
    return values[0], values[1], "" if values[2] == NO_HASH else values[2]


def day(time_ns: int) -> str:
    """The day of a time, in UTC. Times before the year 1 or after 9999 count as 1970-01-01."""
    try:
        return (_EPOCH + datetime.timedelta(days=time_ns // _NS_PER_DAY)).isoformat()
    except OverflowError:
        return _EPOCH.isoformat()


def file_name(name: str, run: str, number: int, *, compacted: bool = False) -> str:
    """The name of a run's file with this number."""
    return f"{name}-{run}-{number:08d}{'.joined' if compacted else ''}{SUFFIX}"


def date_of(folder: str) -> str | None:
    """The day in a folder's path, or None where it has none."""
    match = re.search(rf"{PARTITION_COLUMNS[-1]}=(\d{{4}}-\d\d-\d\d)(/|$)", folder)
    return match[1] if match else None


def _escape(value: str) -> str:
    """A value with all but plain characters as %XX, which Spark understands in names of folders."""
    return quote(value, safe="").replace("~", "%7E")
