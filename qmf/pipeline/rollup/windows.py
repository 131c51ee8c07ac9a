"""The roll-up of the samples of one class, by DuckDB, also by days: all sizes of windows, and what was known before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import import_duckdb, quote_name, text
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.rollup import rows, statements
from qmf.pipeline.rollup.columns import coarser
from qmf.pipeline.rollup.members import NumberMember, window_seconds
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS, carry
from qmf.pipeline.rollup.source import ClassSource, day_start_ns
from qmf.pipeline.rollup.statements import ClassSamples
from qmf.pipeline.rollup.zones import UTC, Span, WindowGrid, Zone, base_seconds

#: The table that `made_windows` makes.
WINDOWS = "qmf_windows"
_KEYS, _CORRECTIONS = "qmf_keys", "qmf_corrections"


@contextmanager
def made_windows(
    connection: Any, source: str, members: Sequence[NumberMember], grid: WindowGrid, *, continued: bool
) -> Iterator[ClassSamples | None]:
    """Make `WINDOWS` of samples of one class, see `statements.windows`; it is dropped at the end of the block.

    Args:
        connection: to DuckDB.
        source: the samples as SQL, a table or a function.
        members: of the class, at least one.
        grid: of the windows.
        continued: counters outlive restarts of their agents: only a lower value is a restart.

    Yields:
        the samples, with what is known of them now; None for no samples.
    """
    samples = ClassSamples(source, members, grid, continued, _KEYS)
    try:
        connection.execute(f"create temp table {_KEYS} as {statements.keys(source)}")
        if not connection.execute(f"select 1 from {_KEYS} limit 1").fetchall():
            yield None
            return
        ((steady,),) = connection.execute(statements.steady(_KEYS)).fetchall()
        yield _make_windows(connection, attrs.evolve(samples, steady=bool(steady)))
    finally:
        for table in (_KEYS, WINDOWS, _CORRECTIONS):
            connection.execute(f"drop table if exists {table}")


@contextmanager
def roll_up(
    connection: Any,
    source: str,
    members: Sequence[NumberMember],
    *,
    package: str,
    name: str,
    seconds: int,
    continued: bool,
    carried: str | None = None,
    spans: Sequence[Span] = (),
) -> Iterator[str | None]:
    """Roll up samples of one class.

    Args:
        connection, source, members, continued: as of `made_windows`.
        package, name: of the class.
        seconds: of a window.
        carried: a table with `rows.CARRIED_COLUMNS`: what was last known before the samples.
        spans: the days in which the samples are, of another zone than UTC; then `seconds` divides `ZONE_STEP`.

    Yields:
        SQL that selects a row per object, window and member, with the columns of the table of roll-ups; None for no
        samples.
    """
    grid = WindowGrid(seconds, spans)
    with made_windows(connection, source, members, grid, continued=continued) as samples:
        yield None if samples is None else rows.rows(samples, package, name, WINDOWS, carried)


def _make_windows(connection: Any, samples: ClassSamples) -> ClassSamples:
    """Make the table of windows; returns what is known of the samples now."""
    # Most samples have all members, times of their own and need no more than 64 bits, and then it takes half the time.
    # Whether they do is known afterwards.
    samples = _aggregate(connection, samples)
    ((ties, *lacks),) = connection.execute(statements.surprises(samples, WINDOWS)).fetchall()
    sparse = tuple(number for number, lack in enumerate(lacks) if lack)
    if ties or sparse:
        connection.execute(f"drop table {WINDOWS}")
        steady = samples.steady and not sparse
        samples = _aggregate(connection, attrs.evolve(samples, sparse=sparse, steady=steady, ties=bool(ties)))
    if samples.counters:
        _correct(connection, samples)
    return samples


def _aggregate(connection: Any, samples: ClassSamples) -> ClassSamples:
    duckdb = import_duckdb()
    if not samples.large:
        try:
            connection.execute(f"create temp table {WINDOWS} as {statements.windows(samples)}")
            return samples
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            samples = attrs.evolve(samples, large=True)
    connection.execute(f"create temp table {WINDOWS} as {statements.windows(samples)}")
    return samples


def _correct(connection: Any, samples: ClassSamples) -> None:
    """Walk the counters again, in the order of arrival, where it is not that of the times."""
    ((back,),) = connection.execute(f"select count(*) from {WINDOWS} where {statements.went_back(samples)}").fetchall()
    if back:
        connection.execute(f"create temp table {_CORRECTIONS} as {statements.corrections(samples, WINDOWS)}")
        connection.execute(statements.correction_update(samples, WINDOWS, _CORRECTIONS))


_NEXT = "qmf_next"


@attrs.define
class ClassRows:
    """Makes rows, and holds a temporary table of what is last known until it is dropped.

    Attributes:
        continued: counters outlive restarts of their agents.
        carried: `table` where something is known; None before.
    """

    connection: Any
    continued: bool
    table: str
    carried: str | None = None

    def make(self, source: ClassSource, seconds: int, table: str, spans: Sequence[Span] = (), where: str = "") -> bool:
        """Make or replace a table of the rows of some samples, in windows of so many seconds; False for no samples.

        `spans` are the days of the samples, of another zone than UTC, `where` is a condition for the samples, as `s`.
        """
        if not source.days:
            return False
        samples = source.sql(self.connection)
        with roll_up(
            self.connection,
            f"(select * from {samples} as s where {where})" if where else samples,
            source.members,
            package=source.package,
            name=source.name,
            seconds=seconds,
            continued=self.continued,
            carried=self.carried,
            spans=spans,
        ) as rows:
            if rows is not None:
                self.connection.execute(f"create or replace temp table {table} as {rows}")
            return rows is not None

    def keep(self, rows: str, oldest_ns: int) -> None:
        """Remember the last samples of some rows, and of what was known before, but for those that are older."""
        self.connection.execute(f"create or replace temp table {_NEXT} as {carry(rows, self.carried, oldest_ns)}")
        self.connection.execute(f"drop table if exists {self.table}")
        self.connection.execute(f"alter table {_NEXT} rename to {self.table}")
        self.carried = self.table

    def drop(self) -> None:
        """Forget what is known."""
        self.connection.execute(f"drop table if exists {self.table}")
        self.carried = None


_BASE, _CARRIED = "qmf_rows", "qmf_carried"
_PRESENT, _EARLIER = "qmf_present", "qmf_earlier"
_HOUR_NS, _DAY = 3600 * 10**9, 86_400


@attrs.define
class ClassRollup:
    """Rolls up the days of one class in a zone, in their order. It holds temporary tables until it is closed.

    If `continued`, counters outlive restarts of their agents.
    """

    connection: Any
    source: ClassSource
    sizes: Sequence[str]
    continued: bool
    zone: Zone = UTC
    _rows: ClassRows = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rows = ClassRows(self.connection, self.continued, _CARRIED)

    @contextmanager
    def day(self, day: str) -> Iterator[Mapping[str, str]]:
        """Roll up a day of the time zone: yields a table for each size, or none where there are no samples."""
        start, end = self.zone.start_ns(day), self.zone.end_ns(day)
        spans = self.zone.spans(start, end)
        if self._rows.carried is None:
            self._look_back(day, start)
        base = base_seconds(self.sizes, self.zone)
        made: dict[str, str] = {}
        try:
            if not self._rows.make(self.source.of_day(self.zone, day), base, _BASE, spans):
                yield made
                return
            for size, table in make_sizes(self.connection, _BASE, self.sizes, self.zone, spans):
                made[size] = table
            if any(day_start_ns(date) + NS_PER_DAY > end for date in self.source.days):
                self._rows.keep(_BASE, end - LOOK_BACK_DAYS * NS_PER_DAY)
            yield made
        finally:
            for table in {_BASE, *made.values()}:
                self.connection.execute(f"drop table if exists {table}")

    def close(self) -> None:
        """Drop the tables."""
        self._rows.drop()
        for table in (_PRESENT, _EARLIER):
            self.connection.execute(f"drop table if exists {table}")

    def _look_back(self, day: str, start: int) -> None:
        """Find the last samples before a day: those of its objects and members, newest first, until none is missing."""
        ranges, own = self._earlier(start), self.source.of_day(self.zone, day)
        if not ranges or not own.days:
            return
        present = ", ".join(
            f"case when bool_or({quote_name(member.value)} is not null) then {text(member.name)} end"
            for member in self.source.members
            if member.linked
        )
        samples = own.sql(self.connection)
        self.connection.execute(
            f"create or replace temp table {_PRESENT} as select agent, object, unnest(members) as member "
            f"from (select _agent as agent, _object as object, [{present}] as members from {samples} "
            "where _statistics group by all)"
        )
        for earlier in ranges:
            known = f"exists (select 1 from {_CARRIED} as c where {_SAME} and w.member = c.member)"
            self.connection.execute(
                f"delete from {_PRESENT} as w where member is null{f' or {known}' if self._rows.carried else ''}"
            )
            if not self.connection.execute(f"select 1 from {_PRESENT} limit 1").fetchall():
                break
            wanted = (
                f"_statistics and exists (select 1 from {_PRESENT} as w where w.object = s._object "
                "and w.agent is not distinct from s._agent)"
            )
            # Most objects that begin on this day have no samples before: then the columns of values aren't read.
            found = f"select 1 from {earlier.sql(self.connection)} as s where {wanted} limit 1"
            if self.connection.execute(found).fetchall() and self._rows.make(earlier, _DAY, _EARLIER, where=wanted):
                self._rows.keep(_EARLIER, start - LOOK_BACK_DAYS * NS_PER_DAY)
                self.connection.execute(f"drop table {_EARLIER}")

    def _earlier(self, start: int) -> list[ClassSource]:
        """The samples before a time, newest first, in parts: those of the last hour, and of each day in UTC."""
        oldest = start - LOOK_BACK_DAYS * NS_PER_DAY
        times = [(start - _HOUR_NS, start)]
        for date in sorted(self.source.days, reverse=True):
            first = day_start_ns(date)
            if first < start and first + NS_PER_DAY > oldest:
                times.append((max(first, oldest), min(first + NS_PER_DAY, start)))
        parts = (self.source.of_times(*item) for item in times)
        return [part for part in parts if part.days]


_SAME = "w.object = c.object and w.agent is not distinct from c.agent"


def make_sizes(
    connection: Any, base: str, sizes: Sequence[str], zone: Zone, spans: Sequence[Span]
) -> Iterator[tuple[str, str]]:
    """Make a table of the rows of each size of windows from those of `base_seconds`; yields a size, and its table."""
    made: dict[int, str] = {base_seconds(sizes, zone): base}
    for size in sorted(sizes, key=window_seconds):
        seconds = window_seconds(size)
        if seconds not in made:
            finer = next(made[known] for known in reversed(made) if seconds % known == 0)
            made[seconds] = f"{base}_{size}"
            connection.execute(f"create temp table {made[seconds]} as {coarser(finer, seconds, spans)}")
        yield size, made[seconds]
