"""Readers of the Spark data source `qmf` over the tables of a lake: a batch, a stream, and one of versions for jobs.

An offset of a stream says for each table how much of it was read, see `qmf.pipeline.lake.feed`. Files don't change once
they were committed, and files that were only combined hold no new rows, so a restarted query reads exactly what it has
not committed. Where several recorders record the same agents, the rows of one count, see `qmf.pipeline.lake.runs`; a
stream waits for the heartbeats that decide. Spark applies all filters once more that reach the files.

Jobs read the rows themselves, in the tasks of a micro-batch. So offsets of theirs are versions of tables, the numbers
of the last commits, which Spark keeps in its checkpoint, and a micro-batch that Spark runs again after a kill has the
versions that it had before.
"""

from __future__ import annotations

import datetime
import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql import datasource
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from qmf.pipeline.errors import import_extra
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.feed import FeedFile, LakeFeed, position_from_json, position_to_json
from qmf.pipeline.lake.file_rows import WantedRows, file_rows, has_classes
from qmf.pipeline.lake.lake_versions import LakeVersions, all_versions
from qmf.pipeline.lake.runs import LeftOut, RecordedRuns
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.waiting import ReaderNote, waiting_since

if TYPE_CHECKING:
    from qmf.pipeline.record.lake_recorder import Spool


#: Files of one micro-batch at most, about: what limits its memory.
DEFAULT_FILES = 1000

#: Files that one task reads at most, and their bytes: a task costs more than opening a small file.
_TASK_FILES, _TASK_BYTES = 64, 32 * 1024 * 1024

Offset = dict[str, list[int | None]]

PathFilter = Callable[[str], bool]
"""True for the paths of the tables that a query reads."""


class FilesPartition(InputPartition):
    """Files that one task reads, and the rows in them that don't count, since another recorder has them too."""

    def __init__(self, files: Sequence[FeedFile], left_out: tuple[LeftOut, ...] = ()) -> None:
        super().__init__(files)
        self.files = files
        self.left_out = left_out


def partitions_of(files: Sequence[FeedFile], left_out: Sequence[LeftOut]) -> list[InputPartition]:
    """Files in parts, one for each task: a few files, or a few more where they are small."""
    parts: list[list[FeedFile]] = []
    size = 0
    for item in files:
        if not parts or len(parts[-1]) >= _TASK_FILES or size + item.file.size > _TASK_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += item.file.size
    found: list[InputPartition] = []
    for part in parts:
        own = tuple(row for row in left_out if any(_may_have(item.file, row) for item in part))
        found.append(FilesPartition(part, own))
    return found


def _may_have(file: TableFile, row: LeftOut) -> bool:
    if file.first_ns is None or file.last_ns is None:
        return True
    return file.run in (None, row.run) and file.first_ns < row.end_ns and file.last_ns >= row.first_ns


def read_files(lake: DeltaLake, partition: InputPartition, wanted: WantedRows) -> Iterator[Any]:
    assert isinstance(partition, FilesPartition)
    wanted = attrs.evolve(wanted, left_out=partition.left_out)
    for item in partition.files:
        yield from file_rows(lake.table(item.path), item, wanted)


class LakeBatchReader(DataSourceReader):
    """Reads what is in some tables of a lake."""

    def __init__(self, lake: DeltaLake, files: Sequence[FeedFile], wanted: WantedRows) -> None:
        """Prepare the reading of some rows and columns of files."""
        self._lake = lake
        self._files = tuple(files)
        self._wanted = wanted
        self._filters: Sequence[Filter] = ()

    def partitions(self) -> list[InputPartition]:
        """A few files for each task; Spark asks for one part at least."""
        files = [item for item in self._files if may_have(item.file, self._filters)]
        has_rows = any(has_classes(item.path) for item in files)
        left_out = RecordedRuns(self._lake).left_out_rows() if has_rows else ()
        return partitions_of(files, left_out) or [FilesPartition([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_files(self._lake, partition, self._wanted)


class FilteringLakeReader(LakeBatchReader):
    """The same for one query, whose filters reach the files.

    For one query alone: Spark keeps what a query with filters reads, and a later query of the same frame without
    filters gets that, too (seen with Spark 4.3).
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Leave out files, row groups and rows that cannot meet filters; Spark applies all of them once more."""
        types = {field.name: field.type for field in arrow_schema(self._wanted.columns)}
        self._filters = [item for item in filters if condition_of([item], types) is not None]
        self._wanted = attrs.evolve(self._wanted, condition=condition_of(filters, types))
        return filters


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows tables of a lake. Runs in a process of its own beside the driver; `read` runs in the executors."""

    def __init__(
        self,
        lake: DeltaLake,
        wanted: WantedRows,
        includes: PathFilter,
        *,
        limit: int = DEFAULT_FILES,
        spooled: tuple[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Make a reader of tables that `includes` chooses, also later ones, by micro-batches of about `limit` files.

        `spooled` is the URL of a bus to record into the lake meanwhile, with options of the spool.
        """
        self._lake = lake
        self._wanted = wanted
        self._includes = includes
        self._limit = limit
        self._spooled = spooled
        self._spool: Spool | None = None
        self._feed = LakeFeed(lake)
        self._runs = RecordedRuns(lake)
        self._note = ReaderNote(lake, "spark", time.time_ns)
        self._end: dict[str, int] | None = None

    # -- beside the driver

    def initialOffset(self) -> Offset:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of files, unless Spark asks for all."""
        return ReadMaxFiles(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the last commits as the end."""
        self._end = self._lake.versions(self._paths())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        if self._spooled is not None and self._spool is None:
            from qmf.pipeline.record.lake_recorder import Spool  # loads the console, which no other stream needs

            self._spool = Spool(self._spooled[0], self._lake.url, self._spooled[1])
        files = None if isinstance(limit, ReadAllAvailable) else self._limit
        paths = self._paths()
        # All that is there is read at the end, so there is nothing to wait for.
        until = None if self._end is not None else self._known_until(paths)
        position = self._feed.next_position(
            position_from_json(start), paths, limit=files, end=self._end, until_ns=until
        )
        return position_to_json(position)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The files that came between two offsets, a few for each task."""
        found = self._feed.files(position_from_json(start), position_from_json(end))
        has_rows = any(has_classes(item.path) for item in found)
        return partitions_of(found, self._runs.left_out_rows() if has_rows else ())

    def commit(self, end: Offset) -> None:
        """Nothing to release: files are removed by the lake's retention."""

    def stop(self) -> None:
        """Stop the spool, and let recorders hold rows back again."""
        self._note.close()
        if self._spool is not None:
            self._spool.close()

    def _known_until(self, paths: Sequence[str]) -> int | None:
        """The time of arrival up to which all rows are there, and it is known which of them count."""
        self._note.renew(paths)
        now = time.time_ns()
        waiting = waiting_since(self._lake, now)
        limits = [waiting[path] - 1 for path in paths if path in waiting]
        if any(has_classes(path) for path in paths):
            decided = self._runs.decided_until(now)
            limits += [] if decided is None else [decided]
        return min(limits, default=None)

    def _paths(self) -> list[str]:
        return [path for path in self._lake.paths() if self._includes(path)]

    # -- in an executor

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_files(self._lake, partition, self._wanted)


_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    datasource.EqualTo: operator.eq,
    datasource.LessThan: operator.lt,
    datasource.LessThanOrEqual: operator.le,
    datasource.GreaterThan: operator.gt,
    datasource.GreaterThanOrEqual: operator.ge,
}

#: Filters of texts, and the functions of `pyarrow.compute` for them.
_TEXTS: Mapping[type, str] = {
    datasource.StringStartsWith: "starts_with",
    datasource.StringEndsWith: "ends_with",
    datasource.StringContains: "match_substring",
}


#: Whether a filter with a value may be met by values from a low to a high one.
_RANGES: Mapping[type, Callable[[Any, Any, Any], bool]] = {
    datasource.EqualTo: lambda value, low, high: low <= value <= high,
    datasource.LessThan: lambda value, low, _high: low < value,
    datasource.LessThanOrEqual: lambda value, low, _high: low <= value,
    datasource.GreaterThan: lambda value, _low, high: high > value,
    datasource.GreaterThanOrEqual: lambda value, _low, high: high >= value,
    datasource.In: lambda values, low, high: any(low <= value <= high for value in values),
}


def may_have(file: TableFile, filters: Sequence[Any]) -> bool:
    """True unless the limits in the log show that no row of a file meets all filters, which fit the columns' types."""
    since = datetime.datetime.fromtimestamp(0, datetime.UTC)
    times = (since + datetime.timedelta(microseconds=(ns or 0) // 1000) for ns in (file.first_ns, file.last_ns))
    ends = (*file.limits, ("_run", file.run, file.run), ("_ts", *(times if file.last_ns is not None else (None, None))))
    limits = {name: (low, high) for name, low, high in ends if low is not None and high is not None}
    for item in filters:
        test, known = _RANGES.get(type(item)), limits.get(".".join(getattr(item, "attribute", ())))
        if test is not None and known is not None and not test(item.value, *known):
            return False
    return True


def condition_of(filters: Iterable[Any], types: Mapping[str, Any]) -> Any:
    """The filters that can be expressions of pyarrow together, by the columns' types in Arrow; None for none.

    As for Spark, numbers that are no numbers are larger than all others.
    """
    found = [made for item in filters if (made := _expression(item, types)) is not None]
    return reduce(operator.and_, found) if found else None


def _expression(item: Any, types: Mapping[str, Any], *, negated: bool = False) -> Any:
    if isinstance(item, datasource.Not):
        return _expression(item.child, types, negated=not negated)
    column = ".".join(getattr(item, "attribute", ()))
    if column not in types:
        return None
    field = import_extra("pyarrow.compute").field(column)
    if isinstance(item, (datasource.IsNull, datasource.IsNotNull)):
        return field.is_null() if isinstance(item, datasource.IsNull) != negated else field.is_valid()
    found = _comparison(item, field, types[column])
    # Null is neither in a list nor out of it.
    return found if found is None or not negated else ~found & field.is_valid()


def _comparison(item: Any, field: Any, type_: Any) -> Any:
    pa = import_pyarrow()
    values = [_in_utc(value) for value in (item.value if isinstance(item, datasource.In) else [item.value])]
    if not all(_fits(value, type_) for value in values):
        return None
    if isinstance(item, datasource.In):
        found = field.isin(pa.array(values, type_))
    elif type(item) in _TEXTS and pa.types.is_string(type_):
        return getattr(import_extra("pyarrow.compute"), _TEXTS[type(item)])(field, values[0])
    elif type(item) in _COMPARISONS:
        found = _COMPARISONS[type(item)](field, pa.scalar(values[0], type_))
    else:
        return None
    if not pa.types.is_floating(type_):
        return found
    is_large = isinstance(item, (datasource.GreaterThan, datasource.GreaterThanOrEqual))
    return found | field.is_nan() if is_large else found & ~field.is_nan()


def _fits(value: Any, type_: Any) -> bool:
    """True if a value can be compared with those of a column of this Arrow type."""
    pa = import_pyarrow()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return False
    try:
        return bool(pa.scalar(value, type_).as_py() == value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return False


def _in_utc(value: Any) -> Any:
    """A value as Arrow has it."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return value


#: The kind of rows, among the options of the source.
VERSIONS = "versions"

#: The columns: path of a table in the lake, number of its last commit, and until when it was complete: the arrival of
#: the first row that recorders held back. Both may be null.
SCHEMA = T.StructType(
    [
        T.StructField("path", T.StringType()),
        T.StructField("version", T.LongType()),
        T.StructField("waiting_ns", T.LongType()),
    ]
)

#: What stands for the time in an offset, beside the paths of tables.
_TIME = ""


class LakeVersionsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows all tables of a lake, those that are added later too. A lake that is not there yet is waited for."""

    def __init__(self, lake: DeltaLake, tick: float | None = None, *, clock: Callable[[], int] = time.time_ns) -> None:
        """Prepare the reading; after `tick` seconds there is a micro-batch though nothing is new, if it is given."""
        self._lake = lake
        self._tick_ns = None if tick is None else round(tick * 10**9)
        self._clock = clock
        self._end: Offset | None = None

    def initialOffset(self) -> Offset:
        return {}

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the present as the end."""
        self._end = self._versions()

    def latestOffset(self, start: Offset, limit: ReadLimit | None) -> Offset:  # noqa: ARG002
        """The present, and of tables that are gone what was read of them."""
        if self._end is not None:
            return {**start, **self._end}
        found = {**start, **self._versions()}
        if self._tick_ns is not None:
            found[_TIME] = [self._clock() // self._tick_ns, None]
        return found

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:  # noqa: ARG002
        """One, with all tables: a job knows what it has read of them."""
        return [InputPartition([(path, version, at) for path, (version, at) in end.items() if path != _TIME])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        pa = import_pyarrow()
        types = (pa.string(), pa.int64(), pa.int64())
        columns = list(zip(*partition.value, strict=True)) or [(), (), ()]
        arrays = [pa.array(values, type) for values, type in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, SCHEMA.fieldNames())

    def _versions(self) -> Offset:
        found = all_versions(self._lake, self._clock)
        paths = sorted({*found.versions, *found.waiting})
        return {path: [found.versions.get(path), found.waiting.get(path)] for path in paths}


def versions_of(rows: Iterable[Any]) -> LakeVersions:
    known = [(row["path"], row["version"], row["waiting_ns"]) for row in rows]
    return LakeVersions(
        {path: version for path, version, _at in known if version is not None},
        {path: at for path, _version, at in known if at is not None},
    )
