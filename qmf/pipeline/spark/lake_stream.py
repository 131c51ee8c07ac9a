"""A Spark stream over a lake's log.

An offset is ``{"entry": n}``: everything up to entry n was read. A query that starts when the log has a checkpoint
starts with the files of that: ``{"entry": n, "file": k}`` means that k files of checkpoint n were read, and no entry
after it. Files don't change once they are in the log, and compacted files hold no new rows, so a restarted query reads
exactly what it has not committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import class_of
from qmf.pipeline.lake.row_columns import ANY_CLASS_COLUMNS, Columns

if TYPE_CHECKING:
    from qmf.pipeline.recording.spool import Spool

#: Files of one micro-batch at most: what limits its memory.
DEFAULT_FILES = 1000

#: Files that one task reads: a lake's files are small, and a task costs more than opening a file.
_TASK_FILES = 16

Offset = dict[str, int]


class FilesPartition(InputPartition):
    """Files that one task reads."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.paths = paths


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in a process of its own beside the driver; `read` runs in the executors."""

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
        """Make a reader; it reads nothing yet.

        Args:
            root: of the lake.
            columns: to read from each file.
            folder: only files below it are read.
            as_json: add `ANY_CLASS_COLUMNS`, with the columns of the class as JSON.
            limit: files of a micro-batch at most.
            spooled: URL of a bus to record into the lake meanwhile, and options of the spool.
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
        """The start of the log: its last checkpoint, or the first entry."""
        checkpoint = Lake(self._root).last_checkpoint()
        return {"entry": checkpoint, "file": 0} if checkpoint else {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of files, unless Spark asks for all."""
        return ReadMaxFiles(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the last entry as the end."""
        self._end = Lake(self._root).last_entry()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next micro-batch."""
        if self._spooled is not None and self._spool is None:
            from qmf.pipeline.recording.spool import Spool  # loads the console, which no other stream needs

            self._spool = Spool(self._spooled[0], self._root, self._spooled[1])
        limit_files = None if isinstance(limit, ReadAllAvailable) else self._limit
        lake, number = Lake(self._root), start["entry"]
        if "file" in start:
            count = len(lake.checkpoint_files(number))
            if limit_files is not None and count - start["file"] > limit_files:
                return {"entry": number, "file": start["file"] + limit_files}
            if count > start["file"]:
                return {"entry": number}
        files = 0
        for entry in lake.entries(start["entry"], self._end):
            files += 0 if entry.moved else len(entry.added)
            if limit_files is not None and files > limit_files and number > start["entry"]:
                break
            number = entry.number
        return {"entry": number}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The files that were added between two offsets, a few for each task."""
        lake = Lake(self._root)
        paths: list[str] = []
        if "file" in start:
            paths += list(lake.checkpoint_files(start["entry"]))[start["file"] : end.get("file")]
        for entry in lake.entries(start["entry"], end["entry"]):
            paths += [] if entry.moved else entry.added
        wanted = [path for path in paths if path.startswith(self._folder)]
        return [FilesPartition(wanted[n : n + _TASK_FILES]) for n in range(0, len(wanted), _TASK_FILES)]

    def commit(self, end: Offset) -> None:
        """Nothing to release: files are removed by the lake's retention."""

    def stop(self) -> None:
        """Stop the spool."""
        if self._spool is not None:
            self._spool.close()

    # -- in an executor

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        assert isinstance(partition, FilesPartition)
        lake = Lake(self._root)
        for path in partition.paths:
            yield from read_file(lake, path, self._columns, as_json=self._as_json)


def read_file(lake: Lake, path: str, columns: Columns, *, as_json: bool) -> Iterator[Any]:
    """The rows of a file as Arrow batches, with nulls where the file's class version lacks a column.

    Raises:
        LakeError: a column has another type in the file's class version.
    """
    pa = import_pyarrow()
    file = pa.parquet.ParquetFile(lake.find(path))
    wanted = arrow_schema(columns)
    present = set(file.schema_arrow.names)
    names = None if as_json else [name for name in wanted.names if name in present]
    for batch in file.iter_batches(columns=names):
        arrays = []
        for field in wanted:
            array = batch.column(field.name) if field.name in present else pa.nulls(batch.num_rows, field.type)
            if array.type != field.type:
                raise LakeError(
                    f"{path}: {field.name} is {array.type} in this version of the class, not {field.type}; "
                    "follow one version by its hash"
                )
            arrays.append(array)
        if as_json:
            wanted_json = arrow_schema((*columns, *ANY_CLASS_COLUMNS))
            yield pa.RecordBatch.from_arrays([*arrays, *_class_arrays(path, batch, columns)], schema=wanted_json)
        else:
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _class_arrays(path: str, batch: Any, columns: Columns) -> list[Any]:
    """`ANY_CLASS_COLUMNS` of a batch."""
    pa = import_pyarrow()
    common = {name for name, _column_type in columns}
    own = [field.name for field in batch.schema if field.name not in common and not pa.types.is_timestamp(field.type)]
    values = [_to_json(row) for row in batch.select(own).to_pylist()] if own else ["{}"] * batch.num_rows
    names = [pa.array([part] * batch.num_rows, pa.string()) for part in class_of(path)]
    return [*names, pa.array(values, pa.string())]


def _to_json(row: dict[str, object]) -> str:
    return json.dumps(
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items() if value is not None},
        ensure_ascii=False,
        separators=(",", ":"),
    )
