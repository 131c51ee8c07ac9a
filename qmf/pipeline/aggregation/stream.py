"""The job `rollup` as a stream, in this process: it follows a lake and writes each window once, when it is complete.

A window is complete when a sample was recorded that is later than its end by the time that late samples have. Then its
samples are read from the lake and rolled up as a batch does, so the rows are those of a batch. What must survive a kill
is committed together with the rows, as numbers of the application in the log of the table: up to which time the windows
of each class and size are written, and what was read of the lake. What is last known of each counter and gauge is in
the rows themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from qmf.pipeline.aggregation.following import FollowedClass, LakeFollower
from qmf.pipeline.aggregation.job import add_rows
from qmf.pipeline.aggregation.members import window_seconds
from qmf.pipeline.aggregation.rows import LOOK_BACK_DAYS, carry
from qmf.pipeline.aggregation.source import ClassSource, day_start_ns
from qmf.pipeline.aggregation.tables import PARTITIONS, WRITER, RollupOptions, rollup_table
from qmf.pipeline.aggregation.windows import rolled_up
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, parquet_files, text
from qmf.pipeline.durations import parse_duration
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.layout import day
from qmf.pipeline.lake.location import is_local

_OUT, _ROWS, _NEXT = "qmf_out", "qmf_rows", "qmf_next"
_DAY_NS = 86_400 * 10**9

#: Nanoseconds that an agent's clock may always be ahead of the recorder's.
_SKEW_NS = 60 * 10**9

#: Later than any sample.
_END_NS = (1 << 63) - 1

#: Names of the application's numbers in the table's log.
_LATEST, _OPEN, _READ, _WRITTEN = "rollup latest", "rollup open ", "rollup read ", "rollup written "


@attrs.frozen
class StreamCounts:
    """What a stream did from its start.

    Attributes:
        read: samples.
        late: samples of windows that were written before, which are left out.
        ahead: samples from the future, by more than late ones may be late and a minute, which are left out.
        rows: written.
        commits: that wrote them.
        busy: seconds at work.
    """

    read: int = 0
    late: int = 0
    ahead: int = 0
    rows: int = 0
    commits: int = 0
    busy: float = 0.0

    def __str__(self) -> str:
        commits = "1 commit" if self.commits == 1 else f"{self.commits} commits"
        return (
            f"{self.read} samples read, {self.rows} rows written in {commits}, {self.busy:.1f} s; "
            f"{self.late} came too late, {self.ahead} are from the future"
        )


@attrs.frozen
class _Written:
    """How far the windows of a class and a size are written.

    Attributes:
        until: start of the first window that isn't complete.
        is_open: rows of later windows are in the table, and will be replaced.
    """

    until: int = -_END_NS
    is_open: bool = False


class RollupStream:
    """Follows one lake. Belongs to one thread; close it at the end."""

    def __init__(self, options: RollupOptions) -> None:
        """Begin where the last stream into the same table ended.

        Args:
            options: of the roll-up; `first` and `last` are ignored.

        Raises:
            PipelineError: not a size of windows.
            LakeError: the table cannot be read.
        """
        options.check()
        self.counts = StreamCounts()
        self._options = options
        self._late = parse_duration(options.late)
        self._table = rollup_table(options, "stream")
        self._latest = self._table.last_batch(_LATEST)
        self._written: dict[str, _Written] = {}
        self._follower = LakeFollower(
            options.lake, options.classes, lambda path: self._table.last_batch(f"{_READ}{path}")
        )
        self._carried: dict[str, str | None] = {}
        self._connection = connect()
        self._connection.execute("set timezone = 'UTC'")

    def close(self) -> None:
        """Release what is held."""
        self._connection.close()

    def step(self, *, last: bool = False) -> int:
        """Read what is new, and write the windows that are complete.

        Args:
            last: write also those that are not complete yet; a later stream replaces them.

        Returns:
            rows written.

        Raises:
            LakeError: the lake cannot be read, or the table cannot be written.
        """
        started = time.monotonic()
        try:
            with duckdb_errors(self._options.lake):
                classes = self._follower.look()
                for item in classes:
                    self._count(item)
                return self._write([item.source for item in classes], last=last)
        except FileNotFoundError as error:
            raise LakeError(f"{self._options.lake}: {error}") from error
        finally:
            self.counts = attrs.evolve(self.counts, busy=self.counts.busy + time.monotonic() - started)

    # -- what is new

    def _count(self, item: FollowedClass) -> None:
        """Count the new samples of a class, and find the latest."""
        if not item.new:
            return
        written = max(self._progress(item.source, size).until for size in self._options.sizes)
        source = ClassSource.of(item.source.versions, item.new)
        ahead = self._is_ahead()
        ((read, early, late, latest),) = self._connection.execute(
            f"select count(*), count(*) filter ({ahead}), count(*) filter (not {ahead} and _ts_ns < {written}), "
            f"max(_ts_ns) filter (not {ahead}) from {source.sql(self._connection, list(source.days))} where _statistics"
        ).fetchall()
        self.counts = attrs.evolve(
            self.counts,
            read=self.counts.read + read,
            ahead=self.counts.ahead + early,
            late=self.counts.late + late,
        )
        if latest is not None:
            self._latest = latest if self._latest is None else max(latest, self._latest)

    def _is_ahead(self) -> str:
        """The condition for samples from the future: one wrong clock would end the windows of all other agents."""
        return f"(_ts_ns > _received_ns + {max(self._late, _SKEW_NS)})"

    # -- writing

    def _write(self, sources: Iterable[ClassSource], *, last: bool) -> int:
        """Write windows; returns the number of rows."""
        if self._latest is None:
            return 0
        changed: dict[tuple[str, str, str], tuple[_Written, _Written]] = {}
        rows = 0
        self._connection.execute(f"drop table if exists {_OUT}")
        for source in sources:
            for size in self._options.sizes if source.members else ():
                length = window_seconds(size) * 10**9
                before = self._progress(source, size)
                after = _Written(max((self._latest - self._late) // length * length, before.until), last)
                if after.until > before.until or last:
                    made = self._roll_up(source, size, before.until, after.until, last=last)
                    if made:
                        changed[size, source.package, source.name] = (before, after)
                    elif before.is_open:
                        after = before
                    rows += made
                    self._written[_key(size, source.package, source.name)] = after
        if last:
            # What was kept knows the samples of windows that aren't complete.
            self._forget()
        if rows:
            self._commit(changed)
            self.counts = attrs.evolve(self.counts, rows=self.counts.rows + rows, commits=self.counts.commits + 1)
        return rows

    def _roll_up(self, source: ClassSource, size: str, start: int, end: int, *, last: bool) -> int:
        """Add the rows of the windows from one time to another, or of all from the first one on."""
        rows = 0
        for date in source.between(None if start == -_END_NS else day(start), None if last else day(end)):
            until = min(end, day_start_ns(date) + _DAY_NS)
            rows += self._roll_up_day(source, size, date, (start, until))
            if last:
                rows += self._roll_up_day(source, size, date, (max(start, until), _END_NS))
        return rows

    def _roll_up_day(self, source: ClassSource, size: str, date: str, times: tuple[int, int]) -> int:
        """Add the rows of the windows of a day between two times."""
        first, until = times
        files = [
            item
            for item in source.days[date]
            if (item[1].last_ns is None or item[1].last_ns >= first)
            and (item[1].first_ns is None or item[1].first_ns < until)
        ]
        if not files or until <= first:
            return 0
        few = ClassSource(source.versions, source.members, {date: files})
        samples = (
            f"(select * from {few.sql(self._connection, [date])} "
            f"where _ts_ns >= {first} and _ts_ns < {until} and not {self._is_ahead()})"
        )
        carried = self._known(source, size)
        with rolled_up(
            self._connection,
            samples,
            source.members,
            package=source.package,
            name=source.name,
            seconds=window_seconds(size),
            continued=self._options.continued,
            carried=carried,
        ) as sql:
            if sql is None:
                return 0
            self._connection.execute(f"create or replace temp table {_ROWS} as {sql}")
        self._keep(source, size, carry(_ROWS, carried, day_start_ns(date) - LOOK_BACK_DAYS * _DAY_NS))
        return add_rows(self._connection, _OUT, _ROWS, size)

    def _commit(self, changed: Mapping[tuple[str, str, str], tuple[_Written, _Written]]) -> None:
        """Write the rows together with how far they go.

        Args:
            changed: how far before and after, by size, package and class.
        """
        numbers = {f"{_READ}{path}": at for path, at in self._follower.positions.items()}
        for key, (_, after) in changed.items():
            numbers |= {f"{_WRITTEN}{_key(*key)}": after.until, f"{_OPEN}{_key(*key)}": int(after.is_open)}
        if self._latest is not None:
            numbers[_LATEST] = self._latest
        options: dict[str, Any] = {
            "writer": WRITER,
            "batch": (self._table.last_batch(WRITER) or 0) + 1,
            "partition_by": PARTITIONS,
            "numbers": numbers,
        }
        rows = self._connection.sql(f"from {_OUT}")
        if not any(before.is_open for before, _ in changed.values()):
            self._table.append(rows, optional=False, **options)
            return
        unfinished = (
            f"(size = {text(size)} and package = {text(package)} and class = {text(name)} "
            f"and first_ns >= {before.until})"
            for (size, package, name), (before, _) in changed.items()
        )
        self._table.replace(rows, where=" or ".join(unfinished), **options)

    def _progress(self, source: ClassSource, size: str) -> _Written:
        """How far the windows of a class and a size are written."""
        key = _key(size, source.package, source.name)
        if key not in self._written:
            until = self._table.last_batch(f"{_WRITTEN}{key}")
            is_open = bool(self._table.last_batch(f"{_OPEN}{key}"))
            self._written[key] = _Written() if until is None else _Written(until, is_open)
        return self._written[key]

    # -- what is last known

    def _known(self, source: ClassSource, size: str) -> str | None:
        """The table of what is last known before the windows that come next, for a class and a size."""
        key = _key(size, source.package, source.name)
        if key not in self._carried:
            self._carried[key] = None
            until = self._progress(source, size).until
            rows = self._rows(source, size, until)
            if rows is not None:
                self._keep(source, size, carry(rows, None, until - LOOK_BACK_DAYS * _DAY_NS))
        return self._carried[key]

    def _rows(self, source: ClassSource, size: str, until: int) -> str | None:
        """The rows of the windows before a time, as far back as samples are looked for; None for none."""
        if until == -_END_NS or self._table.version() is None:
            return None
        oldest = day(until - (LOOK_BACK_DAYS + 1) * _DAY_NS)
        files = [
            file
            for file in self._table.snapshot().files
            if file.path.startswith(f"size={size}/") and file.date is not None and file.date >= oldest
        ]
        if not files:
            return None
        if is_local(self._table.url):
            found = parquet_files([file.url for file in files], ", union_by_name = true")
        else:
            found = "qmf_written"
            self._connection.register(found, self._table.dataset(files))
        return (
            f"(select * from {found} where package = {text(source.package)} and class = {text(source.name)} "
            f"and first_ns < {until})"
        )

    def _keep(self, source: ClassSource, size: str, sql: str) -> None:
        key = _key(size, source.package, source.name)
        table = f"qmf_carried_{list(self._carried).index(key)}"
        self._connection.execute(f"create or replace temp table {_NEXT} as {sql}")
        self._connection.execute(f"drop table if exists {table}")
        self._connection.execute(f"alter table {_NEXT} rename to {table}")
        self._carried[key] = table

    def _forget(self) -> None:
        for table in self._carried.values():
            if table is not None:
                self._connection.execute(f"drop table {table}")
        self._carried.clear()


def _key(size: str, package: str, name: str) -> str:
    return f"{size} {package}:{name}"
