"""The files of a lake: committed whole or not at all, in an order that readers can follow.

A commit writes each file under a temporary name, syncs it, renames it, and then adds one entry to the log. Readers who
follow the log see all files of a commit at once, and every commit once. Readers of the folders see whole files only.
What a killed writer leaves behind is either a temporary file, which its next start removes, or a whole file that is not
in the log yet, which its next start enters. A writer holds a lock on its name, so two can't take each other's files.

Knows paths and bytes; what is in a file is the business of `buffers`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import library
from qmf.pipeline.lake.layout import LOG, NAME, SUFFIX, TEMPORARY, TRASH, file_name
from qmf.pipeline.lake.transaction_log import (
    EVERY,
    Entry,
    apply,
    checkpoint_name,
    checkpoint_text,
    entry_name,
    number_of,
    parse_checkpoint,
)


class Lake:
    """A folder of Parquet files with a log.

    Methods block; they raise `LakeError` for everything that the file system refuses, and then have changed nothing.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._last = 0

    def create(self) -> None:
        """Make the folders, where they are missing."""
        with _told(self.root):
            for part in (LOG, TRASH):
                (self.root / part).mkdir(parents=True, exist_ok=True)

    def lock(self, name: str) -> IO[str]:
        """Take the writer's name until the returned file is closed; a killed process lets go of it by itself.

        Raises:
            LakeError: another process has it, or the name is none.
        """
        if not NAME.fullmatch(name):
            raise LakeError(f"a writer's name has 1 to 64 letters, digits, dots and underscores, not {name!r}")
        path = self.root / f"_lock_{name}"
        with _told(path):
            file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise LakeError(f"{self.root}: another process writes as {name!r}; choose another --name") from None
        return file

    # -- writing

    def write(
        self, folder: str, name: str, run: str, number: int, write: Callable[[str], None], *, joined: bool = False
    ) -> str:
        """Write one file whole.

        Args:
            folder: inside the lake.
            name, run, number: of the file.
            write: writes it to the path that it gets.
            joined: its rows are in the lake already.

        Returns:
            its path inside the lake. It is not in the log yet.
        """
        target = self.root / folder / file_name(name, run, number, joined=joined)
        temporary = target.with_name(f"{TEMPORARY}{target.name}")
        with _told(target):
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

    def log(self, added: dict[str, int], removed: Iterable[str] = (), *, moved: bool = False) -> Entry:
        """Add an entry to the log, and a checkpoint where one is due."""
        entry = Entry(self.last() + 1, added, tuple(removed), moved)
        log = self.root / LOG
        with _told(log):
            # A link, unlike a rename, fails where the number was taken by another writer meanwhile.
            with self._temporary(entry.text()) as temporary:
                while True:
                    try:
                        (log / entry_name(entry.number)).hardlink_to(temporary)
                        break
                    except FileExistsError:
                        entry = Entry(entry.number + 1, added, entry.removed, moved)
            _sync(log)
        self._last = entry.number
        if entry.number % EVERY == 0:
            self.checkpoint(entry.number)
        return entry

    def checkpoint(self, number: int) -> None:
        """Write down which files are in the lake after an entry, so that the entries before needn't be read."""
        present = self.files(number)
        log = self.root / LOG
        with _told(log), self._temporary(checkpoint_text(present)) as temporary:
            temporary.rename(log / checkpoint_name(number))

    def forget(self, before_ns: int) -> int:
        """Remove entries and checkpoints that a checkpoint stands for which is older than a time.

        Returns:
            how many entries.
        """
        log = self.root / LOG
        old = [number for number in self._checkpoints() if _mtime_ns(log / checkpoint_name(number)) < before_ns]
        if not old:
            return 0
        forgotten = 0
        with _told(log):
            for path in sorted(log.glob("*.json")):
                number, checkpoint = number_of(path.name), number_of(path.name, checkpoint=True)
                if (number is not None and number <= old[-1]) or (checkpoint is not None and checkpoint < old[-1]):
                    path.unlink()
                    forgotten += number is not None
        return forgotten

    @contextmanager
    def _temporary(self, text: str) -> Iterator[Path]:
        """A file of the log under a name that nobody reads, synced; removed with the block if it is still there."""
        temporary = self.root / LOG / f"{TEMPORARY}{os.getpid()}-{os.urandom(4).hex()}"
        try:
            temporary.write_text(text, encoding="utf-8")
            _sync(temporary)
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def recover(self, name: str) -> tuple[int, int]:
        """Clear up after a writer of this name that was killed; call it with the lock held.

        Returns:
            temporary files removed, and files entered into the log.
        """
        known = self.known()
        orphans: dict[str, int] = {}
        removed = 0
        with _told(self.root):
            for path in self._files():
                if path.name.startswith(f"{TEMPORARY}{name}-"):
                    path.unlink()
                    removed += 1
                elif path.name.startswith(f"{name}-") and path.suffix == SUFFIX:
                    inside = path.relative_to(self.root).as_posix()
                    if inside not in known:
                        orphans[inside] = rows_of(path)
        if orphans:
            self.log(orphans)
        return removed, len(orphans)

    def discard(self, paths: Iterable[str]) -> None:
        """Move files to the trash, where followers of the log that are behind still find them."""
        for inside in paths:
            source, target = self.root / inside, self.root / TRASH / inside
            with _told(source):
                if source.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    source.rename(target)

    # -- reading

    def last(self) -> int:
        """Number of the last entry; 0 for none."""
        if not self._last:
            names = [path.name for path in (self.root / LOG).glob("*.json")]
            numbers = [number_of(name) or number_of(name, checkpoint=True) or 0 for name in names]
            self._last = max(numbers, default=0)
        while (self.root / LOG / entry_name(self._last + 1)).exists():
            self._last += 1
        return self._last

    def last_checkpoint(self, until: int | None = None) -> int:
        """Number of the last checkpoint, or of the last up to an entry; 0 for none."""
        return max((number for number in self._checkpoints() if until is None or number <= until), default=0)

    def at_checkpoint(self, number: int) -> dict[str, int]:
        """The files that were in the lake at a checkpoint, with their rows, in the order of their coming.

        Raises:
            LakeError: there is no such checkpoint any more.
        """
        if not number:
            return {}
        path = self.root / LOG / checkpoint_name(number)
        with _told(path):
            return parse_checkpoint(path.read_text(encoding="utf-8"))

    def entries(self, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Entries of the log in order, beginning behind `after`, ending with `until` or the last one.

        Raises:
            LakeError: they are so old that they were dropped.
        """
        for number in range(after + 1, (self.last() if until is None else until) + 1):
            path = self.root / LOG / entry_name(number)
            with _told(path):
                yield Entry.parse(number, path.read_text(encoding="utf-8"))

    def files(self, until: int | None = None) -> dict[str, int]:
        """The files that are in the lake now, or after an entry, by path, with their rows."""
        start = self.last_checkpoint(until)
        return apply(self.at_checkpoint(start), self.entries(start, until))

    def known(self) -> set[str]:
        """All files that the log tells of, those that went out among them."""
        found = {path for entry in self.entries(self._first() - 1) for path in entry.added}
        return found | set(self.at_checkpoint(self.last_checkpoint()))

    def removed(self) -> set[str]:
        """Files that went out, as far as the log still tells."""
        return {path for entry in self.entries(self._first() - 1) for path in entry.removed}

    def find(self, inside: str) -> Path:
        """Where a file is now: at its place, or in the trash.

        Raises:
            LakeError: it was swept away.
        """
        for path in (self.root / inside, self.root / TRASH / inside):
            if path.exists():
                return path
        raise LakeError(f"{self.root / inside}: swept away before it was read; begin again without the checkpoint")

    def _first(self) -> int:
        """Number of the first entry that was not dropped; one more than the last where there is none."""
        numbers = [number for path in (self.root / LOG).glob("*.json") if (number := number_of(path.name)) is not None]
        return min(numbers, default=self.last() + 1)

    def _checkpoints(self) -> list[int]:
        """Numbers of the checkpoints, in order."""
        names = [path.name for path in (self.root / LOG).glob("*.checkpoint.json")]
        return sorted(number for name in names if (number := number_of(name, checkpoint=True)) is not None)

    def _files(self) -> Iterator[Path]:
        for top in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if top.is_dir() and not top.name.startswith(("_", ".")):
                yield from (path for path in sorted(top.rglob("*")) if path.is_file())


def rows_of(path: Path) -> int:
    """How many rows a file has."""
    rows = library().parquet.ParquetFile(path).metadata.num_rows
    assert isinstance(rows, int)
    return rows


def _mtime_ns(path: Path) -> int:
    return path.stat().st_mtime_ns


def _sync(path: Path) -> None:
    """Have the system write a file or a folder to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class _told:
    """Turns the file system's refusals into `LakeError`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise LakeError(f"{self._path}: {error.strerror or error}") from error
