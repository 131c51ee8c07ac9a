"""The job `rollup` as a batch, wherever it runs: tasks make the rows, and one commit puts their files into the table.

The commit replaces the days that were read, of the sizes and classes that were chosen. Rows of other classes in the
same partitions of the table are written again.
"""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.pipeline.lake.delta_lake import DeltaLake, choose_classes
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.rollup.divided_class import divided_rows
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource, class_sources
from qmf.pipeline.rollup.stream_memory import MAX_VALUES, NewSamples
from qmf.pipeline.rollup.tables import (
    PARTITIONS,
    WRITER,
    RollupOptions,
    read_numbers,
    rollup_schema,
    rollup_table,
)
from qmf.pipeline.rollup.tasks import KeptRows, SmallClassesTask, Task, class_tasks, is_divided, task_rows, together
from qmf.pipeline.runners.runner import Rows, Runner

#: By what rows are counted for the user.
_COUNTED = ("package", "class", "size")


def roll_up_lake(runner: Runner, options: RollupOptions, print_line: Callable[[str], None]) -> int:
    """Roll up the content of a lake, and print a line for each class and size when all are done; returns rows written.

    Raises:
        PipelineError: no such class, or not a size of windows.
        LakeError: a file cannot be read or written, or another process writes to the same table.
        MissingExtraError: DuckDB or deltalake is not installed.
    """
    options.check()
    options = attrs.evolve(options, lake=absolute(options.lake), out=absolute(options.out))
    started = time.monotonic()
    lake = DeltaLake(options.lake, options.storage)
    chosen_classes = choose_classes(lake.class_versions(), options.classes)
    versions = lake.versions(lake.tables_of(version for own in chosen_classes for version in own))
    sources = class_sources(lake, options.classes)  # what came since is read, too
    table = rollup_table(options, "batch")
    table.conform(rollup_schema())
    replacement = _replacement(table, options, sources)
    tasks, divided = _tasks(runner, options, sources)
    written = written_rows(runner, [*tasks, *replacement.kept], table, divided)
    chosen = {(source.package, source.name) for source in sources}
    rows = sum(count for (package, name, _size), count in written.counts.items() if (package, name) in chosen)
    if rows:
        commit_rows(table, written, replacement, read_numbers(table, options, versions))
    for source in sources:
        for size in options.sizes:
            samples = source.samples(options.first, options.last)
            made = written.counts.get((source.package, source.name, size), 0)
            print_line(f"{source.full_name} by {size}: {samples} samples became {made} rows")
    print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
    return rows


@attrs.frozen
class ReplacedRows:
    """What a commit replaces: the rows of some partitions.

    Attributes:
        version: of the table of which `kept` are files; None where there is no table yet.
        sizes, days: the partitions.
        kept: tasks that write the rows again that stay.
    """

    version: int | None
    sizes: Sequence[str]
    days: Sequence[str]
    kept: Sequence[KeptRows] = ()

    @classmethod
    def of(cls, table: LakeTable, where: str, sizes: Sequence[str], days: Callable[[str], bool]) -> ReplacedRows:
        """The replacement of the rows that meet a condition in SQL, which may be a part of those of their partitions.

        `days` is true for days that may have such rows.
        """
        version = table.version()
        if version is None:
            return cls(None, sizes, ())
        kept = [
            KeptRows(table, file, size, where)
            for file in table.snapshot().files
            for size in sizes
            if file.path.startswith(f"size={size}/") and file.date is not None and days(file.date)
        ]
        return cls(version, sizes, sorted({str(task.file.date) for task in kept}), kept)


def written_rows(runner: Runner, tasks: Sequence[Task], table: LakeTable, others: Sequence[Rows] = ()) -> WrittenRows:
    """What tasks wrote into the folder of a table, and other rows, to be committed."""
    found = [*others, *([runner.map(together(tasks), task_rows, rollup_schema())] if tasks else [])]
    if not found:
        return WrittenRows()
    rows = found[0]
    for more in found[1:]:
        rows = rows.union(more)
    return rows.write(table, by=PARTITIONS, counted=_COUNTED)


def commit_rows(
    table: LakeTable, written: WrittenRows, replacement: ReplacedRows | None, numbers: Mapping[str, int] | None = None
) -> None:
    """Put what was written, rows that are kept among it, in the place of some partitions or none, in one commit.

    Raises:
        LakeError: the table cannot be written, or another process has written to it meanwhile.
    """
    if replacement is not None and replacement.kept and table.version() != replacement.version:
        raise LakeError(f"{table.url}: another process wrote to it meanwhile; try again")
    replaces = replacement is not None and bool(replacement.days) and replacement.version is not None
    table.commit_files(
        written.files,
        rollup_schema(),
        partition_by=PARTITIONS,
        writer=WRITER,
        replace=replaces,
        where={"size": list(replacement.sizes), DATE: list(replacement.days)} if replacement and replaces else None,
        numbers=numbers,
    )


def _replacement(table: LakeTable, options: RollupOptions, sources: Sequence[ClassSource]) -> ReplacedRows:
    """What a batch replaces: its days, of its sizes and classes."""
    days = {day for source in sources for day in source.zone_days(options.zone, options.first, options.last)}
    if not options.classes:
        return ReplacedRows(table.version(), options.sizes, sorted(days))
    chosen = (f"(package = {text(source.package)} and class = {text(source.name)})" for source in sources)
    where = f"({' or '.join(chosen)})"
    return ReplacedRows.of(table, where, options.sizes, days.__contains__)


def _tasks(runner: Runner, options: RollupOptions, sources: Sequence[ClassSource]) -> tuple[list[Task], list[Rows]]:
    """The pieces of the work: classes with few values together, others by themselves; and rows of divided ones."""
    by_values = sorted((_samples(options, source) for source in sources), key=lambda item: item.values)
    few = bisect.bisect(list(itertools.accumulate(item.values for item in by_values)), MAX_VALUES)
    small = tuple(item for item in by_values[:few] if item.files and item.source.members)
    tasks: list[Task] = [SmallClassesTask(options, small)] if small else []
    divided: list[Rows] = []
    limit = runner.task_rows
    for item in by_values[few:]:
        if limit is not None and is_divided(options, item.source, limit):
            divided.append(divided_rows(runner, options, item.source, limit))
        else:
            tasks += class_tasks(options, item.source, limit)
    return tasks, divided


def _samples(options: RollupOptions, source: ClassSource) -> NewSamples:
    """The samples of a class on the days of a batch, and on those before in which the sample before is looked for."""
    zone = options.zone
    oldest = None if options.first is None else day(zone.start_ns(options.first) - LOOK_BACK_DAYS * NS_PER_DAY)
    newest = None if options.last is None else day(zone.end_ns(options.last) - 1)
    files = [file for date in source.between(oldest, newest) for file in source.days[date]]
    return NewSamples(source, files, first=True, only_counted=True)
