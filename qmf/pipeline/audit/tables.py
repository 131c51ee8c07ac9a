"""The map and the reduces of an audit, which know no runner: the parts of files, and the tables that are made of parts.

All rows have the same columns and are told apart by `PART`: parts, events, and the availability of agents. The tables
of events are made of all records of each event, availability of all parts about the presence of an agent and about the
recorders, lifetimes and history of all parts about an object and the availability of its agent.

What an audit keeps are its parts (`StoredParts`), and how far it has read the lake's tables. The position is committed
with the parts, after the tables that are made of them: these have all that it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import attrs

from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.audit.schemas import ALL_TABLES, EVENTS, PARTS, TABLES, Columns, arrow_schema, empty
from qmf.pipeline.audit.state import (
    EVENT_PART,
    OBJECT_PARTS,
    PART,
    PRESENCE_PARTS,
    AuditState,
    columns_together,
    part_table,
    select_part,
    together,
)
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import absolute, kind_path
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.runners.runner import STORED, Rows, Runner, conformed_batches, duckdb_batches, stored_rows

#: The tables that have days.
DATED = ("events", "calls")

#: Their columns, with the day.
EVENT_TABLES: Mapping[str, Columns] = {name: {**ALL_TABLES[name], DATE: "varchar"} for name in DATED}

#: Objects of an agent are divided into so many shares, by their names; and the column with the number of the share.
_BUCKETS, _BUCKET = 16, "bucket"

#: The availability of an agent, once for each share of its objects.
_STATES = "states"

#: The ids of events that are in a table already, by its name.
KNOWN = {name: f"known {name}" for name in DATED}

#: What is told apart by `PART`.
_MADE: Mapping[str, Columns] = {
    **PARTS,
    **{name: {**PARTS[name], _BUCKET: "integer"} for name in OBJECT_PARTS},
    EVENT_PART: EVENTS,
    "availability": TABLES["availability"],
    _STATES: {**TABLES["availability"], _BUCKET: "integer"},
}
_OBJECT_TABLES = {name: columns for name, columns in TABLES.items() if name != "availability"}

#: The writer of the tables of audits, and the beginning of the names of the position's numbers, in their logs.
WRITER, _READ = "audit", "audit read "

#: What rows of parts that are merged have in common, whichever part it is.
_MERGED_BY = ("run", "agent", "object", "seq")


@attrs.frozen
class AuditOptions:
    """Options of an audit.

    Attributes:
        lake: path or URL.
        out: folder of the tables.
        storage: options of the object stores of both.
        events: make the tables of events and calls as well; without them, their rows are not read.
    """

    lake: str
    out: str
    storage: Mapping[str, str] = attrs.field(factory=dict)
    events: bool = True

    def table(self, name: str) -> LakeTable:
        """One of the tables."""
        return LakeTable(f"{absolute(self.out)}/{name}", self.storage)

    def paths(self, lake: DeltaLake) -> list[str]:
        """The paths of the tables of a lake that are read, in order."""
        left_out = {kind_path(RowKind.SCHEMAS)}
        if not self.events:
            left_out |= {kind_path(RowKind.UNTYPED), *(item.table for item in lake.classes() if item.version.event)}
        return [path for path in lake.paths() if path not in left_out]


def made_parts(runner: Runner, options: AuditOptions, files: FilesByTable) -> Rows:
    """The parts and the events of some files; those of tables that an audit doesn't read are left out.

    Using the rows raises `LakeError` where a table or a file of the lake is not on this machine, or cannot be read.
    """
    work = partial(_parts, absolute(options.lake), dict(options.storage))
    return runner.map(runner.portions(files), work, _schema(_MADE))


def event_tables(parts: Rows) -> Rows:
    """The `EVENT_TABLES`: each event once, and calls, but for those that are `KNOWN`."""
    own = parts.where(PART, [EVENT_PART, *KNOWN.values()])
    return own.reduce(["event_id"], _events, _schema(EVENT_TABLES))


def merged_parts(parts: Rows) -> Rows:
    """The parts, so that they are not more than they must be."""
    return parts.where(PART, list(PARTS)).reduce(_MERGED_BY, _merge_parts, _schema(_MADE))


def presence_and_object_tables(parts: Rows) -> Iterator[tuple[str, Rows]]:
    """The `TABLES` by name, each among rows of others; to be used before the next one is asked for."""
    # A few rows for each run of a recorder, which all agents need.
    recorders = _merge_recorders(
        parts.where(PART, ["runs"]).union(parts.where("change", [DISCONNECTED, CONNECTED])).table()
    )
    presence = parts.where(PART, PRESENCE_PARTS)
    with presence.reduce(["agent"], partial(_available, recorders), _schema(_MADE)).persist() as available:
        yield "availability", available
        own = parts.where(PART, OBJECT_PARTS).union(available.where(PART, [_STATES]))
        with own.reduce(["agent", _BUCKET], _objects, _schema(_OBJECT_TABLES)).persist() as found:
            yield from ((name, found) for name in _OBJECT_TABLES)


class StoredParts:
    """The parts of one audit, whether they exist yet or not. Methods raise `LakeError` where a table cannot be read."""

    def __init__(self, options: AuditOptions) -> None:
        self.table = options.table("parts")

    def read(self, path: str) -> int | None:
        """The version up to which the rows of a table of the lake are in the parts; None for none."""
        return self.table.last_batch(f"{_READ}{path}")

    def rows(self, runner: Runner, conditions: Mapping[str, str] | None = None) -> Rows:
        """The parts, as of `made_parts`; `conditions` are for the rows of each part that is wanted, None for all."""
        wanted = dict.fromkeys(PARTS, "true") if conditions is None else conditions
        queries = {
            name: f"select {text(name)} as {PART}, * from "
            + (with_bucket(f"({own})") if name in OBJECT_PARTS else f"({own})")
            for name, own in (
                (name, f"{select_part(STORED, name, PARTS[name])} and ({where})") for name, where in wanted.items()
            )
        }
        query, schema = conformed_parts(queries)
        return stored_rows(runner, self.table, schema, query)

    def store(self, parts: Rows, read: Mapping[str, int]) -> None:
        """Replace the parts, with the versions of the lake's tables by their paths, whose rows are in them."""
        columns = columns_together(PARTS)
        written = parts.where(PART, list(PARTS)).select(list(columns)).write(self.table)
        self.table.commit_files(
            written.files,
            arrow_schema(columns),
            writer=WRITER,
            replace=True,
            numbers={f"{_READ}{path}": version for path, version in read.items()},
        )


def conformed_parts(queries: Mapping[str, str]) -> tuple[str, Any]:
    """Rows that are stored as those of `made_parts`: a query of queries for each `PART`, and its Arrow schema."""
    return " union all by name ".join([f"({empty(columns_together(_MADE))})", *queries.values()]), _schema(_MADE)


def with_bucket(rows: str) -> str:
    """Parts of objects with the share that they belong to, as a query."""
    return f"(select *, cast(hash(object) % {_BUCKETS} as integer) as {_BUCKET} from {rows})"


def _parts(lake: str, storage: Mapping[str, str], connection: Any, files: FilesByTable) -> Iterator[Any]:
    try:
        with duckdb_errors(lake):
            state = AuditState(connection)
            state.add(DeltaLake(lake, storage), files)
            state.fold()
            yield from _part_batches(connection, {EVENT_PART: state.events()})
    except FileNotFoundError as error:
        raise LakeError(f"{lake}: {error}") from error


def _merge_parts(connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    _state(connection, batches).fold()
    yield from _part_batches(connection)


def _merge_recorders(recorders: Any) -> Any:
    """Parts of recorders, each once: every task of the map has made some of them."""
    with closing(connect()) as own:
        merged = conformed_batches(_merge_parts(own, iter(recorders.to_batches())), _schema(_MADE))
        return import_pyarrow().Table.from_batches(merged, _schema(_MADE))


def _part_batches(connection: Any, others: Mapping[str, str] | None = None) -> Iterator[Any]:
    tables = {name: part_table(name) for name in PARTS}
    tables |= {name: with_bucket(tables[name]) for name in OBJECT_PARTS}
    yield from duckdb_batches(connection, together({**tables, **(others or {})}, _MADE))


def _events(connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    connection.execute("create temp table qmf_known (part varchar, event_id varchar)")
    state = _state(connection, _add_to_table(connection, batches, "qmf_known", "select part, event_id from {rows}"))
    events = state.events()
    made = {"events": events, "calls": state.calls(events)}
    tables = {
        name: f"(select *, strftime(time, '%Y-%m-%d') as {DATE} from {rows} where event_id not in "
        f"(select event_id from qmf_known where part = '{KNOWN[name]}'))"
        for name, rows in made.items()
    }
    yield from duckdb_batches(connection, together(tables, EVENT_TABLES))


def _available(recorders: Any, connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    state = _state(connection, batches)
    state.insert_all(recorders)
    state.fold(PRESENCE_PARTS)
    made = state.availability()
    states = f"(select a.*, cast(n.range as integer) as {_BUCKET} from {made} as a, range({_BUCKETS}) as n)"
    yield from duckdb_batches(connection, together({"availability": made, _STATES: states}, _MADE))


def _objects(connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    connection.execute(f"create temp table qmf_available as {empty(TABLES['availability'])}")
    states = select_part("{rows}", _STATES, TABLES["availability"])
    state = _state(connection, _add_to_table(connection, batches, "qmf_available", states))
    state.fold(OBJECT_PARTS)
    # There may be several shares of an agent here.
    connection.execute("create temp table qmf_states as select distinct * from qmf_available")
    yield from duckdb_batches(connection, together(state.object_tables("qmf_states"), _OBJECT_TABLES))


def _state(connection: Any, batches: Iterator[Any]) -> AuditState:
    state = AuditState(connection)
    for batch in batches:
        state.insert_all(batch)
    return state


def _add_to_table(connection: Any, batches: Iterator[Any], table: str, query: str) -> Iterator[Any]:
    """The same batches; what a query finds in them is added to a table."""
    for batch in batches:
        connection.register("qmf_given", batch)
        connection.execute(f"insert into {table} by name {query.format(rows='qmf_given')}")
        connection.unregister("qmf_given")
        yield batch


def _schema(columns: Mapping[str, Columns]) -> Any:
    """The Arrow schema of `together`."""
    return arrow_schema(columns_together(columns))
