"""Delta tables that are written on Spark, without a jar: by jobs, and by streams of users, each batch once.

The executors write Parquet files into the folder of the table; one commit by the driver makes them a part of it, see
`qmf.pipeline.lake.lake_table`. A kill before that leaves files that no reader sees and that `vacuum` removes. The
commit of a stream's batch carries its number as the application's transaction: a batch that is run again after a kill
is not committed again. A stream's checkpoint lies in the table, ``_checkpoint``: after the table is removed, the stream
starts again from the beginning of the lake.
"""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.lake.table_files import WrittenFile
from qmf.pipeline.lake.table_settings import exact_statistics

#: The column with the number of the batch of a stream that a row came with.
BATCH_COLUMN = "_batch"

CHECKPOINT = "_checkpoint"

#: Files of a micro-batch: the tables are small, and small files cost more than their rows.
_FILES = 1

_WRITTEN = "path string, partition string, rows long, size long"


def with_date(frame: DataFrame, time: str) -> DataFrame:
    """Add `DATE`, the day in UTC of a column of times."""
    return frame.withColumn(DATE, F.date_format(time, "yyyy-MM-dd"))


def overwrite(frame: DataFrame, table: LakeTable, *, by: Sequence[str] = (), whole: bool = False) -> int:
    """Write a batch into a table; the partitions that it has rows for are replaced, others stay.

    Args:
        frame: the rows.
        table: to write to.
        by: columns by which the table is partitioned; the days and the sizes that occur are replaced.
        whole: replace the whole table.

    Returns:
        the number of rows.
    """
    files = write_files(frame, table, by)
    values = {name: sorted({file.partition[name] for file in files}) for name in by}
    where = None if whole or not by else values
    table.commit_files(files, _schema(frame), partition_by=by, replace=True, where=where)
    return sum(file.rows for file in files)


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
    files = write_files(numbered, table)
    table.commit_files(files, _schema(numbered), writer=writer, batch=batch)


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


def write_files(frame: DataFrame, table: LakeTable, by: Sequence[str] = ()) -> list[WrittenFile]:
    """Write rows as files of a table, in the executors. They belong to it when they are committed.

    Args:
        frame: the rows.
        table: to write for.
        by: columns by which the table is partitioned.
    """
    write = functools.partial(_write_part, table, _schema(frame), tuple(by))
    found = frame.mapInArrow(write, _WRITTEN).collect()
    return [WrittenFile(path, json.loads(partition), rows, size) for path, partition, rows, size in found]


def _write_part(table: LakeTable, schema: Any, by: tuple[str, ...], batches: Iterator[Any]) -> Iterator[Any]:
    """Write the rows of one task; a file for each partition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    writers: dict[tuple[str, ...], Any] = {}
    own = pa.schema([field for field in schema if field.name not in by])
    name = f"part-{uuid.uuid4()}.zstd.parquet"
    try:
        for batch in batches:
            rows = pa.Table.from_batches([batch]).cast(schema)
            keys = rows.group_by(list(by)).aggregate([]).to_pylist() if by else [{}]
            for key in keys:
                chosen = rows
                for column, value in key.items():
                    chosen = chosen.filter(pc.equal(chosen[column], value))
                if not chosen.num_rows:
                    continue
                values = tuple(key[column] for column in by)
                if values not in writers:
                    folders = [f"{column}={value}" for column, value in zip(by, values, strict=True)]
                    writers[values] = table.file_writer("/".join([*folders, name]), own)
                writers[values].write(chosen.select(own.names))
    finally:
        written = [(*writer.close(), dict(zip(by, values, strict=True))) for values, writer in writers.items()]
    found = [(path, json.dumps(partition), count, size) for path, count, size, partition in written]
    columns = zip(*found, strict=True) if found else ([], [], [], [])
    types = (pa.string(), pa.string(), pa.int64(), pa.int64())
    arrays = [pa.array(values, type) for values, type in zip(columns, types, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, ["path", "partition", "rows", "size"])


def _schema(frame: DataFrame) -> Any:
    # What a frame's columns say about their class is not for its table.
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return import_pyarrow().schema([field.remove_metadata() for field in schema])
