"""What the tables of other jobs have of a lake: a report takes it from there, and computes the rest of the lake's rows.

An audit and a roll-up say up to which version of each of the lake's tables they have read it. What came later is
unread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.audit.stored_parts import StoredParts
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.table_paths import job_path
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.tables import RollupOptions, read_version, rollup_table

#: The folders of a job's tables, inside that of the job.
_MODES = ("batch", "stream")


def unread_files(table: LakeTable, read: int | None) -> tuple[TableFile, ...] | None:
    """The files of a table that a job has not read.

    Args:
        table: of the lake.
        read: the version up to which it was read; None for nothing.

    Returns:
        files of the last version; None where it is not known: the log doesn't go back so far, or new rows were combined
        with others.
    """
    version = table.version()
    if version is None:
        return ()
    files = table.snapshot().files
    if read is None or version == read:
        return files if read is None else ()
    try:
        added = table.added_files(read, version)
    except LakeError:
        return None
    return added if {file.path for file in added} <= {file.path for file in files} else None


@attrs.frozen
class AuditedRows:
    """The rows of a lake that an audit has read.

    Attributes:
        options: of the audit.
        unread: the files that it has not read, by the URL of their table; tables that are missing are read whole.
    """

    options: AuditOptions
    unread: Mapping[str, frozenset[str]]

    @classmethod
    def find(cls, lake: DeltaLake, folder: str | None) -> AuditedRows | None:
        """The audit that has read most of a lake; None where there is none.

        Args:
            lake: the lake.
            folder: of the audit's tables, or of those of its batches and streams; None for those inside the lake.

        Raises:
            LakeError: a table cannot be read.
        """
        roots = [folder.rstrip("/")] if folder else [f"{lake.url}/{job_path(job)}" for job in ("audit", "history")]
        found: list[tuple[int, AuditedRows]] = []
        for place in [root for root in roots for root in (root, *(f"{root}/{mode}" for mode in _MODES))]:
            options = AuditOptions(lake=lake.url, out=place, storage=lake.options)
            own = cls._of(lake, options)
            if own is not None:
                found.append(own)
        return min(found, key=lambda item: item[0])[1] if found else None

    @classmethod
    def _of(cls, lake: DeltaLake, options: AuditOptions) -> tuple[int, AuditedRows] | None:
        """The rows that one audit has read, and the number of those that it has not."""
        stored = StoredParts(options)
        if stored.table.version() is None:
            return None
        unread: dict[str, frozenset[str]] = {}
        rows = 0
        for path in options.paths(lake):
            files = unread_files(lake.table(path), stored.read(path))
            if files is None:
                return None
            unread[lake.table(path).url] = frozenset(file.path for file in files)
            rows += sum(file.rows for file in files)
        return rows, cls(options, unread)

    def has_read(self, table: LakeTable, file: TableFile) -> bool:
        """True for a file of the lake whose rows are in the tables of the audit."""
        return file.path not in self.unread[table.url]


@attrs.frozen
class StoredRollups:
    """The roll-ups of batches, of windows of one size.

    Attributes:
        lake: that they are of.
        table: with them.
        size: of the windows.
        continued: counters outlive restarts of their agents.
        files: of the table, by day.
    """

    lake: DeltaLake
    table: LakeTable
    size: str
    continued: bool
    files: Mapping[str, Sequence[TableFile]]

    @classmethod
    def find(cls, lake: DeltaLake, folder: str | None, size: str, *, continued: bool) -> StoredRollups | None:
        """The roll-ups with the largest windows of which those of a size can be made; None where there are none.

        Args:
            lake: the lake.
            folder: of the job's tables; None for those inside the lake.
            size: of the windows that are wanted.
            continued: counters outlive restarts of their agents.

        Raises:
            LakeError: a table cannot be read.
        """
        out = folder.rstrip("/") if folder else f"{lake.url}/{job_path('rollup')}"
        table = rollup_table(RollupOptions(lake=lake.url, out=out, storage=lake.options), "batch")
        if table.version() is None:
            return None
        by_size: dict[str, dict[str, list[TableFile]]] = {}
        for file in table.snapshot().files:
            own = file.path.partition("/")[0].removeprefix("size=")
            by_size.setdefault(own, {}).setdefault(str(file.date), []).append(file)
        wanted = window_seconds(size)
        fitting = [own for own in by_size if wanted % window_seconds(own) == 0]
        if not fitting:
            return None
        chosen = max(fitting, key=window_seconds)
        return cls(lake, table, chosen, continued, by_size[chosen])

    def days_of(self, source: ClassSource) -> frozenset[str]:
        """The days of a class whose samples are all rolled up."""
        days = set(source.days)
        for path in self.lake.tables_of(source.versions):
            read = read_version(self.table, self.size, path, continued=self.continued)
            unread = None if read is None else unread_files(self.lake.table(path), read)
            if unread is None:
                return frozenset()
            days -= {str(file.date) for file in unread}
        return frozenset(days & set(self.files))
