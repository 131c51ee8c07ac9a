"""Maintenance of a lake: small files are combined, old days dropped, files that no version needs any more deleted.

All of it works beside recorders and readers, and may be killed at any moment: each change is one commit of one table.
Files that a commit takes out of a table stay until `vacuum` deletes them, so that readers of older versions find them.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.clustering import clustered_days
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import check_space, kind_path
from qmf.pipeline.lake.table_files import GROUP_ROWS
from qmf.pipeline.lake.table_log import commit_properties, remove_entries


@attrs.frozen
class Finding:
    """Something that is wrong with a file, table or run, and what was done; or, if it is no damage, worth knowing."""

    place: str
    text: str
    repaired: str = ""
    is_damage: bool = True

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" + (f": {self.repaired}" if self.repaired else "")


#: Size of files after `optimize`: large enough that opening one costs little, small enough for one task.
TARGET_BYTES = 128 * 1024 * 1024

#: Days that files stay which no version needs any more.
GRACE_DAYS = 7

#: The writer's name of commits that drop days: where a table has one, numbers of rows are missing.
RETAIN = "retain"

#: The name under which such a commit notes the version before it.
_BEFORE_DROP = "before_retain"

_HOURS_PER_DAY = 24
_SECONDS_PER_DAY = 86_400


@attrs.frozen
class MaintenanceCounts:
    """What was done: files combined, and written from them; rows of days that were dropped; files deleted."""

    combined: int = 0
    written: int = 0
    rows: int = 0
    deleted: int = 0

    def __add__(self, other: MaintenanceCounts) -> MaintenanceCounts:
        return MaintenanceCounts(*map(operator.add, attrs.astuple(self), attrs.astuple(other)))


def optimize_table(
    table: LakeTable, *, before: str | None = None, target_bytes: int = TARGET_BYTES
) -> MaintenanceCounts:
    """Combine the small files of each day before another one, or of all, up to a size; clustered days are left.

    Rows that one commit wrote stay together. Others may write and read meanwhile; running it again does nothing more.
    """
    delta = import_deltalake()
    if before is not None and not _has_days(table):
        return MaintenanceCounts()

    filters: list[tuple[str, str, Any]] = [] if before is None else [(DATE, "<", before)]

    def change() -> dict[str, Any]:
        left = clustered_days(table.snapshot().files)
        own = [*filters, (DATE, "not in", left)] if left else filters
        check_space(table.url, sum(file.size for file in table.snapshot().files if file.size < target_bytes))
        found: dict[str, Any] = table.delta().optimize.compact(
            partition_filters=own or None,
            target_size=target_bytes,
            # A second task would need twice the memory.
            max_concurrent_tasks=1,
            writer_properties=delta.WriterProperties(compression="ZSTD", max_row_group_size=GROUP_ROWS),
        )
        return found

    metrics = table.retry(change)
    return MaintenanceCounts(combined=metrics["numFilesRemoved"], written=metrics["numFilesAdded"])


def retain(
    lake: DeltaLake,
    days: int,
    *,
    grace_days: float = GRACE_DAYS,
    now_ns: int | None = None,
    may_drop: Callable[[int, int], bool] | None = None,
) -> MaintenanceCounts:
    """Drop the days that are older than so many whole days before today, but for schemas, and `vacuum`.

    `may_drop` is asked, with numbers of rows, where more than half of them would be dropped. `ValueError` for a
    negative number of days.
    """
    if days < 0 or grace_days < 0:
        raise ValueError("numbers of days must not be negative")
    limit = day((time.time_ns() if now_ns is None else now_ns) - days * NS_PER_DAY)
    old, total = _old_rows(lake, limit)
    count = sum(old.values())
    if may_drop is not None and 2 * count > total and not may_drop(count, total):
        return MaintenanceCounts()
    for path in [path for path, rows in old.items() if rows]:
        _drop(lake.table(path), limit)
    return MaintenanceCounts(rows=count) + vacuum(lake, grace_days=grace_days)


def _old_rows(lake: DeltaLake, limit: str) -> tuple[dict[str, int], int]:
    """The rows of days before one, by the path of their table, and the number of all rows that have a day."""
    old, total = {}, 0
    for path in all_paths(lake):
        if path == kind_path(RowKind.SCHEMAS) or not _has_days(lake.table(path)):
            continue
        files = lake.table(path).snapshot().files
        total += sum(file.rows for file in files)
        old[path] = sum(file.rows for file in files if file.date is not None and file.date < limit)
    return old, total


def vacuum(lake: DeltaLake, *, grace_days: float = GRACE_DAYS) -> MaintenanceCounts:
    """Delete the files that no version needs any more, and the entries of logs that checkpoints replace.

    Files stay for so many days after the commit that took them out, and entries for so long after theirs. Files that no
    entry names, since a killed writer left them or their entry went, stay for a day at least.
    """
    if grace_days < 0:
        raise ValueError("numbers of days must not be negative")
    deleted = 0
    for path in all_paths(lake):
        table = lake.table(path)
        before = _stored_files(lake, path) if lake.is_local else None
        found = _vacuum(table, grace_days, full=False) if grace_days < 1 else []
        found += _vacuum(table, max(grace_days, 1), full=True)
        deleted += len(found) if before is None else len(before - _stored_files(lake, path))
        with delta_errors(table.url):
            table.delta().create_checkpoint()
        remove_entries(table.url, lake.options, time.time() - grace_days * _SECONDS_PER_DAY)
    return MaintenanceCounts(deleted=deleted)


def all_paths(lake: DeltaLake) -> list[str]:
    """The paths of all tables of a lake, those of jobs last."""
    return [*lake.paths(), *lake.job_paths()]


def _vacuum(table: LakeTable, grace_days: float, *, full: bool) -> list[str]:
    kept = _kept_version(table, grace_days)

    def change() -> list[str]:
        found: list[str] = table.delta().vacuum(
            int(grace_days * _HOURS_PER_DAY),
            dry_run=False,
            enforce_retention_duration=False,
            full=full,
            keep_versions=None if kept is None else [kept],
        )
        return found

    return table.retry(change)


def _kept_version(table: LakeTable, grace_days: float) -> int | None:
    """The version before days were dropped, while it can be read and the time of grace lasts.

    What checkpoints leave out is known by the age of the files only, and those of dropped days are old.
    """
    before = table.last_batch(_BEFORE_DROP)
    if before is None:
        return None
    dropped = table.committed_at(before + 1)
    return before if dropped is not None and dropped > time.time() - grace_days * _SECONDS_PER_DAY else None


def _drop(table: LakeTable, limit: str) -> None:
    def change() -> None:
        number = (table.last_batch(RETAIN) or 0) + 1
        properties = commit_properties(RETAIN, number, {_BEFORE_DROP: int(table.delta().version())})
        table.delta().delete(f"{DATE} < '{limit}'", commit_properties=properties)

    table.retry(change)


def _has_days(table: LakeTable) -> bool:
    return DATE in table.delta().metadata().partition_columns


def _stored_files(lake: DeltaLake, path: str) -> set[Path]:
    """The Parquet files of a table in a folder. The library counts those that are gone already, too."""
    root = Path(lake.url) / path
    return {found for found in root.rglob("*.parquet") if "_delta_log" not in found.parts}
