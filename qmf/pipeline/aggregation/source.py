"""The samples of a class in a lake, by day: what the roll-up of a day reads. The only access of roll-ups to files."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.aggregation.members import NumberMember, number_members
from qmf.pipeline.duckdb_queries import parquet_files, quoted
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import columns_of_versions
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import class_folder, class_of, date_of

#: The columns of samples that a roll-up reads besides the values.
_COLUMNS = ("_run", "_seq", "_ts_ns", "_agent", "_epoch", "_object", "_create_ns", "_delete_ns", "_statistics")


@attrs.frozen
class DayFiles:
    """The files of a day.

    Attributes:
        paths: of the files.
        columns: those of the members that some file has.
        samples: number of rows.
    """

    paths: Sequence[str]
    columns: frozenset[str]
    samples: int


@attrs.frozen
class ClassSource:
    """The samples of one class.

    Attributes:
        versions: of the class.
        members: its numbers.
        days: the files, by day.
    """

    versions: Sequence[ClassVersion]
    members: Sequence[NumberMember]
    days: Mapping[str, DayFiles]

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
        return sum(self.days[day].samples for day in self.between(first, last))

    def sql(self, day: str) -> str:
        """The samples of a day, with all columns of the members."""
        files = self.days[day]
        columns = [
            *_COLUMNS,
            *(
                quoted(name) if name in files.columns else f"cast(null as bigint) as {quoted(name)}"
                for name in sample_columns(self.members)
            ),
        ]
        return f"(select {', '.join(columns)} from {parquet_files(files.paths, ', union_by_name = true')})"


def class_source(lake: Lake, versions: Sequence[ClassVersion]) -> ClassSource:
    """The samples of a class in a lake in a folder.

    Raises:
        LakeError: versions disagree about a type.
    """
    columns_of_versions(RowKind.OBJECTS, versions)  # refuses versions that cannot be read together
    folder = class_folder(RowKind.OBJECTS, versions[0].package, versions[0].name)
    paths: dict[str, list[str]] = defaultdict(list)
    columns: dict[str, set[str]] = defaultdict(set)
    by_hash = {version.hash: {column.name for column in version.columns} for version in versions}
    samples: Counter[str] = Counter()
    for path, rows in lake.files().items():
        day = date_of(path) if path.startswith(folder) else None
        if day is not None:
            paths[day].append(str(lake.find(path)))
            columns[day] |= by_hash[class_of(path)[2]]
            samples[day] += rows
    days = {day: DayFiles(found, frozenset(columns[day]), samples[day]) for day, found in paths.items()}
    return ClassSource(versions, number_members(versions), days)


def sample_columns(members: Sequence[NumberMember]) -> list[str]:
    """The columns of some members, each once."""
    return list(dict.fromkeys(name for member in members for name in member.columns))


def day_start_ns(day: str) -> int:
    """The time at which a day begins."""
    return int(datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 10**9
