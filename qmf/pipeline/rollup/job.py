"""The job `rollup` over a lake: which classes, which time, as a batch or as a stream.

Both write the same rows, to tables of their own (see `qmf.pipeline.spark.sinks`)::

    OUT/batch/qmf_size=1m/qmf_package=P/qmf_class=C/qmf_date=2030-01-31/*.parquet
    OUT/stream/qmf_size=1m/qmf_package=P/qmf_class=C/qmf_batch=7/*.parquet
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import reduce

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.frames import Frames
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.layout import WRITER_NAME
from qmf.pipeline.rollup.by_class import rollup
from qmf.pipeline.rollup.by_value import rollup_values, values_of
from qmf.pipeline.rollup.schema import window_seconds
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark.batch_progress import PrintLine, RowCounter, report_progress

#: Samples from which on a class is rolled up by itself.
LARGE = 100_000

#: The folders between a size and its days.
_FOLDERS = ("qmf_package", "qmf_class")


@attrs.frozen(kw_only=True)
class RollupOptions:
    """Options of a rollup.

    Attributes:
        lake: path, or any URL that Spark reads.
        out: folder of the tables.
        sizes: of the windows, see `qmf.pipeline.rollup.schema.window_seconds`.
        classes: names, with or without ``package:``; none for all.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        late: how long a stream waits for late data.
        continued: see `qmf.pipeline.rollup.by_class.rollup`.
    """

    lake: str
    out: str
    sizes: tuple[str, ...] = ("1m",)
    classes: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    late: str = "10 minutes"
    continued: bool = False


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
    _check(options)
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
                _class_name(versions): (F.col("package") == versions[0].package) & (F.col("class") == versions[0].name)
                for versions in classes
            },
        )
        dated = sinks.with_date(counter.frame, "window_start").withColumns(
            {folder: _escaped_column(F.col(name)) for folder, name in zip(_FOLDERS, ("package", "class"), strict=True)}
        )
        with report_progress(spark, f"rollup by {size}", print_line):
            sinks.overwrite(dated, _path(options, "batch", size), (*_FOLDERS, sinks.DATE_COLUMN))
        for versions in classes:
            name, samples = _class_name(versions), frames.class_row_count(versions)
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
    _check(options)
    frames = Frames(spark, options.lake, stream=True)
    return [
        sinks.start_stream(
            rollup(frames.class_rows(versions), versions, size, late=options.late, continued=options.continued),
            _path(options, "stream", size, versions),
            name=f"{_class_name(versions)} by {size}",
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
        if (found := sinks.read_table(spark, _path(options, by, size, versions))) is not None
    ]
    return reduce(DataFrame.unionByName, written)


def _check(options: RollupOptions) -> None:
    for size in options.sizes:
        window_seconds(size)


def _class_name(versions: Sequence[ClassVersion]) -> str:
    return f"{versions[0].package}:{versions[0].name}"


def _path(options: RollupOptions, by: str, size: str, versions: Sequence[ClassVersion] = ()) -> str:
    names = (versions[0].package, versions[0].name) if versions else ()
    parts = [f"{folder}={_escaped(name)}" for folder, name in zip(_FOLDERS, names, strict=False)]
    return "/".join([options.out.rstrip("/"), by, f"qmf_size={size}", *parts])


def _escaped(name: str) -> str:
    return name if WRITER_NAME.fullmatch(name) else name.encode().hex()


def _escaped_column(name: Column) -> Column:
    """`_escaped` in Spark."""
    return F.when(name.rlike(rf"\A{WRITER_NAME.pattern}\z"), name).otherwise(F.lower(F.hex(name)))
