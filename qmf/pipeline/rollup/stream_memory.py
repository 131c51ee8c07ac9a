"""A stream's newest samples in memory: all classes and sizes are rolled up by a few queries.

The samples of a window of `base_seconds` become rows when it is complete, as in a batch, and complete windows of each
size are made of these. What is not here is read from the lake again, see `stream_windows`: classes with samples that
came too late, those of agents that two recorders record, and more samples at once than should be in memory.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.errors import import_extra
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.runs import CountedRows
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup.columns import KEY, ROLLUP_COLUMNS, coarser
from qmf.pipeline.rollup.members import MEMBERS, VALUE, RollupFamily, values_by_family, window_seconds
from qmf.pipeline.rollup.rows import CARRIED_COLUMNS, LOOK_BACK_DAYS, carry
from qmf.pipeline.rollup.source import ClassSource, sample_columns
from qmf.pipeline.rollup.stream_windows import WindowRange
from qmf.pipeline.rollup.tables import OUT, add_rows
from qmf.pipeline.rollup.windows import roll_up
from qmf.pipeline.rollup.zones import UTC, Span, Zone, base_seconds

#: Values that are taken into memory at once, and values and rows that are kept, at most.
MAX_VALUES = 300_000

#: Rows that are not worth merging.
_FEW = 20_000

#: Rows have numbers for their object and member, which two of the tables explain.
_OBJECTS, _MEMBERS, _ROWS, _NEW, _CARRIED = "qmf_objects", "qmf_members", "qmf_base", "qmf_new", "qmf_known"

#: The numbers of object and member in a row.
_OBJECT, _MEMBER = f"cast(r.object as bigint) // {MEMBERS}", f"cast(r.object as bigint) % {MEMBERS}"

#: Earlier than any sample.
_START_NS = -(1 << 63)


@attrs.frozen
class NewSamples:
    """What is new of a class.

    Attributes:
        source: the class.
        files: with the new samples.
        first: the class is not in memory yet.
        carried: a table with `CARRIED_COLUMNS`, what is known before the first samples; None for nothing.
        since: only those from this time on are needed, and they are not counted; None for all.
        only_counted: without the rows that don't count, since another recorder has them too.
    """

    source: ClassSource
    files: Sequence[tuple[LakeTable, TableFile]]
    first: bool = False
    carried: str | None = None
    since: int | None = None
    only_counted: bool = False

    @property
    def name(self) -> str:
        """The name of the class with its package."""
        return self.source.full_name

    @property
    def values(self) -> int:
        """The number of values, at most."""
        return sum(file.rows for _, file in self.files) * max(len(self.source.members), 1)


@attrs.frozen
class SampleCounts:
    """Figures of new samples of a class: read; of these from the future, and of windows that were written.

    `latest` is the latest time that is not from the future, or None.
    """

    read: int
    ahead: int
    late: int
    latest: int | None


class StreamMemory:
    """The newest samples of one stream, in temporary tables of a connection."""

    def __init__(
        self, connection: Any, sizes: Sequence[str], ahead_ns: int, *, continued: bool, zone: Zone = UTC
    ) -> None:
        """Hold nothing yet; samples are from the future that are later than their arrival by more than `ahead_ns`."""
        self._connection = connection
        self._ahead_ns = ahead_ns
        self._continued = continued
        self._zone = zone
        self._seconds = base_seconds(sizes, zone)
        self._numbers: dict[str, int] = {}
        #: The members of the classes that are here.
        self._members: dict[str, tuple[str, ...]] = {}
        #: The families whose tables of values are there.
        self._families: set[RollupFamily] = set()
        self._kept = 0
        self._closed_ns = _START_NS
        #: Samples came of windows of which other classes have rows already.
        self._is_behind = False
        connection.execute(f"create temp table {_OBJECTS} (number bigint, class bigint, agent varchar, object varchar)")
        texts = ", ".join(f"{quote_name(name)} varchar" for name in ("package", "class", "member", "style", "unit"))
        connection.execute(f"create temp table {_MEMBERS} (_class bigint, _member bigint, {texts})")
        for table, names in ((_ROWS, tuple(ROLLUP_COLUMNS)), (_CARRIED, CARRIED_COLUMNS)):
            columns = ", ".join(f"{quote_name(name)} {ROLLUP_COLUMNS[name]}" for name in names)
            connection.execute(f"create temp table {table} ({columns})")

    # -- adding

    def has(self, source: ClassSource) -> bool:
        """True if the samples of a class are here, from the first window on that is not written."""
        return self._members.get(source.full_name) == _member_names(source)

    def add(self, new: Iterable[NewSamples], written: Mapping[str, int]) -> dict[str, SampleCounts]:
        """Take new samples into memory; returns figures of those that are counted, by name of the class.

        Classes of which samples came too late, since windows up to that time are written, are dropped.

        Raises:
            LakeError: a file cannot be read, or versions disagree about a type.
        """
        pa = import_pyarrow()
        counts: dict[str, SampleCounts] = {}
        tables: dict[RollupFamily, list[Any]] = {}
        for item in new:
            samples, figures = self._read(item, written[item.name])
            if item.since is None:
                counts[item.name] = figures
            is_behind = self._is_behind_rows(samples)
            if (item.since is None and figures.late) or (is_behind and not item.first):
                # What is left out of windows must not be known before later ones, either.
                self.drop(item.name)
                continue
            if item.first:
                self._begin(item)
            self._is_behind |= is_behind
            number = self._numbers[item.name]
            for family, values in values_by_family(samples, item.source.members, number).items():
                tables.setdefault(family, []).extend(values)
        for family, values in tables.items():
            self._add(family, pa.concat_tables(values).combine_chunks())
        return counts

    def drop(self, name: str) -> None:
        """Forget a class, if it is here."""
        if self._members.pop(name, None) is None:
            return
        other = f"not in (select number from {_OBJECTS} where class = {self._numbers[name]})"
        for table in (_ROWS, _CARRIED):
            self._keep(table, f"{_OBJECT} {other}")
        for family in self._families:
            self._keep(_values(family), f"_object // {MEMBERS} {other}")

    def _begin(self, item: NewSamples) -> None:
        """Begin with a class: its members, and what is known before its samples."""
        self.drop(item.name)
        source, number = item.source, self._numbers.setdefault(item.name, len(self._numbers))
        self._members[item.name] = _member_names(source)
        # Members have their places in the schema as numbers: a new version may have others.
        self._connection.execute(f"delete from {_MEMBERS} where _class = {number}")
        names = [
            (number, at, source.package, source.name, member.name, member.style.value, member.unit)
            for at, member in enumerate(source.members)
        ]
        if names:
            self._connection.executemany(f"insert into {_MEMBERS} values (?, ?, ?, ?, ?, ?, ?)", names)
        if item.carried is None:
            return
        self._add_objects(f"select distinct {number} as _class, agent as _agent, object as _object from {item.carried}")
        self._connection.execute(
            f"insert into {_CARRIED} by name select c.* replace (null as agent, "
            f"cast(o.number * {MEMBERS} + m._member as varchar) as object, {text(VALUE)} as member) "
            f"from {item.carried} as c join {_OBJECTS} as o on o.class = {number} and o.object = c.object "
            "and o.agent is not distinct from c.agent "
            f"join {_MEMBERS} as m on m._class = {number} and m.member = c.member"
        )

    def _read(self, item: NewSamples, written: int) -> tuple[Any, SampleCounts]:
        """The samples of a class that count, and figures of all."""
        compute = import_extra("pyarrow.compute")
        schema = arrow_schema(sample_columns(item.source.versions, item.source.members))
        samples = import_pyarrow().concat_tables([_file_rows(table, file, schema) for table, file in item.files])
        samples = samples.filter(compute.fill_null(samples["_statistics"], False))
        if item.only_counted and item.source.left_out:
            samples = CountedRows(item.source.left_out).of(samples)
        times = samples["_ts_ns"]
        ahead = compute.greater(compute.subtract(times, samples["_received_ns"]), self._ahead_ns)
        counted = samples.filter(compute.invert(compute.fill_null(ahead, False)))
        if item.since is not None:
            counted = counted.filter(compute.greater_equal(counted["_ts_ns"], item.since))
        late = compute.sum(compute.less(counted["_ts_ns"], written)).as_py() or 0
        latest = compute.max(counted["_ts_ns"]).as_py()
        return counted, SampleCounts(samples.num_rows, samples.num_rows - counted.num_rows, late, latest)

    def _is_behind_rows(self, samples: Any) -> bool:
        """True if some samples belong to windows that were closed."""
        compute = import_extra("pyarrow.compute")
        first = compute.min(samples["_ts_ns"]).as_py()
        return first is not None and first < self._closed_ns

    def _add(self, family: RollupFamily, values: Any) -> None:
        """Keep values until their windows are complete."""
        connection = self._connection
        connection.register("qmf_arrow", values)
        self._add_objects("select distinct _class, _agent, _object from qmf_arrow")
        numbered = (
            f"select v.* exclude (_class, _agent, _object), null::varchar as _agent, "
            f"o.number * {MEMBERS} + _member as _object, true as _statistics from qmf_arrow as v join {_OBJECTS} as o "
            "on o.class = v._class and o.object = v._object and o.agent is not distinct from v._agent"
        )
        table = _values(family)
        connection.execute(f"create temp table if not exists {table} as {numbered} limit 0")
        connection.execute(f"insert into {table} by name {numbered}")
        connection.unregister("qmf_arrow")
        self._families.add(family)

    def _add_objects(self, keys: str) -> None:
        """Number objects that are new; `keys` selects `_class`, `_agent`, `_object`."""
        self._connection.execute(
            f"insert into {_OBJECTS} select (select coalesce(max(number), 0) from {_OBJECTS}) + "
            f"row_number() over (), _class, _agent, _object from ({keys}) as k where not exists (select 1 from "
            f"{_OBJECTS} as o where o.class = _class and o.object = _object and o.agent is not distinct from _agent)"
        )

    def _keep(self, table: str, where: str) -> None:
        """Keep the rows of a table that meet a condition."""
        # Rows that are deleted would stay in memory.
        self._replace(table, f"select * from {table} as r where {where}")

    def _replace(self, table: str, rows: str) -> None:
        self._connection.execute(f"create or replace temp table qmf_kept as {rows}")
        self._connection.execute(f"drop table {table}")
        self._connection.execute(f"alter table qmf_kept rename to {table}")

    # -- making rows

    def close(self, time_ns: int) -> None:
        """Make rows of the samples in windows that end by a time."""
        length = self._seconds * 10**9
        until = max(time_ns // length * length, self._closed_ns)
        if until == self._closed_ns and not self._is_behind:
            return
        self._closed_ns, self._is_behind = until, False
        connection, found = self._connection, False
        connection.execute(f"create or replace temp table {_NEW} as from {_ROWS} limit 0")
        for family in sorted(self._families, key=lambda item: item.name):
            table = _values(family)
            with roll_up(
                connection,
                f"(select * from {table} where _ts_ns < {until})",
                [family.member],
                package="",
                name="",
                seconds=self._seconds,
                continued=self._continued,
                carried=_CARRIED,
                spans=self._spans(f"(select _ts_ns as first_ns, _ts_ns as last_ns from {table})"),
            ) as sql:
                if sql is not None:
                    connection.execute(f"insert into {_NEW} {sql}")
            if sql is not None:
                found = True
                self._keep(table, f"_ts_ns >= {until}")
        if found:
            self._replace(_CARRIED, carry(_NEW, _CARRIED, until - (LOOK_BACK_DAYS + 1) * NS_PER_DAY))
            connection.execute(f"insert into {_ROWS} from {_NEW}")

    def roll_up(self, size: str, ranges: Sequence[WindowRange]) -> list[int]:
        """Add the rows of ranges of one size, all of which are here, to `OUT`; returns the number of each."""
        limits = ", ".join(f"({self._numbers[item.source.full_name]}, {item.start}, {item.end})" for item in ranges)
        chosen = (
            f"(select r.* from {_ROWS} as r join {_OBJECTS} as o on o.number = {_OBJECT} "
            f"join (values {limits}) as c(class, start, stop) on c.class = o.class "
            "where r.first_ns >= c.start and r.first_ns < c.stop)"
        )
        seconds = window_seconds(size)
        if seconds != self._seconds:
            chosen = f"({coarser(chosen, seconds, self._spans(_ROWS))})"
        columns = ", ".join(
            f"{'o' if name in ('agent', 'object') else 'm' if name in KEY else 'r'}.{quote_name(name)}"
            for name in ROLLUP_COLUMNS
        )
        named = (
            f"(select {columns} from {chosen} as r join {_OBJECTS} as o on o.number = {_OBJECT} "
            f"join {_MEMBERS} as m on m._class = o.class and m._member = {_MEMBER})"
        )
        add_rows(self._connection, OUT, named, size, self._zone)
        made: Counter[tuple[str, str]] = Counter()
        for package, name, count in self._connection.execute(
            f"select package, class, count(*) from {OUT} where size = {text(size)} group by all"
        ).fetchall():
            made[package, name] = count
        return [made[item.source.package, item.source.name] for item in ranges]

    def forget(self, written: Mapping[str, int]) -> None:
        """Merge and forget rows when there are many, by the start of the first window of each size not written."""
        if self._total() <= 2 * self._kept + _FEW:
            return
        oldest = min(written.values())
        self._keep(_ROWS, f"first_ns >= {oldest}")
        # Rows of windows that were written for the smaller sizes are merged for the larger ones.
        times = sorted(set(written.values()))
        for start, end in itertools.pairwise(times):
            seconds = base_seconds([size for size, until in written.items() if until <= start], self._zone)
            if seconds != self._seconds:
                chosen = f"(select * from {_ROWS} where first_ns >= {start} and first_ns < {end})"
                self._replace(
                    _ROWS,
                    f"select * from {_ROWS} where first_ns < {start} or first_ns >= {end} "
                    f"union all {coarser(chosen, seconds, self._spans(_ROWS))}",
                )
        self._kept = self._total()
        if self._kept > MAX_VALUES:
            for name in list(self._members):
                self.drop(name)
            self._kept = 0

    def _total(self) -> int:
        tables = [_ROWS, *(_values(family) for family in self._families)]
        counts = " + ".join(f"(select count(*) from {table})" for table in tables)
        ((total,),) = self._connection.execute(f"select {counts}").fetchall()
        return int(total)

    def _spans(self, table: str) -> Sequence[Span]:
        """The days in which the times of a table are."""
        if self._zone.is_utc:
            return ()
        ((first, last),) = self._connection.execute(f"select min(first_ns), max(last_ns) from {table}").fetchall()
        return () if first is None else self._zone.spans(first, last)


def _values(family: RollupFamily) -> str:
    """The table of the values of a family whose windows are not complete."""
    return f"qmf_values_{family.name}"


def _member_names(source: ClassSource) -> tuple[str, ...]:
    return tuple(member.name for member in source.members)


def _file_rows(table: LakeTable, file: TableFile, schema: Any) -> Any:
    """The rows of a file, with some columns; those that it lacks are null."""
    pa = import_pyarrow()
    # A dataset would need more time for each file, and threads.
    with delta_errors(file.url), table.open_file(file.path) as parquet:
        present = set(parquet.schema_arrow.names)
        rows = parquet.read([name for name in schema.names if name in present], use_threads=False)
    arrays = [rows[field.name] if field.name in present else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(arrays, schema=schema)
