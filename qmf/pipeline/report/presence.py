"""When agents were up, and when a recorder was connected, around the range of a report; and the rows of agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from qmf.pipeline.audit.availability import DOWN, UNKNOWN, UP
from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.audit.schemas import PARTS
from qmf.pipeline.audit.state import PRESENCE, PRESENCE_PARTS, AuditState, part_table, queries_of
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.heartbeats import last_heard, latest_rows
from qmf.pipeline.report.model import AvailabilityInterval, ReportedAgent
from qmf.pipeline.report.source import ROWS, FileQueries, ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange

#: The last row of heartbeats of each agent.
_BEATS = "beats"
_BEAT_COLUMNS = {"agent": "varchar", "run": "varchar", "seq": "bigint", "last_ns": "bigint", "open_until_ns": "bigint"}

#: A loss of a recorder's connection, or that it is there again: the run, the change, and its time.
Break = tuple[str, str, int]


@attrs.frozen
class PresenceRows:
    """What is known of agents and recorders: availability as a table and as values, and when one was connected.

    `beats` are the times of the last heartbeats of agents in the range.
    """

    table: str
    intervals: list[AvailabilityInterval]
    recorded: list[tuple[int, int]]
    beats: Mapping[str, int]


def read_presence(source: ReportSource, state: AuditState, time_range: TimeRange) -> PresenceRows:
    """Add the rows of a range, and of the day before, to a state."""
    since = time_range.first_ns - NS_PER_DAY
    until = (time_range.last_ns // NS_PER_DAY + 1) * NS_PER_DAY
    rows = f"(select * from {ROWS} where _received_ns >= {since} and _received_ns < {until})"
    found: list[FileQueries] = []
    for kind in PRESENCE:
        source_rows = source.rows(kind, since, time_range.last_ns)
        if source_rows is not None:
            found.append(FileQueries(source.unread_rows(source_rows), queries_of(kind, rows)))
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
    intervals = [
        AvailabilityInterval(*row) for row in source.query(f"select {columns} from {table} order by agent, start_ns")
    ]
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
    """When a recorder was connected, in order, from the first and last row of runs, and their breaks in order."""
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


def clipped_intervals(found: Sequence[AvailabilityInterval], time_range: TimeRange) -> tuple[AvailabilityInterval, ...]:
    """The intervals that overlap a range, cut to it; in the same order."""
    cuts = ((item, time_range.clip(item.start_ns, item.end_ns)) for item in found)
    return tuple(attrs.evolve(item, start_ns=cut[0], end_ns=cut[1]) for item, cut in cuts if cut is not None)


def agent_rows(
    shown: Sequence[AvailabilityInterval], beats: Mapping[str, int], known_until_ns: int
) -> tuple[ReportedAgent, ...]:
    """A row for each agent of some intervals, which are by agent and time."""
    lengths: dict[str, dict[str, float]] = {}
    restarts: dict[str, int] = {}
    epochs: dict[str, int | None] = {}
    last: dict[str, AvailabilityInterval] = {}
    for item in shown:
        own = lengths.setdefault(item.agent, {UP: 0.0, DOWN: 0.0, UNKNOWN: 0.0})
        own[item.state] += (item.end_ns - item.start_ns) / NS
        last[item.agent] = item
        if item.state == UP:
            restarted = item.cause == "restarted" or epochs.get(item.agent, item.epoch) != item.epoch
            restarts[item.agent] = restarts.get(item.agent, 0) + restarted
            epochs[item.agent] = item.epoch
    return tuple(
        ReportedAgent(
            agent=name,
            up=own[UP],
            down=own[DOWN],
            unknown=own[UNKNOWN],
            restarts=restarts.get(name, 0),
            state=last[name].state,
            known_until_ns=_known_until(last[name], beats.get(name), known_until_ns),
        )
        for name, own in sorted(lengths.items())
    )


def _known_until(last: AvailabilityInterval, beat: int | None, known_until_ns: int) -> int:
    """Until when the last state of an agent is known: its heartbeat says that it is up, a recorder that it is not."""
    if last.state == UP:
        return min(known_until_ns, beat) if beat is not None and beat > last.start_ns else last.start_ns
    return last.start_ns if last.state == UNKNOWN else min(known_until_ns, last.end_ns)
