"""What a job is made of: a map on files or rows, a key, a reduce on a sorted group, and a commit.

A job gives these functions to a runner and knows nothing else about it::

    parts = runner.map(runner.portions(files), make_parts, PARTS)
    lifetimes = parts.where("part", ["objects"]).reduce(["object"], make_lifetimes, LIFETIMES)
    table.commit_files(lifetimes.write(table).files, LIFETIMES, replace=True)

Functions and tasks are values that other processes can have. They get a connection to DuckDB of their own, whose times
are in UTC, and make Arrow record batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, Protocol, TypeVar

import attrs

from qmf.pipeline.duckdb_queries import connect, quote_name
from qmf.pipeline.errors import import_extra
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.lake.table_files import FilesByTable, TableFile

Task = TypeVar("Task")
Mapped = TypeVar("Mapped")

Map = Callable[[Any, Task], Iterator[Any]]
"""Makes record batches of a task; the first argument is a connection to DuckDB."""

Reduce = Callable[[Any, Iterator[Any]], Iterator[Any]]
"""Makes record batches of a share of the rows: all rows of some keys; the first argument is a connection to DuckDB."""

Step = Callable[[LakeVersions | None], bool]
"""A step of a stream: reads up to these versions, or all that is there, and returns whether there was anything to do.

What it commits says what it has read. It may be called again with versions that it has read, as after a kill.
"""

#: What `stored_rows` reads.
STORED = "qmf_stored"


@attrs.frozen(kw_only=True)
class Pace:
    """When a stream makes its steps, in seconds from the start of one to the start of the next one.

    In the process another one follows after `poll` seconds where one had nothing to do; on Spark, after `tick` seconds
    though nothing is new. `once` ends the stream when all is read that is there now.
    """

    every: float
    poll: float | None = None
    tick: float | None = None
    once: bool = False


class Rows(Protocol):
    """Rows that a job has made, wherever they are. They are computed each time that they are used, see `persist`."""

    def where(self, column: str, values: Sequence[str]) -> Rows:
        """The rows with one of some values in a column."""

    def select(self, columns: Sequence[str]) -> Rows:
        """Some columns of the rows."""

    def union(self, other: Rows) -> Rows:
        """These rows and others with the same columns."""

    def reduce(
        self, key: Sequence[str], work: Reduce, schema: Any, *, order: Sequence[str] = (), numbered: bool = False
    ) -> Rows:
        """What a function makes, of an Arrow schema, of all rows with the same key, called for each share of the keys.

        The rows of a share are sorted by the key and `order`, if that is given. A key is `numbered` if it is a whole
        number below the number of tasks, each of which gets a share of its own.
        """

    def persist(self) -> AbstractContextManager[Rows]:
        """The same rows, computed once, until the end of the block."""

    def table(self) -> Any:
        """The rows as an Arrow table here: only for what does not grow with the data."""

    def write(
        self, table: LakeTable, *, by: Sequence[str] = (), order: Sequence[str] = (), counted: Sequence[str] = ()
    ) -> WrittenRows:
        """Write the rows as files of a table, which belong to it when they are committed.

        The table is partitioned and the rows are counted by some columns; the rows of each file are in some `order`.
        """


class Runner(Protocol):
    """Where jobs run. A task reads about `task_rows` at most, if that is a number."""

    task_rows: int | None

    @property
    def place(self) -> str:
        """Where that is, for people."""

    def portions(self, files: FilesByTable) -> list[FilesByTable]:
        """The files of a lake as tasks, by their size."""

    def map(self, tasks: Sequence[Task], work: Map[Task], schema: Any) -> Rows:
        """What a function makes of each task, of an Arrow schema; no task reads what another one reads."""

    def from_arrow(self, table: Any) -> Rows:
        """Rows of an Arrow table, which are few."""

    def each(self, tasks: Sequence[Task], work: Callable[[Task], Mapped]) -> list[Mapped]:
        """What a function, which may commit, returns for each task, in their order: small values only."""

    def follow(self, lake: DeltaLake, checkpoint: str, step: Step, pace: Pace, stop: threading.Event) -> None:
        """Make the steps of a stream as a lake, which may come later, grows, until `stop`. For the main thread.

        The checkpoint is a folder or URL for what the runner keeps, if it keeps anything.
        """


def stored_rows(
    runner: Runner, table: LakeTable, schema: Any, sql: str, *, files: Sequence[TableFile] | None = None
) -> Rows:
    """Rows of a table that a job has written, if there is one; of some files, or those of the last version.

    The query is one from `STORED`, which has no columns of partitions but the day, and gives rows of an Arrow schema.
    """
    if files is None:
        files = () if table.version() is None else table.snapshot().files
    tasks = [(table, tuple(own["."])) for own in runner.portions({".": files} if files else {})]

    def read(connection: Any, task: tuple[LakeTable, tuple[TableFile, ...]]) -> Iterator[Any]:
        own, chosen = task
        connection.register(STORED, own.dataset(chosen))
        yield from duckdb_batches(connection, sql)

    return runner.map(tasks, read, schema)


def duckdb_batches(connection: Any, sql: str, rows: int = 50_000) -> Iterator[Any]:
    """The rows of a query as Arrow record batches of so many rows at most."""
    yield from connection.sql(sql).to_arrow_table().to_batches(max_chunksize=rows)


def conformed_batches(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Record batches with the columns and types of a schema; those without rows are left out."""
    for batch in batches:
        if batch.num_rows:
            yield batch if batch.schema == schema else batch.select(schema.names).cast(schema)


_SORTED = "qmf_unsorted"


def open_connection(threads: int | None = None) -> Any:
    """A connection to DuckDB whose times are in UTC; its queries use so many threads, or one per processor."""
    made = connect(threads=threads)
    made.execute("set timezone = 'UTC'")
    return made


def batches_where(column: str, values: Sequence[str], batches: Iterator[Any]) -> Iterator[Any]:
    compute = import_extra("pyarrow.compute")
    wanted = import_pyarrow().array(list(values))
    for batch in batches:
        found = batch.filter(compute.is_in(batch[column], value_set=wanted))
        if found.num_rows:
            yield found


def selected_batches(columns: Sequence[str], batches: Iterator[Any]) -> Iterator[Any]:
    return (batch.select(list(columns)) for batch in batches)


def sorted_batches(schema: Any, columns: Sequence[str], threads: int | None, batches: Iterator[Any]) -> Iterator[Any]:
    """The rows in the order of some columns, by DuckDB, which writes what is too large for memory to files."""
    by = ", ".join(quote_name(name) for name in columns)
    with closing(open_connection(threads)) as own:
        reader = import_pyarrow().RecordBatchReader.from_batches(schema, conformed_batches(batches, schema))
        own.register(_SORTED, reader)
        yield from own.sql(f"select * from {_SORTED} order by {by}").to_arrow_reader(50_000)
