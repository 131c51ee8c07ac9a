"""The classes of a lake as it grows: their files, and which of them are new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass, choose_classes
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.runs import LeftOut, RecordedRuns
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.table_log import files_added_since
from qmf.pipeline.rollup.source import ClassSource

#: Files with their tables.
Files = list[tuple[LakeTable, TableFile]]


@attrs.frozen
class FollowedClass:
    """All samples of one class at some moment, and the files whose rows came since the last look."""

    source: ClassSource
    new: Files

    @property
    def name(self) -> str:
        """The name of the class with its package."""
        return self.source.full_name


class LakeFollower:
    """Looks for what was added to a lake. Classes that appear later are found; so is a lake that does not exist yet."""

    def __init__(
        self,
        lake: str,
        names: Sequence[str],
        position: Callable[[str], int | None],
        storage: Mapping[str, str] | None = None,
    ) -> None:
        """Follow a lake.

        Args:
            lake: a folder, or a URL that the library's object stores know.
            names: of classes, with or without ``package:``; none for all.
            position: what an earlier follower had read, by the key of `positions`; None for nothing.
            storage: options of the object store.
        """
        self.positions: dict[str, int] = {}
        """What was read: versions by the path of a table. New with each look."""
        self._position = position
        self._names = names
        self._delta = DeltaLake(lake, storage)
        self._runs = RecordedRuns(self._delta)
        self._classes: tuple[RecordedClass, ...] = ()
        self._sources: list[tuple[ClassSource, list[str]]] = []
        self._files: dict[str, list[TableFile]] = {}

    def look(self, until: Mapping[str, int] | None = None) -> list[FollowedClass]:
        """The classes there are now, each with what is new, up to versions of all tables or all that is there.

        Raises:
            LakeError: a table cannot be read, what was not read yet was removed, or versions disagree about a type.
        """
        recorded = self._delta.classes()
        if recorded != self._classes:
            self._classes = recorded
            chosen = choose_classes([item.version for item in recorded])
            self._sources = [
                (ClassSource.of(versions, ()), self._delta.tables_of(versions))
                for versions in chosen
                if self._is_wanted(versions[0])
            ]
        left_out = self._runs.left_out_rows() if self._sources else ()
        return [self._class(source, paths, left_out, until) for source, paths in self._sources]

    def _is_wanted(self, version: ClassVersion) -> bool:
        wanted = [(package, name) for package, _, name in (text.rpartition(":") for text in self._names)]
        return not wanted or any(
            package in ("", version.package) and name.lower() == version.name.lower() for package, name in wanted
        )

    def _class(
        self, source: ClassSource, paths: Sequence[str], left_out: Sequence[LeftOut], until: Mapping[str, int] | None
    ) -> FollowedClass:
        files: Files = []
        new: Files = []
        for path in paths:
            table = self._delta.table(path)
            added = self._look_at(path, until)
            files += [(table, file) for file in self._files.get(path, ())]
            new += [(table, file) for file in added]
        return FollowedClass(source.with_files(files, left_out), new)

    def _look_at(self, path: str, versions: Mapping[str, int] | None) -> Sequence[TableFile]:
        """The new files of a table, up to a version of it, or to where it was read before, if that is later; or all."""
        until = None
        if versions is not None:
            read = self._position_of(path)
            until = max((at for at in (versions.get(path), read) if at is not None), default=None)
            if until is None or (until == read and path in self._files):
                return ()
        url, known = f"{self._delta.url}/{path}", self.positions.get(path)
        tail = None if known is None else files_added_since(url, known, until)
        if tail is not None:
            self.positions[path], added = tail
            self._files[path] += added
            return added
        # What the library keeps of a table is let go: there are many.
        table = LakeTable(url, self._delta.options)
        version = table.version()
        if version is None or version == known:
            return ()
        snapshot = table.snapshot(until)
        found = table.added_files(self._position_of(path), snapshot.version)
        self.positions[path] = snapshot.version
        self._files[path] = list(snapshot.files)
        return found

    def _position_of(self, key: str) -> int | None:
        return self.positions[key] if key in self.positions else self._position(key)
