"""The rows of one file of a lake as Arrow batches, with the columns that a reader wants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError, import_extra
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.columns import ANY_CLASS_COLUMNS, CLASS_KINDS, DATE, HASH, Columns
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_conditions import RowCondition, conjunction, row_groups
from qmf.pipeline.lake.runs import CountedRows, LeftOut
from qmf.pipeline.lake.table_paths import class_of_path


@attrs.frozen(kw_only=True)
class WantedRows:
    """Which rows and columns a reader wants of each file.

    Attributes:
        columns: their types; those that a file lacks are null.
        hash: only rows of this version of the class; None for all.
        as_json: add `ANY_CLASS_COLUMNS`, with the columns of the class as JSON.
        left_out: rows of classes that don't count, since another recorder has them too.
        conditions: for rows that are wanted, on some of the columns; they fit the columns' types.
    """

    columns: Columns
    hash: str | None = None
    as_json: bool = False
    left_out: tuple[LeftOut, ...] = ()
    conditions: tuple[RowCondition, ...] = ()

    @property
    def schema(self) -> Any:
        """The Arrow schema of the rows."""
        return arrow_schema((*self.columns, *ANY_CLASS_COLUMNS) if self.as_json else self.columns)


def file_rows(table: LakeTable, table_path: str, path: str, wanted: WantedRows) -> Iterator[Any]:
    """The wanted rows of a file, by its path inside a table, as Arrow batches; `table_path` is that of the table.

    Raises:
        LakeError: the file is gone or damaged; or a column has another type in it.
    """
    pa = import_pyarrow()
    schema = arrow_schema(wanted.columns)
    counted = CountedRows(wanted.left_out) if wanted.left_out and has_classes(table_path) else None
    with delta_errors(f"{table.url}/{path}"), table.open_file(path) as file:
        names, groups, met = _chosen_parts(file, wanted, is_counted=counted is not None)
        for batch in () if groups == [] else file.iter_batches(columns=names, row_groups=groups):
            chosen = _of_version(batch, wanted.hash)
            chosen = chosen if counted is None else counted.of(chosen)
            chosen = chosen if met is None else chosen.filter(met)
            if not chosen.num_rows:
                continue
            arrays = [_column(chosen, field, f"{table.url}/{path}") for field in schema]
            if wanted.as_json:
                arrays += _class_arrays(table_path, chosen, set(schema.names))
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)


def _chosen_parts(file: Any, wanted: WantedRows, *, is_counted: bool) -> tuple[list[str] | None, list[int] | None, Any]:
    """The columns and row groups of a file to read, None for all, and what its rows must meet, None for nothing."""
    types = {field.name: field.type for field in arrow_schema(wanted.columns)}
    present = {field.name: field.type for field in file.schema_arrow}
    if any(item.column not in present and not item.holds_for_null for item in wanted.conditions):
        return None, [], None
    names = None
    if not wanted.as_json:
        needed = (*types, HASH, *(CountedRows.columns if is_counted else ()))
        names = [name for name in dict.fromkeys(needed) if name in present]
    # A column of another type is an error when its values are read.
    conditions = [item for item in wanted.conditions if present.get(item.column) == types[item.column]]
    return names, row_groups(file, conditions), conjunction(conditions, types)


def has_classes(table_path: str) -> bool:
    """True for tables of objects and events."""
    return table_path.partition("/")[0] in {kind.value for kind in CLASS_KINDS}


def _of_version(batch: Any, hash: str | None) -> Any:
    if hash is None or HASH not in batch.schema.names:
        return batch
    return batch.filter(import_extra("pyarrow.compute").equal(batch.column(HASH), hash))


def _column(batch: Any, field: Any, file: str) -> Any:
    pa = import_pyarrow()
    array = batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
    if array.type != field.type:
        raise LakeError(
            f"{file}: {field.name} is {array.type} in this version of the class, not {field.type}; "
            "follow one version by its hash"
        )
    return array


def _class_arrays(table_path: str, batch: Any, common: set[str]) -> list[Any]:
    """`ANY_CLASS_COLUMNS` of a batch."""
    pa = import_pyarrow()
    _kind, package, name = class_of_path(table_path)
    rows = batch.num_rows
    skipped = {*common, DATE, HASH}
    own = [field.name for field in batch.schema if field.name not in skipped and not pa.types.is_timestamp(field.type)]
    values = [_to_json(row) for row in batch.select(own).to_pylist()] if own else ["{}"] * rows
    names = [pa.array([text] * rows, pa.string()) for text in (package, name)]
    return [*names, batch.column(HASH), pa.array(values, pa.string())]


def _to_json(row: dict[str, object]) -> str:
    return json.dumps(
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items() if value is not None},
        ensure_ascii=False,
        separators=(",", ":"),
    )
