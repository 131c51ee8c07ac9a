"""The job `rollup` as a stream, in this process: it follows a lake and writes each window once, when it is complete.

A window is complete when a sample was recorded that is later than its end by the time that late samples have. Then its
samples are read from the lake and rolled up as a batch does, so the rows are those of a batch. What must survive a kill
is committed together with the rows, as numbers of the application in the log of the table: up to which time the windows
of each class and size are written, and what was read of the lake. What is last known of each counter and gauge is in
the rows themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.aggregation.following import FollowedClass, LakeFollower
from qmf.pipeline.aggregation.members import window_seconds
from qmf.pipeline.aggregation.source import ClassSource
from qmf.pipeline.aggregation.stream_windows import END_NS, OUT, WindowRange, WindowRollup, is_ahead
from qmf.pipeline.aggregation.tables import PARTITIONS, WRITER, RollupOptions, rollup_table
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, text
from qmf.pipeline.durations import parse_duration
from qmf.pipeline.errors import LakeError

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

    until: int = -END_NS
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
        self._connection = connect()
        self._connection.execute("set timezone = 'UTC'")
        self._windows = WindowRollup(self._connection, options)

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
        ahead = is_ahead(self._options.late)
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

    # -- writing

    def _write(self, sources: Iterable[ClassSource], *, last: bool) -> int:
        """Write windows; returns the number of rows."""
        if self._latest is None:
            return 0
        ranges = []
        for source in sources:
            for size in self._options.sizes if source.members else ():
                length = window_seconds(size) * 10**9
                start = self._progress(source, size).until
                end = max((self._latest - self._late) // length * length, start)
                if end > start or last:
                    ranges.append(WindowRange(source, size, start, end, last))
        rows = self._roll_up(ranges) if ranges else []
        changed = []
        for windows, made in zip(ranges, rows, strict=True):
            before = self._written[windows.key]
            if made:
                changed.append((windows, before))
            if made or not before.is_open:
                self._written[windows.key] = _Written(windows.end, last)
        if changed:
            self._commit(changed)
            self.counts = attrs.evolve(self.counts, rows=self.counts.rows + sum(rows), commits=self.counts.commits + 1)
        return sum(rows)

    def _roll_up(self, ranges: Sequence[WindowRange]) -> list[int]:
        """Make the rows of windows; returns the number of each range."""
        self._connection.execute(f"drop table if exists {OUT}")
        made = [self._windows.roll_up(windows) for windows in ranges]
        if ranges[0].last:
            # What is known includes samples of windows that aren't complete.
            self._windows.forget()
        return made

    def _commit(self, changed: Sequence[tuple[WindowRange, _Written]]) -> None:
        """Write the rows together with how far they go.

        Args:
            changed: what was rolled up, and how far it was written before.
        """
        numbers = {f"{_READ}{path}": at for path, at in self._follower.positions.items()}
        for windows, _ in changed:
            numbers |= {f"{_WRITTEN}{windows.key}": windows.end, f"{_OPEN}{windows.key}": int(windows.last)}
        if self._latest is not None:
            numbers[_LATEST] = self._latest
        unfinished = [
            f"(size = {text(windows.size)} and package = {text(windows.source.package)} "
            f"and class = {text(windows.source.name)} and first_ns >= {windows.start})"
            for windows, before in changed
        ]
        is_open = any(before.is_open for _, before in changed)
        self._store(" or ".join(unfinished) if is_open else None, numbers)

    def _store(self, where: str | None, numbers: Mapping[str, int]) -> None:
        """Commit the rows that were made.

        Args:
            where: condition for the rows that they replace; None for none.
            numbers: to commit with them.
        """
        options: dict[str, Any] = {
            "writer": WRITER,
            "batch": (self._table.last_batch(WRITER) or 0) + 1,
            "partition_by": PARTITIONS,
            "numbers": numbers,
        }
        rows = self._connection.sql(f"from {OUT}")
        if where is None:
            self._table.append(rows, optional=False, **options)
        else:
            self._table.replace(rows, where=where, **options)

    def _progress(self, source: ClassSource, size: str) -> _Written:
        """How far the windows of a class and a size are written."""
        key = WindowRange(source, size, 0, 0, last=False).key
        if key not in self._written:
            until = self._table.last_batch(f"{_WRITTEN}{key}")
            is_open = bool(self._table.last_batch(f"{_OPEN}{key}"))
            self._written[key] = _Written() if until is None else _Written(until, is_open)
        return self._written[key]
