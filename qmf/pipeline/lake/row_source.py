"""Rows of a lake as a source of DuckDB queries: files of one table, from a folder or from an object store."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import parquet_files, quote_name, text
from qmf.pipeline.lake.arrow import arrow_schema
from qmf.pipeline.lake.columns import HASH, ClassVersion, Columns, ColumnType
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.lake.table_files import TableFile

_numbers = itertools.count(1)


@attrs.frozen
class RowSource:
    """Files of a table, whose rows a query reads; columns that a file lacks are null.

    Only rows of a version, and those that meet a condition in SQL; None and an empty text for all.
    """

    table: LakeTable
    files: tuple[TableFile, ...]
    columns: Columns
    hash: str | None = None
    condition: str = ""

    @classmethod
    def of_versions(
        cls, table: LakeTable, files: Sequence[TableFile], columns: Columns, versions: Sequence[ClassVersion]
    ) -> RowSource:
        """The rows of one class version, or of all of a table; files without such rows are left out."""
        if len(versions) > 1:
            return cls(table, tuple(files), columns)
        hash = versions[0].hash
        own = (
            file
            for file in files
            if file.first_hash is None or file.last_hash is None or file.first_hash <= hash <= file.last_hash
        )
        return cls(table, tuple(own), columns, hash)

    def __bool__(self) -> bool:
        return bool(self.files)

    @property
    def rows(self) -> int:
        """The number of rows in the files, those of other versions included."""
        return sum(file.rows for file in self.files)

    def sql(self, connection: Any) -> str:
        """The rows as SQL, a part of ``from``; those of an object store are made known to the connection."""
        parts = [] if self.hash is None or self._is_pure else [f"{quote_name(HASH)} = {text(self.hash)}"]
        parts += [self.condition] if self.condition else []
        where = f" where {' and '.join(parts)}" if parts else ""
        if not is_local(self.table.url):
            schema = arrow_schema((*self.columns, (HASH, ColumnType.TEXT)) if self.hash is not None else self.columns)
            return f"(select * from {_register(connection, self.table.dataset(self.files, schema))}{where})"
        paths = [file.url for file in self.files]
        if self._is_pure:
            # Each file has all of the columns: they need not be opened before the query runs.
            return f"(select * from {parquet_files(paths)}{where})" if where else parquet_files(paths)
        empty = _register(connection, arrow_schema(self.columns).empty_table())
        files = parquet_files(paths, ", union_by_name = true")
        return f"(select * from (from {empty} union all by name select * from {files}){where})"

    @property
    def _is_pure(self) -> bool:
        """True if all rows of the files are wanted, and each file has all columns."""
        return all(file.first_hash == self.hash == file.last_hash for file in self.files)


def _register(connection: Any, rows: Any) -> str:
    """Make rows known to a connection, and return their name."""
    name = f"qmf_rows_{next(_numbers)}"
    connection.register(name, rows)
    return name
