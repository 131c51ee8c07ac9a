"""Maintenance of a lake: compacting small files, dropping old days, emptying the trash, truncating the log.

Compacting: the new file is written, the log records which files it replaces, then those go to the trash. After a kill
between these steps, `finish` does what is left. While files are in the trash, readers that follow the log with a delay
still find them; deleting them from the trash ends that.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import IO

import attrs

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import TEMPORARY, TRASH, date_of, day

#: Size of compacted files: large enough that opening one costs little, small enough for one task.
TARGET_BYTES = 128 * 1024 * 1024

#: Rows of a row group, about: with a row group for each commit, readers would spend their time on finding values.
GROUP_ROWS = 250_000

#: Days that files stay in the trash.
GRACE_DAYS = 7

#: The writer's name of maintenance.
WRITER = "upkeep"

_NS_PER_DAY = 86_400 * 10**9


@attrs.frozen
class MaintenanceCounts:
    """What was done.

    Attributes:
        compacted, written: files that were compacted, and files written from them.
        dropped: files of days that are too old.
        deleted: files deleted from the trash.
        log_entries: entries of the log that a checkpoint replaces, deleted.
    """

    compacted: int = 0
    written: int = 0
    dropped: int = 0
    deleted: int = 0
    log_entries: int = 0


def compact(lake: Lake, *, before: str | None = None, target_bytes: int = TARGET_BYTES) -> MaintenanceCounts:
    """Compact the small files of each folder.

    Args:
        lake: to work on; others may write and read meanwhile.
        before: only days before this one, ``2030-01-31``; None for today in UTC, whose files are still arriving.
        target_bytes: files are combined up to this size; larger ones are not touched.

    Returns:
        what was done. Running it again does nothing more.

    Raises:
        LakeError: the file system failed, or another process is maintaining the lake.
    """
    lock = _start(lake)
    try:
        limit = before or day(time.time_ns())
        groups: dict[str, list[str]] = defaultdict(list)
        for path in sorted(lake.files()):
            date = date_of(path)
            if date is not None and date < limit:
                groups[path.rpartition("/")[0]].append(path)
        run = f"{time.time_ns():020d}_{os.getpid()}"
        done = MaintenanceCounts()
        for folder, paths in sorted(groups.items()):
            for chunk in _chunks(lake, paths, target_bytes):
                _compact(lake, folder, run, done.written + 1, chunk)
                done = attrs.evolve(done, compacted=done.compacted + len(chunk), written=done.written + 1)
        return done
    finally:
        lock.close()


def retain(
    lake: Lake,
    days: int,
    *,
    grace_days: float = GRACE_DAYS,
    now_ns: int | None = None,
    may_drop: Callable[[int, int], bool] | None = None,
) -> MaintenanceCounts:
    """Drop the days that are too old, and delete old files from the trash.

    Args:
        lake: to work on.
        days: whole days before today that are kept. Schemas are always kept: without them nothing can be read.
        grace_days: days that files stay in the trash.
        now_ns: nanoseconds since 1970; None for now.
        may_drop: called with the number of files to drop and the number of all when more than half would be dropped;
            False leaves the lake as it is. None drops without a question.

    Raises:
        LakeError: the file system failed, or another process is maintaining the lake.
        ValueError: a number of days is negative.
    """
    if days < 0 or grace_days < 0:
        raise ValueError("numbers of days must not be negative")
    lock = _start(lake)
    try:
        now = time.time_ns() if now_ns is None else now_ns
        limit = day(now - days * _NS_PER_DAY)
        dated = {path: date for path in sorted(lake.files()) if (date := _data_date(path)) is not None}
        old = [path for path, date in dated.items() if date < limit]
        if may_drop is not None and 2 * len(old) > len(dated) and not may_drop(len(old), len(dated)):
            return MaintenanceCounts()
        if old:
            lake.append_to_log({}, old)
            lake.move_to_trash(old)
        before = now - int(grace_days * _NS_PER_DAY)
        deleted = _empty_trash(lake.root / TRASH, before)
        return MaintenanceCounts(dropped=len(old), deleted=deleted, log_entries=lake.truncate_log(before))
    finally:
        lock.close()


def _data_date(path: str) -> str | None:
    """The day of a file with recorded data; None for schemas, which belong to all days."""
    return None if path.startswith("schemas/") else date_of(path)


def finish(lake: Lake) -> None:
    """Complete a maintenance that was killed: move files that the log removed to the trash."""
    lake.move_to_trash(sorted(lake.removed_files()))


def _start(lake: Lake) -> IO[str]:
    lake.create()
    lock = lake.lock(WRITER)
    try:
        _remove_unlogged(lake)
        finish(lake)
    except BaseException:
        lock.close()
        raise
    return lock


def _remove_unlogged(lake: Lake) -> None:
    """Remove files that a killed maintenance wrote but did not log: the files they replace still have their rows."""
    known = lake.logged_files()
    for kind in sorted(lake.root.glob("[!_.]*")):
        for path in sorted([*kind.rglob(f"{WRITER}-*"), *kind.rglob(f"{TEMPORARY}{WRITER}-*")]):
            if path.relative_to(lake.root).as_posix() not in known:
                path.unlink()


def _chunks(lake: Lake, paths: list[str], target: int) -> list[list[str]]:
    chunks: list[list[str]] = []
    chunk: list[str] = []
    size = 0
    for path in paths:
        bytes_ = lake.find(path).stat().st_size
        if bytes_ >= target:
            continue
        if chunk and size + bytes_ > target:
            chunks.append(chunk)
            chunk, size = [], 0
        chunk.append(path)
        size += bytes_
    chunks.append(chunk)
    return [chunk for chunk in chunks if len(chunk) > 1]


def _compact(lake: Lake, folder: str, run: str, number: int, paths: list[str]) -> None:
    """Combine files of one folder, with the rows of one row group in memory at a time."""
    pyarrow = import_pyarrow()
    parquet = pyarrow.parquet
    rows = 0

    def write(target: str) -> None:
        nonlocal rows
        schema = parquet.read_schema(lake.root / paths[0])
        with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            waiting, count = [], 0
            for path in paths:
                # One folder is one class version, so its files have the same columns.
                table = parquet.ParquetFile(lake.root / path).read()
                waiting.append(table)
                count += table.num_rows
                rows += table.num_rows
                if count >= GROUP_ROWS:
                    writer.write_table(pyarrow.concat_tables(waiting), GROUP_ROWS)
                    waiting, count = [], 0
            if waiting:
                writer.write_table(pyarrow.concat_tables(waiting), GROUP_ROWS)

    made = lake.write(folder, WRITER, run, number, write, compacted=True)
    lake.append_to_log({made: rows}, paths, moved=True)
    lake.move_to_trash(paths)


def _empty_trash(trash: Path, before_ns: int) -> int:
    """Delete files that were moved to the trash before a time, and folders that are empty by then."""
    deleted = 0
    for path in sorted(trash.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.stat().st_ctime_ns < before_ns:
            path.unlink()
            deleted += 1
    return deleted
