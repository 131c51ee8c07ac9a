"""The columns of parts and tables, as types of DuckDB. Every time has two: a timestamp in UTC, and all nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.lake.arrow import import_pyarrow

_TEXT, _LONG, _BOOL, _TIME = "varchar", "bigint", "boolean", "timestamptz"

Columns = Mapping[str, str]
"""The type of each column, in order."""


def _columns(**types: str) -> Columns:
    return MappingProxyType({name.rstrip("_"): type for name, type in types.items()})


_OBJECT = {"package": _TEXT, "class": _TEXT, "agent": _TEXT, "object": _TEXT}

#: Identifies one lifetime of an object. An object that is created again has another time of creation or epoch.
LIFE_KEY = ("package", "class", "agent", "object", "created_ns", "epoch")

#: The parts, by name.
PARTS: Mapping[str, Columns] = MappingProxyType(
    {
        # The time of a recorder's run, by its own clock.
        "runs": _columns(run=_TEXT, first_ns=_LONG, last_ns=_LONG),
        # The first and the last heartbeat of an agent in a run.
        "signs": _columns(
            agent=_TEXT, epoch=_LONG, run=_TEXT, first_seq=_LONG, first_ns=_LONG, last_seq=_LONG, last_ns=_LONG
        ),
        # Agents that were added, removed or restarted; without an agent, the recorder's own connection.
        "changes": _columns(
            run=_TEXT, seq=_LONG, received_ns=_LONG, agent=_TEXT, epoch=_LONG, change=_TEXT, reason=_TEXT,
            interval="double",
        ),
        # The rows of an object's lifetime.
        "objects": _columns(
            **_OBJECT, created_ns=_LONG, epoch=_LONG, transient=_BOOL, first_ns=_LONG, last_ns=_LONG, received_ns=_LONG,
            deleted_ns=_LONG,
        ),
        # The properties in a message.
        "properties": _columns(
            **_OBJECT, created_ns=_LONG, epoch=_LONG, run=_TEXT, seq=_LONG, time_ns=_LONG, received_ns=_LONG,
            values="map(varchar, varchar)",
        ),
    }
)  # fmt: skip

#: Events, each once.
EVENTS = _columns(
    event_id=_TEXT, time=_TIME, time_ns=_LONG, received_ns=_LONG, run=_TEXT, seq=_LONG, package=_TEXT, class_=_TEXT,
    hash=_TEXT, severity="smallint", agent=_TEXT, epoch=_LONG, object=_TEXT, arguments=_TEXT,
)  # fmt: skip

#: Calls, with their results.
CALLS = _columns(
    event_id=_TEXT, time=_TIME, time_ns=_LONG, agent=_TEXT, user=_TEXT, origin=_TEXT, operation=_TEXT, target=_TEXT,
    arguments=_TEXT, result=_TEXT, code=_LONG, text=_TEXT, results=_TEXT, duration_ns=_LONG, source=_TEXT,
)  # fmt: skip

#: The tables that are made from parts, by name.
TABLES: Mapping[str, Columns] = MappingProxyType(
    {
        "availability": _columns(
            agent=_TEXT, state=_TEXT, epoch=_LONG, cause=_TEXT, start=_TIME, start_ns=_LONG, end=_TIME, end_ns=_LONG,
            ongoing=_BOOL,
        ),
        "lives": _columns(
            **_OBJECT, created=_TIME, created_ns=_LONG, epoch=_LONG, first_seen=_TIME, first_seen_ns=_LONG,
            last_seen=_TIME, last_seen_ns=_LONG, ended=_TIME, ended_ns=_LONG, ended_by=_TEXT,
        ),
        "history": _columns(
            **_OBJECT, created_ns=_LONG, epoch=_LONG, property=_TEXT, value=_TEXT, previous=_TEXT, valid_from=_TIME,
            valid_from_ns=_LONG, valid_to=_TIME, valid_to_ns=_LONG, ended_by=_TEXT,
        ),
    }
)  # fmt: skip

#: All tables of an audit.
ALL_TABLES: Mapping[str, Columns] = MappingProxyType({**TABLES, "events": EVENTS, "calls": CALLS})


def conform(rows: str, columns: Columns) -> str:
    """Bring rows, a part of ``from``, into the order and types of columns; a time ``x`` is made from ``x_ns``."""
    cells = [f"cast({_cell(name, type)} as {type}) as {quote_name(name)}" for name, type in columns.items()]
    return f"select {', '.join(cells)} from {rows}"


def _cell(name: str, type: str) -> str:
    if type != _TIME:
        return quote_name(name)
    time_ns = quote_name(f"{name}_ns")
    # Objects whose agent doesn't publish when they were created have 0 there.
    return f"make_timestamptz(nullif({time_ns}, 0) // 1000)"


def names(columns: Columns) -> str:
    """The names of columns, as SQL."""
    return ", ".join(quote_name(name) for name in columns)


def empty(columns: Columns) -> str:
    """A table without rows, as a query."""
    return (
        f"select {', '.join(f'cast(null as {type}) as {quote_name(name)}' for name, type in columns.items())} limit 0"
    )


def arrow_schema(columns: Columns) -> Any:
    """The same columns as an Arrow schema."""
    pa = import_pyarrow()
    types = {
        _TEXT: pa.string(),
        _LONG: pa.int64(),
        _BOOL: pa.bool_(),
        _TIME: pa.timestamp("us", "UTC"),
        "integer": pa.int32(),
        "smallint": pa.int16(),
        "double": pa.float64(),
        "map(varchar, varchar)": pa.map_(pa.string(), pa.string()),
    }
    return pa.schema([pa.field(name, types[type]) for name, type in columns.items()])
