"""The samples of a class in a lake, by day: what the roll-up of a day reads. The only access of roll-ups to files."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.aggregation.members import NumberMember, number_members
from qmf.pipeline.duckdb_queries import parquet_files, quoted
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema
from qmf.pipeline.lake.classes import choose_classes, columns_of_versions, local_class_versions
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.lake_table import LakeTable, TableFile
from qmf.pipeline.lake.layout import class_folder, date_of
from qmf.pipeline.lake.location import is_local, local_path
from qmf.pipeline.lake.row_columns import Columns

#: The columns of samples that a roll-up reads besides the values.
_COLUMNS = (
    ("_run", ColumnType.TEXT),
    ("_seq", ColumnType.INT64),
    ("_ts_ns", ColumnType.INT64),
    ("_received_ns", ColumnType.INT64),
    ("_agent", ColumnType.TEXT),
    ("_epoch", ColumnType.INT64),
    ("_object", ColumnType.TEXT),
    ("_create_ns", ColumnType.INT64),
    ("_delete_ns", ColumnType.INT64),
    ("_statistics", ColumnType.BOOL),
)


@attrs.frozen
class ClassSource:
    """The samples of one class.

    Attributes:
        versions: of the class.
        members: its numbers.
        days: the files by day, each with the URL of its table.
        where: condition in SQL for the samples to read; empty for all.
    """

    versions: Sequence[ClassVersion]
    members: Sequence[NumberMember]
    days: Mapping[str, Sequence[tuple[str, TableFile]]]
    where: str = ""

    @classmethod
    def of(cls, versions: Sequence[ClassVersion], files: Iterable[tuple[str, TableFile]]) -> ClassSource:
        """The samples in some files.

        Raises:
            LakeError: versions disagree about a type.
        """
        columns_of_versions(RowKind.OBJECTS, versions)  # refuses versions that cannot be read together
        days: dict[str, list[tuple[str, TableFile]]] = defaultdict(list)
        for url, file in files:
            if file.date is not None:
                days[file.date].append((url, file))
        return cls(versions, number_members(versions), dict(days))

    @property
    def package(self) -> str:
        """The package of the class."""
        return self.versions[0].package

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.versions[0].name

    def between(self, first: str | None, last: str | None) -> list[str]:
        """The days with samples, in order, from one day to another; None for no limit."""
        return [day for day in sorted(self.days) if (first or day) <= day <= (last or day)]

    def samples(self, first: str | None, last: str | None) -> int:
        """The number of rows of some days, as of `between`."""
        return sum(file.rows for day in self.between(first, last) for _, file in self.days[day])

    def within(self, first_ns: int, last_ns: int) -> ClassSource:
        """The samples from one time on, before another one."""
        return attrs.evolve(self, where=f"_ts_ns >= {first_ns} and _ts_ns < {last_ns}")

    def sql(self, connection: Any, days: Sequence[str]) -> str:
        """The samples of some days, with all columns of the members, as SQL for a connection to DuckDB."""
        found = self._sql(connection, days)
        return f"(select * from {found} where {self.where})" if self.where else found

    def _sql(self, connection: Any, days: Sequence[str]) -> str:
        columns = dict(sample_columns(self.versions, self.members))
        names = ", ".join(quoted(name) for name in columns)
        files = [item for day in days for item in self.days[day]]
        if all(is_local(url) for url, _ in files):
            found = parquet_files([file.url for _, file in files], ", union_by_name = true")
            if len(self.versions) == 1:
                return f"(select {names} from {found})"
            # Columns of versions that none of the files has.
            connection.register(_EMPTY, arrow_schema(tuple(columns.items())).empty_table())
            return f"(select {names} from (select * from {found} union all by name select * from {_EMPTY}))"
        parts: list[str] = []
        for url in dict.fromkeys(url for url, _ in files):
            dataset = LakeTable(url).dataset(
                [file for own, file in files if own == url], arrow_schema(tuple(columns.items()))
            )
            table = f"qmf_files_{len(parts)}"
            connection.register(table, dataset)
            parts.append(f"select {names} from {table}")
        return f"({' union all '.join(parts)})"


_EMPTY = "qmf_no_samples"


def sample_columns(versions: Sequence[ClassVersion], members: Sequence[NumberMember]) -> Columns:
    """The columns that a roll-up of some members of a class reads.

    Raises:
        LakeError: versions disagree about a type.
    """
    types = dict(columns_of_versions(RowKind.OBJECTS, versions))
    own = dict.fromkeys(name for member in members for name in member.columns)
    return (*_COLUMNS, *((name, types[name]) for name in own))


def class_sources(lake: str, names: Iterable[str] = ()) -> list[ClassSource]:
    """The samples of the classes of a lake.

    Args:
        lake: a folder, or a URL that the library's object stores know.
        names: of classes, with or without ``package:``; none for all.

    Raises:
        LakeError: no lake, no such class, or versions disagree about a type.
    """
    delta = DeltaLake(lake)
    if is_local(lake) and not delta.exists():
        return _old_sources(Lake(local_path(lake)), names)
    return [
        ClassSource.of(
            versions,
            [
                (delta.table(path).url, file)
                for path in delta.tables_of(versions)
                if delta.table(path).version() is not None
                for file in delta.table(path).snapshot().files
            ],
        )
        for versions in choose_classes(delta.class_versions(), names)
    ]


def _old_sources(lake: Lake, names: Iterable[str]) -> list[ClassSource]:
    """The same of a lake with a log of its own."""
    found = []
    for versions in choose_classes(local_class_versions(lake), names):
        folder = class_folder(RowKind.OBJECTS, versions[0].package, versions[0].name)
        files = [
            (str(lake.root), TableFile(path, str(lake.find(path)), date_of(path), rows, 0))
            for path, rows in lake.files().items()
            if path.startswith(folder)
        ]
        found.append(ClassSource.of(versions, files))
    return found


def day_start_ns(day: str) -> int:
    """The time at which a day begins."""
    return int(datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 10**9
