"""The rows of a lake that rules read, those of a batch or those that came since a stream looked, and their time.

The time that an agent gives counts as long as it can be right: nothing happens after it was recorded, and nothing
arrives more than `late` after it happened. Every other row counts at the time of its arrival. So a clock that is wrong,
or that is set forward or back, costs precision and no alerts; and since this depends on the row alone, all readers of a
lake agree.

Everything before the horizon is complete. The horizon is the newest arrival less `late`. A row that enters the lake
with an older time (its recorder was killed before the commit, and added the file when it was started again) is dropped
and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.detectors.base import NEVER
from qmf.pipeline.correlate.signals import event_time_sql
from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import CLASS_KINDS
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import kind_path
from qmf.pipeline.lake.runs import SILENCE_NS, CountedRows, LeftOut, RecordedRuns
from qmf.pipeline.lake.table_files import TableFile

#: First and last arrival of the rows of each recorder's run.
Runs = Mapping[str, tuple[int, int]]

#: The reasons of gaps that are about the recorder's connection, and whether it is connected afterwards.
CONNECTION_REASONS = {"disconnected": False, "connected again": True}


@attrs.frozen
class ConnectionChange:
    """A recorder's run lost its connection, or is connected `again`, at a time by its clock."""

    run: str
    at: int
    again: bool


def merged_runs(*several: Runs) -> dict[str, tuple[int, int]]:
    """First and last arrival of each run, of several such mappings."""
    merged: dict[str, tuple[int, int]] = {}
    for runs in several:
        for run, (first, last) in runs.items():
            known = merged.get(run, (first, last))
            merged[run] = (min(first, known[0]), max(last, known[1]))
    return merged


def outages(runs: Runs, changes: Iterable[ConnectionChange] = ()) -> list[tuple[int, int]]:
    """Intervals in which no recorder was recording, from the first arrival on; one that has not ended has no limit."""
    changes_by_run: dict[str, list[ConnectionChange]] = {}
    for change in changes:
        changes_by_run.setdefault(change.run, []).append(change)
    recorded = sorted(
        interval
        for run, (first, last) in runs.items()
        for interval in _connected_intervals(first, last, changes_by_run.get(run, ()))
    )
    found: list[tuple[int, int]] = []
    end: int | None = None
    for begin, until in recorded:
        if end is not None and begin > end:
            found.append((end, begin))
        end = until if end is None else max(end, until)
    if end is not None and end < max(last for _, last in runs.values()):
        found.append((end, NEVER))
    return found


def ended_runs(runs: Runs) -> dict[str, int]:
    """Until when rows of runs that ended count that are about the time after them: those without rows for a minute."""
    # A run is believed for that minute, so that a stream, which doesn't know its end before, agrees with a batch.
    newest = max((last for _, last in runs.values()), default=0)
    return {run: last + SILENCE_NS for run, (_, last) in runs.items() if newest - last > SILENCE_NS}


def _connected_intervals(first: int, last: int, changes: Iterable[ConnectionChange]) -> list[tuple[int, int]]:
    """The intervals in which one run was connected."""
    found: list[tuple[int, int]] = []
    begin: int | None = first
    for change in sorted(changes, key=lambda item: (item.at, item.again)):
        if change.again:
            begin = change.at if begin is None else begin
        elif begin is not None:
            found.append((begin, change.at))
            begin = None
    if begin is not None:
        found.append((begin, last))
    return found


#: The numbers of the last commits that were read, by path of the table.
Position = Mapping[str, int]

#: The tables that tell how far time has advanced, whatever the rules read.
TIME_PATHS = tuple(kind_path(kind) for kind in (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS))


@attrs.frozen
class Arrivals:
    """What rows tell besides their values."""

    runs: Mapping[str, tuple[int, int]]  #: first and last arrival of each recorder's run
    changes: Sequence[ConnectionChange]  #: of the runs' connections
    goodbyes: Sequence[tuple[int, str]]  #: ends of agents that they announced, as (time, agent)


class LakeRows:
    """Reads one lake. Belongs to one thread; `close` frees what DuckDB holds."""

    def __init__(self, lake: DeltaLake, late: int) -> None:
        """Name the lake; `late` is as in the docstring of this module."""
        self.lake = lake
        self._runs = RecordedRuns(lake)
        self._late = late
        self._connection = connect()

    def close(self) -> None:
        """Free what DuckDB holds."""
        self._connection.close()

    def schemas(self, paths: Iterable[str]) -> dict[str, Any]:
        """The Arrow schema of each table that exists."""
        return {path: self.lake.table(path).schema() for path in self.lake.versions(paths)}

    def files(
        self, paths: Iterable[str], first: str | None = None, last: str | None = None
    ) -> dict[str, list[TableFile]]:
        """The files of some days, both included, of each table that exists."""
        return {
            path: [
                file
                for file in self.lake.table(path).snapshot().files
                if file.date is None or ((first or "") <= file.date <= (last or "9999-12-31"))
            ]
            for path in self.lake.versions(paths)
        }

    def uncounted_rows(self) -> tuple[LeftOut, ...]:
        """Rows that do not count, since another recorder of the agent has them too."""
        return self._runs.left_out_rows()

    def versions(self, paths: Iterable[str]) -> dict[str, int]:
        """The position of the present."""
        return self.lake.versions(paths)

    def added_rows(self, after: Position, until: Position) -> dict[str, Any]:
        """The rows of `added_files`, as a dataset for each table that has any."""
        return self.datasets(self.added_files(after, until))

    def added_files(self, after: Position, until: Position, *, since: int = 0) -> dict[str, list[TableFile]]:
        """The files whose rows came between two positions, of each table that has any.

        Of tables that are not in the first one, those whose rows all arrived before `since`, ns, are left out.
        """
        files = {
            path: [
                file
                for file in self.lake.table(path).added_files(after.get(path), version)
                if path in after or file.last_received_ns is None or file.last_received_ns >= since
            ]
            for path, version in until.items()
            if version > after.get(path, -1)
        }
        return {path: own for path, own in files.items() if own}

    def datasets(self, files: Mapping[str, Sequence[TableFile]]) -> dict[str, Any]:
        """A dataset for each table with files; of several recorders of an agent, the rows of one count."""
        found = {path: self.lake.table(path).dataset(own) for path, own in files.items() if own}
        return counted_rows(found, self.uncounted_rows())

    def arrivals(self, rows: Mapping[str, Any]) -> Arrivals:
        """What rows tell about their arrival."""
        runs: dict[str, tuple[int, int]] = {}
        for path, own in rows.items():
            if path == kind_path(RowKind.SCHEMAS):
                continue
            sql = "SELECT _run, min(_received_ns), max(_received_ns) FROM input GROUP BY _run"
            runs = merged_runs(runs, {run: (first, last) for run, first, last in self._query(own, sql)})
        gaps, agents = (rows.get(kind_path(kind)) for kind in (RowKind.GAPS, RowKind.AGENTS))
        changes = [
            ConnectionChange(run, at, CONNECTION_REASONS[reason])
            for run, at, reason in self._query(gaps, "SELECT _run, _received_ns, reason FROM input")
            if reason in CONNECTION_REASONS
        ]
        left = f"SELECT {event_time_sql(self._late)}, _agent FROM input WHERE change = 'removed' AND reason = 'goodbye'"
        return Arrivals(runs, changes, sorted(self._query(agents, left)))

    def last_lag(self) -> int | None:
        """Time from the first arrival in the last commit of heartbeats to that commit, in ns; None if not known."""
        table = self.lake.kind_table(RowKind.HEARTBEATS)
        if table.version() is None:
            return None
        arrivals = [file.first_received_ns for file in table.snapshot().files if file.first_received_ns is not None]
        first = max(arrivals, default=None)
        history = table.delta().history(1)
        if first is None or not history or "timestamp" not in history[0]:
            return None
        return max(0, int(history[0]["timestamp"]) * 1_000_000 - first)

    def _query(self, rows: Any, sql: str) -> list[Any]:
        """What SQL finds in the relation `input`; nothing where there are no rows."""
        if rows is None:
            return []
        self._connection.register("input", rows)
        try:
            with duckdb_errors(self.lake.url):
                found: list[Any] = self._connection.execute(sql).fetchall()
        finally:
            self._connection.unregister("input")
        return found


def counted_rows(rows: Mapping[str, Any], uncounted: Sequence[LeftOut]) -> dict[str, Any]:
    """Datasets by path of their table, without rows that do not count."""
    if not uncounted:
        return dict(rows)
    counted, classes = CountedRows(uncounted), {kind.value for kind in CLASS_KINDS}
    return {path: own.choose(counted) if path.partition("/")[0] in classes else own for path, own in rows.items()}
