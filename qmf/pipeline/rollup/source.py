"""The samples of a class in a lake, by day, and as the lake grows. The only access of roll-ups to files."""

from __future__ import annotations

import datetime
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import parquet_files, quote_name
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema
from qmf.pipeline.lake.columns import ClassVersion, Columns, some_columns
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.days import day as utc_day
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass, choose_classes, columns_of_versions
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.lake.runs import LeftOut, RecordedRuns, counted_condition
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.table_log import files_added_since
from qmf.pipeline.rollup.members import NumberMember, number_members
from qmf.pipeline.rollup.zones import Zone

#: The columns of samples that a roll-up reads besides the values.
_COLUMNS = (
    *some_columns(RowKind.OBJECTS, "_run", "_seq", "_ts_ns", "_received_ns", "_agent", "_epoch", "_object"),
    *some_columns(RowKind.OBJECTS, "_create_ns", "_delete_ns", "_statistics"),
)

#: What parts of the time may read of all samples together, and the samples of the largest one, as of their limit.
MOST_READ, MOST_OF_PART = 1.5, 2.0


@attrs.frozen
class ClassSource:
    """The samples of one class.

    Attributes:
        versions: of the class.
        members: its numbers.
        days: the files by day, each with its table.
        left_out: rows that don't count, since another recorder has them too.
        where: condition in SQL for the samples to read; empty for all.
    """

    versions: Sequence[ClassVersion]
    members: Sequence[NumberMember]
    days: Mapping[str, Sequence[tuple[LakeTable, TableFile]]]
    left_out: Sequence[LeftOut] = ()
    where: str = ""

    @classmethod
    def of(
        cls,
        versions: Sequence[ClassVersion],
        files: Iterable[tuple[LakeTable, TableFile]],
        left_out: Sequence[LeftOut] = (),
    ) -> ClassSource:
        """The samples in some files, but for those that are left out; `LakeError` if versions disagree about a type."""
        columns_of_versions(RowKind.OBJECTS, versions)  # refuses versions that cannot be read together
        return cls(versions, number_members(versions), {}).with_files(files, left_out)

    def files_since(self, start: int) -> list[tuple[LakeTable, TableFile]]:
        """The files that may have samples of a time, in ns, or later."""
        files = (item for day in self.days.values() for item in day)
        return [(table, file) for table, file in files if file.last_ns is None or file.last_ns >= start]

    def with_files(self, files: Iterable[tuple[LakeTable, TableFile]], left_out: Sequence[LeftOut] = ()) -> ClassSource:
        """The samples of the same class in other files, but for those that are left out."""
        days: dict[str, list[tuple[LakeTable, TableFile]]] = defaultdict(list)
        for table, file in files:
            if file.date is not None:
                days[file.date].append((table, file))
        return attrs.evolve(self, days=dict(days), left_out=left_out)

    @property
    def package(self) -> str:
        """The package of the class."""
        return self.versions[0].package

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.versions[0].name

    @property
    def full_name(self) -> str:
        """The name of the class with its package."""
        return f"{self.package}:{self.name}"

    def between(self, first: str | None, last: str | None) -> list[str]:
        """The days with samples, in order, from one day to another; None for no limit."""
        return [day for day in sorted(self.days) if (first or day) <= day <= (last or day)]

    def zone_days(self, zone: Zone, first: str | None, last: str | None) -> list[str]:
        """The days of a time zone that may have samples, in order, from one of them to another; None for no limit."""
        return [day for day in zone.days_of(list(self.days)) if (first or day) <= day <= (last or day)]

    def of_day(self, zone: Zone, day: str) -> ClassSource:
        """The samples of one day of a time zone."""
        if zone.is_utc:
            return attrs.evolve(self, days={day: self.days.get(day, ())})
        return self.of_times(zone.start_ns(day), zone.end_ns(day))

    def of_times(self, first_ns: int, end_ns: int) -> ClassSource:
        """The samples from one time until before another one."""
        days = {}
        for date in self.between(utc_day(first_ns), utc_day(end_ns - 1)):
            files = [
                (table, file)
                for table, file in self.days[date]
                if (file.last_ns is None or file.last_ns >= first_ns)
                and (file.first_ns is None or file.first_ns < end_ns)
            ]
            if files:
                days[date] = files
        times = f"(_ts_ns >= {first_ns} and _ts_ns < {end_ns})"
        return attrs.evolve(self, days=days, where=f"({self.where}) and {times}" if self.where else times)

    def time_parts(self, first_ns: int, end_ns: int, limit: int, step: int) -> list[ClassSource]:
        """The samples between two times in parts by time, of about `limit` samples each.

        No window, which is a step long, has samples of two parts. There are none where files would be read too often,
        or a part would be too large.
        """
        whole = self.of_times(first_ns, end_ns)
        files = [file for own in whole.days.values() for _table, file in own]
        edges, count = [first_ns], 0
        for file in sorted(files, key=lambda file: file.first_ns or first_ns):
            at = (file.first_ns or first_ns) // step * step
            if count >= limit and at > edges[-1]:
                edges.append(at)
                count = 0
            count += file.rows
        # Many files may begin in one window, before which there are none.
        parts = [part for times in itertools.pairwise([*edges, end_ns]) if (part := self.of_times(*times)).days]
        samples = [part.samples(None, None) for part in parts]
        is_good = (
            sum(samples) <= MOST_READ * whole.samples(None, None) and max(samples, default=0) <= MOST_OF_PART * limit
        )
        return parts if is_good else []

    def samples(self, first: str | None, last: str | None) -> int:
        """The number of rows of some days, as of `between`."""
        return sum(file.rows for day in self.between(first, last) for _, file in self.days[day])

    def sql(self, connection: Any, days: Sequence[str] | None = None) -> str:
        """The samples of all or some days, with all columns of the members, as SQL for a connection to DuckDB."""
        found = self._sql(connection, sorted(self.days) if days is None else days)
        return f"(select * from {found} where {self.where})" if self.where else found

    def _sql(self, connection: Any, days: Sequence[str]) -> str:
        columns = dict(sample_columns(self.versions, self.members))
        names = ", ".join(quote_name(name) for name in columns)
        files = [item for day in days for item in self.days[day]]
        where = self._where(days)
        if all(is_local(table.url) for table, _ in files):
            found = parquet_files([file.url for _, file in files], ", union_by_name = true")
            if len(self.versions) == 1:
                return f"(select {names} from {found}{where})"
            # Columns of versions that none of the files has.
            connection.register(_EMPTY, arrow_schema(tuple(columns.items())).empty_table())
            return f"(select {names} from (select * from {found} union all by name select * from {_EMPTY}){where})"
        parts: list[str] = []
        for table in dict.fromkeys(table for table, _ in files):
            own = [file for of, file in files if of is table]
            name = f"qmf_files_{len(parts)}"
            connection.register(name, table.dataset(own, arrow_schema(tuple(columns.items()))))
            parts.append(f"select {names} from {name}{where}")
        return f"({' union all '.join(parts)})"

    def _where(self, days: Sequence[str]) -> str:
        """The condition for rows of some days that count."""
        if not days or not self.left_out:
            return ""
        first, end = day_start_ns(min(days)), day_start_ns(max(days)) + NS_PER_DAY
        condition = counted_condition([row for row in self.left_out if row.first_ns < end and row.end_ns > first])
        return f" where {condition}" if condition else ""


_EMPTY = "qmf_no_samples"


def sample_columns(versions: Sequence[ClassVersion], members: Sequence[NumberMember]) -> Columns:
    """The columns that a roll-up of some members of a class reads; `LakeError` if versions disagree about a type."""
    types = dict(columns_of_versions(RowKind.OBJECTS, versions))
    own = dict.fromkeys(name for member in members for name in member.columns)
    return (*_COLUMNS, *((name, types[name]) for name in own))


def class_sources(lake: DeltaLake, names: Iterable[str] = ()) -> list[ClassSource]:
    """The samples of the classes of a lake, of all or of those that are named, with or without ``package:``.

    Raises:
        LakeError: no lake, no such class, or versions disagree about a type.
    """
    left_out = RecordedRuns(lake).left_out_rows()
    return [
        ClassSource.of(
            versions,
            [
                (lake.table(path), file)
                for path in lake.tables_of(versions)
                if lake.table(path).version() is not None
                for file in lake.table(path).snapshot().files
            ],
            left_out,
        )
        for versions in choose_classes(lake.class_versions(), names)
    ]


def day_start_ns(day: str) -> int:
    """The time at which a day begins."""
    return int(datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 10**9


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
