"""Delta tables that are written on Spark, without a jar: by jobs, and by streams of users, each batch once.

The executors write Parquet files into the folder of the table; one commit by the driver makes them a part of it, see
`qmf.pipeline.lake.lake_table`. A kill before that leaves files that no reader sees and that `vacuum` removes. The
commit of a stream's batch carries its number as the application's transaction: a batch that is run again after a kill
is not committed again. A stream's checkpoint lies in the table, ``_checkpoint``: after the table is removed, the stream
starts again from the beginning of the lake.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import CHECKPOINT
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.lake.table_files import WrittenFile
from qmf.pipeline.lake.table_log import exact_statistics
from qmf.pipeline.runners.spark_tasks import DATA, data_batches, write_share

#: The column with the number of the batch of a stream that a row came with.
BATCH_COLUMN = "_batch"

#: Files of a micro-batch: the tables are small, and small files cost more than their rows.
_FILES = 1


def append_once(frame: DataFrame, table: LakeTable, writer: str, batch: int) -> None:
    """Add the rows of a stream's batch to a table, with the number of the batch in `BATCH_COLUMN`, unless it has them.

    Args:
        frame: the rows.
        table: to write to.
        writer: name of the stream.
        batch: its number; Spark counts from 0.
    """
    last = table.last_batch(writer)
    if last is None or last < batch:
        numbered = frame.withColumn(BATCH_COLUMN, F.lit(batch).cast("long"))
        schema = _schema(numbered)
        table.commit_files(_write_files(numbered, table, schema), schema, writer=writer, batch=batch)


def start_stream(
    frame: DataFrame,
    path: str,
    *,
    name: str,
    every: str = "10 seconds",
    once: bool = False,
    mode: str = "append",
    options: Mapping[str, str] | None = None,
    part: str = "",
    write: Callable[[DataFrame, int], None] | None = None,
) -> StreamingQuery:
    """Start a query that writes a stream into a table.

    Args:
        frame: a stream.
        path: of the table.
        name: of the query, for progress and metrics; the writer of the table.
        every: time from micro-batch to micro-batch.
        once: end when everything is read that is in the lake now.
        mode: Spark's output mode, ``append`` or ``update``.
        options: of the table's object store.
        part: tells queries apart that write to the same table; empty for the only one.
        write: called with the rows and the number of each micro-batch, writes them; None to add the rows to the table
            at `path`. It is called again for the last micro-batch if the process was killed before Spark committed
            that: it must be idempotent, as `append_once` is.

    Returns:
        the running query.
    """
    table = LakeTable(path, options, statistics=(*exact_statistics(_schema(frame)), BATCH_COLUMN))

    def append(batch: DataFrame, number: int) -> None:
        append_once(batch.coalesce(_FILES), table, name, number)

    checkpoint = f"{table.url}/{CHECKPOINT}/{quote(part, safe='')}".rstrip("/")
    writer = frame.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
    return writer.foreachBatch(write or append).start()


def read_table(spark: SparkSession, table: LakeTable, *, at: int | None = None) -> DataFrame | None:
    """What a job wrote, as of a version or the last one; None where there is no table yet."""
    if table.version() is None:
        return None
    columns = table.schema()
    schema = from_arrow_schema(columns)
    urls = [file.url for file in table.snapshot(at).files]
    if not urls:
        return spark.createDataFrame([], schema)
    # Columns of the partitions are in the paths of the files.
    return spark.read.schema(schema).option("basePath", table.url).parquet(*urls)


def _write_files(frame: DataFrame, table: LakeTable, schema: Any) -> tuple[WrittenFile, ...]:
    """Write rows as files of a table, in the executors. They belong to it when they are committed."""

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        yield from data_batches(write_share(table, schema, (), (), iter(batches)))

    written = (pickle.loads(row[0]) for row in frame.mapInArrow(write, f"{DATA} binary").collect())
    return sum(written, WrittenRows()).files


def _schema(frame: DataFrame) -> Any:
    # What a frame's columns say about their class is not for its table.
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return import_pyarrow().schema([field.remove_metadata() for field in schema])
