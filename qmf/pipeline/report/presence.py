"""When agents were up, and when a recorder was connected, around the range of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.audit.schemas import PARTS
from qmf.pipeline.audit.state import PRESENCE_PARTS, AuditState, part_table
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.heartbeats import last_heard, latest_rows
from qmf.pipeline.report.source import ROWS, FileQueries, ReportSource
from qmf.pipeline.report.time_range import TimeRange

#: What is made of the rows of each kind, by the name of the part.
_MAKERS: Mapping[RowKind, Mapping[str, Callable[[str], str]]] = {
    RowKind.HEARTBEATS: {"runs": parts.runs, "signs": parts.signs},
    RowKind.AGENTS: {"runs": parts.runs, "changes": parts.arrivals},
    RowKind.GAPS: {"runs": parts.runs, "changes": parts.breaks},
}

#: The last row of heartbeats of each agent.
_BEATS = "beats"
_BEAT_COLUMNS = {"agent": "varchar", "run": "varchar", "seq": "bigint", "last_ns": "bigint", "open_until_ns": "bigint"}

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
    rows = f"(select * from {ROWS} where _received_ns >= {since} and _received_ns < {until})"
    found: list[FileQueries] = []
    for kind, makers in _MAKERS.items():
        source_rows = source.rows(kind, since, time_range.last_ns)
        if source_rows is not None:
            found.append(
                FileQueries(source.unread_rows(source_rows), {name: make(rows) for name, make in makers.items()})
            )
            if kind is RowKind.HEARTBEATS:
                inside = f"(from {rows} where _received_ns < {time_range.last_ns})"
                found.append(FileQueries(source_rows, {_BEATS: latest_rows(inside)}))
    made = source.tables_of_queries(found, {**{name: PARTS[name] for name in PRESENCE_PARTS}, _BEATS: _BEAT_COLUMNS})
    with source.errors():
        for name in PRESENCE_PARTS:
            state.insert(name, f"from {made[name]}")
        # Changes decide about what was before them; agents that were not there, nor came or went, are no matter.
        source.add_audited(state, {"runs": f"last_ns >= {since}", "signs": "true", "changes": "true"})
        _leave_out_absent(source, since, until)
        state.fold(PRESENCE_PARTS)
        table = state.availability()
        ends = f"(select run, least(last_ns, {time_range.last_ns}) as until_ns from {part_table('runs')})"
        beats: dict[str, int] = dict(source.query(last_heard(made[_BEATS], ends)))
    columns = "agent, state, epoch, cause, start_ns, end_ns"
    intervals = [Interval(*row) for row in source.query(f"select {columns} from {table} order by agent, start_ns")]
    runs = {run: (first, last) for run, first, last in source.query(f"from {part_table('runs')}")}
    breaks = source.query(
        f"select run, change, received_ns from {part_table('changes')} where agent is null order by run, seq"
    )
    return PresenceRows(table, intervals, recorded_times(runs, breaks), beats)


def _leave_out_absent(source: ReportSource, since_ns: int, until_ns: int) -> None:
    """Leave out the parts of agents of which there is nothing in a time."""
    signs, changes = part_table("signs"), part_table("changes")
    source.run(
        f"create or replace temp table report_agents as select agent from {signs} "
        f"where last_ns >= {since_ns} and first_ns < {until_ns} union select agent from {changes} "
        f"where received_ns >= {since_ns} and received_ns < {until_ns}"
    )
    for table in (signs, changes):
        source.run(f"delete from {table} where agent is not null and agent not in (from report_agents)")


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
