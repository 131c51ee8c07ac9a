"""The job `rollup` on a lake in a folder of this machine, in this process: neither Spark nor Java is needed.

The tables are those that the job writes on Spark, see `tables`; each day of a class is one file, replaced whole.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.aggregation.day import ClassRollup
from qmf.pipeline.aggregation.source import ClassSource, class_source
from qmf.pipeline.aggregation.tables import RollupOptions, class_name, table_path
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, text
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.lake.classes import choose_classes, local_class_versions
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import SUFFIX, TEMPORARY
from qmf.pipeline.lake.location import local_path

#: The file of a day.
_FILE = f"rollup{SUFFIX}"


def roll_up_lake(options: RollupOptions, print_line: Callable[[str], None]) -> int:
    """Roll up the content of a lake.

    Args:
        options: of the roll-up; lake and tables are local folders.
        print_line: called for each class and size that is done.

    Returns:
        rows written.

    Raises:
        PipelineError: no such class, not a size of windows, or no local folder.
        LakeError: a file cannot be read or written.
        MissingExtraError: DuckDB is not installed.
    """
    options.check()
    started = time.monotonic()
    lake = Lake(local_path(options.lake))
    out = attrs.evolve(options, out=str(local_path(options.out)))
    chosen = choose_classes(local_class_versions(lake), options.classes)
    sources = [class_source(lake, versions) for versions in chosen]
    connection = connect()
    try:
        connection.execute("set timezone = 'UTC'")
        total = 0
        for source in sources:
            rows = _roll_up_class(connection, lake, out, source)
            for size in options.sizes:
                name, samples = class_name(source.versions), source.samples(options.first, options.last)
                print_line(f"{name} by {size}: {samples} samples became {rows[size]} rows")
            total += rows.total()
        print_line(f"Rolled up in {time.monotonic() - started:.1f} s")
        return total
    finally:
        connection.close()


def _roll_up_class(connection: Any, lake: Lake, options: RollupOptions, source: ClassSource) -> Counter[str]:
    """Roll up a class, and replace the files of its days; returns the rows by size."""
    rows: Counter[str] = Counter()
    if not source.members:
        return rows
    rollup = ClassRollup(connection, source, options.sizes, options.continued)
    try:
        with duckdb_errors(lake.root):
            for day in source.between(options.first, options.last):
                with rollup.day(day) as tables:
                    for size, table in tables.items():
                        folder = Path(table_path(options, "batch", size, source.versions)) / f"qmf_date={day}"
                        rows[size] += _write(connection, f"from {table}", folder)
    except FileNotFoundError as error:
        raise LakeError(f"{lake.root}: {error}") from error
    finally:
        rollup.close()
    return rows


def _write(connection: Any, rows: str, folder: Path) -> int:
    """Write the file of a day, which replaces what was there; returns the number of rows."""
    temporary = folder / f"{TEMPORARY}{_FILE}"
    with lake_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        ((count,),) = connection.execute(
            f"copy ({rows}) to {text(str(temporary))} (format parquet, compression zstd)"
        ).fetchall()
        for path in folder.glob(f"[!._]*{SUFFIX}"):
            if path.name != _FILE:
                path.unlink()
        temporary.replace(folder / _FILE)
    return int(count)
