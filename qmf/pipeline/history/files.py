"""The files of a lake, for readers: which hold rows of a kind, a class version and some days.

The only module of this package that knows how a lake keeps its files.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG, class_folder, date_of
from qmf.pipeline.lake.transaction_log import apply

#: A file that a recorder wrote; a compacted one has the rows of several runs.
_RECORDED = re.compile(r"[^/-]+-(\d{20}_\d+)-\d+\.parquet")


@attrs.frozen
class LakeFile:
    """A file of committed rows.

    Attributes:
        path: where it is.
        day: of its rows, in UTC, ``2030-01-31``; None where it has none.
        run: of the recorder that wrote it; None for a file with the rows of several runs.
    """

    path: str
    day: str | None
    run: str | None


class LakeFiles:
    """The committed files of a lake, as of the last `refresh`."""

    def __init__(self, root: str | Path) -> None:
        """Open a lake.

        Raises:
            LakeError: the folder is not a lake.
        """
        self.root = Path(root)
        if not (self.root / LOG).is_dir():
            raise LakeError(f"{self.root}: not a lake: it has no folder {LOG}")
        self._lake = Lake(self.root)
        self._entry = 0
        self._present: dict[str, int] = {}
        self._by_folder: dict[str, list[LakeFile]] = {}

    def refresh(self) -> bool:
        """See what was committed since; True if there is anything."""
        last = self._lake.last_entry()
        if last == self._entry:
            return False
        if self._entry and last - self._entry < 1000:
            apply(self._present, self._lake.entries(self._entry, last))
        else:
            self._present = self._lake.files(last)
        self._entry = last
        self._by_folder = {}
        for path in self._present:
            self._by_folder.setdefault(path.rpartition("/")[0] + "/", []).append(self._file(path))
        return True

    def select(
        self,
        kind: RowKind,
        key: tuple[str, str, str] = ("", "", ""),
        first: str = "",
        last: str = "9999-12-31",
        runs: Collection[str] | None = None,
    ) -> list[str]:
        """The paths of files, oldest day first.

        Args:
            kind: of their rows.
            key: package, name and hash of a class version; empty for kinds without classes.
            first, last: days, both included.
            runs: only files that may have rows of these runs; None for all.
        """
        prefix = class_folder(kind, key[0], key[1], key[2] or "none") if key[0] else f"{kind.value}/"
        found = [
            file
            for folder, files in self._by_folder.items()
            if folder.startswith(prefix)
            for file in files
            if (file.day is None or first <= file.day <= last)
            and (runs is None or file.run is None or file.run in runs)
        ]
        return [file.path for file in sorted(found, key=lambda file: (file.day or "", file.path))]

    def days(self, kind: RowKind) -> list[str]:
        """The days of which there are rows of a kind, in order."""
        found = {
            file.day
            for folder, files in self._by_folder.items()
            for file in files
            if folder.startswith(f"{kind.value}/")
        }
        return sorted(day for day in found if day is not None)

    def _file(self, path: str) -> LakeFile:
        match = _RECORDED.fullmatch(path.rpartition("/")[2])
        return LakeFile(str(self.root / path), _day_of(path.rpartition("/")[0]), match[1] if match else None)

    def moved(self, paths: Collection[str]) -> Iterator[str]:
        """Where files are that were compacted after they were selected."""
        for path in paths:
            yield str(self._lake.find(Path(path).relative_to(self.root).as_posix()))


@functools.lru_cache(maxsize=4096)
def _day_of(folder: str) -> str | None:
    return date_of(folder)
