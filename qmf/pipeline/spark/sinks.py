"""Tables that jobs write, each row exactly once, as Parquet files that anything can read.

A batch replaces the days that it has rows for, so running it again gives the same table. A stream writes each of its
batches to a folder of its own, ``qmf_batch=N``, and replaces that folder when the batch is run again after a kill: no
reader finds a row twice. Its checkpoint lies in the table, ``_checkpoint``: removing the table begins again from the
start of the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

#: The column by which batches are replaced.
DAY = "qmf_date"

#: The column by which a stream's batches are replaced.
BATCH = "qmf_batch"

CHECKPOINT = "_checkpoint"

#: Files of a stream's batch: its tables are small, and small files cost more than their rows.
_FILES = 1


def dated(frame: DataFrame, time: str) -> DataFrame:
    """Add the column `DAY`, the day in UTC of a column of times."""
    return frame.withColumn(DAY, F.date_format(time, "yyyy-MM-dd"))


def replace(frame: DataFrame, path: str, by: Sequence[str] = (DAY,)) -> None:
    """Write a batch into a table; partitions that it has rows for are replaced, others stay.

    Args:
        frame: has the columns `by`.
        path: of the table; any that Spark writes.
        by: what it is partitioned by; none replaces the whole table.
    """
    writer = frame.write.mode("overwrite")
    (writer.partitionBy(*by) if by else writer).parquet(path)


def append(
    frame: DataFrame,
    path: str,
    *,
    name: str,
    every: str = "10 seconds",
    once: bool = False,
    mode: str = "append",
    step: Callable[[DataFrame, int], DataFrame] | None = None,
    after: Callable[[DataFrame, int], None] | None = None,
) -> StreamingQuery:
    """Write a stream into a table, and start it.

    Args:
        frame: a stream.
        path: of the table, which belongs to this query alone.
        name: of the query, for progress and metrics.
        every: time from batch to batch.
        once: end when everything is read that is there now.
        mode: Spark's output mode, ``append`` or ``update``.
        step: makes what is written from a batch and its number; must give the same for the same.
        after: called when a batch is written, with what the table holds of it and the number. It is called again for
            the last batch if a kill came before Spark noted the batch: what it does must bear that.

    Returns:
        the running query.
    """

    def write(batch: DataFrame, number: int) -> None:
        made = step(batch, number) if step else batch
        folder = f"{path}/{BATCH}={number}"
        made.coalesce(_FILES).write.mode("overwrite").option("partitionOverwriteMode", "static").parquet(folder)
        if after is not None:
            after(batch.sparkSession.read.schema(made.schema).parquet(folder), number)

    writer = frame.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", f"{path}/{CHECKPOINT}")
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
    return writer.foreachBatch(write).start()


def table(spark: SparkSession, path: str) -> DataFrame | None:
    """What a batch or a stream wrote; None where there is nothing yet."""
    try:
        return spark.read.parquet(path)
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return None
        raise
