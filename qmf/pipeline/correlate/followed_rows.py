"""Signals of files whose rules follow references: a map, a key, and a reduce, before that of the rules.

The files of followed objects are divided among tasks as well. From each comes a row where a column that rules need
changed, for every task whose rules need it; the key is the number of the task. So no file is read by two tasks.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import attrs

from qmf.pipeline.correlate.batch_input import BatchInput
from qmf.pipeline.correlate.file_signals import file_signals
from qmf.pipeline.correlate.followed_snapshot import read_objects
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.runners.runner import Rows, Runner

Finish = Callable[[Iterator[Any]], Iterator[Any]]
"""What is made of the batches of signals of a task."""

#: The number of a task, the class of followed objects as rules name it, and their rows; the files of the task before.
_TASK, _CLASS, _DATA = "task", "class", "data"
_FILES = ""

#: Rows of objects in a row of the shuffle.
_CHUNK = 20_000


@attrs.frozen
class FollowedRows:
    """A task of the map: rows of objects that rules follow references to.

    Attributes:
        files: with rows.
        known: files of a `FollowedSnapshot`, by class.
    """

    files: FilesByTable
    known: Mapping[str, str] = attrs.field(factory=dict)

    def reader(self, given: BatchInput, connection: Any = None) -> SignalReader:
        """A reader that knows these objects; otherwise as of `BatchInput.reader`.

        Raises:
            LakeError: a file is not on this machine, or cannot be read.
        """
        reader = given.reader(connection)
        try:
            reader.restore_followed({name: read_objects(path) for name, path in self.known.items()})
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
        runner: where.
        given: what is read.
        tasks: the files.
        followed: tasks with the objects that rules follow.
        schema: of the rows, as an Arrow schema.
        finish: makes them of the batches of `file_signals`.
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
