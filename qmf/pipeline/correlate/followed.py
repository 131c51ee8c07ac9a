"""Signals of files whose rules follow references: a map, a key, and a reduce, before that of the rules.

The files of followed objects are divided among tasks as well. From each comes a row where a column that rules need
changed, for every task whose rules need it; the key is the number of the task. So no file is read by two tasks.

A stream by tasks writes the last row of each followed object as files when many rows came since the last time, so that
it does not read the lake again: one task reads these files, others the rows since then.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.batch_input import BatchInput, file_signals
from qmf.pipeline.correlate.lake_rows import Position
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.errors import lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.runners.runner import Rows, Runner

Finish = Callable[[Iterator[Any]], Iterator[Any]]
"""What is made of the batches of signals of a task."""

#: The number of a task, the class of followed objects as rules name it, and their rows; the files of the task before.
_TASK, _CLASS, _DATA = "task", "class", "data"
_FILES = ""

#: Rows that are read again rather than written.
_FEW = 50_000

#: Rows of objects in a row of the shuffle.
_CHUNK = 20_000


@attrs.frozen
class FollowedRows:
    """A task of the map: files with rows of objects that rules follow, and files of a `FollowedSnapshot`, by class."""

    files: FilesByTable
    known: Mapping[str, str] = attrs.field(factory=dict)

    def reader(self, given: BatchInput, connection: Any = None) -> SignalReader:
        """A reader that knows these objects; otherwise as of `BatchInput.reader`."""
        reader = given.reader(connection)
        try:
            reader.restore_followed({name: _read_objects(path) for name, path in self.known.items()})
            reader.follow(given.rows(self.files))
        except BaseException:
            reader.close()
            raise
        return reader


def signals_of_files(
    runner: Runner,
    given: BatchInput,
    tasks: Sequence[FilesByTable],
    followed: Sequence[FollowedRows],
    schema: Any,
    finish: Finish = iter,
) -> Rows:
    """The signals of a lake's files, and what failed, wherever they are made.

    Args:
        runner, given: where, and what is read.
        tasks, followed: the files, and those with the objects that rules follow.
        schema, finish: of the rows as an Arrow schema, and what makes them of the batches of `file_signals`.
    """
    following = given.plan.following_paths
    receivers = [number for number, files in enumerate(tasks) if following & files.keys()] if followed else []
    if not receivers:
        return runner.map(tasks, partial(_signals, given, finish), schema)
    rows = runner.map(list(enumerate(tasks)), _files, _schema())
    rows = rows.union(runner.map(followed, partial(_changes, given, receivers), _schema()))
    return rows.reduce((_TASK,), partial(_join_tasks, given, finish), schema, order=(_CLASS,), numbered=True)


def _signals(given: BatchInput, finish: Finish, connection: Any, files: FilesByTable) -> Iterator[Any]:
    return finish(file_signals(given, connection, files))


def _files(_connection: Any, task: tuple[int, FilesByTable]) -> Iterator[Any]:
    number, files = task
    yield _row(number, _FILES, pickle.dumps(files))


def _changes(given: BatchInput, receivers: Sequence[int], connection: Any, task: FollowedRows) -> Iterator[Any]:
    """What changed of followed objects, for each task that needs it."""
    with closing(task.reader(given, connection)) as reader:
        found = reader.followed_changes()
    for name, table in found.items():
        for batch in table.to_batches(max_chunksize=_CHUNK):
            data = _to_bytes(batch)
            for number in receivers:
                yield _row(number, name, data)


def _join_tasks(given: BatchInput, finish: Finish, connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The reduce: signals of the files of each task."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for _number, own in groupby(rows, key=itemgetter(0)):
        yield from finish(_task_signals(given, connection.cursor(), own))


def _task_signals(given: BatchInput, connection: Any, rows: Iterator[tuple[int, str, bytes]]) -> Iterator[Any]:
    """The signals of the files of a task, from its rows of the shuffle."""
    _number, _none, files = next(rows)
    yield from file_signals(given, connection, pickle.loads(files), map(_objects, rows))


def _objects(row: tuple[int, str, bytes]) -> tuple[str, Any]:
    """The class and the rows of objects, of a row of the shuffle."""
    _task, name, data = row
    return name, import_pyarrow().ipc.open_stream(data).read_all()


def _schema() -> Any:
    pa = import_pyarrow()
    return pa.schema([(_TASK, pa.int32()), (_CLASS, pa.string()), (_DATA, pa.binary())])


def _row(number: int, name: str, data: bytes) -> Any:
    return import_pyarrow().RecordBatch.from_pydict({_TASK: [number], _CLASS: [name], _DATA: [data]}, _schema())


def _to_bytes(batch: Any) -> bytes:
    pa = import_pyarrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


# -- snapshots


@attrs.frozen(kw_only=True)
class FollowedSnapshot:
    """The objects at a position of the lake: files by the class as rules name it, and the number of objects.

    They are valid for `columns`, which say what is kept of each class.
    """

    columns: str = ""
    position: Position = attrs.field(factory=dict)
    files: Mapping[str, str] = attrs.field(factory=dict)
    rows: int = 0

    def is_outgrown(self, rows: int) -> bool:
        """Whether another one is worth it after so many rows."""
        return rows > max(_FEW, 2 * self.rows)


def columns_key(columns: Mapping[str, Sequence[str]]) -> str:
    """What `FollowedSnapshot.columns` is for some columns of classes."""
    return json.dumps({name: list(own) for name, own in sorted(columns.items())})


def write_objects(folder: Path, objects: Mapping[str, Any]) -> tuple[dict[str, str], int]:
    """Write objects, Arrow tables by class, as files; returns these, and the number of objects."""
    found = {}
    with lake_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in objects.items():
            path = folder / f"{uuid.uuid4()}.parquet"
            import_pyarrow().parquet.write_table(table, path)
            found[name] = str(path)
    return found, sum(table.num_rows for table in objects.values())


def _read_objects(path: str) -> Any:
    """The objects of a file, as an Arrow table."""
    with lake_errors(Path(path)):
        return import_pyarrow().parquet.read_table(path)


def remove_others(folder: Path, kept: FollowedSnapshot) -> None:
    """Remove the files that are not those of a snapshot."""
    with lake_errors(folder):
        for path in folder.glob("*.parquet") if folder.is_dir() else ():
            if str(path) not in kept.files.values():
                path.unlink(missing_ok=True)
