"""A copy of a lake on any file system that Hadoop supports, kept up to date: for clusters that can't mount the lake.

The log is followed entry by entry: first the files of a commit, then its entry, under the same number. So the copy is a
valid lake at any moment, and after a killed or failed run the next one continues where the copy's own log ends.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG, TRASH, day
from qmf.pipeline.lake.transaction_log import checkpoint_name, entry_name, number_of
from qmf.pipeline.spark.hadoop import HadoopFolder

_NS_PER_DAY = 86_400 * 10**9


@attrs.frozen
class MirrorCounts:
    """What a run did.

    Attributes:
        files: copied.
        entries: of the log, copied.
        removed: files moved to the copy's trash.
    """

    files: int = 0
    entries: int = 0
    removed: int = 0


def mirror(
    lake: Lake,
    target: HadoopFolder,
    *,
    grace_days: float = 7,
    now_ns: int | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> MirrorCounts:
    """Bring a copy up to date.

    Args:
        lake: to copy; others may write to it meanwhile.
        target: folder of the copy.
        grace_days: days that files which the lake removed stay in the copy's trash.
        now_ns: nanoseconds since 1970; None for now.
        wanted: returns False to end early, after a whole entry.

    Raises:
        LakeError: no lake; a file system failed; entries that the copy lacks were removed from the lake's log.
    """
    if not lake.last_entry():
        raise LakeError(f"{lake.root}: no lake, or nothing in it yet")
    now = time.time_ns() if now_ns is None else now_ns
    done = _last_number(target.names(LOG))
    result = MirrorCounts()
    if not done and (done := lake.last_checkpoint()):
        present = lake.checkpoint_files(done)
        _copy(lake, target, present, checkpoint_name(done))
        result = MirrorCounts(files=len(present))
    while done < lake.last_entry() and wanted():
        (entry,) = lake.entries(done, done + 1)
        done = entry.number
        _copy(lake, target, entry.added, entry_name(done))
        for path in entry.removed:
            target.move(path, f"{TRASH}/{day(now)}/{path}")
        if lake.last_checkpoint(done) == done:
            _copy(lake, target, (), checkpoint_name(done))
        result = MirrorCounts(result.files + len(entry.added), result.entries + 1, result.removed + len(entry.removed))
    _empty_trash(target, day(now - int(grace_days * _NS_PER_DAY)))
    return result


def _copy(lake: Lake, target: HadoopFolder, paths: Iterable[str], log: str) -> None:
    """Copy files, and then the file of the log that names them."""
    for path in paths:
        target.put(lake.find(path), path)
    target.put(lake.root / LOG / log, f"{LOG}/{log}")


def _last_number(names: list[str]) -> int:
    """Number of the last entry or checkpoint among files of a log; 0 for none."""
    return max((number_of(name) or number_of(name, checkpoint=True) or 0 for name in names), default=0)


def _empty_trash(target: HadoopFolder, before: str) -> None:
    """Delete files that were moved to the trash before a day."""
    for name in target.names(TRASH):
        try:
            datetime.date.fromisoformat(name)
        except ValueError:
            continue
        if name < before:
            target.delete(f"{TRASH}/{name}")
