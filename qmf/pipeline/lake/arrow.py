"""Arrow schemas and tables. The lake's access to pyarrow, which is imported when a function is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from qmf.pipeline.errors import import_extra
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import COMMON_COLUMNS, KIND_COLUMNS, ClassVersion, Columns, ColumnType


def import_pyarrow() -> Any:
    """The module `pyarrow`, with `pyarrow.parquet`; `MissingExtraError` if it is not installed."""
    import_extra("pyarrow.parquet")
    return import_extra("pyarrow")


def columns_of(kind: RowKind, version: ClassVersion | None) -> Columns:
    """The columns of a row, in order; tables have `DATE` and, for classes, `HASH` after them."""
    own: Columns = tuple((item.name, item.column_type) for item in version.columns) if version else ()
    return (*COMMON_COLUMNS, *KIND_COLUMNS[kind], *own)


def arrow_schema(columns: Columns) -> Any:
    pa = import_pyarrow()
    types = {
        ColumnType.DECIMAL: pa.decimal128(20, 0),
        ColumnType.TEXT: pa.string(),
        ColumnType.TIME: pa.timestamp("us", tz="UTC"),
    }
    return pa.schema([(name, types.get(own) or pa.type_for_alias(own.value)) for name, own in columns])


def arrow_table(columns: Columns, rows: Sequence[tuple[object, ...]]) -> Any:
    """At least one row as an Arrow table; cells as `qmf.pipeline.record.buffers` makes them, in the columns' order."""
    pa = import_pyarrow()
    schema = arrow_schema(columns)
    arrays = [pa.array(cells, type=field.type) for cells, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def with_text(table: Any, name: str, value: str | Sequence[str]) -> Any:
    """An Arrow table with one more column of text: one value for all rows, or one for each."""
    pa = import_pyarrow()
    values = [value] * table.num_rows if isinstance(value, str) else value
    return table.append_column(pa.field(name, pa.string()), pa.array(values, pa.string()))


def table_portions(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Record batches as tables of so many rows or more; the last one may have fewer."""
    pa = import_pyarrow()
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(item.num_rows for item in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
