"""Events of a time range, each once, and the calls that they describe, by the statements of the audit."""

from __future__ import annotations

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.schemas import EVENTS
from qmf.pipeline.audit.state import EVENT_ROWS, AuditState
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ColumnType
from qmf.pipeline.report.model import CallRow
from qmf.pipeline.report.own import own_event
from qmf.pipeline.report.source import ROWS, FileQuery, ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange

_INFORM = 6


def make_events(source: ReportSource, state: AuditState, time_range: TimeRange, *, own: bool) -> None:
    """Make the table `EVENT_ROWS`.

    Args:
        source: the lake.
        state: that the events are added to.
        time_range: of the report.
        own: include events about what agents and consoles created for themselves.
    """
    first, last = time_range.first_ns, time_range.last_ns
    inside = f"_ts_ns >= {first} and _ts_ns < {last}"
    with source.errors():
        queries: list[FileQuery] = []
        for item in source.classes:
            version = item.version
            rows = source.rows(RowKind.EVENTS, first, last, version) if version.event else None
            if rows is None:
                continue
            columns = [column.name for column in version.columns if column.column_type is not ColumnType.TIME]
            left_out = None if own else own_event(version.package, version.name, columns)
            where = f"{inside} and not {left_out}" if left_out else inside
            queries.append(FileQuery(rows, parts.events(f"(select * from {ROWS} where {where})", version)))
        untyped = source.rows(RowKind.UNTYPED, first, last)
        if untyped is not None:
            queries.append(FileQuery(untyped, parts.untyped_events(f"(select * from {ROWS} where {inside})")))
        state.insert_events(f"from {source.made(queries, EVENTS)}")
        state.events()


def event_counts(source: ReportSource, time_range: TimeRange) -> tuple[tuple[float, int, int], ...]:
    """Start of the window in seconds, severity, and number of events."""
    size = time_range.step * NS
    rows = source.query(
        f"select time_ns // {size} * {time_range.step} as t, coalesce(severity, {_INFORM}) as severity, count(*) "
        f"from {EVENT_ROWS} group by all order by all"
    )
    return tuple((float(t), int(severity), int(count)) for t, severity, count in rows)


def class_counts(source: ReportSource, top: int) -> tuple[tuple[tuple[str, int, int], ...], int]:
    """Class, severity and number of the most frequent events; and the number of other classes."""
    rows = source.query(
        f"select class, coalesce(severity, {_INFORM}) as severity, count(*) as number from {EVENT_ROWS} "
        "group by package, class, severity order by number desc, class, severity"
    )
    return tuple((name, int(severity), int(count)) for name, severity, count in rows[:top]), max(0, len(rows) - top)


def last_calls(source: ReportSource, state: AuditState, top: int) -> tuple[tuple[CallRow, ...], int]:
    """The last calls, and the number of others."""
    with source.errors():
        table = state.calls(EVENT_ROWS)
    ((total,),) = source.query(f"select count(*) from {table}")
    rows = source.query(
        'select time_ns, "user", origin, agent, coalesce(operation, \'\'), target, result, "text" '
        f"from {table} order by time_ns desc, agent, source, arguments limit {top}"
    )
    calls = tuple(
        CallRow(
            time_ns=time, user=user, origin=origin, agent=agent, operation=operation, target=target, result=result,
            text=reason,
        )
        for time, user, origin, agent, operation, target, result, reason in rows
    )  # fmt: skip
    return calls, int(total) - len(rows)
