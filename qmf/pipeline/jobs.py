"""Jobs over a lake: which classes, from where to where, as a batch or a stream. The work itself is in the steps.

A batch replaces the days that it read, so running it again gives the same tables. A stream appends what its watermark
has closed, and commits through a checkpoint: killed and started again, it neither loses nor repeats a row. Both write
the same rows, to folders of their own::

    OUT/batch/qmf_size=1m/qmf_package=P/qmf_class=C/qmf_date=2030-01-31/*.parquet
    OUT/stream/qmf_size=1m/qmf_package=P/qmf_class=C/qmf_date=...     and    OUT/checkpoints/...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.layout import NAME
from qmf.pipeline.members import Table
from qmf.pipeline.rollup import rollup, seconds
from qmf.pipeline.spark import local, read, since, tables, versions


@attrs.frozen(kw_only=True)
class RollupOptions:
    """What to roll up.

    Attributes:
        lake: path, or for a batch any URL that Spark reads.
        out: where the tables go.
        sizes: of the windows, see `qmf.pipeline.rollup.seconds`.
        classes: names, with or without ``package:``; none for all.
        first, last: days of a batch, ``2030-01-31``, both included; None for no bound.
        late: how long a stream waits for late data.
        continued: see `qmf.pipeline.rollup.rollup`.
    """

    lake: str
    out: str
    sizes: tuple[str, ...] = ("1m",)
    classes: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    late: str = "10 minutes"
    continued: bool = False


def rollup_batch(spark: SparkSession, options: RollupOptions, say: Callable[[str], None]) -> int:
    """Roll up what a lake holds.

    Args:
        spark: to run on.
        options: what.
        say: told of each class that is done.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, a size that is none.
    """
    _check(options)
    total = 0
    for of in _classes(options, spark):
        started = time.monotonic()
        samples = since(read(spark, options.lake, RowKind.OBJECTS, of), options.first, options.last)
        for size in options.sizes:
            path = _path(options, "batch", size, of)
            rolled = rollup(samples, of, size, continued=options.continued).transform(_dated)
            rolled.write.mode("overwrite").partitionBy("qmf_date").parquet(path)
            total += since(spark.read.parquet(path), options.first, options.last).count()
        say(f"{of[0].package}:{of[0].name} rolled up in {time.monotonic() - started:.1f} s")
    return total


def rollup_stream(spark: SparkSession, options: RollupOptions, *, every: str = "10 seconds") -> list[StreamingQuery]:
    """Roll up what comes into a lake, until the queries are stopped.

    Args:
        spark: to run on.
        options: what; days don't count.
        every: time from batch to batch.

    Returns:
        a running query for each class and size.

    Raises:
        PipelineError: no such class, a size that is none, a lake that can't be followed.
    """
    _check(options)
    root = str(local(options.lake))
    queries = []
    for of in _classes(options, spark):
        for size in options.sizes:
            stream = spark.readStream.format("qmf").options(
                **{"lake": root, "package": of[0].package, "class": of[0].name}
            )
            rolled = rollup(stream.load(), of, size, late=options.late, continued=options.continued).transform(_dated)
            path = _path(options, "stream", size, of)
            queries.append(
                rolled.writeStream.outputMode("append")
                .partitionBy("qmf_date")
                .option("checkpointLocation", _path(options, "checkpoints", size, of))
                .trigger(processingTime=every)
                .start(path)
            )
    return queries


def rolled_up(spark: SparkSession, options: RollupOptions, *, by: str = "batch") -> DataFrame:
    """The tables that a rollup wrote, with their size as `qmf_size`.

    Args:
        by: ``batch`` or ``stream``.
    """
    frames = [
        spark.read.parquet(_path(options, by, size, of)).withColumn("qmf_size", F.lit(size))
        for of in _classes(options, spark)
        for size in options.sizes
    ]
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame)
    return result


def metrics(queries: Iterable[StreamingQuery]) -> tuple[int, int]:
    """Of the last batches of some queries: rows read, and rows that came too late."""
    read = late = 0
    for query in queries:
        for progress in query.recentProgress:
            read += int(progress["numInputRows"])
            late += sum(int(part["numRowsDroppedByWatermark"]) for part in progress["stateOperators"])
    return read, late


def _check(options: RollupOptions) -> None:
    for size in options.sizes:
        seconds(size)


def _classes(options: RollupOptions, spark: SparkSession) -> list[list[Table]]:
    """The versions of each class that is wanted and has statistics."""
    known = [table for table in tables(options.lake, spark) if not table.event]
    wanted: Sequence[tuple[str | None, str]] = [
        (package or None, name) for package, _, name in (text.rpartition(":") for text in options.classes)
    ] or sorted({(table.package, table.name) for table in known})
    return [versions(known, package, name) for package, name in wanted]


def _path(options: RollupOptions, by: str, size: str, of: Sequence[Table]) -> str:
    package, name = (part if NAME.fullmatch(part) else part.encode().hex() for part in (of[0].package, of[0].name))
    return f"{options.out.rstrip('/')}/{by}/qmf_size={size}/qmf_package={package}/qmf_class={name}"


def _dated(rolled: DataFrame) -> DataFrame:
    return rolled.withColumn("qmf_date", F.date_format("window_start", "yyyy-MM-dd"))
