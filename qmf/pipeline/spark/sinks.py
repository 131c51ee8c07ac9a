"""Delta tables that are written on Spark, without a jar: by jobs, and by streams of users, each batch once.

The executors write Parquet files into the folder of the table; one commit by the driver makes them a part of it, see
`qmf.pipeline.lake.lake_table`. A kill before that leaves files that no reader sees and that `vacuum` removes. The
commit of a stream's batch carries its number as the application's transaction: a batch that is run again after a kill
is not committed again. A stream's checkpoint lies in the table, ``_checkpoint``: after the table is removed, the stream
starts again from the beginning of the lake.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import WrittenRows, write_rows
from qmf.pipeline.lake.table_files import WrittenFile
from qmf.pipeline.lake.table_paths import CHECKPOINT
from qmf.pipeline.lake.table_settings import exact_statistics

#: The column with the number of the batch of a stream that a row came with.
BATCH_COLUMN = "_batch"

#: Files of a micro-batch: the tables are small, and small files cost more than their rows.
_FILES = 1

_WRITTEN = "path string, partition string, rows long, size long, statistics string, counts string"


def append_once(frame: DataFrame, table: LakeTable, writer: str, batch: int) -> None:
    """Add the rows of a stream's batch to a table, with the number of the batch in `BATCH_COLUMN`, unless it has them.

    Args:
        frame: the rows.
        table: to write to.
        writer: name of the stream.
        batch: its number; Spark counts from 0.
    """
    if _is_committed(table, writer, batch):
        return
    numbered = frame.withColumn(BATCH_COLUMN, F.lit(batch).cast("long"))
    table.commit_files(write_files(numbered, table).files, _schema(numbered), writer=writer, batch=batch)


def _is_committed(table: LakeTable, writer: str, batch: int) -> bool:
    last = table.last_batch(writer)
    return last is not None and last >= batch


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
    """What a job wrote; None where there is no table yet.

    Args:
        spark: to read with.
        table: the table.
        at: number of a version; None for the last one.
    """
    if table.version() is None:
        return None
    columns = table.schema()
    schema = from_arrow_schema(columns)
    urls = [file.url for file in table.snapshot(at).files]
    if not urls:
        return spark.createDataFrame([], schema)
    # Columns of the partitions are in the paths of the files.
    return spark.read.schema(schema).option("basePath", table.url).parquet(*urls)


def write_files(frame: DataFrame, table: LakeTable, by: Sequence[str] = (), counted: Sequence[str] = ()) -> WrittenRows:
    """Write rows as files of a table, in the executors. They belong to it when they are committed.

    Args:
        frame: the rows.
        table: to write for.
        by: columns by which the table is partitioned.
        counted: columns by whose values rows are counted.
    """
    schema = _schema(frame)

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        yield _written_batch(write_rows(table, batches, schema, by=by, counted=counted))

    files: list[WrittenFile] = []
    counts: Counter[tuple[str, ...]] = Counter()
    for path, partition, rows, size, statistics, own in frame.mapInArrow(write, _WRITTEN).collect():
        if own is not None:
            counts.update({tuple(values): count for values, count in json.loads(own)})
        else:
            files.append(WrittenFile(path, json.loads(partition), rows, size, statistics))
    return WrittenRows(tuple(files), counts)


def _written_batch(written: WrittenRows) -> Any:
    """The files that a task wrote, and its counts in a row of their own."""
    pa = import_pyarrow()
    rows: list[dict[str, Any]] = [
        {**attrs.asdict(file, recurse=False), "partition": json.dumps(dict(file.partition))} for file in written.files
    ]
    if written.counts:
        rows.append({"counts": json.dumps([[list(values), count] for values, count in written.counts.items()])})
    types = [("path", pa.string()), ("partition", pa.string()), ("rows", pa.int64()), ("size", pa.int64())]
    schema = pa.schema([*types, ("statistics", pa.string()), ("counts", pa.string())])
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def _schema(frame: DataFrame) -> Any:
    # What a frame's columns say about their class is not for its table.
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return import_pyarrow().schema([field.remove_metadata() for field in schema])
