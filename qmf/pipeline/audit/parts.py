"""Parts: partial aggregates of a lake's rows, made from a whole lake or from a few new files, as SQL of DuckDB.

`fold_parts` merges parts with the same key. It is idempotent, and the order of rows and of merges doesn't matter. So
the tables of a stream, whose parts are merged batch by batch, are equal to those of a batch.

Arguments named `rows` are a part of ``from``: a table, or a query in brackets.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from qmf.pipeline.audit.schemas import EVENTS, LIFE_KEY, PARTS, conform
from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart

#: Reasons in the table of gaps that are about the recorder's own connection.
DISCONNECTED, CONNECTED = "disconnected", "connected again"

#: The columns that order the records of an event.
_ARRIVAL = "received_ns, run, seq"

#: What makes an event the same as another one. A recorder may not know the epoch yet.
_IDENTITY = ("agent", "package", "class", "hash", "severity", "time_ns", "object", "arguments")

_EPOCH = "nullif(_epoch, 0) as epoch"  # null where an agent is known by its name only, which is recorded as 0
_NUMBERED = f"_run as run, _seq as seq, _received_ns as received_ns, _agent as agent, {_EPOCH}"


def runs(rows: str) -> str:
    """The time of each recorder's run, from rows of any kind."""
    found = f"select _run as run, min(_received_ns) as first_ns, max(_received_ns) as last_ns from {rows} group by _run"
    return conform(f"({found})", PARTS["runs"])


def signs(rows: str) -> str:
    """The first and last heartbeat of each agent in each run, from heartbeats."""
    found = (
        f"select _agent as agent, {_EPOCH}, _run as run, min(_seq) as first_seq, max(_seq) as last_seq, "
        "arg_min(_received_ns, _seq) as first_ns, "
        "arg_max(_received_ns - coalesce(silent_ns, 0), _seq) as last_ns "
        f"from {rows} where _agent is not null group by _agent, epoch, _run"
    )
    return conform(f"({found})", PARTS["signs"])


def arrivals(rows: str) -> str:
    """Agents that were added, removed or restarted, from rows of agents."""
    return conform(f'(select {_NUMBERED}, change, reason, "interval" from {rows})', PARTS["changes"])


def breaks(rows: str) -> str:
    """Losses and recoveries of the recorders' connections, from gaps."""
    found = (
        f"select {_NUMBERED}, reason as change, subject as reason, null as interval "
        f"from {rows} where reason in ({text(DISCONNECTED)}, {text(CONNECTED)})"
    )
    return conform(f"({found})", PARTS["changes"])


def objects(rows: str, version: ClassVersion) -> str:
    """The lifetimes of objects, from samples of a class version."""
    found = (
        f"select {life(version)}, bool_or(_object_epoch is not null) as transient, min(_ts_ns) as first_ns, "
        "max(_ts_ns) as last_ns, max(_received_ns) as received_ns, min(nullif(_delete_ns, 0)) as deleted_ns "
        f"from {rows} group by all"
    )
    return conform(f"({found})", PARTS["objects"])


def properties(rows: str, version: ClassVersion) -> str:
    """The properties in messages, as text, from samples of a class version."""
    values = f"map_from_entries([{_entries(version)}])" if _arguments(version) else "map {}"
    found = (
        f"select {life(version)}, _run as run, _seq as seq, _ts_ns as time_ns, _received_ns as received_ns, "
        f'{values} as "values" from {rows} where _properties'
    )
    return conform(f"({found})", PARTS["properties"])


def events(rows: str, version: ClassVersion) -> str:
    """Events, as often as they were recorded, see `distinct_events`; from those of a class version."""
    entries = f"list_filter([{_entries(version)}], lambda entry: entry.v is not null)"
    arguments = f"cast(to_json(map_from_entries({entries})) as varchar)" if _arguments(version) else "'{}'"
    found = (
        f"select {_NUMBERED}, _ts_ns as time_ns, {_class(version)}, {text(version.hash)} as hash, "
        f"_severity as severity, _object as object, {arguments} as arguments from {rows}"
    )
    return _events(found)


def untyped_events(rows: str) -> str:
    """Events whose schema is unknown, from rows of that kind."""
    found = (
        f"select {_NUMBERED}, _ts_ns as time_ns, package, class, '' as hash, severity, object, "
        f'"values" as arguments from {rows} where event'
    )
    return _events(found)


def distinct_events(rows: str) -> str:
    """Each event once: its first record.

    An event arrives twice when an agent repeats it after a lost connection, and when two recorders write one lake.
    Events are the same when agent, class, time to the nanosecond, severity and arguments are.
    """
    return f"select * from {rows} qualify row_number() over (partition by event_id order by {_ARRIVAL}) = 1"


def fold_parts(name: str, rows: str) -> str:
    """Parts of one name, merged to one row per key."""
    return conform(f"({_FOLDS[name].format(rows=rows)})", PARTS[name])


_EACH_ROW_ONCE = "select distinct on (run, seq) * from {rows}"

_FOLDS: Mapping[str, str] = MappingProxyType(
    {
        "runs": "select run, min(first_ns) as first_ns, max(last_ns) as last_ns from {rows} group by run",
        "signs": (
            "select agent, epoch, run, min(first_seq) as first_seq, arg_min(first_ns, first_seq) as first_ns, "
            "max(last_seq) as last_seq, arg_max(last_ns, last_seq) as last_ns from {rows} group by agent, epoch, run"
        ),
        "changes": _EACH_ROW_ONCE,
        "objects": (
            f"select {', '.join(LIFE_KEY)}, bool_or(transient) as transient, min(first_ns) as first_ns, "
            "max(last_ns) as last_ns, max(received_ns) as received_ns, min(deleted_ns) as deleted_ns "
            "from {rows} group by all"
        ),
        "properties": _EACH_ROW_ONCE,
    }
)


def life(version: ClassVersion) -> str:
    """`LIFE_KEY` of samples, as columns in SQL. Unknown values are 0: a null would be unequal to itself."""
    return (
        f"{_class(version)}, _agent as agent, _object as object, "
        "coalesce(_create_ns, 0) as created_ns, coalesce(_object_epoch, 0) as epoch"
    )


def _class(version: ClassVersion) -> str:
    return f"{text(version.package)} as package, {text(version.name)} as class"


def _arguments(version: ClassVersion) -> list[LakeColumn]:
    """The columns of properties or arguments; a time is that with all nanoseconds."""
    return [
        column
        for column in version.columns
        if column.kind is not MemberKind.STATISTIC and column.column_type is not ColumnType.TIME
    ]


def _entries(version: ClassVersion) -> str:
    """Names and values as text of all properties or arguments of a class, null or not."""
    found = []
    for column in _arguments(version):
        # A time is stored under another name.
        name = column.member if column.part is MemberPart.NANOSECONDS else column.name
        found.append(f"{{'k': {text(name)}, 'v': cast({quote_name(column.name)} as varchar)}}")
    return ", ".join(found)


def _events(found: str) -> str:
    """Events with their id."""
    identity = ", ".join(f"coalesce(cast({name} as varchar), '')" for name in _IDENTITY)
    return conform(f"(select *, sha256(cast(to_json([{identity}]) as varchar)) as event_id from ({found}))", EVENTS)
