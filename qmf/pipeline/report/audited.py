"""Objects, changes of properties, events and calls of a time range, by the statements of the audit.

Objects and events of a broker that agents and consoles of this project created for themselves are left out by
conditions in SQL. They are the same ones as of `qmf.views.internal`, by the same marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from qmf._marks import OWN_CONNECTION, OWN_LINK
from qmf.pipeline.audit import parts
from qmf.pipeline.audit.schemas import EVENTS, LIFE_KEY, PARTS, arrow_schema, names
from qmf.pipeline.audit.state import EVENT_PART, EVENT_ROWS, OBJECT_PARTS, AuditState, queries_of
from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.report.model import CallRow, ClassObjectsRow, EndedObjectRow, PropertyChangeRow
from qmf.pipeline.report.source import ROWS, FileQueries, ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange
from qmf.pipeline.runners.runner import STORED, Rows, stored_rows
from qmf.views.internal import BROKER_PACKAGE, CONNECTION, EVENT_NAMES, EVENT_PROPERTIES, SESSION, UNSUBSCRIBE

#: An own name, alone or as a part of the name of a binding or subscription.
_NAME = rf"(^|[:,_./]){OWN_LINK}"

_OWN = "own"

#: The tables of lifetimes, of changed properties, and of the number of rows in the range.
LIFETIMES, _CHANGES, _INSIDE = "report_lifetimes", "report_changes", "report_inside"

_INSIDE_COLUMNS = {name: PARTS["objects"][name] for name in LIFE_KEY} | {"inside": "bigint"}

_INFORM = 6


# -- what agents and consoles created for themselves


def own_connections(source: ReportSource, first_ns: int, last_ns: int) -> list[str]:
    queries: list[FileQueries] = []
    for item in source.classes:
        version = item.version
        columns = {column.name for column in version.columns}
        if (version.package, version.name) == (BROKER_PACKAGE, CONNECTION) and "remoteProperties" in columns:
            rows = source.rows(RowKind.OBJECTS, first_ns, last_ns, version)
            if rows is not None:
                mark = text(f'"{OWN_CONNECTION}":')
                where = f"_properties and contains(remoteProperties, {mark})"
                sql = f"select distinct _object as object from {ROWS} where {where}"
                queries.append(FileQueries(rows, {_OWN: sql}))
    if not queries:
        return []
    made = source.tables_of_queries(queries, {_OWN: {"object": "varchar"}})
    found = source.query(f"select distinct object from {made[_OWN]} where object is not null order by object")
    return [name for (name,) in found]


def own_object(package: str, name: str, connections: Iterable[str], column: str = "_object") -> str | None:
    """A condition for the own objects of a class, whose names are in a column; None for a class without such."""
    if package != BROKER_PACKAGE:
        return None
    parts = [f"regexp_matches({column}, {text(_NAME)})"]
    keys = [connection.partition(":connection:")[2] for connection in connections]
    if name in (CONNECTION, SESSION) and keys:
        # The name of a session contains that of its connection.
        parts += [f"contains({column}, {text(key)})" for key in keys if key]
    return f"({' or '.join(parts)})"


def own_event(package: str, name: str, columns: Mapping[str, str]) -> str | None:
    """A condition for the own events of a class, with its arguments as SQL, by name; None for a class without such."""
    if package != BROKER_PACKAGE:
        return None
    names = [columns[column] for column in EVENT_NAMES if column in columns]
    parts = [f"regexp_matches({column}, {text(_NAME)})" for column in names]
    if EVENT_PROPERTIES in columns:
        mark = text(f'"{OWN_CONNECTION}":')
        parts.append(f"contains(cast({columns[EVENT_PROPERTIES]} as varchar), {mark})")
    if name == UNSUBSCRIBE and names:
        parts.append("(" + " and ".join(f"coalesce({column}, '') = ''" for column in names) + ")")
    return f"coalesce({' or '.join(parts)}, false)" if parts else None


# -- objects


def make_lifetimes(
    source: ReportSource,
    state: AuditState,
    time_range: TimeRange,
    since_ns: int,
    availability: str,
    own: Sequence[str] | None,
) -> None:
    """Make the tables `LIFETIMES` and `_CHANGES`, of the objects that had rows in the range or since a time before.

    Objects may publish nothing new in the range. `availability` is the audit's table of that name; `own` is None to
    include own objects.
    """
    last = time_range.last_ns
    key = ", ".join(LIFE_KEY)
    with source.errors():
        run = source.connection.execute
        queries = _object_queries(source, time_range, since_ns, own)
        made = source.tables_of_queries(
            queries, {**{name: PARTS[name] for name in OBJECT_PARTS}, _INSIDE: _INSIDE_COLUMNS}
        )
        for name in OBJECT_PARTS:
            state.insert(name, f"from {made[name]}")
        run(f"create or replace temp table {_INSIDE} as from {made[_INSIDE]}")
        shown = f"not {_own_parts(source, own)}"
        source.add_audited(
            state,
            {
                "objects": f"last_ns >= {since_ns} and first_ns < {last} and {shown}",
                "properties": f"time_ns >= {since_ns} and time_ns < {last} and {shown}",
            },
        )
        state.fold(OBJECT_PARTS)
        tables = state.object_tables(availability)
        run(
            f"create or replace temp table {LIFETIMES} as "
            f"with counted as (select {key}, sum(inside) as inside from {_INSIDE} group by all) "
            f"select {key}, ended_ns, ended_by, coalesce(c.inside, 0) as inside, "
            "case when created_ns > 0 then created_ns else first_seen_ns end as began "
            f"from {tables['lives']} as l left join counted as c using ({key})"
        )
        run(
            f"create or replace temp table {_CHANGES} as select class, agent, object, valid_from_ns as time_ns, "
            f"property, previous, value from {tables['history']} where previous is not null"
        )


def _object_queries(
    source: ReportSource, time_range: TimeRange, since_ns: int, own: Sequence[str] | None
) -> list[FileQueries]:
    """What is read of the rows of objects: parts of the tables, and how many rows each lifetime has in the range."""
    first, last = time_range.first_ns, time_range.last_ns
    queries: list[FileQueries] = []
    for version, found in _object_rows(source, since_ns, last):
        where = f"_ts_ns >= {since_ns} and _ts_ns < {last}{_without(version, own)}"
        rows = f"(select * from {ROWS} where {where})"
        counted = f"select {parts.life(version)}, count(*) as inside from {rows} where _ts_ns >= {first} group by all"
        queries.append(FileQueries(source.unread_rows(found), queries_of(RowKind.OBJECTS, rows, version)))
        queries.append(FileQueries(found, {_INSIDE: counted}))
    return queries


def _object_rows(source: ReportSource, first_ns: int, last_ns: int) -> list[tuple[ClassVersion, RowSource]]:
    found = (
        (item.version, source.rows(RowKind.OBJECTS, first_ns, last_ns, item.version))
        for item in source.classes
        if not item.version.event
    )
    return [(version, rows) for version, rows in found if rows is not None]


def _without(version: ClassVersion, own: Sequence[str] | None) -> str:
    condition = None if own is None else own_object(version.package, version.name, own)
    return f" and not coalesce({condition}, false)" if condition else ""


def _own_parts(source: ReportSource, own: Sequence[str] | None) -> str:
    if own is None:
        return "false"
    classes = {(item.version.package, item.version.name) for item in source.classes if not item.version.event}
    found = ((package, name, own_object(package, name, own, "object")) for package, name in sorted(classes))
    each = [
        f"(package = {text(package)} and class = {text(name)} and coalesce({condition}, false))"
        for package, name, condition in found
        if condition
    ]
    return f"({' or '.join(['false', *each])})"


def class_rows(source: ReportSource, time_range: TimeRange) -> tuple[ClassObjectsRow, ...]:
    first, last = time_range.first_ns, time_range.last_ns
    rows = source.query(
        f"select class, case when ended_ns >= {first} and ended_ns < {last} then ended_by end as ended, count(*), "
        f"count(*) filter (began >= {first} and began < {last}) from {LIFETIMES} "
        f"where began < {last} and coalesce(ended_ns, {last}) >= {first} group by class, ended order by class, ended"
    )
    by_class: dict[str, list[tuple[str | None, int, int]]] = {}
    for name, ended, count, created in rows:
        by_class.setdefault(name, []).append((ended, count, created))
    return tuple(
        ClassObjectsRow(
            name=name,
            objects=sum(count for _, count, _ in own),
            created=sum(created for _, _, created in own),
            ended=tuple(sorted((ended, count) for ended, count, _ in own if ended is not None)),
        )
        for name, own in by_class.items()
    )


def counts(source: ReportSource) -> tuple[int, int]:
    """Number of rows of objects in the range, and of their objects."""
    ((rows, objects),) = source.query(
        "select coalesce(sum(inside), 0), count(distinct (package, class, agent, object)) "
        f"from {LIFETIMES} where inside > 0"
    )
    return int(rows), int(objects)


def ends(source: ReportSource) -> dict[tuple[str, str, str], float]:
    """When objects ended that don't exist any more, by class, agent and object, in seconds."""
    rows = source.query(
        f"select class, coalesce(agent, ''), coalesce(object, ''), max(ended_ns) / 1e9 from {LIFETIMES} "
        "group by all having bool_and(ended_ns is not null)"
    )
    return {(name, agent, own): float(at) for name, agent, own, at in rows}


def lifetimes_by_window(source: ReportSource, time_range: TimeRange) -> tuple[tuple[float, int, int], ...]:
    first, last, size = time_range.first_ns, time_range.last_ns, time_range.step * NS
    rows = source.query(
        f"select moment // {size} * {time_range.step} as t, sum(born), sum(gone) from ("
        f"select began as moment, 1 as born, 0 as gone from {LIFETIMES} "
        f"union all select ended_ns, 0, 1 from {LIFETIMES}"
        f") where moment >= {first} and moment < {last} group by t order by t"
    )
    return tuple((float(t), int(born), int(gone)) for t, born, gone in rows)


def last_ended(source: ReportSource, time_range: TimeRange, top: int) -> tuple[tuple[EndedObjectRow, ...], int]:
    where = f"ended_ns >= {time_range.first_ns} and ended_ns < {time_range.last_ns}"
    ((total,),) = source.query(f"select count(*) from {LIFETIMES} where {where}")
    rows = source.query(
        "select class, coalesce(agent, ''), coalesce(object, ''), "
        f"case when created_ns > 0 then (ended_ns - created_ns) / {NS} end, ended_ns, ended_by "
        f"from {LIFETIMES} where {where} order by ended_ns desc, class, object limit {top}"
    )
    return tuple(EndedObjectRow(*row) for row in rows), int(total) - len(rows)


def last_changes(source: ReportSource, time_range: TimeRange, top: int) -> tuple[tuple[PropertyChangeRow, ...], int]:
    """The last changes of properties that had a value before, and the number of others."""
    first, last = time_range.first_ns, time_range.last_ns
    where = f"time_ns >= {first} and time_ns < {last}"
    ((total,),) = source.query(f"select count(*) from {_CHANGES} where {where}")
    rows = source.query(
        "select time_ns, class, coalesce(agent, ''), coalesce(object, ''), property, previous, value "
        f"from {_CHANGES} where {where} order by time_ns desc, class, object, property limit {top}"
    )
    return tuple(PropertyChangeRow(*row) for row in rows), int(total) - len(rows)


# -- events


def make_events(source: ReportSource, state: AuditState, time_range: TimeRange, *, own: bool) -> None:
    """Make the table `EVENT_ROWS` of a state, with or without events about own objects."""
    first, last = time_range.first_ns, time_range.last_ns
    inside = f"_ts_ns >= {first} and _ts_ns < {last}"
    queries: list[FileQueries] = []
    for version in [None, *(item.version for item in source.classes if item.version.event)]:
        kind = RowKind.UNTYPED if version is None else RowKind.EVENTS
        rows = source.rows(kind, first, last, version)
        if rows is not None:
            left_out = None
            if version is not None and not own:
                left_out = own_event(version.package, version.name, _arguments(version, quote_name))
            where = f"{inside} and not {left_out}" if left_out else inside
            sql = queries_of(kind, f"(select * from {ROWS} where {where})", version)
            queries.append(FileQueries(_unread_rows(source, rows), sql))
    with source.errors():
        state.insert(EVENT_PART, f"from {source.tables_of_queries(queries, {EVENT_PART: EVENTS})[EVENT_PART]}")
        if _audit_has_events(source):
            state.insert(EVENT_PART, f"from {source.table_of_rows(_audited_rows(source, time_range, own=own))}")
        state.events()


def _audit_has_events(source: ReportSource) -> bool:
    """True if there is a table of events of the audit: that of the job `history` is missing."""
    return source.audited is not None and source.audited.options.table("events").version() is not None


def _unread_rows(source: ReportSource, rows: RowSource) -> RowSource:
    return source.unread_rows(rows) if _audit_has_events(source) else rows


def _audited_rows(source: ReportSource, time_range: TimeRange, *, own: bool) -> Rows:
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
    with source.errors():
        table = state.calls(EVENT_ROWS)
    ((total,),) = source.query(f"select count(*) from {table}")
    rows = source.query(
        'select time_ns, "user", origin, agent, coalesce(operation, \'\'), target, result, "text" '
        f"from {table} order by time_ns desc, agent, source, arguments limit {top}"
    )
    return tuple(CallRow(*row) for row in rows), int(total) - len(rows)
