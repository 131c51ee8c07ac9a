"""Events of a time range, each once, and the calls that they describe, by the rules of `qmf.pipeline.audit`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from qmf.pipeline.audit.call_events import ACL, AUDIT, CALL_EVENTS, METHOD_CALLED, CallEvent
from qmf.pipeline.duckdb_queries import quoted, text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.report.model import CallRow
from qmf.pipeline.report.own import own_event
from qmf.pipeline.report.source import ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange

#: The table of events, each once.
EVENTS = "report_events"

_BY_CLASS: Mapping[tuple[str, str], CallEvent] = {(item.package, item.name): item for item in CALL_EVENTS}
_OWN_CALL = (AUDIT, METHOD_CALLED)

_INFORM = 6


def make_events(source: ReportSource, time_range: TimeRange, *, own: bool) -> None:
    """Make the table `EVENTS`.

    An event is recorded twice where its agent repeats it, and by two recorders: events are the same when agent, class,
    time to the nanosecond, severity, object and arguments are.

    Args:
        source: the lake.
        time_range: of the report.
        own: include events about what agents and consoles created for themselves.
    """
    first, last = time_range.first_ns, time_range.last_ns
    parts = [
        _events_of(item.version, rows, first, last, own=own)
        for item in source.classes
        if item.version.event and (rows := source.rows(RowKind.EVENTS, first, last, item.version)) is not None
    ]
    untyped = source.rows(RowKind.UNTYPED, first, last)
    if untyped is not None:
        parts.append(
            "select _ts_ns, coalesce(_agent, ''), coalesce(package, ''), coalesce(class, ''), severity, "
            f"coalesce(object, ''), coalesce(\"values\", '{{}}') from {untyped} "
            f"where event and _ts_ns >= {first} and _ts_ns < {last}"
        )
    columns = ("time_ns", "agent", "package", "class", "severity", "object", "arguments")
    empty = "select 0::bigint, '', '', '', 0::smallint, '', '' where false"
    found = " union all ".join([empty, *parts])
    source.run(f"create temp table {EVENTS} as select distinct * from ({found}) as found({', '.join(columns)})")


def _events_of(version: ClassVersion, rows: str, first: int, last: int, *, own: bool) -> str:
    columns = [column.name for column in version.columns if column.column_type is not ColumnType.TIME]
    arguments = ", ".join(f"{text(name)}, cast({quoted(name)} as varchar)" for name in columns)
    where = f"_ts_ns >= {first} and _ts_ns < {last}"
    left_out = None if own else own_event(version.package, version.name, columns)
    if left_out is not None:
        where += f" and not {left_out}"
    return (
        f"select _ts_ns, coalesce(_agent, ''), {text(version.package)}, {text(version.name)}, _severity, "
        f"coalesce(_object, ''), cast(json_object({arguments}) as varchar) from {rows} where {where}"
    )


def event_counts(source: ReportSource, time_range: TimeRange) -> tuple[tuple[float, int, int], ...]:
    """Start of the window in seconds, severity, and number of events."""
    size = time_range.step * NS
    rows = source.query(
        f"select time_ns // {size} * {time_range.step} as t, coalesce(severity, {_INFORM}) as severity, count(*) "
        f"from {EVENTS} group by all order by all"
    )
    return tuple((float(t), int(severity), int(count)) for t, severity, count in rows)


def class_counts(source: ReportSource, top: int) -> tuple[tuple[tuple[str, int, int], ...], int]:
    """Class, severity and number of the most frequent events; and the number of other classes."""
    rows = source.query(
        f"select class, coalesce(severity, {_INFORM}) as severity, count(*) as number from {EVENTS} "
        "group by package, class, severity order by number desc, class, severity"
    )
    return tuple((name, int(severity), int(count)) for name, severity, count in rows[:top]), max(0, len(rows) - top)


def last_calls(source: ReportSource, top: int) -> tuple[tuple[CallRow, ...], int]:
    """The last calls, and the number of others."""
    names = ", ".join(f"({text(package)}, {text(name)})" for package, name in [*_BY_CLASS, _OWN_CALL])
    where = f"(package, class) in ({names})"
    ((total,),) = source.query(f"select count(*) from {EVENTS} where {where}")
    rows = source.query(
        f"select time_ns, agent, package, class, arguments from {EVENTS} where {where} "
        f"order by time_ns desc, agent, class, arguments limit {top}"
    )
    return tuple(call_of(*row) for row in rows), int(total) - len(rows)


def call_of(time_ns: int, agent: str, package: str, name: str, arguments: str) -> CallRow:
    """The call that an event describes. Pure; the class is one of a call."""
    values: dict[str, Any] = json.loads(arguments)

    def value(argument: str) -> str | None:
        found = values.get(argument) if argument else None
        return None if found is None else str(found)

    if (package, name) == _OWN_CALL:
        return CallRow(
            time_ns=time_ns,
            user=value("user"),
            origin=value("replyTo"),
            agent=agent,
            operation=value("method") or "",
            target=value("object"),
            result="ok" if value("code") in ("0", None) else "failed",
            text=value("text"),
        )
    event = _BY_CLASS[package, name]
    operation = event.operation
    if operation == "action":
        # The event of an access rule names the operation, e.g. "create queue".
        operation = " ".join(part for part in (value("action"), value("objectType")) if part)
    denied = "denied" if event.failed and package == ACL else None
    return CallRow(
        time_ns=time_ns,
        user=value(event.user),
        origin=value(event.origin),
        agent=agent,
        operation=operation,
        target=value(event.target),
        result="failed" if event.failed else "ok",
        text=value(event.text) if event.text else denied,
    )
