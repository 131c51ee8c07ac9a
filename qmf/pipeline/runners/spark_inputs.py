"""What a job gives to Spark's executors: its tasks, and rows that Spark keeps. Java has them as bytes."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.runners import spark_tasks
from qmf.pipeline.runners.spark_tasks import DATA, Piece, Work

#: The columns of what a partition of a frame is given.
_PIECE = "piece"


@attrs.frozen
class PieceInput:
    """Batches that are made of tasks and of kept rows.

    Attributes:
        spark: to run on.
        pieces: how; several may make batches of the same tasks.
        tasks: pickled, by the name of their piece.
        kept: RDDs with rows, by the name of their piece; not on a server of Spark Connect.
    """

    spark: SparkSession
    pieces: tuple[Piece, ...]
    tasks: Mapping[str, tuple[bytes, ...]] = attrs.field(factory=dict)
    kept: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of_tasks(cls, spark: SparkSession, tasks: Iterable[Any], make: Callable[[Any], Iterator[Any]]) -> PieceInput:
        """The batches that a function makes of each task."""
        name = uuid.uuid4().hex
        return cls(spark, (Piece(name, make),), tasks={name: tuple(pickle.dumps(task) for task in tasks)})

    def __add__(self, other: PieceInput) -> PieceInput:
        return PieceInput(
            self.spark, (*self.pieces, *other.pieces), {**self.tasks, **other.tasks}, {**self.kept, **other.kept}
        )

    def with_works(self, works: Sequence[Work]) -> PieceInput:
        """What functions make of the batches of each task."""
        return attrs.evolve(
            self, pieces=tuple(attrs.evolve(piece, works=(*piece.works, *works)) for piece in self.pieces)
        )

    def run(self, shares: int, work: Callable[[Iterator[Any]], Iterator[bytes]]) -> list[bytes]:
        """What a function makes of the batches of each partition, in any order.

        Args:
            shares: 1 for one partition; otherwise each task has one.
            work: the function.
        """
        if not is_remote():
            return list(self._rdd(shares, work).collect())
        pieces = self.pieces

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            given = spark_tasks.frame_cells(batches)
            yield from spark_tasks.data_batches(work(spark_tasks.made_batches(pieces, given)))

        return [bytes(row[0]) for row in self.frame(shares).mapInArrow(run, f"{DATA} binary").collect()]

    def persist(self, schema: Any, shares: int, work: Work) -> PieceInput | None:
        """What a function makes of the batches of each partition, computed once; None on a server of Spark Connect.

        Args:
            schema: of what it makes, as an Arrow schema.
            shares: as of `run`.
            work: the function.
        """
        if is_remote():
            return None
        name = uuid.uuid4().hex
        rdd = self._rdd(shares, lambda batches: spark_tasks.kept_rows(name, schema, work(batches)))
        piece = Piece(name, lambda data: spark_tasks.deserialize(schema, [data]))
        return PieceInput(self.spark, (piece,), kept={name: rdd.persist()})

    def unpersist(self) -> None:
        """Ends what `persist` began."""
        for rdd in self.kept.values():
            rdd.unpersist()

    def frame(self, shares: int) -> DataFrame:
        """A frame with what `spark_tasks.frame_cells` reads."""
        pa = import_pyarrow()
        given = self._cells()
        columns = {_PIECE: pa.array([name for name, _ in given], pa.string())}
        columns[DATA] = pa.array([data for _, data in given], pa.binary())
        frame = self.spark.createDataFrame(pa.table(columns))
        if shares > 1 and given:
            # From one partition, each of the others gets the same number; from several, some would get two tasks.
            frame = frame.coalesce(1).repartition(len(given))
        for rdd in self.kept.values():
            frame = frame.unionAll(self.spark.createDataFrame(rdd, f"{_PIECE} string, {DATA} binary"))
        return frame.coalesce(1) if shares == 1 else frame

    def _cells(self) -> list[tuple[str, bytes]]:
        return [(name, task) for name, tasks in self.tasks.items() for task in tasks]

    def _rdd(self, shares: int, work: Callable[[Iterator[Any]], Iterator[Any]]) -> Any:
        context, given, rdds = self.spark.sparkContext, self._cells(), list(self.kept.values())
        if given or not rdds:
            rdds.append(context.parallelize(given, 1 if shares == 1 else max(1, len(given))))
        rdd = rdds[0] if len(rdds) == 1 else context.union(rdds)
        if shares == 1 and len(rdds) > 1:
            rdd = rdd.coalesce(1)
        pieces = self.pieces
        return rdd.mapPartitions(lambda own: work(spark_tasks.made_batches(pieces, own)))
