"""The writer of a lake: the rows that waited become one commit of each table that they belong to.

Killed between two commits of a batch, a writer that starts again with the same rows and the same number of the batch
writes what is missing, and nothing twice.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_table, import_pyarrow, with_text
from qmf.pipeline.lake.columns import COMMON_COLUMNS, DATE, HASH, ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass, place
from qmf.pipeline.lake.location import kind_path
from qmf.pipeline.lake.maintenance import optimize_table
from qmf.pipeline.record.buffers import Cells, WaitingRows

_SCHEMAS = kind_path(RowKind.SCHEMAS)

#: Small files of a table after which a writer combines them: each commit, and each reader, pays for all of them.
SMALL_FILES = 250

#: Bytes of a file that is not small.
_SMALL_BYTES = 16 * 1024 * 1024

log = logging.getLogger("qmf.pipeline")


@attrs.frozen
class CommitCounts:
    """What commits wrote: numbers of rows, and of commits to tables."""

    rows: int = 0
    tables: int = 0

    def __add__(self, other: CommitCounts) -> CommitCounts:
        return CommitCounts(self.rows + other.rows, self.tables + other.tables)


class LakeWriter:
    """Writes batches of rows under one name. Belongs to one thread at a time."""

    def __init__(self, lake: DeltaLake, name: str) -> None:
        """Name a writer, unique among those of its lake; nothing is read or written yet."""
        self._lake = lake
        self._name = name
        self._places: dict[ClassVersion, str] = {}
        #: The numbers of small files, by path of the table.
        self._small: dict[str, int] = {}

    def next_batch(self) -> int:
        """The number of the next batch, after all that were committed under this name."""
        lake = self._lake
        return max((lake.table(path).last_batch(self._name) or 0 for path in lake.paths()), default=0) + 1

    def commit(self, batch: int, waiting: Sequence[WaitingRows]) -> CommitCounts:
        return self.write(batch, self.tables(waiting))

    def tables(self, waiting: Sequence[WaitingRows]) -> dict[str, Any]:
        """Rows as Arrow tables by the path of their table; those of schemas come first."""
        parts: dict[str, list[Any]] = defaultdict(list)
        for item in sorted(waiting, key=lambda item: item.kind is not RowKind.SCHEMAS):
            kind, version = item.kind, item.version
            rows = [self._with_table(row) for row in item.rows] if kind is RowKind.SCHEMAS else item.rows
            arrow = with_text(arrow_table(item.columns, rows), DATE, item.dates)
            if version is None:
                parts[kind_path(kind)].append(arrow)
            else:
                parts[self._table_of(version)].append(with_text(arrow, HASH, version.hash))
        pa = import_pyarrow()
        return {path: pa.concat_tables(found, promote_options="default") for path, found in parts.items()}

    def write(self, batch: int, tables: Mapping[str, Any], *, again: bool = False) -> CommitCounts:
        """Commit a batch of Arrow tables, in their order: with the schemas first, the class of each row is known.

        With `again` a part of the batch may have been written before, as after a failure: these tables are left as they
        are. Otherwise `LakeError` says that another process writes under this name.
        """
        counts = CommitCounts()
        for path, table in tables.items():
            partition_by = () if path == _SCHEMAS else (DATE,)
            if self._lake.table(path).append(table, writer=self._name, batch=batch, partition_by=partition_by):
                counts += CommitCounts(table.num_rows, 1)
                self._small[path] = self._small_files(path) + 1
            elif not again:
                raise LakeError(f"{self._lake.url}: another process records as {self._name!r}; choose another --name")
        return counts

    def combine(self, limit: int = SMALL_FILES) -> None:
        """Combine the small files of one table, if there is one with so many. A failure is logged: it can wait."""
        path = max(self._small, key=self._small.__getitem__, default=None)
        if path is None or self._small[path] < limit:
            return
        self._small[path] = 0
        try:
            optimize_table(self._lake.table(path))
        except LakeError as error:
            log.warning("small files are not combined yet: %s", error)

    def _small_files(self, path: str) -> int:
        known = self._small.get(path)
        if known is None:
            files = self._lake.table(path).snapshot().files
            # Without the one that was just written.
            known = sum(file.size < _SMALL_BYTES for file in files) - 1
        return known

    def _with_table(self, row: Cells) -> Cells:
        """The row of a schema, with the table of its class as the last cell."""
        package, name, hash, event, columns = row[len(COMMON_COLUMNS) : len(COMMON_COLUMNS) + 5]
        version = ClassVersion.from_json(str(package), str(name), str(hash), bool(event), str(columns))
        return (*row[:-1], self._table_of(version))

    def _table_of(self, version: ClassVersion) -> str:
        found = self._places.get(version)
        if found is None:
            known = [*self._lake.classes(), *(RecordedClass(*item) for item in self._places.items())]
            found = self._places[version] = place(version, known)
        return found
