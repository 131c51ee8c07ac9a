"""What came into the tables of a lake since a position, for readers that follow it.

A position says for each table how much of it was read. It is a plain mapping, so that a reader can store it with its
results and continue after a kill: nothing is read twice, nothing is left out. Files come in the order in which their
rows were recorded, over all tables, so that time advances alike in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.table_files import TableFile


@attrs.frozen
class TablePosition:
    """How much of a table was read: all up to a commit, and `count` files of a later one, `ahead`; None for none."""

    version: int | None = None
    ahead: int | None = None
    count: int = 0


Position = Mapping[str, TablePosition]
"""How much of each table was read, by path; tables that are not in it are unread."""


@attrs.frozen
class FeedFile:
    """A file to read, with the path of its table inside the lake."""

    path: str
    file: TableFile

    @property
    def order(self) -> tuple[int, str, str]:
        """Its place among the files of the lake: by the first arrival of its rows."""
        return (self.file.first_received_ns or 0, self.path, self.file.path)


def position_to_json(position: Position) -> dict[str, list[int | None]]:
    """A position as JSON; see `position_from_json`."""
    return {path: list(attrs.astuple(item)) for path, item in sorted(position.items())}


def position_from_json(value: Mapping[str, list[int | None]]) -> dict[str, TablePosition]:
    return {path: TablePosition(version, ahead, count or 0) for path, (version, ahead, count) in value.items()}


class LakeFeed:
    """Follows tables of a lake. Belongs to one thread at a time."""

    def __init__(self, lake: DeltaLake) -> None:
        """Follow a lake, of which nothing was read yet."""
        self._lake = lake
        self._known: dict[str, tuple[int | None, int, tuple[TableFile, ...]]] = {}

    def next_position(
        self,
        start: Position,
        paths: Iterable[str],
        *,
        limit: int | None = None,
        end: Mapping[str, int] | None = None,
        until_ns: int | None = None,
    ) -> dict[str, TablePosition]:
        """The position after the next files of some tables; others of `start` stay where they are.

        Args:
            limit: of the number of files, about: those recorded at the same time are not separated. None for all.
            end: numbers of commits after which nothing is read, by path; None for no limit.
            until_ns: files with rows that arrived later are not read yet, nor those after them; None for no limit.

        Raises:
            LakeError: a commit after `start` was removed from the log of a table.
        """
        targets: dict[str, int] = {}
        waiting: list[FeedFile] = []
        for path in paths:
            version = self._lake.table(path).version() if end is None else end.get(path)
            if version is not None:
                before = start.get(path, TablePosition())
                # A part that was begun is ended before a later commit is begun.
                targets[path] = version if before.ahead is None else before.ahead
                waiting += self._unread_files(path, before, targets[path])
        ordered = sorted(waiting, key=lambda item: item.order)
        if until_ns is not None:
            late = (at for at, item in enumerate(ordered) if (item.file.last_received_ns or 0) > until_ns)
            ordered = ordered[: next(late, None)]
        taken = _first(ordered, limit)
        found = dict(start)
        for path, version in targets.items():
            count = sum(item.path == path for item in taken)
            total = sum(item.path == path for item in waiting)
            if total and not count:
                continue  # the position stays, so that nothing seems to be new
            found[path] = _advance_position(start.get(path, TablePosition()), version, count, total)
        return found

    def files(self, start: Position, end: Position) -> list[FeedFile]:
        """The files between two positions, in the order in which they were recorded."""
        found: list[FeedFile] = []
        for path, last in end.items():
            first = start.get(path, TablePosition())
            if first == last:
                continue
            if last.ahead is not None:
                files = self._unread_files(path, first, last.ahead, last.count)
            elif last.version is not None:
                files = self._unread_files(path, first, last.version)
            else:
                files = []
            found += files
        return sorted(found, key=lambda item: item.order)

    def _unread_files(self, path: str, start: TablePosition, until: int, count: int | None = None) -> list[FeedFile]:
        """The files of a table from a position up to a commit, or the first of those up to `count` files of it."""
        if start.ahead is None:
            return self._added_files(path, start.version, until)[:count]
        begun = self._added_files(path, start.version, start.ahead)
        if start.ahead == until:
            return begun[start.count : count]
        return [*begun[start.count :], *self._added_files(path, start.ahead, until)[:count]]

    def _added_files(self, path: str, after: int | None, until: int) -> list[FeedFile]:
        if after is not None and until <= after:
            return []
        known = self._known.get(path)
        if known is None or known[:2] != (after, until):
            known = self._known[path] = (after, until, self._lake.table(path).added_files(after, until))
        return sorted((FeedFile(path, file) for file in known[2]), key=lambda item: item.order)


def _advance_position(start: TablePosition, version: int, count: int, total: int) -> TablePosition:
    """The position in a table after some of the files up to a commit, of which there were `total`."""
    if count == total:
        return TablePosition(version if start.version is None else max(version, start.version))
    return TablePosition(start.version, version, start.count + count)


def _first(files: list[FeedFile], limit: int | None) -> list[FeedFile]:
    if limit is None or len(files) <= limit:
        return files
    end = max(limit, 1)
    last = max(item.file.last_received_ns or 0 for item in files[:end])
    while end < len(files) and (files[end].file.first_received_ns or 0) <= last:
        last = max(last, files[end].file.last_received_ns or 0)
        end += 1
    return files[:end]
