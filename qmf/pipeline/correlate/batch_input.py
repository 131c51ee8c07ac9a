"""What rules read and evaluate, as a value that other processes can have, and its steps, which know no runner.

A batch is a map on files (`BatchInput.times`, `signals_of_files`), a key (`SIGNAL_KEY`), and a reduce on the signals of
each key in the order of time (`BatchInput.evaluator`). A stream has the same map.

Where rules follow references there is a reduce before that of the rules: the files of followed objects are divided
among tasks as well. From each comes a row where a column that rules need changed, for every task whose rules need it;
the key is the number of the task. So no file is read by two tasks. A stream by tasks writes the last row of each
followed object as files when many rows came since the last time, so that it does not read the lake again: one task
reads these files, others the rows since then.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.evaluation import EvaluationPass, Evaluator
from qmf.pipeline.correlate.lake_rows import (
    TIME_PATHS,
    Arrivals,
    LakeRows,
    Position,
    counted_rows,
    ended_runs,
    merged_runs,
    outages,
)
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow, signal_rows
from qmf.pipeline.correlate.signals import SIGNAL_COLUMNS
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.runs import LeftOut
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.runners.runner import Rows, Runner

#: The text of an expression that could not be computed, in a row of its own with the number of the rule.
FAILURE = "failure"

#: By what signals are brought together, and by what those of a subject are sorted.
SIGNAL_KEY, SIGNAL_ORDER = ("rule", "key"), ("at", "ts", "run", "seq", "role")

_EARLIEST = -(1 << 62)


@attrs.frozen(kw_only=True)
class CorrelateOptions:
    """What to correlate.

    Attributes:
        lake: path, or URL of an object store.
        out: folder of the tables; for a stream a folder of this machine.
        rules: to evaluate.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        late: ns that rows may be late, see `lake_rows`.
        storage: settings of the object store.
        wrong: the errors of rules that are in the file and were left out, for reports.
    """

    lake: str
    out: str
    rules: tuple[Rule, ...]
    first: str | None = None
    last: str | None = None
    late: int = 0
    storage: Mapping[str, str] = attrs.field(factory=dict)
    wrong: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class BatchInput:
    """What a batch reads and evaluates. Methods raise `LakeError` for a file that cannot be read on this machine."""

    lake: str  #: absolute path or URL
    storage: Mapping[str, str]  #: options of its object store
    late: int  #: ns that rows may be late, see `lake_rows`
    plan: ReadPlan  #: what the rules read
    rules: tuple[Rule, ...]  #: by their numbers, with what the schemas say about them
    hashes: tuple[str, ...]  #: of the rules as the user wrote them
    schemas: Mapping[str, Any]  #: the Arrow schema of each table that is read
    uncounted: tuple[LeftOut, ...]  #: rows that do not count, since another recorder has them too

    def times(self, files: FilesByTable) -> Arrivals:
        """What the rows of files tell besides their values."""
        with closing(LakeRows(DeltaLake(self.lake, self.storage), self.late)) as rows:
            return rows.arrivals(self.rows(files))

    def reader(self, connection: Any = None) -> SignalReader:
        """A reader of signals from `rows`, as of `SignalReader`; to be closed."""
        return SignalReader(self.plan, self.late, self.schemas, strict=False, connection=connection)

    def rows(self, files: FilesByTable) -> dict[str, Any]:
        """Files as a dataset for each table."""
        lake = DeltaLake(self.lake, self.storage)
        found = {path: lake.table(path).dataset(own, self.schemas[path]) for path, own in files.items() if own}
        return counted_rows(found, self.uncounted)

    def evaluator(self, left_out: frozenset[int]) -> Evaluator:
        """An evaluator of the signals; `left_out` are the numbers of rules that read nothing."""
        evaluator = Evaluator(self.rules, self.hashes)
        evaluator.left_out = left_out
        return evaluator


def batch_input(options: CorrelateOptions, print_line: Callable[[str], None]) -> tuple[BatchInput, FilesByTable]:
    """What a batch is about, and the files to read; each class of a rule that the lake doesn't have is printed."""
    lake = DeltaLake(options.lake, options.storage)
    known = lake.classes()
    if not known and not lake.versions(TIME_PATHS):
        raise LakeError(f"{options.lake}: no lake, or nothing in it yet")
    plan = read_plan(options.rules, known)
    for text in plan.missing:
        print_line(text)
    paths = list(dict.fromkeys([*SignalReader.paths(plan), *TIME_PATHS]))
    with closing(LakeRows(lake, options.late)) as rows:
        files = rows.files(paths, options.first, options.last)
        found = BatchInput(
            lake=lake.url,
            storage=lake.options,
            late=options.late,
            plan=plan,
            rules=complete_rules(options.rules, plan),
            hashes=tuple(rule.hash for rule in options.rules),
            schemas=rows.schemas(paths),
            uncounted=rows.uncounted_rows(),
        )
    return found, files


def merged_arrivals(several: Sequence[Arrivals]) -> Arrivals:
    """What all rows tell, from what parts of them tell."""
    return Arrivals(
        merged_runs(*(item.runs for item in several)),
        [change for item in several for change in item.changes],
        sorted(goodbye for item in several for goodbye in item.goodbyes),
    )


def whole_pass(arrivals: Arrivals, late: int, until: int | None = None) -> EvaluationPass:
    """The only pass of a batch: over all rows, or the time before `until`."""
    last = max((last for _, last in arrivals.runs.values()), default=-1)
    end = last + 1 if until is None else min(until, last + 1)
    return EvaluationPass(
        begin=_EARLIEST,
        end=end,
        start=min((first for first, _ in arrivals.runs.values()), default=end),
        goodbyes=[item for item in arrivals.goodbyes if item[0] < end],
        outages=outages(arrivals.runs, arrivals.changes),
        ended=ended_runs(arrivals.runs),
        dated=late > 0,
    )


def file_signals(
    given: BatchInput, connection: Any, files: FilesByTable, followed: Iterable[tuple[str, Any]] = ()
) -> Iterator[Any]:
    """The signals of files, and what failed; `followed` are rows of `SignalReader.followed_changes`, by class."""
    pa = import_pyarrow()
    with closing(given.reader(connection)) as reader:
        for name, rows in followed:
            reader.restore_followed({name: rows})
        for batch in reader.signal_batches(given.rows(files)):
            yield batch.append_column(FAILURE, pa.nulls(batch.num_rows, pa.string()))
        nothing = (None,) * (len(SIGNAL_COLUMNS) - 1)
        yield from signal_table([(number, *nothing, text) for number, text in reader.failures.items()]).to_batches()


def signal_schema(*, failures: bool = True) -> Any:
    """The columns of signals as an Arrow schema, with `FAILURE` where there are rows of failures among them."""
    pa = import_pyarrow()
    types = {"INTEGER": pa.int32(), "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    columns = (*SIGNAL_COLUMNS, (FAILURE, "VARCHAR")) if failures else SIGNAL_COLUMNS
    return pa.schema([(name, types[type]) for name, type in columns])


def signal_table(rows: Iterable[SignalRow], *, failures: bool = True) -> Any:
    """Signals as an Arrow table, as of `signal_schema`."""
    schema = signal_schema(failures=failures)
    return import_pyarrow().Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


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
            for name, path in self.known.items():
                with lake_errors(Path(path)):
                    rows = import_pyarrow().parquet.read_table(path)
                reader.restore_followed({name: rows})
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
    """The signals of a lake's files, and what failed; `followed` are files with the objects that rules follow.

    The rows have a schema of Arrow, `finish` makes them of the batches of `file_signals`.
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
            sink = import_pyarrow().BufferOutputStream()
            with import_pyarrow().ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            data = bytes(sink.getvalue())
            for number in receivers:
                yield _row(number, name, data)


def _join_tasks(given: BatchInput, finish: Finish, connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The reduce: signals of the files of each task."""
    open_stream = import_pyarrow().ipc.open_stream
    rows = (row for batch in batches for row in signal_rows(batch))
    for _number, group in groupby(rows, key=itemgetter(0)):
        own = iter(group)
        _task, _none, files = next(own)
        followed = ((name, open_stream(data).read_all()) for _task, name, data in own)
        yield from finish(file_signals(given, connection.cursor(), pickle.loads(files), followed))


def _schema() -> Any:
    pa = import_pyarrow()
    return pa.schema([(_TASK, pa.int32()), (_CLASS, pa.string()), (_DATA, pa.binary())])


def _row(number: int, name: str, data: bytes) -> Any:
    return import_pyarrow().RecordBatch.from_pydict({_TASK: [number], _CLASS: [name], _DATA: [data]}, _schema())


# -- snapshots


@attrs.frozen(kw_only=True)
class FollowedSnapshot:
    """The objects at a position of the lake."""

    columns: str = ""  #: what is kept of each class, as of `columns_key`
    position: Position = attrs.field(factory=dict)
    files: Mapping[str, str] = attrs.field(factory=dict)  #: by the class as rules name it
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


def remove_others(folder: Path, kept: FollowedSnapshot) -> None:
    """Remove the files that are not those of a snapshot."""
    with lake_errors(folder):
        for path in folder.glob("*.parquet") if folder.is_dir() else ():
            if str(path) not in kept.files.values():
                path.unlink(missing_ok=True)
