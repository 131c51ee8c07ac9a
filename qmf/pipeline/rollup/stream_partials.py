"""Partial aggregates of a stream's newest samples, in memory: all classes and sizes are rolled up by a few queries.

The samples of each window of `base_seconds` become partials when it is complete. Complete windows of each size are then
merged from these. What is not here is read from the lake again, see `stream_windows`: windows with samples that came
too late for partials, those of agents that two recorders record, and more samples at once than should be in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quoted, text
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.runs import counted_expression
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup import rows
from qmf.pipeline.rollup.columns import KEY, ROLLUP_COLUMNS
from qmf.pipeline.rollup.families import FAMILIES, MEMBERS, Family, values_by_family
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.partials import ENDS, STEP, member_columns, merged
from qmf.pipeline.rollup.source import ClassSource, sample_columns
from qmf.pipeline.rollup.statements import ClassSamples
from qmf.pipeline.rollup.stream_windows import WindowRange
from qmf.pipeline.rollup.tables import OUT, add_rows
from qmf.pipeline.rollup.windows import WINDOWS, sample_windows
from qmf.pipeline.rollup.zones import UTC, Span, WindowGrid, Zone, base_seconds

#: Values that are taken into memory at once, and values and partials that are kept, at most.
MAX_VALUES = 300_000

#: Partials that are not worth merging.
_FEW = 20_000

_OBJECTS, _MEMBERS, _MERGED, _KEYS = "qmf_objects", "qmf_members", "qmf_merged", "qmf_merged_keys"

#: Earlier than any sample.
_START_NS = -(1 << 63)


@attrs.frozen
class NewSamples:
    """What is new of a class.

    Attributes:
        source: the class.
        files: with the new samples.
        since: only those from this time on are needed, and they are not counted; None for all.
        only_counted: without the rows that don't count, since another recorder has them too.
    """

    source: ClassSource
    files: Sequence[tuple[LakeTable, TableFile]]
    since: int | None = None
    only_counted: bool = False

    @property
    def name(self) -> str:
        """The name of the class with its package."""
        return f"{self.source.package}:{self.source.name}"

    @property
    def values(self) -> int:
        """The number of values, at most."""
        return sum(file.rows for _, file in self.files) * max(len(self.source.members), 1)


@attrs.frozen
class Found:
    """Figures of new samples.

    Attributes:
        read: samples.
        ahead: of these, from the future.
        late: of these, of windows that were written.
        latest: the latest time that is not from the future, or None.
    """

    read: int
    ahead: int
    late: int
    latest: int | None


class StreamPartials:
    """The partials of one stream, in temporary tables of a connection."""

    def __init__(
        self, connection: Any, sizes: Sequence[str], ahead_ns: int, *, continued: bool, zone: Zone = UTC
    ) -> None:
        """Hold nothing yet.

        Args:
            connection: to DuckDB.
            sizes: of the windows.
            ahead_ns: samples are from the future that are later than their arrival by more.
            continued: counters outlive restarts of their agents.
            zone: of the days with which windows begin.
        """
        self._connection = connection
        self._ahead_ns = ahead_ns
        self._continued = continued
        self._zone = zone
        self._seconds = base_seconds(sizes, zone)
        #: Numbers of classes by name, and of the last samples, in nanoseconds, that are not here.
        self._numbers: dict[str, int] = {}
        self._missing: dict[str, int] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        #: Ranges of windows whose series begin with what is known before them.
        self._seeded: set[str] = set()
        self._steps = 0
        self._kept = 0
        self._closed_ns = _START_NS
        #: Families whose tables of values, and of partials, have rows.
        self._open: set[Family] = set()
        self._closed: set[Family] = set()
        connection.execute(f"create temp table {_OBJECTS} (number bigint, class bigint, agent varchar, object varchar)")
        texts = ", ".join(f"{quoted(name)} varchar" for name in ("package", "class", "member", "style", "unit"))
        connection.execute(f"create temp table {_MEMBERS} (_class bigint, _member bigint, family varchar, {texts})")
        for family in FAMILIES:
            columns = {"_series": "bigint", STEP: "bigint", **ENDS, **member_columns(self._samples(family, 1), 0)}
            declared = ", ".join(f"{name} {type}" for name, type in columns.items())
            connection.execute(f"create temp table {_partials(family)} ({declared})")

    # -- adding

    def add(self, new: Iterable[NewSamples], written: Mapping[str, int]) -> Found:
        """Take new samples into memory.

        Args:
            new: of some classes.
            written: by name of the class: windows up to this time are written.

        Returns:
            figures of all together.

        Raises:
            LakeError: a file cannot be read, or versions disagree about a type.
        """
        pa = import_pyarrow()
        found: list[Found] = []
        tables: dict[Family, list[Any]] = {}
        disordered: set[int] = set()
        for item in new:
            number = self._number(item)
            samples, figures = self._read(item, written[item.name])
            if item.since is None:
                found.append(figures)
            # What is left out of windows must not be known before later ones, either.
            if (item.since is None and figures.late) or self._is_late(samples):
                disordered.add(number)
            for family, values in values_by_family(samples, item.source.members, number).items():
                tables.setdefault(family, []).extend(values)
        for family, values in tables.items():
            self._add(family, pa.concat_tables(values).combine_chunks())
        names = {number: name for name, number in self._numbers.items()}
        for number in disordered:
            self._drop_class(names[number])
        return Found(
            sum(item.read for item in found),
            sum(item.ahead for item in found),
            sum(item.late for item in found),
            max((item.latest for item in found if item.latest is not None), default=None),
        )

    def lacks(self, name: str, until_ns: int) -> None:
        """Note that samples of a class up to a time are not here, and forget the others of the class."""
        if name in self._numbers:
            self._drop_class(name)
        self._missing[name] = max(self._missing.get(name, _START_NS), until_ns)

    def has(self, windows: WindowRange) -> bool:
        """True if all samples of a range of windows are here."""
        name = f"{windows.source.package}:{windows.source.name}"
        return name in self._numbers and not windows.last and windows.start > self._missing.get(name, _START_NS)

    def _read(self, item: NewSamples, written: int) -> tuple[Any, Found]:
        """The samples of a class that count, and figures of all."""
        import_pyarrow()
        import pyarrow.compute as compute

        schema = arrow_schema(sample_columns(item.source.versions, item.source.members))
        samples = import_pyarrow().concat_tables([_file_rows(table, file, schema) for table, file in item.files])
        samples = samples.filter(compute.fill_null(samples["_statistics"], False))
        counts = counted_expression(item.source.left_out) if item.only_counted else None
        samples = samples if counts is None else samples.filter(counts)
        times = samples["_ts_ns"]
        ahead = compute.greater(compute.subtract(times, samples["_received_ns"]), self._ahead_ns)
        counted = samples.filter(compute.invert(compute.fill_null(ahead, False)))
        if item.since is not None:
            counted = counted.filter(compute.greater_equal(counted["_ts_ns"], item.since))
        late = compute.sum(compute.less(counted["_ts_ns"], written)).as_py() or 0
        latest = compute.max(counted["_ts_ns"]).as_py()
        return counted, Found(samples.num_rows, samples.num_rows - counted.num_rows, late, latest)

    def _number(self, item: NewSamples) -> int:
        """The number of a class, whose members are known from now on."""
        number = self._numbers.setdefault(item.name, len(self._numbers))
        members = tuple(member.name for member in item.source.members)
        if self._members.get(item.name) != members:
            if item.name in self._members:
                # Members have their places in the schema as numbers: a new version may have others.
                self._drop_class(item.name)
                self._connection.execute(f"delete from {_MEMBERS} where _class = {number}")
            self._members[item.name] = members
            class_name = (item.source.package, item.source.name)
            values = [
                (number, at, Family.of(member).name, *class_name, member.name, member.style.value, member.unit)
                for at, member in enumerate(item.source.members)
            ]
            if values:
                self._connection.executemany(f"insert into {_MEMBERS} values (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return number

    def _is_late(self, samples: Any) -> bool:
        """True if some samples belong to partials that were made."""
        import_pyarrow()
        import pyarrow.compute as compute

        first = compute.min(samples["_ts_ns"]).as_py()
        return first is not None and first < self._closed_ns

    def _add(self, family: Family, values: Any) -> None:
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
        self._open.add(family)

    def close(self, time_ns: int) -> None:
        """Make partials of the samples in windows that end by a time."""
        length = self._seconds * 10**9
        until = time_ns // length * length
        if until <= self._closed_ns:
            return
        self._closed_ns = until
        self._steps += 1
        for family in sorted(self._open, key=lambda item: item.name):
            table = _values(family)
            source = f"(select * from {table} where _ts_ns < {until})"
            with sample_windows(
                self._connection, source, [family.member], seconds=self._seconds, continued=self._continued
            ) as samples:
                if samples is None:
                    continue
                columns = ", ".join([*ENDS, *member_columns(samples, 0)])
                self._connection.execute(
                    f"insert into {_partials(family)} by name select k._object as _series, {self._steps} as {STEP}, "
                    f"{columns} from {WINDOWS} join (select distinct _series, _object from {samples.keys}) as k "
                    "using (_series)"
                )
            self._closed.add(family)
            self._keep(table, f"_ts_ns >= {until}")

    def _keep(self, table: str, where: str) -> int:
        """Keep the rows of a table that meet a condition, and return their number."""
        # Rows that are deleted would stay in memory.
        ((count,),) = self._connection.execute(
            f"create or replace temp table qmf_kept as select * from {table} where {where}"
        ).fetchall()
        self._connection.execute(f"drop table {table}")
        self._connection.execute(f"alter table qmf_kept rename to {table}")
        return int(count)

    def _add_objects(self, keys: str) -> None:
        """Number objects that are new; `keys` selects `_class`, `_agent`, `_object`."""
        self._connection.execute(
            f"insert into {_OBJECTS} select (select coalesce(max(number), 0) from {_OBJECTS}) + "
            f"row_number() over (), _class, _agent, _object from ({keys}) as k where not exists (select 1 from "
            f"{_OBJECTS} as o where o.class = _class and o.object = _object and o.agent is not distinct from _agent)"
        )

    def _drop_class(self, name: str) -> None:
        """Forget the partials of a class: its samples so far are not here."""
        own = f"in (select number from {_OBJECTS} where class = {self._numbers[name]})"
        for family in FAMILIES:
            parts = [(_partials(family), "_series", "last_ns")] if family in self._closed else []
            parts += [(_values(family), "_object", "_ts_ns")] if family in self._open else []
            for table, series, time in parts:
                where = f"{series} // {MEMBERS} {own}"
                ((last,),) = self._connection.execute(f"select max({time}) from {table} where {where}").fetchall()
                if last is not None:
                    self._missing[name] = max(self._missing.get(name, _START_NS), last)
                    self._keep(table, f"not ({where})")
        self._seeded -= {key for key in self._seeded if key.partition(" ")[2] == name}

    # -- making rows

    def needs_seed(self, windows: WindowRange) -> bool:
        """True if what is known before a range of windows is not here yet."""
        return windows.key not in self._seeded

    def seed(self, windows: WindowRange, carried: str | None) -> None:
        """Take what is known before a range of windows.

        Args:
            windows: the range.
            carried: a table with `rows.CARRIED_COLUMNS`; None for nothing.
        """
        self._seeded.add(windows.key)
        if carried is None:
            return
        number = self._numbers[f"{windows.source.package}:{windows.source.name}"]
        self._add_objects(f"select distinct {number} as _class, agent as _agent, object as _object from {carried}")
        for family in FAMILIES:
            self._closed.add(family)
            value = "last_exact" if family.whole else "last"
            self._connection.execute(
                f"insert into {_partials(family)} by name select o.number * {MEMBERS} + m._member as _series, "
                f"{self._steps} as {STEP}, 0 as samples, last_ns as first_ns, last_ns, last_epoch as first_epoch, "
                "last_epoch, last_created_ns as first_created, last_created_ns as last_created, deleted, "
                f"0 as held_ns, {value} as first0, {value} as last0 from {carried} as c "
                f"join {_OBJECTS} as o on o.class = {number} and o.object = c.object "
                "and o.agent is not distinct from c.agent "
                f"join {_MEMBERS} as m on m._class = {number} and m.member = c.member "
                f"and m.family = {text(family.name)}"
            )

    def unseed(self, windows: WindowRange) -> None:
        """Forget that a range was seeded: others made its rows."""
        self._seeded.discard(windows.key)

    def roll_up(self, size: str, ranges: Sequence[WindowRange]) -> list[int]:
        """Add the rows of ranges of one size, all of which are here, to `OUT`; returns the number of each."""
        limits = ", ".join(
            f"({self._numbers[f'{item.source.package}:{item.source.name}']}, {item.start}, {item.end})"
            for item in ranges
        )
        columns = ", ".join(
            "o.agent"
            if name == "agent"
            else f"{'o' if name == 'object' else 'm'}.{quoted(name)}"
            if name in KEY
            else f"r.{quoted(name)}"
            for name in ROLLUP_COLUMNS
        )
        made: Counter[tuple[str, str]] = Counter()
        for family in sorted(self._closed, key=lambda item: item.name):
            samples = self._samples(family, window_seconds(size), self._spans(family))
            self._connection.execute(f"create or replace temp table {_MERGED} as {merged(samples, _partials(family))}")
            self._connection.execute(
                f"create or replace temp table {_KEYS} as select distinct _series, null::varchar as _agent, "
                f"_series as _object from {_MERGED}"
            )
            found = (
                f"(select {columns} from ({rows.rows(samples, '', '', _MERGED, None)}) as r "
                f"join {_OBJECTS} as o on o.number = cast(r.object as bigint) // {MEMBERS} "
                f"join {_MEMBERS} as m on m._class = o.class and m._member = cast(r.object as bigint) % {MEMBERS} "
                f"join (values {limits}) as c(class, start, stop) on c.class = o.class "
                "where r.first_ns >= c.start and r.first_ns < c.stop)"
            )
            add_rows(self._connection, OUT, found, size, self._zone)
        if self._closed:
            for package, name, count in self._connection.execute(
                f"select package, class, count(*) from {OUT} where size = {text(size)} group by all"
            ).fetchall():
                made[package, name] = count
        return [made[item.source.package, item.source.name] for item in ranges]

    def forget_before(self, time_ns: int) -> None:
        """Forget the partials before a time, but for the last one of each series, and merge the others when many.

        Args:
            time_ns: the start of the first window that is not written.
        """
        for name in self._numbers:
            self._missing[name] = max(self._missing.get(name, _START_NS), time_ns - 1)
        oldest = time_ns - (rows.LOOK_BACK_DAYS + 1) * 86_400 * 10**9
        total = sum(self._count(_values(family)) for family in self._open)
        for family in self._closed:
            table = _partials(family)
            total += self._keep(
                table,
                f"last_ns >= {time_ns} or last_ns >= {oldest} and (_series, last_ns) in "
                f"(select _series, max(last_ns) from {table} where last_ns < {time_ns} group by _series)",
            )
        if total > 2 * self._kept + _FEW:
            self._kept = sum(self._merge(family) for family in self._closed)
            if total > MAX_VALUES and self._kept > MAX_VALUES // 2:
                for name in self._numbers:
                    self._drop_class(name)
                self._kept = 0

    def _merge(self, family: Family) -> int:
        """Merge the partials of each window; returns how many there are then."""
        table, samples = _partials(family), self._samples(family, self._seconds)
        self._connection.execute(
            f"create or replace temp table {_MERGED} as select * exclude (_window) from ({merged(samples, table)})"
        )
        self._connection.execute(f"drop table {table}")
        self._connection.execute(f"alter table {_MERGED} rename to {table}")
        return self._count(table)

    def _count(self, table: str) -> int:
        ((count,),) = self._connection.execute(f"select count(*) from {table}").fetchall()
        return int(count)

    def _samples(self, family: Family, seconds: int, spans: Sequence[Span] = ()) -> ClassSamples:
        """What windows of a family are made of."""
        return ClassSamples("", [family.member], WindowGrid(seconds, spans), self._continued, _KEYS)

    def _spans(self, family: Family) -> Sequence[Span]:
        """The days in which the partials of a family are."""
        if self._zone.is_utc:
            return ()
        ((first, last),) = self._connection.execute(
            f"select min(first_ns), max(last_ns) from {_partials(family)}"
        ).fetchall()
        return () if first is None else self._zone.spans(first, last)


def _partials(family: Family) -> str:
    """The table of the partials of a family."""
    return f"qmf_partials_{family.name}"


def _values(family: Family) -> str:
    """The table of the values of a family whose windows are not complete."""
    return f"qmf_values_{family.name}"


def _file_rows(table: LakeTable, file: TableFile, schema: Any) -> Any:
    """The rows of a file, with some columns; those that it lacks are null."""
    pa = import_pyarrow()
    # A dataset would need more time for each file, and threads.
    with delta_errors(file.url), table.open_file(file.path) as parquet:
        present = set(parquet.schema_arrow.names)
        rows = parquet.read([name for name in schema.names if name in present], use_threads=False)
    arrays = [rows[field.name] if field.name in present else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(arrays, schema=schema)
