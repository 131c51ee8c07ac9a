"""The roll-up of windows between two times, with what is last known of each counter and gauge before them."""

from __future__ import annotations

from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import parquet_files, text
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.rollup.columns import coarser
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS, carry
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.tables import OUT, RollupOptions, add_rows, rollup_table
from qmf.pipeline.rollup.windows import roll_up
from qmf.views.times import parse_duration

#: Later than any sample.
END_NS = (1 << 63) - 1

_ROWS, _NEXT = "qmf_rows", "qmf_next"

#: Nanoseconds that an agent's clock may always be ahead of the recorder's.
_SKEW_NS = 60 * 10**9


@attrs.frozen
class WindowRange:
    """Windows of one class and size.

    Attributes:
        source: samples of the class.
        size: of the windows.
        start: of the first one; `-END_NS` for all.
        end: of the last one that is complete.
        last: those after it belong to the range as well.
    """

    source: ClassSource
    size: str
    start: int
    end: int
    last: bool

    @property
    def key(self) -> str:
        """A name of its class and size."""
        return f"{self.size} {self.source.package}:{self.source.name}"

    @property
    def days(self) -> list[str]:
        """The days that have samples in it."""
        first = None if self.start == -END_NS else day(self.start)
        return self.source.between(first, None if self.last else day(self.end))


def ahead_ns(late: str) -> int:
    """Samples are from the future that are later than their arrival by more nanoseconds: one wrong clock would end the
    windows of all other agents.

    Args:
        late: how long late samples are waited for.
    """
    return max(parse_duration(late), _SKEW_NS)


def is_ahead(late: str) -> str:
    """The condition for samples from the future, see `ahead_ns`."""
    return f"(_ts_ns > _received_ns + {ahead_ns(late)})"


class WindowRollup:
    """Rolls up ranges of windows; those of a class and size follow each other. Holds temporary tables."""

    def __init__(self, connection: Any, options: RollupOptions) -> None:
        """Make one.

        Args:
            connection: to DuckDB.
            options: of the roll-up.
        """
        self._connection = connection
        self._options = options
        self._table = rollup_table(options, "stream")
        self._carried: dict[str, str | None] = {}
        self._tables = 0

    def roll_up(self, windows: WindowRange) -> int:
        """Add the rows of some windows to `OUT`; returns their number.

        Raises:
            LakeError: the table of earlier rows cannot be read.
        """
        rows, zone = 0, self._options.zone
        first = None if windows.start == -END_NS else zone.day(windows.start)
        for date in windows.source.zone_days(zone, first, None if windows.last else zone.day(windows.end)):
            start, end = max(zone.start_ns(date), windows.start), zone.end_ns(date)
            until = min(windows.end, end)
            rows += self._roll_up_day(windows, date, start, until)
            if windows.last:
                rows += self._roll_up_day(windows, date, max(start, until), end)
        return rows

    def forget(self) -> None:
        """Forget what is last known: it is read from the table again."""
        for table in self._carried.values():
            if table is not None:
                self._connection.execute(f"drop table {table}")
        self._carried.clear()

    def forget_range(self, windows: WindowRange) -> None:
        """Forget what is last known before some windows: others have made rows of theirs."""
        table = self._carried.pop(windows.key, None)
        if table is not None:
            self._connection.execute(f"drop table {table}")

    def _roll_up_day(self, windows: WindowRange, date: str, first: int, until: int) -> int:
        """Add the rows of the windows of a day between two times."""
        if until <= first:
            return 0
        zone, source = self._options.zone, windows.source.of_times(first, until)
        if not source.days:
            return 0
        spans, day_start = zone.spans(first, until), zone.start_ns(date)
        carried = self.last_known_table(windows)
        with roll_up(
            self._connection,
            f"(select * from {source.sql(self._connection)} where not {is_ahead(self._options.late)})",
            source.members,
            package=source.package,
            name=source.name,
            seconds=self._options.base_seconds,
            continued=self._options.continued,
            carried=carried,
            spans=spans,
        ) as sql:
            if sql is None:
                return 0
            self._connection.execute(f"create or replace temp table {_ROWS} as {sql}")
        self._keep(windows, carry(_ROWS, carried, day_start - LOOK_BACK_DAYS * NS_PER_DAY))
        seconds = window_seconds(windows.size)
        rows = _ROWS if seconds == self._options.base_seconds else f"({coarser(_ROWS, seconds, spans)})"
        return add_rows(self._connection, OUT, rows, windows.size, zone)

    def last_known_table(self, windows: WindowRange) -> str | None:
        """The table of what is last known before some windows; None for nothing.

        Raises:
            LakeError: the table of earlier rows cannot be read.
        """
        if windows.key not in self._carried:
            self._carried[windows.key] = None
            rows = self._rows(windows)
            if rows is not None:
                self._keep(windows, carry(rows, None, windows.start - LOOK_BACK_DAYS * NS_PER_DAY))
        return self._carried[windows.key]

    def _rows(self, windows: WindowRange) -> str | None:
        """The rows of the windows before, as far back as samples are looked for; None for none."""
        if windows.start == -END_NS or self._table.version() is None:
            return None
        oldest = day(windows.start - (LOOK_BACK_DAYS + 1) * NS_PER_DAY)
        files = [
            file
            for file in self._table.snapshot().files
            if file.path.startswith(f"size={windows.size}/") and file.date is not None and file.date >= oldest
        ]
        if not files:
            return None
        if is_local(self._table.url):
            found = parquet_files([file.url for file in files], ", union_by_name = true")
        else:
            found = "qmf_written"
            self._connection.register(found, self._table.dataset(files))
        source = windows.source
        return (
            f"(select * from {found} where package = {text(source.package)} and class = {text(source.name)} "
            f"and first_ns < {windows.start})"
        )

    def _keep(self, windows: WindowRange, sql: str) -> None:
        table = self._carried[windows.key]
        if table is None:
            self._tables += 1
            table = f"qmf_carried_{self._tables}"
        self._connection.execute(f"create or replace temp table {_NEXT} as {sql}")
        self._connection.execute(f"drop table if exists {table}")
        self._connection.execute(f"alter table {_NEXT} rename to {table}")
        self._carried[windows.key] = table
