"""The roll-up of days of one class, by DuckDB, in parts of the time, of which threads make several at once.

The windows of a part are made without those before it. When the part before says what is last known, rows are made.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS, carry, rows
from qmf.pipeline.rollup.source import ClassSource, day_start_ns
from qmf.pipeline.rollup.tables import rollup_schema
from qmf.pipeline.rollup.windows import WINDOWS, ClassRows, made_windows, make_sizes
from qmf.pipeline.rollup.zones import UTC, Span, WindowGrid, Zone, base_seconds

#: Samples of a part at most, about: seconds of work, and some hundred megabytes; and those for which a thread is worth
#: what DuckDB needs to plan their queries.
PART_SAMPLES, _LEAST_SAMPLES = 2_000_000, 400_000

#: Parts that are made at once, at most: their samples are in memory.
_MOST_THREADS = 4

#: Rows of a batch, at most.
_BATCH_ROWS = 50_000

_BASE, _ROWS, _CARRIED = "qmf_rows", "qmf_part_rows", "qmf_carried"
_PRESENT, _EARLIER = "qmf_present", "qmf_earlier"
_HOUR_NS, _DAY = 3600 * 10**9, 86_400


@attrs.frozen
class _Part:
    """A part of a day.

    Attributes:
        connection: to DuckDB, of its own.
        source: the samples.
        day: the day.
        spans: the days around it, of another zone than UTC.
        before, after: what is last known before and after it: an Arrow table with `CARRIED_COLUMNS`, or None.
    """

    connection: Any
    source: ClassSource
    day: str
    spans: Sequence[Span]
    before: Future[Any]
    after: Future[Any] = attrs.field(factory=Future)

    @property
    def samples(self) -> int:
        """How many it has, about."""
        return self.source.samples(None, None)


@attrs.frozen
class RollupRows:
    """Rows of a day, in windows of one size, as an Arrow table with `ROLLUP_COLUMNS`, in the order of the windows."""

    size: str
    day: str
    table: Any

    def batches(self) -> Iterator[Any]:
        """The rows as record batches with the columns of the job's tables."""
        pa, schema = import_pyarrow(), rollup_schema()
        for batch in self.table.to_batches(max_chunksize=_BATCH_ROWS):
            partition = (pa.repeat(value, batch.num_rows) for value in (self.size, self.day))
            yield pa.RecordBatch.from_arrays([*partition, *batch.columns], schema=schema)


@attrs.frozen
class ClassRollup:
    """Rolls up days of one class in a zone. If `continued`, counters outlive restarts of their agents."""

    connection: Any
    source: ClassSource
    sizes: Sequence[str]
    continued: bool
    zone: Zone = UTC

    def rows(self, days: Sequence[str]) -> Iterator[RollupRows]:
        """The rows of some days of the zone, in their order; those of the smallest windows in parts of a day."""
        smallest = [size for size in self.sizes if window_seconds(size) == self._base]
        for day, parts in itertools.groupby(self._made_parts(days), lambda made: made[0].day):
            found: _Part | None = None
            for part, table in parts:
                if table is None:
                    continue
                yield from (RollupRows(size, day, table) for size in smallest)
                if len(smallest) < len(self.sizes):
                    found = part
                    self.connection.register(_ROWS, table)
                    self.connection.execute(f"create temp table if not exists {_BASE} as from {_ROWS} limit 0")
                    self.connection.execute(f"insert into {_BASE} from {_ROWS}")
            if found is not None:
                yield from self._larger_windows(found)

    def _made_parts(self, days: Sequence[str]) -> Iterator[tuple[_Part, Any]]:
        """The parts, in order, each with its rows as an Arrow table, or None."""
        ((threads,),) = self.connection.execute("select current_setting('threads')").fetchall()
        threads = min(threads, _MOST_THREADS)
        begun: deque[tuple[_Part, Future[Any]]] = deque()

        def take() -> tuple[_Part, Any]:
            part, rows = begun.popleft()
            return part, rows.result()

        with ThreadPoolExecutor(threads, "qmf-rollup") as pool:
            try:
                for part in self._parts(days, threads):
                    # What is made is in memory until it is taken.
                    while begun and part.samples + sum(item.samples for item, _ in begun) > 2 * threads * PART_SAMPLES:
                        yield take()
                    begun.append((part, pool.submit(self._make, part)))
                while begun:
                    yield take()
            finally:
                # The last one first: a part that begins in between would wait for one before it that was cancelled.
                for _part, future in reversed(begun):
                    future.cancel()

    def _parts(self, days: Sequence[str], threads: int) -> Iterator[_Part]:
        limit = min(PART_SAMPLES, max(_LEAST_SAMPLES, self.source.samples(None, None) // threads))
        known: Future[Any] = Future()
        known.set_result(self._look_back(days))
        for day in days:
            start, end = self.zone.start_ns(day), self.zone.end_ns(day)
            sources = self.source.time_parts(start, end, limit, self._base * 10**9)
            for source in sources if len(sources) > 1 else [self.source.of_day(self.zone, day)]:
                own = self.connection.cursor()
                own.execute("set timezone = 'UTC'")
                part = _Part(own, source, day, self.zone.spans(start, end), known)
                known = part.after
                yield part

    def _make(self, part: _Part) -> Any:
        """Make the rows of a part, in a thread."""
        with closing(part.connection):
            try:
                made, known = self._make_rows(part)
            except BaseException as error:
                part.after.set_exception(error)
                raise
            part.after.set_result(known)
            return made

    def _make_rows(self, part: _Part) -> tuple[Any, Any]:
        """The rows of a part, None where there are no samples; and what is last known after it."""
        own, source = part.connection, part.source
        if not source.days:
            return None, part.before.result()
        grid = WindowGrid(self._base, part.spans)
        with made_windows(own, source.sql(own), source.members, grid, continued=self.continued) as samples:
            known = part.before.result()
            if samples is None:
                return None, known
            carried = None if known is None else _CARRIED
            if carried:
                own.register(carried, known)
            made = own.sql(rows(samples, source.package, source.name, WINDOWS, carried)).to_arrow_table()
        own.register(_ROWS, made)
        oldest = self.zone.start_ns(part.day) - LOOK_BACK_DAYS * NS_PER_DAY
        return made, own.sql(carry(_ROWS, carried, oldest)).to_arrow_table()

    def _larger_windows(self, part: _Part) -> Iterator[RollupRows]:
        """The rows of all sizes but the smallest, of the day of a part."""
        tables = {_BASE}
        for size, table in make_sizes(self.connection, _BASE, self.sizes, self.zone, part.spans):
            if window_seconds(size) != self._base:
                tables.add(table)
                yield RollupRows(size, part.day, self.connection.sql(f"from {table}").to_arrow_table())
        for table in tables:
            self.connection.execute(f"drop table {table}")

    @property
    def _base(self) -> int:
        """The seconds of the windows that samples are made to."""
        return base_seconds(self.sizes, self.zone)

    def _look_back(self, days: Sequence[str]) -> Any:
        """What is last known before some days, as of a part: the last samples of their objects and members.

        They are looked for newest first, until none is missing.
        """
        start = self.zone.start_ns(days[0])
        ranges, own = self._earlier(start), self.source.of_times(start, self.zone.end_ns(days[-1]))
        if not ranges or not own.days:
            return None
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
        known = ClassRows(self.connection, self.continued, _CARRIED)
        for earlier in ranges:
            is_known = f"exists (select 1 from {_CARRIED} as c where {_SAME} and w.member = c.member)"
            self.connection.execute(
                f"delete from {_PRESENT} as w where member is null{f' or {is_known}' if known.carried else ''}"
            )
            if not self.connection.execute(f"select 1 from {_PRESENT} limit 1").fetchall():
                break
            wanted = (
                f"_statistics and exists (select 1 from {_PRESENT} as w where w.object = s._object "
                "and w.agent is not distinct from s._agent)"
            )
            # Most objects that begin on these days have no samples before: then the columns of values aren't read.
            found = f"select 1 from {earlier.sql(self.connection)} as s where {wanted} limit 1"
            if self.connection.execute(found).fetchall() and known.make(earlier, _DAY, _EARLIER, where=wanted):
                known.keep(_EARLIER, start - LOOK_BACK_DAYS * NS_PER_DAY)
        return self.connection.sql(f"from {_CARRIED}").to_arrow_table() if known.carried else None

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
