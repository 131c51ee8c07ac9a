"""The files of a lake: committed whole or not at all, in an order that readers can follow.

A commit writes each file under a temporary name, syncs it, renames it, and then adds one entry to the log. Readers that
follow the log see all files of a commit at once, and every commit once. Readers of the folders see whole files only.
A killed writer leaves either a temporary file, which the writer's next start removes, or a whole file that is not in
the log yet, which the next start adds to the log. A writer holds a lock on its name, so that two writers cannot take
each other's files.

This module knows paths and bytes, not the content of the files.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.layout import LOG, SUFFIX, TEMPORARY, TRASH, WRITER_NAME, file_name
from qmf.pipeline.lake.transaction_log import (
    CHECKPOINT_INTERVAL,
    LogEntry,
    apply,
    checkpoint_name,
    checkpoint_text,
    entry_name,
    number_of,
    parse_checkpoint,
)


class Lake:
    """A folder of Parquet files with a transaction log.

    Methods block. They raise `LakeError` for every failure of the file system, and then have changed nothing.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._last = 0

    def create(self) -> None:
        """Make the folders, where they are missing."""
        with lake_errors(self.root):
            for part in (LOG, TRASH):
                (self.root / part).mkdir(parents=True, exist_ok=True)

    def lock(self, name: str) -> IO[str]:
        """Lock a writer's name until the returned file is closed, or the process ends.

        Raises:
            LakeError: another process holds the lock, or the name is not valid.
        """
        if not WRITER_NAME.fullmatch(name):
            raise LakeError(f"a writer's name has 1 to 64 letters, digits, dots and underscores, not {name!r}")
        path = self.root / f"_lock_{name}"
        with lake_errors(path):
            file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise LakeError(f"{self.root}: another process writes as {name!r}; choose another --name") from None
        return file

    # -- writing

    def write(
        self, folder: str, name: str, run: str, number: int, write: Callable[[str], None], *, compacted: bool = False
    ) -> str:
        """Write one file whole.

        Args:
            folder: inside the lake.
            name, run, number: of the file.
            write: called with a path, writes the file there.
            compacted: the rows are in the lake already.

        Returns:
            the file's path inside the lake. It is not in the log yet.
        """
        target = self.root / folder / file_name(name, run, number, compacted=compacted)
        temporary = target.with_name(f"{TEMPORARY}{target.name}")
        with lake_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                write(str(temporary))
                _sync(temporary)
                temporary.rename(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            _sync(target.parent)
        return f"{folder}/{target.name}"

    def append_to_log(self, added: dict[str, int], removed: Iterable[str] = (), *, moved: bool = False) -> LogEntry:
        """Add an entry to the log, and a checkpoint where one is due. The arguments are those of `LogEntry`."""
        entry = LogEntry(self.last_entry() + 1, added, tuple(removed), moved)
        log = self.root / LOG
        with lake_errors(log):
            # A link, unlike a rename, fails where another writer took the number in the meantime.
            with self._temporary(entry.text()) as temporary:
                while True:
                    try:
                        (log / entry_name(entry.number)).hardlink_to(temporary)
                        break
                    except FileExistsError:
                        entry = LogEntry(entry.number + 1, added, entry.removed, moved)
            _sync(log)
        self._last = entry.number
        if entry.number % CHECKPOINT_INTERVAL == 0:
            self.write_checkpoint(entry.number)
        return entry

    def write_checkpoint(self, number: int) -> None:
        """Write the list of the files that are in the lake after an entry, so that readers can skip older entries."""
        present = self.files(number)
        log = self.root / LOG
        with lake_errors(log), self._temporary(checkpoint_text(present)) as temporary:
            temporary.rename(log / checkpoint_name(number))

    def truncate_log(self, before_ns: int) -> int:
        """Remove the entries and checkpoints that a checkpoint replaces which is older than a time.

        Returns:
            how many entries.
        """
        log = self.root / LOG
        old = [number for number in self._checkpoints() if _mtime_ns(log / checkpoint_name(number)) < before_ns]
        if not old:
            return 0
        removed = 0
        with lake_errors(log):
            for path in sorted(log.glob("*.json")):
                number, checkpoint = number_of(path.name), number_of(path.name, checkpoint=True)
                if (number is not None and number <= old[-1]) or (checkpoint is not None and checkpoint < old[-1]):
                    path.unlink()
                    removed += number is not None
        return removed

    @contextmanager
    def _temporary(self, text: str) -> Iterator[Path]:
        """A synced file in the log's folder, under a name that no reader reads; removed at the block's end."""
        temporary = self.root / LOG / f"{TEMPORARY}{os.getpid()}-{os.urandom(4).hex()}"
        try:
            temporary.write_text(text, encoding="utf-8")
            _sync(temporary)
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def recover(self, name: str) -> tuple[int, int]:
        """Clean up after a writer of this name that was killed. The caller holds the lock.

        Returns:
            numbers of temporary files removed, and of files added to the log.
        """
        known = self.logged_files()
        orphans: dict[str, int] = {}
        removed = 0
        with lake_errors(self.root):
            for path in self._files():
                if path.name.startswith(f"{TEMPORARY}{name}-"):
                    path.unlink()
                    removed += 1
                elif path.name.startswith(f"{name}-") and path.suffix == SUFFIX:
                    inside = path.relative_to(self.root).as_posix()
                    if inside not in known:
                        orphans[inside] = row_count(path)
        if orphans:
            self.append_to_log(orphans)
        return removed, len(orphans)

    def move_to_trash(self, paths: Iterable[str]) -> None:
        """Move files to the trash, where readers that follow the log with a delay still find them."""
        for inside in paths:
            source, target = self.root / inside, self.root / TRASH / inside
            with lake_errors(source):
                if source.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    source.rename(target)

    # -- reading

    def last_entry(self) -> int:
        """Number of the log's last entry; 0 for an empty log."""
        if not self._last:
            names = [path.name for path in (self.root / LOG).glob("*.json")]
            numbers = [number_of(name) or number_of(name, checkpoint=True) or 0 for name in names]
            self._last = max(numbers, default=0)
        while (self.root / LOG / entry_name(self._last + 1)).exists():
            self._last += 1
        return self._last

    def last_checkpoint(self, until: int | None = None) -> int:
        """Number of the last checkpoint, or of the last one up to an entry; 0 where there is none."""
        return max((number for number in self._checkpoints() if until is None or number <= until), default=0)

    def checkpoint_files(self, number: int) -> dict[str, int]:
        """The files of a checkpoint with their numbers of rows, in the order in which they were added.

        Raises:
            LakeError: the checkpoint was removed.
        """
        if not number:
            return {}
        path = self.root / LOG / checkpoint_name(number)
        with lake_errors(path):
            return parse_checkpoint(path.read_text(encoding="utf-8"))

    def entries(self, after: int = 0, until: int | None = None) -> Iterator[LogEntry]:
        """Entries of the log in order, from the one after `after` up to `until`, or to the last.

        Raises:
            LakeError: an entry is so old that it was removed.
        """
        for number in range(after + 1, (self.last_entry() if until is None else until) + 1):
            path = self.root / LOG / entry_name(number)
            with lake_errors(path):
                yield LogEntry.parse(number, path.read_text(encoding="utf-8"))

    def files(self, until: int | None = None) -> dict[str, int]:
        """The paths of the files in the lake, now or after an entry, with their numbers of rows."""
        start = self.last_checkpoint(until)
        return apply(self.checkpoint_files(start), self.entries(start, until))

    def logged_files(self) -> set[str]:
        """All files that the log mentions, those that were removed from the lake included."""
        found = {path for entry in self.entries(self._first_entry() - 1) for path in entry.added}
        return found | set(self.checkpoint_files(self.last_checkpoint()))

    def removed_files(self) -> set[str]:
        """Files that the log's entries removed from the lake."""
        return {path for entry in self.entries(self._first_entry() - 1) for path in entry.removed}

    def find(self, inside: str) -> Path:
        """Where a file is now: in its folder, or in the trash.

        Raises:
            LakeError: it was deleted from the trash.
        """
        for path in (self.root / inside, self.root / TRASH / inside):
            if path.exists():
                return path
        raise LakeError(f"{self.root / inside}: deleted before it was read; begin again without the checkpoint")

    def _first_entry(self) -> int:
        """Number of the first entry that was not removed; one more than the last where there is none."""
        numbers = [number for path in (self.root / LOG).glob("*.json") if (number := number_of(path.name)) is not None]
        return min(numbers, default=self.last_entry() + 1)

    def _checkpoints(self) -> list[int]:
        """Numbers of the checkpoints, in order."""
        names = [path.name for path in (self.root / LOG).glob("*.checkpoint.json")]
        return sorted(number for name in names if (number := number_of(name, checkpoint=True)) is not None)

    def _files(self) -> Iterator[Path]:
        for top in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if top.is_dir() and not top.name.startswith(("_", ".")):
                yield from (path for path in sorted(top.rglob("*")) if path.is_file())


def row_count(path: Path) -> int:
    """The number of rows in a Parquet file."""
    rows = import_pyarrow().parquet.ParquetFile(path).metadata.num_rows
    assert isinstance(rows, int)
    return rows


def _mtime_ns(path: Path) -> int:
    return path.stat().st_mtime_ns


def _sync(path: Path) -> None:
    """Write a file or a folder through to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
