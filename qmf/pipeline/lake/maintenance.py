"""Upkeep of a lake: small files joined, old days dropped, the trash emptied, the log cut.

Joining: the new file is written, the log says which files it stands for, then those go to the trash. Killed between
the steps, `finish` does what is left. While files are in the trash, followers of the log that are behind still
find them; sweeping it is what ends that.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import IO

import attrs

from qmf.pipeline.lake.arrow import library
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import TRASH, date_of, day

#: Size that joined files aim at: large enough that opening costs little, small enough for one task.
TARGET_BYTES = 128 * 1024 * 1024

#: Days that files stay in the trash.
GRACE_DAYS = 7

#: The name that upkeep writes under.
WRITER = "upkeep"

_NS_PER_DAY = 86_400 * 10**9


@attrs.frozen
class Upkeep:
    """What was done.

    Attributes:
        joined, made: files that were joined, and those made of them.
        dropped: files of days that are too old.
        swept: files removed from the trash for good.
        forgotten: entries of the log that a checkpoint stands for, removed.
    """

    joined: int = 0
    made: int = 0
    dropped: int = 0
    swept: int = 0
    forgotten: int = 0


def compact(lake: Lake, *, before: str | None = None, target_bytes: int = TARGET_BYTES) -> Upkeep:
    """Join the small files of each folder.

    Args:
        lake: to work on; others may write and read meanwhile.
        before: only days before this one, ``2030-01-31``; None for today in UTC, whose files still come in.
        target_bytes: a folder's files are joined up to this size; larger ones are left alone.

    Returns:
        what was done. Running it again does nothing more.

    Raises:
        LakeError: the file system refused, or another upkeep is at work.
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
        done = Upkeep()
        for folder, paths in sorted(groups.items()):
            for chunk in _chunks(lake, paths, target_bytes):
                _join(lake, folder, run, done.made + 1, chunk)
                done = attrs.evolve(done, joined=done.joined + len(chunk), made=done.made + 1)
        return done
    finally:
        lock.close()


def retain(lake: Lake, days: int, *, grace_days: float = GRACE_DAYS, now_ns: int | None = None) -> Upkeep:
    """Drop the days that are too old, and sweep the trash.

    Args:
        lake: to work on.
        days: whole days before today that are kept. Schemas are kept for good: without them nothing can be read.
        grace_days: days that files stay in the trash.
        now_ns: nanoseconds since 1970; None for now.

    Raises:
        LakeError: the file system refused, or another upkeep is at work.
    """
    lock = _start(lake)
    try:
        now = time.time_ns() if now_ns is None else now_ns
        limit = day(now - days * _NS_PER_DAY)
        old = [
            path
            for path in sorted(lake.files())
            if not path.startswith("schemas/") and (date := date_of(path)) is not None and date < limit
        ]
        if old:
            lake.log({}, old)
            lake.discard(old)
        before = now - int(grace_days * _NS_PER_DAY)
        return Upkeep(dropped=len(old), swept=_sweep(lake.root / TRASH, before), forgotten=lake.forget(before))
    finally:
        lock.close()


def finish(lake: Lake) -> None:
    """Do what a killed upkeep left undone: move files that the log removed to the trash."""
    lake.discard(sorted(lake.removed()))


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
    """Remove files that a killed upkeep made but never entered: their rows are still in the files they were made of."""
    known = lake.known()
    for kind in sorted(lake.root.glob("[!_.]*")):
        for path in sorted([*kind.rglob(f"{WRITER}-*"), *kind.rglob(f".tmp-{WRITER}-*")]):
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


def _join(lake: Lake, folder: str, run: str, number: int, paths: list[str]) -> None:
    """Join files of one folder, one at a time in memory."""
    parquet = library().parquet
    rows = 0

    def write(target: str) -> None:
        nonlocal rows
        schema = parquet.read_schema(lake.root / paths[0])
        with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            for path in paths:
                # One folder is one class version, so its files have the same columns.
                table = parquet.ParquetFile(lake.root / path).read()
                writer.write_table(table)
                rows += table.num_rows

    made = lake.write(folder, WRITER, run, number, write, joined=True)
    lake.log({made: rows}, paths, moved=True)
    lake.discard(paths)


def _sweep(trash: Path, before_ns: int) -> int:
    """Remove files that were moved to the trash before a time, and folders that are empty by then."""
    swept = 0
    for path in sorted(trash.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.stat().st_ctime_ns < before_ns:
            path.unlink()
            swept += 1
    return swept
