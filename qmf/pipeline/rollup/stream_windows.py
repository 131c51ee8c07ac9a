"""The roll-up of windows between two times, with what is last known of each counter and gauge before them."""

from __future__ import annotations

from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import parquet_files, text
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.rollup.columns import coarser
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.tables import OUT, RollupOptions, add_rows, rollup_table
from qmf.pipeline.rollup.windows import ClassRows
from qmf.views.times import parse_duration

#: Later than any sample.
END_NS = (1 << 63) - 1

_ROWS = "qmf_rows"

#: Nanoseconds that an agent's clock may always be ahead of the recorder's.
_SKEW_NS = 60 * 10**9


@attrs.frozen
class WindowRange:
    """Windows of one class and size.

    Attributes:
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
        return f"{self.size} {self.source.full_name}"

    @property
    def days(self) -> list[str]:
        """The days that have samples in it."""
        first = None if self.start == -END_NS else day(self.start)
        return self.source.between(first, None if self.last else day(self.end))


def ahead_ns(late: str) -> int:
    """Samples are from the future that are later than their arrival by more nanoseconds than late ones may be late.

    That is a minute at least. One wrong clock would end the windows of all other agents.
    """
    return max(parse_duration(late), _SKEW_NS)


def is_ahead(late: str) -> str:
    """The condition for samples from the future, see `ahead_ns`."""
    return f"(_ts_ns > _received_ns + {ahead_ns(late)})"


class WindowRollup:
    """Rolls up ranges of windows; those of a class and size follow each other. Holds temporary tables."""

    def __init__(self, connection: Any, options: RollupOptions) -> None:
        """Make one on a connection to DuckDB."""
        self._connection = connection
        self._options = options
        self._table = rollup_table(options, "stream")
        self._classes: dict[str, ClassRows] = {}
        self._tables = 0

    def roll_up(self, windows: WindowRange) -> int:
        """Add the rows of some windows to `OUT`; returns their number."""
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
        for known in self._classes.values():
            known.drop()
        self._classes.clear()

    def forget_range(self, windows: WindowRange) -> None:
        """Forget what is last known before some windows: others have made rows of theirs."""
        known = self._classes.pop(windows.key, None)
        if known is not None:
            known.drop()

    def _roll_up_day(self, windows: WindowRange, date: str, first: int, until: int) -> int:
        """Add the rows of the windows of a day between two times."""
        if until <= first:
            return 0
        zone, source = self._options.zone, windows.source.of_times(first, until)
        if not source.days:
            return 0
        spans, day_start = zone.spans(first, until), zone.start_ns(date)
        known, base = self._class_rows(windows), self._options.base_seconds
        if not known.make(source, base, _ROWS, spans, where=f"not {is_ahead(self._options.late)}"):
            return 0
        known.keep(_ROWS, day_start - LOOK_BACK_DAYS * NS_PER_DAY)
        seconds = window_seconds(windows.size)
        rows = _ROWS if seconds == base else f"({coarser(_ROWS, seconds, spans)})"
        return add_rows(self._connection, OUT, rows, windows.size, zone)

    def last_known_table(self, windows: WindowRange) -> str | None:
        """The table of what is last known before some windows; None for nothing."""
        return self._class_rows(windows).carried

    def _class_rows(self, windows: WindowRange) -> ClassRows:
        found = self._classes.get(windows.key)
        if found is None:
            self._tables += 1
            found = ClassRows(self._connection, self._options.continued, f"qmf_carried_{self._tables}")
            self._classes[windows.key] = found
            rows = self._rows(windows)
            if rows is not None:
                found.keep(rows, windows.start - LOOK_BACK_DAYS * NS_PER_DAY)
        return found

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
