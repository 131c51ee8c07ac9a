"""Pieces of work as a frame: Spark runs each of them in an executor, and again elsewhere where one is lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def run_tasks(
    spark: SparkSession, tasks: Sequence[Any], work: Callable[[Any], Iterator[Any]], columns: str
) -> DataFrame:
    """What tasks make, each in a partition of its own.

    Args:
        spark: to run on.
        tasks: values that can be pickled.
        work: makes Arrow record batches of a task.
        columns: of these, as Spark declares them.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for data in batch.column(0):
                yield from work(pickle.loads(data.as_py()))

    frame = spark.createDataFrame([(pickle.dumps(task),) for task in tasks], "task binary")
    return frame.repartition(len(tasks) or 1).mapInArrow(run, columns)
