"""The job `rollup` as a batch, in this process: neither Spark nor Java is needed.

One commit replaces the days that were read, of the sizes and classes that were chosen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from qmf.pipeline.aggregation.columns import ROLLUP_COLUMNS
from qmf.pipeline.aggregation.day import ClassRollup
from qmf.pipeline.aggregation.source import ClassSource, class_sources
from qmf.pipeline.aggregation.tables import PARTITIONS, WRITER, RollupOptions, class_name, rollup_table
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, quoted, text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.row_columns import DATE

_OUT = "qmf_out"


def roll_up_lake(options: RollupOptions, print_line: Callable[[str], None]) -> int:
    """Roll up the content of a lake.

    Args:
        options: of the roll-up.
        print_line: called for each class and size that is done.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, or not a size of windows.
        LakeError: a file cannot be read or written.
        MissingExtraError: DuckDB or deltalake is not installed.
    """
    options.check()
    started = time.monotonic()
    sources = class_sources(options.lake, options.classes, options.storage)
    total = 0
    with closing(connect()) as connection:
        connection.execute("set timezone = 'UTC'")
        for source in sources:
            rows = _roll_up_class(connection, options, source)
            for size in options.sizes:
                name, samples = class_name(source.versions), source.samples(options.first, options.last)
                print_line(f"{name} by {size}: {samples} samples became {rows[size]} rows")
            total += rows.total()
        if total:
            table = rollup_table(options, "batch")
            table.replace(
                connection.sql(f"from {_OUT}"),
                where=replaced(options, sources),
                writer=WRITER,
                batch=(table.last_batch(WRITER) or 0) + 1,
                partition_by=PARTITIONS,
            )
    print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
    return total


def replaced(options: RollupOptions, sources: Sequence[ClassSource]) -> str:
    """The condition in SQL for the rows of the table that a batch replaces."""
    days = sorted({day for source in sources for day in source.between(options.first, options.last)})
    where = f"size in ({_texts(options.sizes)}) and {DATE} in ({_texts(days)})"
    if options.classes:
        chosen = (f"(package = {text(source.package)} and class = {text(source.name)})" for source in sources)
        where += f" and ({' or '.join(chosen)})"
    return where


def _texts(values: Sequence[str]) -> str:
    return ", ".join(text(value) for value in values)


def _roll_up_class(connection: Any, options: RollupOptions, source: ClassSource) -> Counter[str]:
    """Add the rows of a class to the table of all rows; returns their number by size."""
    rows: Counter[str] = Counter()
    if not source.members:
        return rows
    try:
        with (
            duckdb_errors(options.lake),
            closing(ClassRollup(connection, source, options.sizes, options.continued)) as rollup,
        ):
            for day in source.between(options.first, options.last):
                with rollup.day(day) as tables:
                    for size, table in tables.items():
                        rows[size] += add_rows(connection, _OUT, table, size)
    except FileNotFoundError as error:
        raise LakeError(f"{options.lake}: {error}") from error
    return rows


def add_rows(connection: Any, out: str, table: str, size: str) -> int:
    """Add rows of one size to a table with the columns of the job's tables; returns their number."""
    columns = ", ".join(f"{quoted(name)} {type}" for name, type in ROLLUP_COLUMNS.items())
    connection.execute(f"create temp table if not exists {out} (size varchar, {DATE} varchar, {columns})")
    rows = f"select {text(size)} as size, strftime(window_start, '%Y-%m-%d') as {DATE}, * from {table}"
    ((count,),) = connection.execute(f"insert into {out} {rows}").fetchall()
    return int(count)
