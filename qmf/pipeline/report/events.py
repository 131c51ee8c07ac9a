"""Events of a time range, each once, and the calls that they describe, by the statements of the audit."""

from __future__ import annotations

from collections.abc import Callable

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.schemas import EVENTS, arrow_schema, names
from qmf.pipeline.audit.state import EVENT_PART, EVENT_ROWS, AuditState
from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.report.model import CallRow
from qmf.pipeline.report.own import own_event
from qmf.pipeline.report.source import ROWS, FileQueries, ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange
from qmf.pipeline.runners.runner import STORED, Rows, stored_rows

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
    queries: list[FileQueries] = []
    for item in source.classes:
        version = item.version
        rows = source.rows(RowKind.EVENTS, first, last, version) if version.event else None
        if rows is not None:
            left_out = None if own else own_event(version.package, version.name, _arguments(version, quote_name))
            where = f"{inside} and not {left_out}" if left_out else inside
            sql = parts.events(f"(select * from {ROWS} where {where})", version)
            queries.append(FileQueries(_unread_rows(source, rows), {EVENT_PART: sql}))
    untyped = source.rows(RowKind.UNTYPED, first, last)
    if untyped is not None:
        sql = parts.untyped_events(f"(select * from {ROWS} where {inside})")
        queries.append(FileQueries(_unread_rows(source, untyped), {EVENT_PART: sql}))
    with source.errors():
        state.insert_events(f"from {source.tables_of_queries(queries, {EVENT_PART: EVENTS})[EVENT_PART]}")
        if _audit_has_events(source):
            state.insert_events(f"from {source.table_of_rows(_audited_rows(source, time_range, own=own))}")
        state.events()


def _audit_has_events(source: ReportSource) -> bool:
    """True if there is a table of events of the audit: that of the job `history` is missing."""
    return source.audited is not None and source.audited.options.table("events").version() is not None


def _unread_rows(source: ReportSource, rows: RowSource) -> RowSource:
    return source.unread_rows(rows) if _audit_has_events(source) else rows


def _audited_rows(source: ReportSource, time_range: TimeRange, *, own: bool) -> Rows:
    """The events of a time in the table of the audit."""
    assert source.audited is not None
    table = source.audited.options.table("events")
    first, last = day(max(time_range.first_ns, 0)), day(max(time_range.last_ns, 0))
    files = [file for file in table.snapshot().files if first <= (file.date or first) <= last]
    where = f"time_ns >= {time_range.first_ns} and time_ns < {time_range.last_ns}"
    if not own:
        where += f" and not {_own_events(source)}"
    return stored_rows(
        source.runner, table, arrow_schema(EVENTS), f"select {names(EVENTS)} from {STORED} where {where}", files=files
    )


def _own_events(source: ReportSource) -> str:
    """The condition for own events in the table of an audit."""
    each = ["false"]
    for item in source.classes:
        version = item.version
        arguments = _arguments(version, lambda name: f"json_extract_string(arguments, '$.{name}')")
        condition = own_event(version.package, version.name, arguments) if version.event else None
        if condition:
            each.append(
                f"(package = {text(version.package)} and class = {text(version.name)} "
                f"and hash = {text(version.hash)} and {condition})"
            )
    return f"({' or '.join(each)})"


def _arguments(version: ClassVersion, sql: Callable[[str], str]) -> dict[str, str]:
    """The arguments of the events of a class as SQL, by name."""
    columns = (column.name for column in version.columns if column.column_type is not ColumnType.TIME)
    return {name: sql(name) for name in columns}


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
