"""The job `rollup` as a batch, in this process: neither Spark nor Java is needed.

One commit replaces the days that were read, of the sizes and classes that were chosen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from qmf.pipeline.duckdb_queries import connect, duckdb_errors, text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.rollup.day import ClassRollup
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource, class_sources
from qmf.pipeline.rollup.stream_memory import MAX_VALUES, NewSamples, StreamMemory
from qmf.pipeline.rollup.stream_windows import END_NS, WindowRange
from qmf.pipeline.rollup.tables import (
    OUT,
    PARTITIONS,
    WRITER,
    RollupOptions,
    add_rows,
    class_name,
    rollup_table,
)


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
        made = _roll_up_together(connection, options, _few_values(options, sources))
        for source in sources:
            rows = made.get(class_name(source.versions)) or _roll_up_class(connection, options, source)
            for size in options.sizes:
                name, samples = class_name(source.versions), source.samples(options.first, options.last)
                print_line(f"{name} by {size}: {samples} samples became {rows[size]} rows")
            total += rows.total()
        if total:
            table = rollup_table(options, "batch")
            table.replace(
                connection.sql(f"from {OUT}"),
                where=replaced(options, sources),
                writer=WRITER,
                batch=(table.last_batch(WRITER) or 0) + 1,
                partition_by=PARTITIONS,
            )
    print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
    return total


def replaced(options: RollupOptions, sources: Sequence[ClassSource]) -> str:
    """The condition in SQL for the rows of the table that a batch replaces."""
    days = replaced_days(options, sources)
    where = f"size in ({_texts(options.sizes)}) and {DATE} in ({_texts(days)})"
    if options.classes:
        chosen = (f"(package = {text(source.package)} and class = {text(source.name)})" for source in sources)
        where += f" and ({' or '.join(chosen)})"
    return where


def replaced_days(options: RollupOptions, sources: Sequence[ClassSource]) -> list[str]:
    """The days whose rows a batch replaces, in order."""
    return sorted({day for source in sources for day in source.zone_days(options.zone, options.first, options.last)})


def _texts(values: Sequence[str]) -> str:
    return ", ".join(text(value) for value in values)


def _few_values(options: RollupOptions, sources: Sequence[ClassSource]) -> list[ClassSource]:
    """The classes that have so few values that planning a query for each would cost more than the values."""
    found: list[ClassSource] = []
    room = MAX_VALUES
    for source in sorted(sources, key=lambda item: _samples(options, item).values):
        room -= _samples(options, source).values
        if room < 0:
            break
        found.append(source)
    return found


def _samples(options: RollupOptions, source: ClassSource) -> NewSamples:
    """The samples of a class on the days of a batch, and on those before in which the sample before is looked for."""
    zone = options.zone
    oldest = None if options.first is None else day(zone.start_ns(options.first) - LOOK_BACK_DAYS * NS_PER_DAY)
    newest = None if options.last is None else day(zone.end_ns(options.last) - 1)
    files = [file for date in source.between(oldest, newest) for file in source.days[date]]
    return NewSamples(source, files, first=True, only_counted=True)


def _roll_up_together(
    connection: Any, options: RollupOptions, sources: Sequence[ClassSource]
) -> dict[str, Counter[str]]:
    """Add the rows of classes to the table of all rows; returns their numbers by size, by name of the class."""
    rows: dict[str, Counter[str]] = {}
    samples = [item for item in (_samples(options, source) for source in sources) if item.files and item.source.members]
    if not samples:
        return rows
    start = -END_NS if options.first is None else options.zone.start_ns(options.first)
    end = END_NS if options.last is None else options.zone.end_ns(options.last)
    try:
        with duckdb_errors(options.lake):
            memory = StreamMemory(connection, options.sizes, END_NS, continued=options.continued, zone=options.zone)
            memory.add(samples, {item.name: -END_NS for item in samples})
            memory.close(END_NS)
            for size in options.sizes:
                ranges = [WindowRange(item.source, size, start, end, last=False) for item in samples]
                for item, count in zip(samples, memory.roll_up(size, ranges), strict=True):
                    rows.setdefault(item.name, Counter())[size] = count
    except FileNotFoundError as error:
        raise LakeError(f"{options.lake}: {error}") from error
    return rows


def _roll_up_class(connection: Any, options: RollupOptions, source: ClassSource) -> Counter[str]:
    """Add the rows of a class to the table of all rows; returns their number by size."""
    rows: Counter[str] = Counter()
    if not source.members:
        return rows
    try:
        with (
            duckdb_errors(options.lake),
            closing(ClassRollup(connection, source, options.sizes, options.continued, options.zone)) as rollup,
        ):
            for date in source.zone_days(options.zone, options.first, options.last):
                with rollup.day(date) as tables:
                    for size, table in tables.items():
                        rows[size] += add_rows(connection, OUT, table, size, options.zone)
    except FileNotFoundError as error:
        raise LakeError(f"{options.lake}: {error}") from error
    return rows
