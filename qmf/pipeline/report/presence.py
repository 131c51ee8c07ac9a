"""When agents were up, and when a recorder was connected, around the range of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.audit.schemas import PARTS
from qmf.pipeline.audit.state import PRESENCE_PARTS, AuditState, part_table
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.report.source import ROWS, FileQuery, ReportSource
from qmf.pipeline.report.time_range import TimeRange

#: A loss of a recorder's connection, or that it is there again: the run, the change, and its time.
Break = tuple[str, str, int]


@attrs.frozen
class Interval:
    """A state of an agent, from one time to another; `cause` is that of its beginning."""

    agent: str
    state: str
    epoch: int | None
    cause: str
    start_ns: int
    end_ns: int


@attrs.frozen
class PresenceRows:
    """What is known of agents and recorders.

    Attributes:
        table: the audit's table of availability, on the connection of the report.
        intervals: the same, by agent and time.
        recorded: when a recorder was connected: intervals that don't overlap, in order.
        beats: time of the last heartbeat of each agent in the range.
    """

    table: str
    intervals: list[Interval]
    recorded: list[tuple[int, int]]
    beats: Mapping[str, int]


def read_presence(source: ReportSource, state: AuditState, time_range: TimeRange) -> PresenceRows:
    """Read the rows of a range, and of the day before.

    Args:
        source: the lake.
        state: that the rows are added to.
        time_range: of the report.
    """
    since = time_range.first_ns - NS_PER_DAY
    until = (time_range.last_ns // NS_PER_DAY + 1) * NS_PER_DAY
    makers = {RowKind.HEARTBEATS: parts.signs, RowKind.AGENTS: parts.arrivals, RowKind.GAPS: parts.breaks}
    beats: dict[str, int] = {}
    with source.errors():
        for kind, make in makers.items():
            found = source.rows(kind, since, time_range.last_ns)
            if found is None:
                continue
            rows = f"(select * from {ROWS} where _received_ns >= {since} and _received_ns < {until})"
            part = "signs" if kind is RowKind.HEARTBEATS else "changes"
            for name, query in (("runs", parts.runs(rows)), (part, make(rows))):
                state.insert(name, f"from {source.made([FileQuery(found, query)], PARTS[name])}")
            if kind is RowKind.HEARTBEATS:
                inside = f"{rows} where _received_ns < {time_range.last_ns}"
                last = f"select _agent as agent, max(_received_ns) as last from {inside} group by _agent"
                made = source.made([FileQuery(found, last)], {"agent": "varchar", "last": "bigint"})
                beats = dict(source.query(f"select agent, max(last) from {made} group by agent"))
        state.fold(PRESENCE_PARTS)
        table = state.availability()
    columns = "agent, state, epoch, cause, start_ns, end_ns"
    intervals = [Interval(*row) for row in source.query(f"select {columns} from {table} order by agent, start_ns")]
    runs = {run: (first, last) for run, first, last in source.query(f"from {part_table('runs')}")}
    breaks = source.query(
        f"select run, change, received_ns from {part_table('changes')} where agent is null order by run, seq"
    )
    return PresenceRows(table, intervals, recorded_times(runs, breaks), beats)


def recorded_times(runs: Mapping[str, tuple[int, int]], breaks: Iterable[Break]) -> list[tuple[int, int]]:
    """When a recorder was connected: intervals that don't overlap, in order. Pure.

    Args:
        runs: times of the first and the last row of each run.
        breaks: those of a run in the order of its rows.
    """
    by_run: dict[str, list[Break]] = {}
    for item in breaks:
        by_run.setdefault(item[0], []).append(item)
    spans: list[tuple[int, int]] = []
    for run, (first, last) in runs.items():
        begin: int | None = first
        for _, change, at in by_run.get(run, ()):
            if change == DISCONNECTED and begin is not None:
                spans.append((begin, max(begin, at)))
                begin = None
            elif change == CONNECTED and begin is None:
                begin = at
        if begin is not None:
            spans.append((begin, max(begin, last)))
    found: list[tuple[int, int]] = []
    for begin_ns, end_ns in sorted(spans):
        if found and begin_ns <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end_ns))
        else:
            found.append((begin_ns, end_ns))
    return found
