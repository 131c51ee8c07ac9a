"""Tables that jobs write, each row exactly once, as Parquet files that any tool can read.

A batch replaces the days that it has rows for, so running it again gives the same table. A stream writes each of its
micro-batches to a folder of its own, ``qmf_batch=N``, and replaces that folder when the micro-batch is run again after
a kill: no reader finds a row twice. Its checkpoint lies in the table, ``_checkpoint``: after the table is removed, the
stream starts again from the beginning of the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

#: The column by which a batch's partitions are replaced.
DATE_COLUMN = "qmf_date"

#: The column by which a stream's micro-batches are replaced.
BATCH_COLUMN = "qmf_batch"

CHECKPOINT = "_checkpoint"

#: Files of a micro-batch: the tables are small, and small files cost more than their rows.
_FILES = 1


def with_date(frame: DataFrame, time: str) -> DataFrame:
    """Add `DATE_COLUMN`, the day in UTC of a column of times."""
    return frame.withColumn(DATE_COLUMN, F.date_format(time, "yyyy-MM-dd"))


def overwrite(frame: DataFrame, path: str, by: Sequence[str] = (DATE_COLUMN,)) -> None:
    """Write a batch into a table; partitions that it has rows for are replaced, others stay.

    Args:
        frame: has the columns `by`.
        path: of the table; any that Spark writes.
        by: columns of the partitions; none replaces the whole table.
    """
    writer = frame.write.mode("overwrite")
    (writer.partitionBy(*by) if by else writer).parquet(path)


def start_stream(
    frame: DataFrame,
    path: str,
    *,
    name: str,
    every: str = "10 seconds",
    once: bool = False,
    mode: str = "append",
    transform: Callable[[DataFrame, int], DataFrame] | None = None,
    on_written: Callable[[DataFrame, int], None] | None = None,
) -> StreamingQuery:
    """Start a query that writes a stream into a table.

    Args:
        frame: a stream.
        path: of the table, which belongs to this query alone.
        name: of the query, for progress and metrics.
        every: time from micro-batch to micro-batch.
        once: end when everything is read that is in the lake now.
        mode: Spark's output mode, ``append`` or ``update``.
        transform: makes what is written from a micro-batch and its number; must be deterministic.
        on_written: called after a micro-batch is written, with its rows in the table and its number. It is called again
            for the last micro-batch if the process was killed before Spark committed that: it must be idempotent.

    Returns:
        the running query.
    """

    def write(batch: DataFrame, number: int) -> None:
        result = transform(batch, number) if transform else batch
        folder = f"{path}/{BATCH_COLUMN}={number}"
        result.coalesce(_FILES).write.mode("overwrite").option("partitionOverwriteMode", "static").parquet(folder)
        if on_written is not None:
            on_written(batch.sparkSession.read.schema(result.schema).parquet(folder), number)

    writer = frame.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", f"{path}/{CHECKPOINT}")
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
    return writer.foreachBatch(write).start()


def read_table(spark: SparkSession, path: str) -> DataFrame | None:
    """What a batch or a stream wrote; None where there is nothing yet."""
    try:
        return spark.read.parquet(path)
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return None
        raise
