"""The job `rollup` on Spark: which classes, which time, as a batch or as a stream, into the tables of
`qmf.pipeline.aggregation.tables`.
"""

from __future__ import annotations

import time
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.aggregation.tables import FOLDERS, RollupOptions, class_name, table_path
from qmf.pipeline.frames import Frames
from qmf.pipeline.lake.layout import WRITER_NAME
from qmf.pipeline.rollup.by_class import rollup
from qmf.pipeline.rollup.by_value import rollup_values, values_of
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark.batch_progress import PrintLine, RowCounter, report_progress

#: Samples from which on a class is rolled up by itself.
LARGE = 100_000


def rollup_batch(spark: SparkSession, options: RollupOptions, print_line: PrintLine) -> int:
    """Roll up the content of a lake.

    Args:
        spark: to run on.
        options: of the rollup.
        print_line: called for each class and size that is done.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, or not a size of windows.
    """
    options.check()
    frames = Frames(spark, options.lake, first=options.first, last=options.last)
    classes = frames.classes(options.classes)
    # All classes are in one plan: the cost of a class besides its rows is high, and would be paid one after the other.
    # Small classes share one aggregation; each large class has its own, which costs less per row.
    small = [versions for versions in classes if frames.class_row_count(versions) < LARGE]
    large = [versions for versions in classes if versions not in small]
    small_values = [values_of(frames.class_rows(versions), versions) for versions in small]
    total = 0
    for size in options.sizes if classes else ():
        started = time.monotonic()
        rollups = [
            rollup(frames.class_rows(versions), versions, size, continued=options.continued) for versions in large
        ]
        if small_values:
            united = reduce(DataFrame.unionByName, small_values)
            rollups.append(rollup_values(united, size, continued=options.continued))
        counter = RowCounter(
            reduce(DataFrame.unionByName, rollups),
            {
                class_name(versions): (F.col("package") == versions[0].package) & (F.col("class") == versions[0].name)
                for versions in classes
            },
        )
        dated = sinks.with_date(counter.frame, "window_start").withColumns(
            {folder: _escaped_column(F.col(name)) for folder, name in zip(FOLDERS, ("package", "class"), strict=True)}
        )
        with report_progress(spark, f"rollup by {size}", print_line):
            sinks.overwrite(dated, table_path(options, "batch", size), (*FOLDERS, sinks.DATE_COLUMN))
        for versions in classes:
            name, samples = class_name(versions), frames.class_row_count(versions)
            rows = counter.rows[name]
            print_line(f"{name} by {size}: {samples} samples became {rows} rows")
            total += rows
        print_line(f"Rolled up by {size} in {time.monotonic() - started:.1f} s")
    return total


def rollup_stream(
    spark: SparkSession, options: RollupOptions, *, every: str = "10 seconds", once: bool = False
) -> list[StreamingQuery]:
    """Start the rollup of a lake as it grows.

    Args:
        spark: to run on.
        options: of the rollup; `first` and `last` are ignored.
        every: time from micro-batch to micro-batch.
        once: end when everything is read that is in the lake now.

    Returns:
        a running query for each class and size.

    Raises:
        PipelineError: no such class, or not a size of windows.
    """
    options.check()
    frames = Frames(spark, options.lake, stream=True)
    return [
        sinks.start_stream(
            rollup(frames.class_rows(versions), versions, size, late=options.late, continued=options.continued),
            table_path(options, "stream", size, versions),
            name=f"{class_name(versions)} by {size}",
            every=every,
            once=once,
        )
        for versions in frames.classes(options.classes)
        for size in options.sizes
    ]


def read_rollups(spark: SparkSession, options: RollupOptions, by: str = "batch") -> DataFrame:
    """The tables that a rollup wrote, with their size as `qmf_size`.

    Args:
        spark: to read with.
        options: those of the rollup.
        by: ``batch`` or ``stream``.

    Raises:
        PipelineError: no such class.
    """
    classes = Frames(spark, options.lake).classes(options.classes)
    written = [
        found.drop(sinks.DATE_COLUMN, sinks.BATCH_COLUMN).withColumn("qmf_size", F.lit(size))
        for versions in classes
        for size in options.sizes
        if (found := sinks.read_table(spark, table_path(options, by, size, versions))) is not None
    ]
    return reduce(DataFrame.unionByName, written)


def _escaped_column(name: Column) -> Column:
    """`qmf.pipeline.aggregation.tables.escaped` in Spark."""
    return F.when(name.rlike(rf"\A{WRITER_NAME.pattern}\z"), name).otherwise(F.lower(F.hex(name)))
