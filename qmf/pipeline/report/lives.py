"""The lifetimes of objects and the changes of their properties, by the rules of `qmf.pipeline.audit`."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.pipeline.duckdb_queries import quoted, text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.pipeline.report.model import ClassObjectsRow, EndedObjectRow, PropertyChangeRow
from qmf.pipeline.report.own import own_object
from qmf.pipeline.report.presence import DOWN, UP, Interval
from qmf.pipeline.report.source import ReportSource
from qmf.pipeline.report.time_range import NS, TimeRange

#: The table of lifetimes.
LIVES = "report_lives"
_OBJECTS, _ENDS, _CHANGES = "report_objects", "report_ends", "report_changes"

#: Messages that an agent sent before its goodbye may still arrive for so long.
_AFTERGLOW_NS = 10 * NS

_LIFE = ("package", "class", "agent", "object", "created_ns", "epoch")
_LIFE_SQL = (
    "_agent as agent, _object as object, coalesce(_create_ns, 0) as created_ns, coalesce(_object_epoch, 0) as epoch"
)


def make_lives(
    source: ReportSource,
    time_range: TimeRange,
    since_ns: int,
    presence: Sequence[Interval],
    own: Sequence[str] | None,
) -> None:
    """Make the table `LIVES`, with the objects that had rows in the range or since a time before it.

    Args:
        source: the lake.
        time_range: of the report.
        since_ns: from when on rows are read: objects may publish nothing new in the range.
        presence: the intervals of all agents.
        own: names of own connections; None to include own objects.
    """
    source.run(
        f"create temp table {_OBJECTS} (package varchar, class varchar, agent varchar, object varchar, "
        "created_ns bigint, epoch bigint, transient boolean, first_seen_ns bigint, last_seen_ns bigint, "
        "received_ns bigint, deleted_ns bigint, inside bigint)"
    )
    first, last = time_range.first_ns, time_range.last_ns
    for version, rows in _object_rows(source, since_ns, last):
        source.run(
            f"insert into {_OBJECTS} select {text(version.package)}, {text(version.name)}, {_LIFE_SQL}, "
            "bool_or(_object_epoch is not null), min(_ts_ns), max(_ts_ns), max(_received_ns), "
            f"min(nullif(_delete_ns, 0)), count(*) filter (_ts_ns >= {first}) from {rows} "
            f"where _ts_ns >= {since_ns} and _ts_ns < {last}{_without(version, own)} "
            "group by _agent, _object, coalesce(_create_ns, 0), coalesce(_object_epoch, 0)"
        )
    _make_ends(source, presence)
    name = "partition by package, class, agent, object order by received_ns, created_ns, epoch"
    began = "case when created_ns > 0 then created_ns else first_seen_ns end"
    key = ", ".join(quoted(column) for column in _LIFE)
    source.run(
        f"""
        create temp table {LIVES} as
        with grouped as (
            select {key}, bool_or(transient) as transient, min(first_seen_ns) as first_seen_ns,
                max(last_seen_ns) as last_seen_ns, max(received_ns) as received_ns, min(deleted_ns) as deleted_ns,
                sum(inside) as inside
            from {_OBJECTS} group by all
        ), known as (select *, {began} as began from grouped),
        followed as (select *, lead(began) over ({name}) as next from known),
        ended as (
            select f.*, e.ended_at as agent_at, e.ended_how as agent_by from followed as f asof left join {_ENDS} as e
                on f.agent = e.agent and f.received_ns < e.until_ns
        ), ends as (
            select *, case when agent_by <> 'agent restarted' or transient then agent_at end as by_agent,
                case when next is not null then greatest(next, last_seen_ns) end as by_next
            from ended
        )
        select {key}, began, last_seen_ns, inside,
            case when deleted_ns is not null then deleted_ns else least(by_agent, by_next) end as ended_ns,
            case when deleted_ns is not null then 'destroyed' when by_agent is null and by_next is null then null
                when by_next is null or by_agent < by_next then agent_by else 'replaced' end as ended_by
        from ends
        """
    )


def _make_ends(source: ReportSource, presence: Sequence[Interval]) -> None:
    """When objects ended with their agents, and until when the last rows of such objects came."""
    source.run(f"create temp table {_ENDS} (agent varchar, until_ns bigint, ended_at bigint, ended_how varchar)")
    rows = agent_ends(presence)
    if rows:
        with source.errors():
            source.connection.executemany(f"insert into {_ENDS} values (?, ?, ?, ?)", rows)


def agent_ends(presence: Sequence[Interval]) -> list[tuple[str, int, int, str]]:
    """The ends of agents: agent, time until which rows of its objects came, time of the end, and how. Pure."""
    found: list[tuple[str, int, int, str]] = []
    epochs: dict[str, int] = {}
    for item in presence:
        goodbye = item.cause == "goodbye"
        until = min(item.start_ns + _AFTERGLOW_NS, item.end_ns) if goodbye else item.start_ns
        if item.state == DOWN:
            found.append((item.agent, until, item.start_ns, "agent ended" if goodbye else "agent lost"))
        elif item.state == UP:
            other = item.epoch is not None and epochs.get(item.agent, item.epoch) != item.epoch
            if item.cause == "restarted" or other:
                found.append((item.agent, until, item.start_ns, "agent restarted"))
            if item.epoch is not None:
                epochs[item.agent] = item.epoch
    return found


def _object_rows(source: ReportSource, first_ns: int, last_ns: int) -> list[tuple[ClassVersion, str]]:
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


# -- what is shown of them


def class_rows(source: ReportSource, time_range: TimeRange) -> tuple[ClassObjectsRow, ...]:
    """A row for each class that had objects in the range."""
    first, last = time_range.first_ns, time_range.last_ns
    rows = source.query(
        f"select class, case when ended_ns >= {first} and ended_ns < {last} then ended_by end as ended, count(*), "
        f"count(*) filter (began >= {first} and began < {last}) from {LIVES} "
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
        f"from {LIVES} where inside > 0"
    )
    return int(rows), int(objects)


def ends(source: ReportSource) -> dict[tuple[str, str, str], float]:
    """When objects ended that don't exist any more, by class, agent and object, in seconds."""
    rows = source.query(
        f"select class, coalesce(agent, ''), coalesce(object, ''), max(ended_ns) / 1e9 from {LIVES} "
        "group by all having bool_and(ended_ns is not null)"
    )
    return {(name, agent, own): float(at) for name, agent, own, at in rows}


def lifetimes(source: ReportSource, time_range: TimeRange) -> tuple[tuple[float, int, int], ...]:
    """Start of the window in seconds, objects created, and objects ended."""
    first, last, size = time_range.first_ns, time_range.last_ns, time_range.step * NS
    rows = source.query(
        f"select moment // {size} * {time_range.step} as t, sum(born), sum(gone) from ("
        f"select began as moment, 1 as born, 0 as gone from {LIVES} union all select ended_ns, 0, 1 from {LIVES}"
        f") where moment >= {first} and moment < {last} group by t order by t"
    )
    return tuple((float(t), int(born), int(gone)) for t, born, gone in rows)


def last_ended(source: ReportSource, time_range: TimeRange, top: int) -> tuple[tuple[EndedObjectRow, ...], int]:
    """The objects that ended last, and the number of others that ended."""
    where = f"ended_ns >= {time_range.first_ns} and ended_ns < {time_range.last_ns}"
    ((total,),) = source.query(f"select count(*) from {LIVES} where {where}")
    rows = source.query(
        f"select class, agent, object, created_ns, ended_ns, ended_by from {LIVES} where {where} "
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


def last_changes(
    source: ReportSource, time_range: TimeRange, since_ns: int, top: int, own: Sequence[str] | None
) -> tuple[tuple[PropertyChangeRow, ...], int]:
    """The last changes of properties that had a value before, and the number of others."""
    source.run(
        f"create temp table {_CHANGES} (class varchar, agent varchar, object varchar, time_ns bigint, "
        "property varchar, previous varchar, value varchar)"
    )
    first, last = time_range.first_ns, time_range.last_ns
    for version, rows in _object_rows(source, since_ns, last):
        columns = _properties(version)
        if columns:
            where = f"_ts_ns >= {since_ns} and _ts_ns < {last}{_without(version, own)}"
            source.run(f"insert into {_CHANGES} {_changes(version, columns, rows, where)}")
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


def _changes(version: ClassVersion, columns: Sequence[LakeColumn], rows: str, where: str) -> str:
    """The changes of the properties of a class, as SQL."""
    values = ", ".join(
        f"struct_pack(property := {text(_shown(column))}, value := cast({quoted(column.name)} as varchar))"
        for column in columns
    )
    life = "partition by agent, object, created_ns, epoch"
    # An object that is created again begins anew; times don't run backwards, whatever the agent's clock does.
    return f"""
        with messages as (
            select {_LIFE_SQL}, _run, _seq, _received_ns, _ts_ns, [{values}] as own from {rows}
            where _properties and {where}
        ), arrived as (
            select *, max(_received_ns) over ({life}, _run order by _seq) as arrival from messages
        ), timed as (
            select *, max(least(_ts_ns, arrival)) over ({life} order by arrival, _run, _seq) as time_ns from arrived
        ), cells as (
            select agent, object, created_ns, epoch, arrival, _run, _seq, time_ns, unnest(own, recursive := true)
            from timed
        ), steps as (
            select *, lag(value) over own_cells as previous, row_number() over own_cells as number from cells
            window own_cells as ({life}, property order by arrival, _run, _seq)
        )
        select {text(version.name)}, agent, object, time_ns, property, previous, value from steps
        where number > 1 and previous is not null and previous is distinct from value
    """


def _properties(version: ClassVersion) -> list[LakeColumn]:
    return [
        column
        for column in version.columns
        if column.kind is MemberKind.PROPERTY and column.column_type is not ColumnType.TIME
    ]


def _shown(column: LakeColumn) -> str:
    """The name of the property; the agent of a reference is another."""
    return column.member if column.part is MemberPart.NANOSECONDS else column.name
