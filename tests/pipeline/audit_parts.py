"""Parts and tables of an audit, made of a few given rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import attrs
import pyarrow

from qmf.pipeline.audit.schemas import Columns
from qmf.pipeline.audit.state import AuditState, part_table
from qmf.pipeline.duckdb_queries import connect

_ARROW_TYPES = {
    "varchar": pyarrow.string(),
    "bigint": pyarrow.int64(),
    "smallint": pyarrow.int16(),
    "boolean": pyarrow.bool_(),
    "double": pyarrow.float64(),
    "timestamptz": pyarrow.timestamp("us", "UTC"),
    "map(varchar, varchar)": pyarrow.map_(pyarrow.string(), pyarrow.string()),
}

#: The values of a row, in the order of its columns.
Row = tuple[Any, ...]


@attrs.frozen
class Tables:
    """A connection to DuckDB, with the state of an audit."""

    connection: Any
    state: AuditState

    def put(self, name: str, columns: Columns, rows: Sequence[Row]) -> str:
        """Make a table of rows; returns its name."""
        cells = zip(*rows, strict=True) if rows else ([] for _ in columns)
        arrays = [
            pyarrow.array(list(column), type=_ARROW_TYPES[type])
            for column, type in zip(cells, columns.values(), strict=True)
        ]
        self.connection.register(name, pyarrow.Table.from_arrays(arrays, names=list(columns)))
        return name

    def add(self, name: str, columns: Columns, rows: Sequence[Row]) -> None:
        """Add parts of one name."""
        self.state.insert(name, f"from {self.put('given', columns, rows)}")

    def parts(self, name: str) -> list[Row]:
        """The parts of one name."""
        found: list[Row] = self.connection.execute(f"from {part_table(name)}").fetchall()
        return found

    def rows(self, query: str, columns: Columns) -> list[Mapping[str, Any]]:
        """The rows of a query, which must have these columns and types."""
        described = self.connection.execute(f"describe ({query})").fetchall()
        types = {"timestamptz": "timestamp with time zone"}
        assert [(name, type.lower()) for name, type, *_ in described] == [
            (name, types.get(type, type)) for name, type in columns.items()
        ]
        found = self.connection.execute(query).fetchall()
        return [dict(zip(columns, row, strict=True)) for row in found]


@contextmanager
def audit_tables() -> Iterator[Tables]:
    """Tables in memory, until the block ends."""
    with closing(connect()) as connection:
        connection.execute("set timezone = 'UTC'")
        yield Tables(connection, AuditState(connection))
