"""The lifetimes of objects and the changes of their properties, by the statements of the audit."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.schemas import LIFE_KEY, PARTS
from qmf.pipeline.audit.state import OBJECT_PARTS, AuditState
from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.report.model import ClassObjectsRow, EndedObjectRow, PropertyChangeRow
from qmf.pipeline.report.own import own_object
from qmf.pipeline.report.source import ROWS, FileQueries, ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange

#: The tables of lifetimes, of changed properties, and of the number of rows in the range.
LIFETIMES, _CHANGES, _INSIDE = "report_lifetimes", "report_changes", "report_inside"

_INSIDE_COLUMNS = {name: PARTS["objects"][name] for name in LIFE_KEY} | {"inside": "bigint"}


def make_lifetimes(
    source: ReportSource,
    state: AuditState,
    time_range: TimeRange,
    since_ns: int,
    availability: str,
    own: Sequence[str] | None,
) -> None:
    """Make the tables `LIFETIMES` and `_CHANGES`, of the objects that had rows in the range or since a time before.

    Args:
        source: the lake.
        state: that the rows are added to.
        time_range: of the report.
        since_ns: from when on rows are read: objects may publish nothing new in the range.
        availability: the audit's table of that name.
        own: names of own connections; None to include own objects.
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
        audited = {"objects": parts.objects(rows, version), "properties": parts.properties(rows, version)}
        queries += [FileQueries(source.unread_rows(found), audited), FileQueries(found, {_INSIDE: counted})]
    return queries


def _object_rows(source: ReportSource, first_ns: int, last_ns: int) -> list[tuple[ClassVersion, RowSource]]:
    found = (
        (item.version, source.rows(RowKind.OBJECTS, first_ns, last_ns, item.version))
        for item in source.classes
        if not item.version.event
    )
    return [(version, rows) for version, rows in found if rows is not None]


def _without(version: ClassVersion, own: Sequence[str] | None) -> str:
    """The condition that leaves out own objects."""
    condition = None if own is None else own_object(version.package, version.name, own)
    return f" and not coalesce({condition}, false)" if condition else ""


def _own_parts(source: ReportSource, own: Sequence[str] | None) -> str:
    """The condition for parts of own objects."""
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


# -- what is shown of them


def class_rows(source: ReportSource, time_range: TimeRange) -> tuple[ClassObjectsRow, ...]:
    """A row for each class that had objects in the range."""
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
    """Start of the window in seconds, objects created, and objects ended."""
    first, last, size = time_range.first_ns, time_range.last_ns, time_range.step * NS
    rows = source.query(
        f"select moment // {size} * {time_range.step} as t, sum(born), sum(gone) from ("
        f"select began as moment, 1 as born, 0 as gone from {LIFETIMES} "
        f"union all select ended_ns, 0, 1 from {LIFETIMES}"
        f") where moment >= {first} and moment < {last} group by t order by t"
    )
    return tuple((float(t), int(born), int(gone)) for t, born, gone in rows)


def last_ended(source: ReportSource, time_range: TimeRange, top: int) -> tuple[tuple[EndedObjectRow, ...], int]:
    """The objects that ended last, and the number of others that ended."""
    where = f"ended_ns >= {time_range.first_ns} and ended_ns < {time_range.last_ns}"
    ((total,),) = source.query(f"select count(*) from {LIFETIMES} where {where}")
    rows = source.query(
        f"select class, agent, object, created_ns, ended_ns, ended_by from {LIFETIMES} where {where} "
        f"order by ended_ns desc, class, object limit {top}"
    )
    return tuple(
        EndedObjectRow(
            name=name,
            agent=agent or "",
            object=own or "",
            lived=(ended - created) / NS if created else None,
            ended_ns=ended,
            ended_by=by,
        )
        for name, agent, own, created, ended, by in rows
    ), int(total) - len(rows)


# -- properties


def last_changes(source: ReportSource, time_range: TimeRange, top: int) -> tuple[tuple[PropertyChangeRow, ...], int]:
    """The last changes of properties that had a value before, and the number of others."""
    first, last = time_range.first_ns, time_range.last_ns
    where = f"time_ns >= {first} and time_ns < {last}"
    ((total,),) = source.query(f"select count(*) from {_CHANGES} where {where}")
    found = source.query(
        f"select time_ns, class, agent, object, property, previous, value from {_CHANGES} where {where} "
        f"order by time_ns desc, class, object, property limit {top}"
    )
    return tuple(
        PropertyChangeRow(
            time_ns=time, name=name, agent=agent or "", object=own_name or "", property=member, previous=previous,
            value=value,
        )
        for time, name, agent, own_name, member, previous, value in found
    ), int(total) - len(found)  # fmt: skip
