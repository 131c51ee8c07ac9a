"""The parts of an audit in DuckDB: rows of a lake's files are added to them, tables are made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.availability import availability
from qmf.pipeline.audit.calls import calls
from qmf.pipeline.audit.history import history, lifetimes
from qmf.pipeline.audit.schemas import EVENTS, PARTS, Columns, empty, names
from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import kind_path
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.lake.table_files import FilesByTable

#: The kinds of rows that show the presence of agents and recorders.
PRESENCE = (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS)

#: The parts that are about it, and those that are about objects.
PRESENCE_PARTS, OBJECT_PARTS = ("runs", "signs", "changes"), ("objects", "properties")

#: The column that says which part, or which table, a row belongs to; and its value for events.
PART, EVENT_PART = "part", "events"

#: The table of events that were added.
EVENT_ROWS = "qmf_audit_events"


#: What `AuditState` has.
_ALL_ROWS: Mapping[str, Columns] = {**PARTS, EVENT_PART: EVENTS}


class AuditState:
    """Parts and events as tables of one connection. Belongs to one thread; SQL errors are DuckDB's."""

    def __init__(self, connection: Any) -> None:
        """Make the tables of parts, without rows, by a connection to DuckDB with times in UTC."""
        self._connection = connection
        for name, columns in PARTS.items():
            self._create(part_table(name), columns)
        self._create(EVENT_ROWS, EVENTS)

    # -- rows of a lake

    def add(self, lake: DeltaLake, files: FilesByTable) -> None:
        """Add the rows of some files, by the path of their table; a file may be added twice.

        Raises:
            LakeError: the lake doesn't have one of the tables, since it is another one, or not on this machine.
        """
        unknown = set(files).difference(map(kind_path, RowKind), (item.table for item in lake.classes()))
        if unknown:
            raise LakeError(f"{lake.url}: no table {min(unknown)}: every machine needs the lake under this name")
        for kind in (*PRESENCE, RowKind.UNTYPED):
            found = tuple(files.get(kind_path(kind), ()))
            if found:
                self.add_rows(
                    kind, RowSource(lake.kind_table(kind), found, columns_of(kind, None)).sql(self._connection)
                )
        for item in lake.classes():
            if item.table in files:
                kind = RowKind.EVENTS if item.version.event else RowKind.OBJECTS
                source = RowSource.of_versions(
                    lake.table(item.table), files[item.table], columns_of(kind, item.version), [item.version]
                )
                if source:
                    self.add_rows(kind, source.sql(self._connection), item.version)

    def add_rows(self, kind: RowKind, rows: str, version: ClassVersion | None = None) -> None:
        """Add rows of a kind, those of objects and events of a class version; `rows` are a part of ``from``."""
        for name, query in queries_of(kind, rows, version).items():
            self.insert(name, query)

    # -- parts

    def insert(self, name: str, query: str) -> None:
        """Add parts of one name, or events: a query, or a part of ``from`` after that word."""
        table = EVENT_ROWS if name == EVENT_PART else part_table(name)
        self._connection.execute(f"insert into {table} by name {query}")

    def insert_all(self, batch: Any, columns: Mapping[str, Columns] = _ALL_ROWS) -> None:
        """Add parts and events, told apart by the column `PART`, as an Arrow record batch or anything like it."""
        self._connection.register("qmf_audit_given", batch)
        for name in columns:
            self.insert(name, select_part("qmf_audit_given", name, columns[name]))
        self._connection.unregister("qmf_audit_given")

    def fold(self, names: Iterable[str] = tuple(PARTS)) -> None:
        """Merge the parts, so that they are not larger than they must be."""
        for name in names:
            self._replace(part_table(name), parts.fold_parts(name, part_table(name)))

    # -- tables

    def events(self) -> str:
        """The name of a table with the events that were added, each once."""
        self._replace(EVENT_ROWS, f"{parts.distinct_events(EVENT_ROWS)} order by time_ns, event_id")
        return EVENT_ROWS

    def calls(self, events: str) -> str:
        """The name of a table with the calls among events."""
        return self._make("calls", calls(events))

    def availability(self) -> str:
        """The name of the table of that name. Its parts must be folded."""
        return self._make("availability", availability(*map(part_table, PRESENCE_PARTS)))

    def object_tables(self, availability: str) -> dict[str, str]:
        """The names of the other `TABLES`, by name; `availability` is that of the first. The parts must be folded."""
        made = self._make("lives", lifetimes(part_table("objects"), availability))
        return {"lives": made, "history": self._make("history", history(part_table("properties"), made))}

    def _make(self, name: str, query: str) -> str:
        table = f"qmf_audit_{name}"
        self._connection.execute(f"create or replace temp table {table} as {query}")
        return table

    def _create(self, table: str, columns: Columns) -> None:
        types = ", ".join(f"{quote_name(name)} {type}" for name, type in columns.items())
        self._connection.execute(f"create or replace temp table {table} ({types})")

    def _replace(self, table: str, query: str) -> None:
        self._connection.execute(f"create or replace temp table qmf_audit_made as {query}")
        self._connection.execute(f"create or replace temp table {table} as from qmf_audit_made")
        self._connection.execute("drop table qmf_audit_made")


def queries_of(kind: RowKind, rows: str, version: ClassVersion | None = None) -> dict[str, str]:
    """The queries for what is made of rows of a kind, by the name of the part, or `EVENT_PART`."""
    match kind:
        case RowKind.HEARTBEATS:
            return {"runs": parts.runs(rows), "signs": parts.signs(rows)}
        case RowKind.AGENTS:
            return {"runs": parts.runs(rows), "changes": parts.arrivals(rows)}
        case RowKind.GAPS:
            return {"runs": parts.runs(rows), "changes": parts.breaks(rows)}
        case RowKind.UNTYPED:
            return {EVENT_PART: parts.untyped_events(rows)}
    assert version is not None
    if kind is RowKind.EVENTS:
        return {EVENT_PART: parts.events(rows, version)}
    return {"objects": parts.objects(rows, version), "properties": parts.properties(rows, version)}


def select_part(rows: str, name: str, columns: Columns) -> str:
    """The rows of one name, as a query."""
    return f"select {names(columns)} from {rows} where {PART} = {text(name)}"


def together(tables: Mapping[str, str], columns: Mapping[str, Columns]) -> str:
    """The rows of several tables as one query; the column `PART` names the table, see `columns_together`."""
    each = [f"select {text(name)} as {PART}, {names(columns[name])} from {table}" for name, table in tables.items()]
    return " union all by name ".join([f"({empty(columns_together(columns))})", *each])


def columns_together(columns: Mapping[str, Columns]) -> Columns:
    """The columns of `together`."""
    return {PART: "varchar"} | {name: type for own in columns.values() for name, type in own.items()}


def part_table(name: str) -> str:
    """The table with the parts of a name."""
    return f"qmf_audit_part_{name}"
