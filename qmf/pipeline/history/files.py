"""The rows of a lake, for readers: those of a kind, of a class version and of some days.

The only module of this package that knows how a lake keeps its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.lake.runs import LeftOut, RecordedRuns, counted_condition
from qmf.pipeline.lake.table_files import TableFile, TableSnapshot
from qmf.pipeline.lake.table_paths import kind_path

_NO_FILES = TableSnapshot(-1, ())


class LakeFiles:
    """The committed rows of a lake, as of the last `refresh`."""

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        """Open a lake.

        Args:
            url: a folder, or a URL.
            options: of the object store; what is not given comes from the environment.

        Raises:
            LakeError: there is no lake.
        """
        self.lake = DeltaLake(url, options)
        if not self.lake.exists():
            raise LakeError(f"{self.lake.url}: not a lake: it has no table schemas")
        self._snapshots: dict[str, TableSnapshot] = {}
        self._classes: tuple[RecordedClass, ...] = ()
        self._runs = RecordedRuns(self.lake)

    @property
    def url(self) -> str:
        """Where the lake is."""
        return self.lake.url

    @property
    def classes(self) -> tuple[RecordedClass, ...]:
        """The class versions."""
        return self._classes

    def refresh(self) -> bool:
        """See what was committed since; True if there is anything."""
        classes = self.lake.classes()
        changed = classes != self._classes
        self._classes = classes
        for path, known in list(self._snapshots.items()):
            if self.lake.table(path).version() != (None if known is _NO_FILES else known.version):
                del self._snapshots[path]
                changed = True
        return changed

    def select(
        self,
        kind: RowKind,
        version: ClassVersion | None = None,
        first: str = "",
        last: str = "9999-12-31",
        runs: Collection[str] | None = None,
        object: tuple[str, str] | None = None,
    ) -> RowSource:
        """Rows, the oldest day first.

        Args:
            kind: of the rows.
            version: of a class; None for kinds without classes.
            first, last: days, both included.
            runs: only files that may have rows of these runs; None for all.
            object: only files that may have rows of the object with this agent and name; None for all.
        """
        path = kind_path(kind) if version is None else self._table_of(version)
        files = tuple(
            file
            for file in self._snapshot(path).files
            if (file.date is None or first <= file.date <= last)
            and (runs is None or file.run is None or file.run in runs)
            and (object is None or file.may_have_object(*object))
        )
        table, columns = self.lake.table(path), columns_of(kind, version)
        if version is None:
            return RowSource(table, files, columns)
        source = RowSource.of_versions(table, files, columns, [version])
        return attrs.evolve(source, condition=counted_condition(self._left_out_rows(source.files)))

    def _left_out_rows(self, files: Sequence[TableFile]) -> list[LeftOut]:
        """The rows of files that don't count, since another recorder has them too."""
        first = min((file.first_ns or 0 for file in files), default=0)
        last = max((file.last_ns or 0 for file in files), default=0)
        return [row for row in self._runs.left_out_rows() if row.first_ns <= last and row.end_ns > first]

    def days(self, kind: RowKind) -> list[str]:
        """The days of which there are rows of a kind without classes, in order."""
        return sorted({file.date for file in self._files(kind) if file.date is not None})

    def _files(self, kind: RowKind) -> tuple[TableFile, ...]:
        return self._snapshot(kind_path(kind)).files

    def _snapshot(self, path: str) -> TableSnapshot:
        found = self._snapshots.get(path)
        if found is None:
            table = self.lake.table(path)
            found = self._snapshots[path] = _NO_FILES if table.version() is None else table.snapshot()
        return found

    def _table_of(self, version: ClassVersion) -> str:
        return next(item.table for item in self._classes if item.version == version)
