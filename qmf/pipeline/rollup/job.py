"""The job `rollup` as a batch on Spark: executors write the files, and one commit puts them into the table."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import nullcontext
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from qmf.pipeline.aggregation.columns import ROLLUP_COLUMNS
from qmf.pipeline.aggregation.job import replaced
from qmf.pipeline.aggregation.source import class_sources
from qmf.pipeline.aggregation.tables import PARTITIONS, WRITER, RollupOptions, class_name, rollup_table
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.lake_table import DATE, LakeTable
from qmf.pipeline.lake.layout import day
from qmf.pipeline.rollup.tasks import add_actions, make_tasks, rolled_up_rows, written_files
from qmf.pipeline.spark.batch_progress import PrintLine, report_progress


def rollup_batch(spark: SparkSession, options: RollupOptions, print_line: PrintLine) -> int:
    """Roll up the content of a lake.

    Args:
        spark: to run on; its executors read the lake and write the table themselves.
        options: of the rollup.
        print_line: called for each class and size that is done.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, or not a size of windows.
        LakeError: a table cannot be read or written.
    """
    options.check()
    started = time.monotonic()
    sources = class_sources(options.lake, options.classes)
    table = rollup_table(options, "batch")
    tasks = make_tasks(
        options.lake, sources, options.sizes, continued=options.continued, first=options.first, last=options.last
    )
    progress: Any = nullcontext() if is_remote() else report_progress(spark, "rollup", print_line)
    with progress:
        files = written_files(spark, tasks, table.url) if tasks else []
    rows: Counter[tuple[str, str, str]] = Counter()
    for file in files:
        rows[file["package"], file["class"], file["size"]] += file["rows"]
    if files:
        _commit(table, options, files, replaced(options, sources))
    for source in sources:
        for size in options.sizes:
            name, samples = class_name(source.versions), source.samples(options.first, options.last)
            made = rows[source.package, source.name, size]
            print_line(f"{name} by {size}: {samples} samples became {made} rows")
    print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
    return rows.total()


def rolled_up_lake(
    spark: SparkSession,
    lake: str,
    size: str,
    *,
    classes: tuple[str, ...] = (),
    continued: bool = False,
    times: tuple[int, int] | None = None,
) -> DataFrame:
    """The roll-up of a lake as a frame, with the columns of the table.

    Args:
        spark: to run on.
        lake: a folder, or a URL that the library's object stores know.
        size: of the windows.
        classes: names, with or without ``package:``; none for all.
        continued: counters outlive restarts of their agents.
        times: the first time in nanoseconds, and the one after the last; samples outside are left out.

    Raises:
        LakeError: no lake, or no such class.
    """
    sources = class_sources(lake, classes)
    if times is None:
        return rolled_up_rows(spark, make_tasks(lake, sources, (size,), continued=continued))
    inside = [source.within(*times) for source in sources]
    days = {"first": day(times[0]), "last": day(times[1] - 1)}
    return rolled_up_rows(spark, make_tasks(lake, inside, (size,), continued=continued, **days))


def _commit(table: LakeTable, options: RollupOptions, files: list[Any], where: str) -> None:
    """Replace the rows of a batch by those of files."""
    delta = import_deltalake()
    days = sorted({file[DATE] for file in files})
    with delta_errors(table.url):
        if table.version() is None:
            delta.DeltaTable.create(table.url, delta.Schema.from_arrow(_schema()), partition_by=list(PARTITIONS))
        target = table.delta()
        if options.classes:
            # Files of several classes must be written again without these rows.
            target.delete(where)
        target.create_write_transaction(
            add_actions(files),
            "append" if options.classes else "overwrite",
            target.schema(),
            list(PARTITIONS),
            None if options.classes else [("size", "in", list(options.sizes)), (DATE, "in", days)],
            commit_properties=delta.CommitProperties(
                app_transactions=[delta.Transaction(WRITER, (table.last_batch(WRITER) or 0) + 1)]
            ),
        )


def _schema() -> Any:
    """The columns of the table."""
    pa = import_pyarrow()
    types = {
        "timestamptz": pa.timestamp("us", "UTC"),
        "varchar": pa.string(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
    }
    fields = [(name, types.get(type) or pa.decimal128(38, 0)) for name, type in ROLLUP_COLUMNS.items()]
    return pa.schema([*((name, pa.string()) for name in PARTITIONS), *fields])
