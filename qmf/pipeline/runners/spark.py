"""Runs jobs on Spark: executors do the tasks and write files, a shuffle brings keys together, the driver commits.

Functions that follow each other run in one process of Python, as far as the rows stay in their partition. Rows go
through Java as rows only where Spark sorts what it shuffles: there they are a frame. What it shuffles in any order is a
frame of bytes, each of which has many rows of a share: as rows, they took twice the time. All else is bytes to Java, in
an RDD, for which it has nothing to plan and to compile: on a cluster that has just started, that was nearly all of the
time of a job over a small lake. A server of Spark Connect has frames only.
"""

from __future__ import annotations

import math
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.lake.table_files import FilesByTable, in_portions
from qmf.pipeline.runners import spark_tasks
from qmf.pipeline.runners.runner import (
    Map,
    Mapped,
    Pace,
    Reduce,
    Rows,
    Runner,
    Step,
    Task,
    batches_where,
    conformed_batches,
    selected_batches,
)
from qmf.pipeline.runners.spark_stream import follow_lake
from qmf.pipeline.runners.spark_tasks import DATA, SHARE, VERSION, Piece, Work, apply_works

#: The columns of what a partition of a frame is given.
_PIECE = "piece"


@attrs.frozen
class PieceInput:
    """Batches that pieces make of pickled tasks and of kept rows, in RDDs, by the names of the pieces.

    Several pieces may make batches of the same tasks; a server of Spark Connect keeps nothing.
    """

    spark: SparkSession
    pieces: tuple[Piece, ...]
    tasks: Mapping[str, tuple[bytes, ...]] = attrs.field(factory=dict)
    kept: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of_tasks(cls, spark: SparkSession, tasks: Iterable[Any], make: Callable[[Any], Iterator[Any]]) -> PieceInput:
        name = uuid.uuid4().hex
        return cls(spark, (Piece(name, make),), tasks={name: tuple(pickle.dumps(task) for task in tasks)})

    def __add__(self, other: PieceInput) -> PieceInput:
        return PieceInput(
            self.spark, (*self.pieces, *other.pieces), {**self.tasks, **other.tasks}, {**self.kept, **other.kept}
        )

    def with_works(self, works: Sequence[Work]) -> PieceInput:
        return attrs.evolve(
            self, pieces=tuple(attrs.evolve(piece, works=(*piece.works, *works)) for piece in self.pieces)
        )

    def persist(self, schema: Any, shares: int, work: Work) -> PieceInput | None:
        """What a function makes of the batches of each partition, computed once; otherwise as `run`.

        None on a server of Spark Connect.
        """
        if is_remote():
            return None
        name = uuid.uuid4().hex
        rdd = self.rdd(shares, lambda batches: spark_tasks.kept_rows(name, schema, work(batches)))
        piece = Piece(name, lambda data: spark_tasks.deserialize(schema, [data]))
        return PieceInput(self.spark, (piece,), kept={name: rdd.persist()})

    def unpersist(self) -> None:
        for rdd in self.kept.values():
            rdd.unpersist()

    def frame(self, shares: int) -> DataFrame:
        """A frame with what `spark_tasks.piece_batches` reads."""
        pa = import_pyarrow()
        given = self._cells()
        columns = {_PIECE: pa.array([name for name, _ in given], pa.string())}
        columns[DATA] = pa.array([data for _, data in given], pa.binary())
        columns[SHARE] = pa.array(range(len(given)), pa.int32())
        frame = self.spark.createDataFrame(pa.table(columns))
        if shares > 1 and given:
            # By a number: placing rows in turn, Spark begins anew for each partition they come from.
            frame = frame.repartitionById(len(given), F.col(SHARE))
        frame = frame.select(_PIECE, DATA)
        for rdd in self.kept.values():
            frame = frame.unionAll(self.spark.createDataFrame(rdd, f"{_PIECE} string, {DATA} binary"))
        return frame.coalesce(1) if shares == 1 else frame

    def _cells(self) -> list[tuple[str, bytes]]:
        return [(name, task) for name, tasks in self.tasks.items() for task in tasks]

    def rdd(self, shares: int, work: Work) -> Any:
        """What a function makes of the batches of each partition; one for one share, otherwise one for each task."""
        context, given, rdds = self.spark.sparkContext, self._cells(), list(self.kept.values())
        if given or not rdds:
            rdds.append(context.parallelize(given, 1 if shares == 1 else max(1, len(given))))
        rdd = rdds[0] if len(rdds) == 1 else context.union(rdds)
        if shares == 1 and len(rdds) > 1:
            rdd = rdd.coalesce(1)
        pieces = self.pieces
        return rdd.mapPartitions(lambda own: work(spark_tasks.made_batches(pieces, own)))


#: Rows of a task at most: seconds of work, and some hundred megabytes; and those that a task has at least before the
#: work is divided among the processors, since a shuffle costs seconds, too.
TASK_ROWS, DIVIDED_ROWS = 2_000_000, 500_000


@attrs.frozen
class SparkRows(Rows):
    """Rows as what functions make of pieces, or of a frame, partition by partition.

    A shuffle divides the rows of all keys into `shares`; `is_reduced` if one of the functions needs all rows of a key.
    """

    spark: SparkSession
    schema: Any
    input: PieceInput | DataFrame
    shares: int
    works: tuple[Work, ...] = ()
    is_reduced: bool = False

    def where(self, column: str, values: Sequence[str]) -> Rows:
        if isinstance(self.input, DataFrame) and not self.works:
            return attrs.evolve(self, input=self.input.where(F.col(column).isin(list(values))))
        return self._with_work(partial(batches_where, column, tuple(values)))

    def select(self, columns: Sequence[str]) -> Rows:
        schema = import_pyarrow().schema([self.schema.field(name) for name in columns])
        if isinstance(self.input, DataFrame) and not self.works:
            frame = self.input.select(*(F.col(f"`{name}`") for name in columns))
            return attrs.evolve(self, input=frame, schema=schema)
        return self._with_work(partial(selected_batches, tuple(columns)), schema=schema)

    def union(self, other: Rows) -> Rows:
        assert isinstance(other, SparkRows)
        shares = max(self.shares, other.shares)
        own, others = self._pieces(), other._pieces()
        if own is not None and others is not None:
            return SparkRows(self.spark, self.schema, own + others, shares)
        return SparkRows(self.spark, self.schema, self._frame().unionAll(other._frame()), shares)

    def reduce(
        self, key: Sequence[str], work: Reduce, schema: Any, *, order: Sequence[str] = (), numbered: bool = False
    ) -> Rows:
        reduced = partial(spark_tasks.reduce_share, work, schema)
        # A shuffle into one partition would be a stage more for the same rows.
        if self.shares == 1:
            return self._sort((*key, *order) if order else ())._with_work(reduced, schema=schema, is_reduced=True)
        if not order and not numbered:
            divided = partial(spark_tasks.divided_batches, self.schema, tuple(key), self.shares)
            frame = self._with_work(divided, schema=_shares_schema())._frame()
            frame = frame.repartitionById(self.shares, F.col(SHARE))
            works = (partial(spark_tasks.joined_batches, self.schema), reduced)
            return attrs.evolve(self, input=frame, works=works, schema=schema, is_reduced=True)
        frame = self._frame()
        frame = (
            frame.repartitionById(self.shares, F.col(key[0]).cast("int"))
            if numbered
            else frame.repartition(self.shares, *key)
        )
        if order:
            frame = frame.sortWithinPartitions(*key, *order)
        return attrs.evolve(self, input=frame, works=(reduced,), schema=schema, is_reduced=True)

    @contextmanager
    def persist(self) -> Iterator[Rows]:
        kept: PieceInput | DataFrame | None = None
        if self.shares == 1 and isinstance(self.input, PieceInput):
            kept = self.input.persist(self.schema, self.shares, partial(apply_works, self.works))
        if kept is None:
            kept = self._frame().persist()
        try:
            yield SparkRows(self.spark, self.schema, kept, self.shares)
        finally:
            kept.unpersist()

    def table(self) -> Any:
        found = spark_tasks.deserialize(self.schema, self.values(partial(spark_tasks.serialize, self.schema)))
        return import_pyarrow().Table.from_batches(found, self.schema)

    def write(
        self, table: LakeTable, *, by: Sequence[str] = (), order: Sequence[str] = (), counted: Sequence[str] = ()
    ) -> WrittenRows:
        work = partial(spark_tasks.write_share, table, self.schema, tuple(by), tuple(counted))
        return sum((pickle.loads(data) for data in self._sort(order).values(work)), WrittenRows())

    def explain(self) -> None:
        """Print Spark's plan for the rows as a frame."""
        self._frame().explain()

    def _with_work(self, work: Work, *, schema: Any = None, is_reduced: bool = False) -> SparkRows:
        schema = self.schema if schema is None else schema
        is_reduced = is_reduced or self.is_reduced
        return attrs.evolve(self, works=(*self.works, work), schema=schema, is_reduced=is_reduced)

    def _sort(self, columns: Sequence[str]) -> SparkRows:
        if not columns:
            return self
        if isinstance(self.input, DataFrame) and not self.works:
            return attrs.evolve(self, input=self._partitions(self.input).sortWithinPartitions(*columns))
        return self._with_work(spark_tasks.in_order(self.schema, columns))

    def _pieces(self) -> PieceInput | None:
        """The rows as those of pieces alone; None where they are not."""
        if isinstance(self.input, DataFrame) or self.is_reduced:
            return None
        return self.input.with_works(self.works)

    def _partitions(self, frame: DataFrame) -> DataFrame:
        return frame.coalesce(1) if self.shares == 1 else frame

    def _frame(self) -> DataFrame:
        if isinstance(self.input, DataFrame) and not self.works:
            return self.input
        schema = self.schema
        return self._map(lambda batches: conformed_batches(batches, schema), from_arrow_schema(schema))

    def _map(self, last: Work, schema: Any) -> DataFrame:
        """A frame of what a function makes of the batches of each partition, as record batches."""
        works = self.works
        read: Callable[[Iterable[Any]], Iterator[Any]] = iter
        if isinstance(self.input, DataFrame):
            frame = self._partitions(self.input)
        else:
            frame, read = self.input.frame(self.shares), partial(spark_tasks.piece_batches, self.input.pieces)

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            yield from last(apply_works(works, read(batches)))

        return frame.mapInArrow(run, schema)

    def values(self, last: Callable[[Iterator[Any]], Iterator[bytes]]) -> list[bytes]:
        """What a function makes of the batches of each partition, in any order."""
        works = self.works
        if isinstance(self.input, PieceInput) and not is_remote():
            rdd = self.input.rdd(self.shares, lambda batches: last(apply_works(works, batches)))
            return list(rdd.collect())
        frame = self._map(lambda batches: spark_tasks.data_batches(last(batches)), f"{DATA} binary")
        return [bytes(row[0]) for row in frame.collect()]


def _shares_schema() -> Any:
    pa = import_pyarrow()
    return pa.schema([(SHARE, pa.int32()), (VERSION, pa.string()), (DATA, pa.binary())])


class SparkRunner(Runner):
    """Runs jobs on Spark; see `Runner`."""

    def __init__(self, spark: SparkSession, task_rows: int = TASK_ROWS) -> None:
        """Make a runner on a session, whose executors read the lake and write the tables themselves."""
        self.spark = spark
        self.task_rows: int | None = task_rows

    @property
    def place(self) -> str:
        return f"on Spark at {self.spark.conf.get('spark.master', 'a server of Spark Connect')}"

    def portions(self, files: FilesByTable) -> list[FilesByTable]:
        rows = sum(file.rows for own in files.values() for file in own)
        # A server of Spark Connect does not say how many processors its executors have.
        processors = 1 if is_remote() else self.spark.sparkContext.defaultParallelism
        each = max(DIVIDED_ROWS, math.ceil(rows / processors))
        return list(in_portions(files, min(self.task_rows or each, each)))

    def map(self, tasks: Sequence[Task], work: Map[Task], schema: Any) -> Rows:
        """Each task in a partition of its own, which Spark runs again where one is lost."""
        made = PieceInput.of_tasks(self.spark, tasks, partial(spark_tasks.map_task, work, schema))
        return SparkRows(self.spark, schema, made, max(1, len(tasks)))

    def from_arrow(self, table: Any) -> Rows:
        return SparkRows(
            self.spark, table.schema, PieceInput.of_tasks(self.spark, [table], spark_tasks.table_batches), 1
        )

    def each(self, tasks: Sequence[Task], work: Callable[[Task], Mapped]) -> list[Mapped]:
        made = PieceInput.of_tasks(self.spark, enumerate(tasks), partial(spark_tasks.found_value, work))
        rows = SparkRows(self.spark, None, made, len(tasks))
        found = dict(pickle.loads(data) for data in rows.values(spark_tasks.pickle_values))
        return [found[number] for number in range(len(tasks))]

    def follow(self, lake: DeltaLake, checkpoint: str, step: Step, pace: Pace, stop: threading.Event) -> None:
        """A query of Structured Streaming, with a step for each micro-batch; see `spark_stream`."""
        follow_lake(self.spark, lake, checkpoint, step, pace, stop)
