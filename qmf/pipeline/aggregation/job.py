"""The job `rollup` on a lake in a folder of this machine, in this process: neither Spark nor Java is needed.

The tables are those that the job writes on Spark, see `tables`; each day of a class is one file, replaced whole.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.aggregation.members import NumberMember, number_members, window_seconds
from qmf.pipeline.aggregation.tables import RollupOptions, class_name, table_path
from qmf.pipeline.aggregation.windows import rolled_up
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, parquet_files, quoted, text
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import choose_classes, columns_of_versions, local_class_versions
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import SUFFIX, TEMPORARY, class_folder, class_of, date_of
from qmf.pipeline.lake.location import local_path

#: The file of a day.
_FILE = f"rollup{SUFFIX}"


@attrs.frozen
class _ClassDays:
    """One class with its files.

    Attributes:
        versions: of the class.
        members: its numbers.
        files: paths inside the lake, by day.
        samples: number of rows in the files.
    """

    versions: Sequence[ClassVersion]
    members: Sequence[NumberMember]
    files: dict[str, list[str]]
    samples: int


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
    lake = Lake(local_path(options.lake))
    out = attrs.evolve(options, out=str(local_path(options.out)))
    chosen = choose_classes(local_class_versions(lake), options.classes)
    classes = [_class_days(lake, options, versions) for versions in chosen]
    connection = connect()
    try:
        connection.execute("set timezone = 'UTC'")
        total = 0
        for size in options.sizes if classes else ():
            started = time.monotonic()
            for item in classes:
                rows = sum(_roll_up_day(connection, lake, out, size, item, day) for day in sorted(item.files))
                print_line(f"{class_name(item.versions)} by {size}: {item.samples} samples became {rows} rows")
                total += rows
            print_line(f"Rolled up by {size} in {time.monotonic() - started:.1f} s")
        return total
    finally:
        connection.close()


def _class_days(lake: Lake, options: RollupOptions, versions: Sequence[ClassVersion]) -> _ClassDays:
    columns_of_versions(RowKind.OBJECTS, versions)  # refuses versions that cannot be read together
    folder = class_folder(RowKind.OBJECTS, versions[0].package, versions[0].name)
    files: dict[str, list[str]] = defaultdict(list)
    samples = 0
    for path, rows in lake.files().items():
        day = date_of(path) if path.startswith(folder) else None
        if day is not None and (options.first or day) <= day <= (options.last or day):
            files[day].append(path)
            samples += rows
    return _ClassDays(versions, number_members(versions), files, samples)


def _roll_up_day(connection: Any, lake: Lake, options: RollupOptions, size: str, item: _ClassDays, day: str) -> int:
    """Roll up a day of a class, and replace its file; returns the rows."""
    if not item.members:
        return 0
    first = item.versions[0]
    folder = Path(table_path(options, "batch", size, item.versions)) / f"qmf_date={day}"
    try:
        with (
            duckdb_errors(lake.root),
            rolled_up(
                connection,
                _source(lake, item, day),
                item.members,
                package=first.package,
                name=first.name,
                seconds=window_seconds(size),
                continued=options.continued,
            ) as rows,
        ):
            return 0 if rows is None else _write(connection, rows, folder)
    except FileNotFoundError as error:
        raise LakeError(f"{lake.root}: {error}") from error


def _source(lake: Lake, item: _ClassDays, day: str) -> str:
    """The samples of a day as SQL, with all columns of the members."""
    paths = item.files[day]
    hashes = {class_of(path)[2] for path in paths}
    present = {column.name for version in item.versions if version.hash in hashes for column in version.columns}
    wanted = dict.fromkeys(name for member in item.members for name in member.columns)
    missing = "".join(f", cast(null as bigint) as {quoted(name)}" for name in wanted if name not in present)
    files = parquet_files([str(lake.find(path)) for path in paths], ", union_by_name = true")
    return f"(select *{missing} from {files})"


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
