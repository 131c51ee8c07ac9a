"""The roll-up of a day of a class, by DuckDB: all sizes of windows, and what was known before the day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.rollup.columns import coarser
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource, day_start_ns
from qmf.pipeline.rollup.windows import ClassRows
from qmf.pipeline.rollup.zones import UTC, Span, Zone, base_seconds

_BASE, _CARRIED = "qmf_rows", "qmf_carried"
_PRESENT, _EARLIER = "qmf_present", "qmf_earlier"
_HOUR_NS, _DAY = 3600 * 10**9, 86_400


@attrs.define
class ClassRollup:
    """Rolls up the days of one class, in their order. It holds temporary tables until it is closed.

    Attributes:
        connection: to DuckDB.
        source: the samples.
        sizes: of the windows.
        continued: counters outlive restarts of their agents.
        zone: of the days.
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
        """Roll up a day of the time zone.

        Yields:
            a table for each size; none where there are no samples.
        """
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
    """Make a table of the rows of each size of windows.

    Args:
        connection: to DuckDB.
        base: a table with rows of windows of `base_seconds`.
        sizes: of the windows.
        zone: of their days.
        spans: these days.

    Yields:
        a size, and its table.
    """
    made: dict[int, str] = {base_seconds(sizes, zone): base}
    for size in sorted(sizes, key=window_seconds):
        seconds = window_seconds(size)
        if seconds not in made:
            finer = next(made[known] for known in reversed(made) if seconds % known == 0)
            made[seconds] = f"{base}_{size}"
            connection.execute(f"create temp table {made[seconds]} as {coarser(finer, seconds, spans)}")
        yield size, made[seconds]
