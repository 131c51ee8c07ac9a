"""The files of a lake: committed whole or not at all, in an order that readers can follow.

A commit writes each file under a temporary name, syncs it, renames it, and then adds one entry to the log. Readers who
follow the log see all files of a commit at once, and every commit once. Readers of the folders see whole files only.
What a killed writer leaves behind is either a temporary file, which its next start removes, or a whole file that is not
in the log yet, which its next start enters. A writer holds a lock on its name, so two can't take each other's files.

Knows paths and bytes; what is in a file is the business of `buffers`.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import attrs

from qmf.pipeline.arrow import library
from qmf.pipeline.errors import LakeError
from qmf.pipeline.layout import LOG, NAME, SUFFIX, TEMPORARY, TRASH, file_name, log_name


@attrs.frozen
class Entry:
    """One commit.

    Attributes:
        number: its place in the order, from 1 without a gap.
        added: paths of the files that came in, with their rows.
        removed: paths that went out; their rows are in `added` where `moved` is true.
        moved: the files hold rows that were in the lake before: nothing new for followers.
    """

    number: int
    added: dict[str, int]
    removed: tuple[str, ...] = ()
    moved: bool = False


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

    def write(self, folder: str, name: str, run: str, number: int, write: Callable[[str], None]) -> str:
        """Write one file whole.

        Args:
            folder: inside the lake.
            name, run, number: of the file.
            write: writes it to the path that it gets.

        Returns:
            its path inside the lake. It is not in the log yet.
        """
        target = self.root / folder / file_name(name, run, number)
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
        """Add an entry to the log."""
        number = self.last() + 1
        content = {"added": added, "removed": list(removed), "moved": moved}
        log = self.root / LOG
        temporary = log / f"{TEMPORARY}{os.getpid()}-{os.urandom(4).hex()}"
        with _told(log):
            try:
                temporary.write_text(json.dumps(content), encoding="utf-8")
                _sync(temporary)
                # A link, unlike a rename, fails where the number was taken by another writer meanwhile.
                while True:
                    try:
                        (log / log_name(number)).hardlink_to(temporary)
                        break
                    except FileExistsError:
                        number += 1
            finally:
                temporary.unlink(missing_ok=True)
            _sync(log)
        self._last = number
        return Entry(number, added, tuple(content["removed"]), moved)  # type: ignore[arg-type]

    def recover(self, name: str) -> tuple[int, int]:
        """Clear up after a writer of this name that was killed; call it with the lock held.

        Returns:
            temporary files removed, and files entered into the log.
        """
        known = {path for entry in self.entries() for path in entry.added}
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
            self._last = max((int(path.stem) for path in (self.root / LOG).glob("*.json")), default=0)
        while (self.root / LOG / log_name(self._last + 1)).exists():
            self._last += 1
        return self._last

    def entries(self, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Entries of the log in order, beginning behind `after`, ending with `until` or the last one."""
        for number in range(after + 1, (self.last() if until is None else until) + 1):
            path = self.root / LOG / log_name(number)
            with _told(path):
                content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            yield Entry(number, content["added"], tuple(content["removed"]), content["moved"])

    def files(self) -> dict[str, int]:
        """The files that are in the lake now, by path, with their rows."""
        present: dict[str, int] = {}
        for entry in self.entries():
            present.update(entry.added)
            for path in entry.removed:
                present.pop(path, None)
        return present

    def find(self, inside: str) -> Path:
        """Where a file is now: at its place, or in the trash.

        Raises:
            LakeError: it was swept away.
        """
        for path in (self.root / inside, self.root / TRASH / inside):
            if path.exists():
                return path
        raise LakeError(f"{self.root / inside}: swept away before it was read; begin again without the checkpoint")

    def _files(self) -> Iterator[Path]:
        for top in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if top.is_dir() and not top.name.startswith(("_", ".")):
                yield from (path for path in sorted(top.rglob("*")) if path.is_file())


def rows_of(path: Path) -> int:
    """How many rows a file has."""
    rows = library().parquet.ParquetFile(path).metadata.num_rows
    assert isinstance(rows, int)
    return rows


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
