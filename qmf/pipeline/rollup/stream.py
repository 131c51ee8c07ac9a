"""The job `rollup` as a stream: it follows a lake and writes each window once, when it is complete.

A window is complete when a sample was recorded that is later than its end by the time that late samples have. Then its
samples are read from the lake and rolled up as a batch does, so the rows are those of a batch. What must survive a kill
is committed together with the rows, as numbers of the application in the log of the table: up to which time the windows
of each class and size are written, and what was read of the lake. What is last known of each counter and gauge is in
the rows themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import connect, duckdb_errors, text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.lake.waiting import LATE_NS, ReaderNote, waiting_since
from qmf.pipeline.rollup.job import ReplacedRows, commit_rows, written_rows
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.source import ClassSource, FollowedClass, LakeFollower
from qmf.pipeline.rollup.stream_memory import MAX_VALUES, NewSamples, SampleCounts, StreamMemory
from qmf.pipeline.rollup.stream_windows import END_NS, WindowRange, WindowRollup, ahead_ns, is_ahead
from qmf.pipeline.rollup.tables import OUT, PARTITIONS, WRITER, RollupOptions, rollup_schema, rollup_table
from qmf.pipeline.rollup.tasks import WindowTask
from qmf.pipeline.runners.runner import Runner
from qmf.views.times import parse_duration

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

    def __init__(self, options: RollupOptions, *, in_memory: bool = True) -> None:
        """Begin where the last stream into the same table ended; the days of the options are ignored.

        Unless new samples are kept in memory, complete windows are read again.

        Raises:
            PipelineError: not a size of windows.
        """
        options.check()
        self.counts = StreamCounts()
        self._options = options
        self._late = parse_duration(options.late)
        #: The table that is written.
        self.table = rollup_table(options, "stream")
        self._latest = self.table.last_batch(_LATEST)
        self._written: dict[str, _Written] = {}
        self._follower = LakeFollower(
            options.lake, options.classes, lambda path: self.table.last_batch(f"{_READ}{path}"), options.storage
        )
        # What is new is little, and a thread has memory of its own.
        self._connection = connect(threads=1)
        self._connection.execute("set timezone = 'UTC'")
        self._windows = WindowRollup(self._connection, options)
        self._memory: StreamMemory | None = None
        if in_memory:
            self._memory = StreamMemory(
                self._connection, options.sizes, ahead_ns(options.late), continued=options.continued, zone=options.zone
            )
        #: Up to when a class has samples that are left out of windows: they must not be known before later ones.
        self._late_until: dict[str, int] = {}
        #: The lake that is followed.
        self.lake = DeltaLake(options.lake, options.storage)
        self._note = ReaderNote(self.lake, "rollup", time.time_ns)
        self._complete: int | None = None

    def close(self) -> None:
        """Release what is held."""
        self._note.close()
        self._connection.close()

    def step(self, until: LakeVersions | None = None, *, last: bool = False) -> int:
        """Read what is new, up to versions of all tables or all that is there, and write the complete windows.

        With `last` those that are not complete are written, too; a later stream replaces them. Returns rows written.
        """
        started = time.monotonic()
        try:
            with duckdb_errors(self._options.lake):
                before = self._waiting_since() if until is None else until.waiting
                classes = self._follower.look(None if until is None else until.versions)
                self._read(classes)
                after = self._waiting_since()
                # A table is complete until a recorder holds back rows of it.
                self._complete = min(
                    (at for known in (before, after) for path, at in known.items() if path in self._follower.positions),
                    default=None,
                )
                return self._write([item.source for item in classes], last=last)
        except FileNotFoundError as error:
            raise LakeError(f"{self._options.lake}: {error}") from error
        finally:
            self.counts = attrs.evolve(self.counts, busy=self.counts.busy + time.monotonic() - started)

    # -- what is new

    def _waiting_since(self) -> dict[str, int]:
        """The tables of which recorders hold rows back; where windows are wanted earlier than that, none of ours."""
        if self._late < LATE_NS and self._follower.positions:
            self._note.renew(self._follower.positions)
        return waiting_since(self.lake, time.time_ns())

    def _read(self, classes: Sequence[FollowedClass]) -> None:
        """Read what is new, and count it."""
        new: list[NewSamples] = []
        written = {item.name: self._written_until(item.source) for item in classes}
        room = MAX_VALUES
        for item in classes:
            samples = self._samples(item, room)
            if item.new and (samples is None or samples.since is not None):
                found = self._counted_in_files(item)
                self._count(item.name, found, written)
                samples = None if found.late else samples
            if samples is not None:
                room -= samples.values
                new.append(samples)
            elif self._memory is not None and item.new:
                self._memory.drop(item.name)
        if self._memory is not None and new:
            for name, counts in self._memory.add(new, written).items():
                self._count(name, counts, written)

    def _samples(self, item: FollowedClass, room: int) -> NewSamples | None:
        """The samples of a class that belong into memory; None for none, or more than there is room for."""
        memory, source = self._memory, item.source
        if memory is None:
            return None
        start, size = min((self._progress(source, size).until, size) for size in self._options.sizes)
        if any(row.end_ns > start for row in source.left_out):
            # Samples in memory are those of all recorders.
            memory.drop(item.name)
            return None
        if memory.has(source):
            samples = NewSamples(source, item.new)
            return samples if samples.files and samples.values <= room else None
        files = source.files_since(start)
        samples = NewSamples(source, files, first=True)
        if not files or samples.values > room or start < self._late_until.get(item.name, start):
            return None
        carried = self._windows.last_known_table(WindowRange(source, size, start, start, last=False))
        # What an earlier stream had read of windows that are not complete is read again, together with what is new:
        # new rows may be in the same files as others, if files were combined.
        since = None if set(files) == set(item.new) else start
        return attrs.evolve(samples, carried=carried, since=since)

    def _counted_in_files(self, item: FollowedClass) -> SampleCounts:
        """Figures of the new samples of a class, from where they are."""
        written = self._written_until(item.source)
        source = ClassSource.of(item.source.versions, item.new)
        ahead = is_ahead(self._options.late)
        ((read, early, late, latest),) = self._connection.execute(
            f"select count(*), count(*) filter ({ahead}), count(*) filter (not {ahead} and _ts_ns < {written}), "
            f"max(_ts_ns) filter (not {ahead}) from {source.sql(self._connection, list(source.days))} where _statistics"
        ).fetchall()
        return SampleCounts(read, early, late, latest)

    def _count(self, name: str, found: SampleCounts, written: Mapping[str, int]) -> None:
        if found.late:
            self._late_until[name] = written[name]
        self.counts = attrs.evolve(
            self.counts,
            read=self.counts.read + found.read,
            ahead=self.counts.ahead + found.ahead,
            late=self.counts.late + found.late,
        )
        if found.latest is not None:
            self._latest = found.latest if self._latest is None else max(found.latest, self._latest)

    def _written_until(self, source: ClassSource) -> int:
        return max(self._progress(source, size).until for size in self._options.sizes)

    # -- writing

    def _write(self, sources: Sequence[ClassSource], *, last: bool) -> int:
        """Write windows; returns the number of rows."""
        if self._latest is None:
            return 0
        latest = self._latest if self._complete is None else min(self._latest, self._complete - 1)
        if self._memory is not None:
            self._memory.close(latest - self._late)
        with_values = [source for source in sources if source.members]
        ranges = list(self._ranges(with_values, latest - self._late, last=last))
        rows = self._roll_up(ranges) if ranges else []
        if changed := self._note_written(zip(ranges, rows, strict=True), last=last):
            self._commit(changed)
            self.counts = attrs.evolve(self.counts, rows=self.counts.rows + sum(rows), commits=self.counts.commits + 1)
        if self._memory is not None and with_values:
            self._memory.forget(
                {
                    size: min(self._progress(source, size).until for source in with_values)
                    for size in self._options.sizes
                }
            )
        return sum(rows)

    def _note_written(
        self, ranges: Iterable[tuple[WindowRange, int]], *, last: bool
    ) -> list[tuple[WindowRange, _Written]]:
        """Note up to when windows are written; returns the ranges that have rows, with what was written before."""
        changed = []
        for windows, rows in ranges:
            before = self._written[windows.key]
            if rows:
                changed.append((windows, before))
            if rows or not before.is_open:
                self._written[windows.key] = _Written(windows.end, last)
        return changed

    def _ranges(self, sources: Iterable[ClassSource], until: int, *, last: bool) -> Iterator[WindowRange]:
        """The windows that are complete at a time, of each class and size, or with `last` all that have begun."""
        for source in sources:
            for size in self._options.sizes:
                start = self._progress(source, size).until
                end = max(self._options.zone.floor_ns(until, window_seconds(size)), start)
                if end > start or last:
                    yield WindowRange(source, size, start, end, last)

    def _roll_up(self, ranges: Sequence[WindowRange]) -> list[int]:
        """Make the rows of windows; returns the number of each range."""
        self._connection.execute(f"drop table if exists {OUT}")
        made: dict[str, int] = {}
        in_memory: dict[str, list[WindowRange]] = {}
        for windows in ranges:
            if self._memory is not None and self._memory.has(windows.source) and not windows.last:
                in_memory.setdefault(windows.size, []).append(windows)
                self._windows.forget_range(windows)
            else:
                made[windows.key] = self._windows.roll_up(windows)
        for size, chosen in in_memory.items():
            assert self._memory is not None
            counts = self._memory.roll_up(size, chosen)
            made |= {windows.key: count for windows, count in zip(chosen, counts, strict=True)}
        if ranges[0].last:
            # What is known includes samples of windows that aren't complete.
            self._windows.forget()
        return [made[windows.key] for windows in ranges]

    def _commit(self, changed: Sequence[tuple[WindowRange, _Written]]) -> None:
        """Write the rows together with how far they go; of each range it is known how far it was written before."""
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
        """Commit the rows that were made, with some numbers, instead of those that meet a condition or of none."""
        options: dict[str, Any] = {"writer": WRITER, "partition_by": PARTITIONS, "numbers": numbers}
        rows = self._connection.sql(f"from {OUT}")
        if where is None:
            self.table.append(rows, optional=False, **options)
        else:
            self.table.replace(rows, where=where, **options)

    def _progress(self, source: ClassSource, size: str) -> _Written:
        """How far the windows of a class and a size are written."""
        key = WindowRange(source, size, 0, 0, last=False).key
        if key not in self._written:
            until = self.table.last_batch(f"{_WRITTEN}{key}")
            is_open = bool(self.table.last_batch(f"{_OPEN}{key}"))
            self._written[key] = _Written() if until is None else _Written(until, is_open)
        return self._written[key]


class TaskRollupStream(RollupStream):
    """A stream whose windows are made by the tasks of a runner, and not from memory."""

    def __init__(self, runner: Runner, options: RollupOptions) -> None:
        super().__init__(options, in_memory=False)
        self._runner = runner
        self._made = WrittenRows()
        self._first_day = ""
        self.table.conform(rollup_schema())

    def _roll_up(self, ranges: Sequence[WindowRange]) -> list[int]:
        tasks = []
        is_first = self.table.version() is None
        options = attrs.evolve(self._options, lake=absolute(self._options.lake), out=absolute(self._options.out))
        for windows in ranges:
            days = {date: windows.source.days[date] for date in windows.days}
            few = attrs.evolve(windows, source=attrs.evolve(windows.source, days=days))
            tasks.append(WindowTask(options, few, is_first))
        first = min(windows.start for windows in ranges)
        self._first_day = "" if first == -END_NS else self._options.zone.day(first)
        self._made = written_rows(self._runner, tasks, self.table)
        counts = self._made.counts
        return [counts.get((windows.source.package, windows.source.name, windows.size), 0) for windows in ranges]

    def _store(self, where: str | None, numbers: Mapping[str, int]) -> None:
        replacement = None
        if where is not None:
            first = self._first_day
            replacement = ReplacedRows.of(self.table, where, self._options.sizes, lambda found: found >= first)
            self._made += written_rows(self._runner, replacement.kept, self.table)
        commit_rows(self.table, self._made, replacement, numbers)
