"""Runs jobs on Spark: executors do the tasks and write files, a shuffle brings keys together, the driver commits."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from qmf.pipeline.duckdb_queries import connect
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.lake.table_files import FilesByTable, in_portions
from qmf.pipeline.runners.runner import Map, Mapped, Pace, Reduce, Rows, Step, Task, conformed_batches
from qmf.pipeline.runners.spark_stream import follow_lake
from qmf.pipeline.spark import sinks

#: Rows of a task: seconds of work, and some hundred megabytes.
TASK_ROWS = 2_000_000


@attrs.frozen
class SparkRows:
    """Rows as a frame; see `Rows`.

    Attributes:
        frame: with the rows.
        shares: in which the rows of all keys are divided by a shuffle.
    """

    frame: DataFrame
    shares: int

    def where(self, column: str, values: Sequence[str]) -> Rows:
        """As of `Rows`."""
        return attrs.evolve(self, frame=self.frame.where(F.col(column).isin(list(values))))

    def select(self, columns: Sequence[str]) -> Rows:
        """As of `Rows`."""
        return attrs.evolve(self, frame=self.frame.select(*(F.col(f"`{name}`") for name in columns)))

    def union(self, other: Rows) -> Rows:
        """As of `Rows`."""
        assert isinstance(other, SparkRows)
        return SparkRows(self.frame.unionAll(other.frame), max(self.shares, other.shares))

    def reduce(self, key: Sequence[str], work: Reduce, schema: Any, *, order: Sequence[str] = ()) -> Rows:
        """As of `Rows`."""

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            with closing(task_connection()) as own:
                yield from conformed_batches(work(own, iter(batches)), schema)

        # A shuffle into one partition would be a stage more for the same rows.
        shares = self.frame.coalesce(1) if self.shares == 1 else self.frame.repartition(self.shares, *key)
        if order:
            shares = shares.sortWithinPartitions(*key, *order)
        return attrs.evolve(self, frame=shares.mapInArrow(run, from_arrow_schema(schema)))

    @contextmanager
    def persist(self) -> Iterator[Rows]:
        """As of `Rows`."""
        frame = self.frame.persist()
        try:
            yield attrs.evolve(self, frame=frame)
        finally:
            frame.unpersist()

    def table(self) -> Any:
        """As of `Rows`."""
        return self.frame.toArrow()

    def write(
        self, table: LakeTable, *, by: Sequence[str] = (), order: Sequence[str] = (), counted: Sequence[str] = ()
    ) -> WrittenRows:
        """As of `Rows`."""
        frame = self.frame.sortWithinPartitions(*order) if order else self.frame
        return sinks.write_files(frame, table, by, counted)


class SparkRunner:
    """Runs jobs on Spark; see `Runner`."""

    def __init__(self, spark: SparkSession, task_rows: int = TASK_ROWS) -> None:
        """Make a runner on a Spark session.

        Args:
            spark: to run on; its executors read the lake and write the tables themselves.
            task_rows: rows of the files of a task.
        """
        self.spark = spark
        self._task_rows = task_rows

    @property
    def place(self) -> str:
        """As of `Runner`."""
        return f"on Spark at {self.spark.conf.get('spark.master', 'a server of Spark Connect')}"

    @property
    def task_rows(self) -> int | None:
        """As of `Runner`."""
        return self._task_rows

    def portions(self, files: FilesByTable) -> list[FilesByTable]:
        """As of `Runner`."""
        return list(in_portions(files, self._task_rows))

    def map(self, tasks: Sequence[Task], work: Map[Task], schema: Any) -> Rows:
        """As of `Runner`: each task in a partition of its own, which Spark runs again where one is lost."""

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            for task in _unpickle_tasks(batches):
                with closing(task_connection()) as own:
                    yield from conformed_batches(work(own, task), schema)

        frame = self._pickle_tasks(tasks).mapInArrow(run, from_arrow_schema(schema))
        return SparkRows(frame, max(1, len(tasks)))

    def from_arrow(self, table: Any) -> Rows:
        """As of `Runner`."""
        return SparkRows(self.spark.createDataFrame(table, from_arrow_schema(table.schema)), 1)

    def each(self, tasks: Sequence[Task], work: Callable[[Task], Mapped]) -> list[Mapped]:
        """As of `Runner`."""

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            pa = import_pyarrow()
            for number, task in _unpickle_tasks(batches):
                found = [pa.array([number], pa.int64()), pa.array([pickle.dumps(work(task))], pa.binary())]
                yield pa.RecordBatch.from_arrays(found, ["number", "found"])

        rows = self._pickle_tasks(list(enumerate(tasks))).mapInArrow(run, "number long, found binary").collect()
        return [pickle.loads(found) for _number, found in sorted((row[0], bytes(row[1])) for row in rows)]

    def follow(self, lake: DeltaLake, checkpoint: str, step: Step, pace: Pace, stop: threading.Event) -> None:
        """As of `Runner`: a query of Structured Streaming, with a step for each micro-batch; see `spark_stream`."""
        follow_lake(self.spark, lake, checkpoint, step, pace, stop)

    def _pickle_tasks(self, tasks: Sequence[Any]) -> DataFrame:
        pa = import_pyarrow()
        rows = pa.table({"task": pa.array([pickle.dumps(task) for task in tasks], pa.binary())})
        # From one partition, each of the others gets the same number; from several, some would get two tasks.
        frame = self.spark.createDataFrame(rows).coalesce(1)
        return frame if len(tasks) < 2 else frame.repartition(len(tasks))


def _unpickle_tasks(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        for data in batch.column(0):
            yield pickle.loads(data.as_py())


def task_connection() -> Any:
    """A connection to DuckDB in an executor, which gives each of its tasks a processor."""
    made = connect()
    made.execute("set timezone = 'UTC'")
    made.execute("set threads = 1")
    return made
