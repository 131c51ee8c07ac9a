"""Arrow schemas and tables: the only module that imports pyarrow, and only when a function is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmf.pipeline.errors import MissingExtraError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import Cell, Table
from qmf.pipeline.lake.row_columns import COMMON, OWN, Columns


def library() -> Any:
    """The module `pyarrow`, with its part for Parquet loaded.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow") from error
    return pyarrow


def columns_of(kind: RowKind, table: Table | None) -> Columns:
    """Every column of a file, in order."""
    own: Columns = tuple((item.name, item.cell) for item in table.columns) if table else ()
    return (*COMMON, *OWN[kind], *own)


def arrow_schema(columns: Columns) -> Any:
    """The Arrow schema of a file."""
    pa = library()
    types = {
        Cell.INT8: pa.int8(),
        Cell.INT16: pa.int16(),
        Cell.INT32: pa.int32(),
        Cell.INT64: pa.int64(),
        Cell.DECIMAL: pa.decimal128(20, 0),
        Cell.FLOAT: pa.float32(),
        Cell.DOUBLE: pa.float64(),
        Cell.BOOL: pa.bool_(),
        Cell.TEXT: pa.string(),
        Cell.TIME: pa.timestamp("us", tz="UTC"),
    }
    return pa.schema([pa.field(name, types[cell]) for name, cell in columns])


def arrow_table(columns: Columns, rows: Sequence[tuple[object, ...]]) -> Any:
    """Rows as an Arrow table.

    Args:
        columns: of each row, in order.
        rows: at least one; cells as `qmf.pipeline.cells` makes them.
    """
    pa = library()
    schema = arrow_schema(columns)
    arrays = [pa.array(cells, type=field.type) for cells, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
