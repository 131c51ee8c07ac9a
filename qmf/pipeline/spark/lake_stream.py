"""Following a lake by its log, as a Spark stream.

An offset is ``{"entry": n}``: everything up to entry n was read. A query that begins when the log has a checkpoint
begins with the files of that: ``{"entry": n, "file": k}`` says that k files of checkpoint n were read, and no entry
behind it. Files don't change once they are in the log, and joined files are no news, so a restarted query reads exactly
what it has not committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import arrow_schema, library
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import class_of
from qmf.pipeline.lake.row_columns import ANY, Columns
from qmf.pipeline.recording.spool import Spool

#: Files that one batch of a stream reads at most: what bounds its memory.
DEFAULT_FILES = 1000

#: Files that one task reads: a lake's files are small, and a task costs more than opening one.
_TASK_FILES = 16

Offset = dict[str, int]


class _Files(InputPartition):
    """Files that one task reads."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.paths = paths


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in a process of its own beside the driver; `read` in the executors."""

    def __init__(
        self,
        root: str,
        *,
        columns: Columns,
        folder: str,
        as_json: bool = False,
        limit: int = DEFAULT_FILES,
        spooled: tuple[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Make a reader; nothing is touched yet.

        Args:
            root: of the lake.
            columns: wanted of each file.
            folder: files below it are read.
            as_json: add the columns of `ANY`, with the class's as JSON.
            limit: most files in a batch.
            spooled: URL of a bus that is recorded into the lake meanwhile, and options of the spool.
        """
        self._root = root
        self._columns = columns
        self._folder = folder
        self._as_json = as_json
        self._limit = limit
        self._spooled = spooled
        self._spool: Spool | None = None
        self._end: int | None = None

    # -- beside the driver

    def initialOffset(self) -> Offset:
        """The beginning of the lake: its last checkpoint, or the first entry."""
        checkpoint = Lake(self._root).last_checkpoint()
        return {"entry": checkpoint, "file": 0} if checkpoint else {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """So many files, unless Spark wants all."""
        return ReadMaxFiles(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where to end."""
        self._end = Lake(self._root).last()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As far as one batch may go."""
        if self._spooled is not None and self._spool is None:
            self._spool = Spool(self._spooled[0], self._root, self._spooled[1])
        most = None if isinstance(limit, ReadAllAvailable) else self._limit
        lake, number = Lake(self._root), start["entry"]
        if "file" in start:
            count = len(lake.at_checkpoint(number))
            if most is not None and count - start["file"] > most:
                return {"entry": number, "file": start["file"] + most}
            if count > start["file"]:
                return {"entry": number}
        files = 0
        for entry in lake.entries(start["entry"], self._end):
            files += 0 if entry.moved else len(entry.added)
            if most is not None and files > most and number > start["entry"]:
                break
            number = entry.number
        return {"entry": number}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The files that came in between, some for each task."""
        lake = Lake(self._root)
        paths: list[str] = []
        if "file" in start:
            paths += list(lake.at_checkpoint(start["entry"]))[start["file"] : end.get("file")]
        for entry in lake.entries(start["entry"], end["entry"]):
            paths += [] if entry.moved else entry.added
        wanted = [path for path in paths if path.startswith(self._folder)]
        return [_Files(wanted[n : n + _TASK_FILES]) for n in range(0, len(wanted), _TASK_FILES)]

    def commit(self, end: Offset) -> None:
        """Nothing is let go of: the lake's retention does that."""

    def stop(self) -> None:
        """End the spool."""
        if self._spool is not None:
            self._spool.close()

    # -- in an executor

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        assert isinstance(partition, _Files)
        lake = Lake(self._root)
        for path in partition.paths:
            file = library().parquet.ParquetFile(lake.find(path))
            yield from self._batches(path, file)

    def _batches(self, path: str, file: Any) -> Iterator[Any]:
        """The rows of a file, with nulls where its version of the class has no such column."""
        pa = library()
        wanted = arrow_schema(self._columns)
        present = set(file.schema_arrow.names)
        names = None if self._as_json else [name for name in wanted.names if name in present]
        for batch in file.iter_batches(columns=names):
            columns = []
            for field in wanted:
                column = batch.column(field.name) if field.name in present else pa.nulls(batch.num_rows, field.type)
                if column.type != field.type:
                    raise LakeError(
                        f"{path}: {field.name} is {column.type} in this version of the class, not {field.type}; "
                        "follow one version by its hash"
                    )
                columns.append(column)
            if self._as_json:
                wanted_json = arrow_schema((*self._columns, *ANY))
                yield pa.RecordBatch.from_arrays([*columns, *self._any(path, batch)], schema=wanted_json)
            else:
                yield pa.RecordBatch.from_arrays(columns, schema=wanted)

    def _any(self, path: str, batch: Any) -> list[Any]:
        pa = library()
        common = {name for name, _cell in self._columns}
        own = [
            field.name for field in batch.schema if field.name not in common and not pa.types.is_timestamp(field.type)
        ]
        values = [_json(row) for row in batch.select(own).to_pylist()] if own else ["{}"] * batch.num_rows
        told = [pa.array([part] * batch.num_rows, pa.string()) for part in class_of(path)]
        return [*told, pa.array(values, pa.string())]


def _json(row: dict[str, object]) -> str:
    return json.dumps(
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items() if value is not None},
        ensure_ascii=False,
        separators=(",", ":"),
    )
