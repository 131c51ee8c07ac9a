"""The roll-up of a day of a class, by DuckDB: all sizes of windows, and what was known before the day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.aggregation.columns import coarser
from qmf.pipeline.aggregation.members import window_seconds
from qmf.pipeline.aggregation.rows import LOOK_BACK_DAYS, carry
from qmf.pipeline.aggregation.source import ClassSource, day_start_ns
from qmf.pipeline.aggregation.stored_partials import merged_rows, stored
from qmf.pipeline.aggregation.windows import rolled_up

_ROWS, _CARRIED, _NEXT, _WANTED, _EARLIER = "qmf_rows", "qmf_carried", "qmf_next", "qmf_wanted", "qmf_earlier"
_HOUR_NS, _DAY_NS = 3600 * 10**9, 86_400 * 10**9


@attrs.define
class ClassRollup:
    """Rolls up the days of one class, in their order. It holds temporary tables until it is closed.

    Attributes:
        connection: to DuckDB.
        source: the samples.
        sizes: of the windows.
        continued: counters outlive restarts of their agents.
    """

    connection: Any
    source: ClassSource
    sizes: Sequence[str]
    continued: bool
    _carries: bool = attrs.field(default=False, init=False)

    @contextmanager
    def day(self, day: str) -> Iterator[Mapping[str, str]]:
        """Roll up a day.

        Yields:
            a table for each size; none where there are no samples.
        """
        if not self._carries:
            self._look_back(day)
        seconds = {size: window_seconds(size) for size in self.sizes}
        made: dict[str, str] = {}
        try:
            for size in sorted(seconds, key=seconds.__getitem__):
                finer = next((known for known in reversed(made) if seconds[size] % seconds[known] == 0), None)
                table = f"{_ROWS}_{size}"
                if finer is not None:
                    self.connection.execute(f"create temp table {table} as {coarser(made[finer], seconds[size])}")
                elif (paths := stored(self.source, day, seconds[size])) is not None:
                    self._merge(paths, seconds[size], table)
                elif not self._roll_up(self.source.sql(self.connection, [day]), seconds[size], table):
                    break
                made[size] = table
            if made and any(later > day for later in self.source.days):
                self._carry(next(iter(made.values())), day_start_ns(day) + _DAY_NS)
            yield made
        finally:
            for table in made.values():
                self.connection.execute(f"drop table if exists {table}")

    def close(self) -> None:
        """Drop the tables."""
        for table in (_CARRIED, _NEXT, _WANTED, _EARLIER):
            self.connection.execute(f"drop table if exists {table}")
        self._carries = False

    def _merge(self, paths: Sequence[Path], seconds: int, table: str) -> None:
        """Make a table of rows from stored partials."""
        with merged_rows(
            self.connection,
            paths,
            self.source,
            seconds,
            _CARRIED if self._carries else None,
            continued=self.continued,
        ) as sql:
            self.connection.execute(f"create temp table {table} as {sql}")

    def _roll_up(self, source: str, seconds: int, table: str) -> bool:
        """Make a table of the rows of some samples; False for no samples."""
        with rolled_up(
            self.connection,
            source,
            self.source.members,
            package=self.source.package,
            name=self.source.name,
            seconds=seconds,
            continued=self.continued,
            carried=_CARRIED if self._carries else None,
        ) as rows:
            if rows is not None:
                self.connection.execute(f"create temp table {table} as {rows}")
            return rows is not None

    def _carry(self, table: str, until_ns: int) -> None:
        """Remember the last samples, for the days from a time on."""
        known = _CARRIED if self._carries else None
        oldest = until_ns - LOOK_BACK_DAYS * _DAY_NS
        self.connection.execute(f"create temp table {_NEXT} as {carry(table, known, oldest)}")
        self.connection.execute(f"drop table if exists {_CARRIED}")
        self.connection.execute(f"alter table {_NEXT} rename to {_CARRIED}")
        self._carries = True

    def _look_back(self, day: str) -> None:
        """Find the last samples before a day: those of its objects, newest first, until none is missing."""
        start = day_start_ns(day)
        ranges = []
        for earlier in sorted((item for item in self.source.days if item < day), reverse=True):
            begins = day_start_ns(earlier)
            if begins < start - LOOK_BACK_DAYS * _DAY_NS:
                break
            if begins + _DAY_NS == start:
                ranges.append((earlier, start - _HOUR_NS, start))
            ranges.append((earlier, begins, begins + _DAY_NS))
        if not ranges:
            return
        samples = self.source.sql(self.connection, [day])
        self.connection.execute(
            f"create temp table {_WANTED} as select _agent as agent, _object as object, "
            f"min(coalesce(_create_ns, 0)) as created from {samples} where _statistics group by all"
        )
        for earlier, first, last in ranges:
            known = f"exists (select 1 from {_CARRIED} as c where {_SAME})" if self._carries else "false"
            self.connection.execute(f"delete from {_WANTED} as w where created >= {last} or {known}")
            if not self.connection.execute(f"select 1 from {_WANTED} limit 1").fetchall():
                break
            samples = self.source.sql(self.connection, [earlier])
            chosen = (
                f"(select * from {samples} as c where _ts_ns >= {first} and _ts_ns < {last} "
                f"and exists (select 1 from {_WANTED} as w where w.object = _object "
                "and w.agent is not distinct from _agent))"
            )
            if self._roll_up(chosen, 86_400, _EARLIER):
                self._carry(_EARLIER, start)
                self.connection.execute(f"drop table {_EARLIER}")


_SAME = "w.object = c.object and w.agent is not distinct from c.agent"
