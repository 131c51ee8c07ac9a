"""The rows of one file of a lake as Arrow batches, with the columns that a reader wants, and by a condition.

The condition is an expression of pyarrow, on some of the columns: files, row groups and rows that cannot meet it are
not read. Rows for which it is not known to be true are left out.
"""

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
from qmf.pipeline.lake.feed import FeedFile
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import class_of_path
from qmf.pipeline.lake.runs import CountedRows, LeftOut
from qmf.pipeline.lake.table_files import TableFile


@attrs.frozen(kw_only=True)
class WantedRows:
    """Which rows and columns a reader wants of each file; columns that a file lacks are null.

    They are of one version, or of all, but for those left out since another recorder has them too; `condition` is None
    or an expression. `as_json` adds `ANY_CLASS_COLUMNS`, with the columns of the class as JSON.
    """

    columns: Columns
    hash: str | None = None
    as_json: bool = False
    left_out: tuple[LeftOut, ...] = ()
    condition: Any = None


def file_rows(table: LakeTable, item: FeedFile, wanted: WantedRows) -> Iterator[Any]:
    """The wanted rows of a file of a table, as Arrow batches; `LakeError` if a column has another type in it."""
    schema = arrow_schema(wanted.columns)
    counted = CountedRows(wanted.left_out) if wanted.left_out and has_classes(item.path) else None
    with delta_errors(item.file.url), table.open_file(item.file.path) as file:
        for batch in _read(table, item.file, file, schema, wanted):
            chosen = batch if counted is None else counted.of(batch)
            if chosen.num_rows:
                own = chosen.select(schema.names)
                yield _with_class(own, item.path, chosen) if wanted.as_json else own


def _read(table: LakeTable, own: TableFile, file: Any, schema: Any, wanted: WantedRows) -> Iterator[Any]:
    """The rows of a file that meet the condition, with all columns that are needed for the wanted ones."""
    present = file.schema_arrow
    mismatch = _find_mismatch(present, schema)
    if mismatch is not None:
        if wanted.hash is not None and wanted.hash not in file.read([HASH])[HASH].to_pylist():
            return
        raise LakeError(f"{own.url}: {mismatch}; follow one version by its hash")
    needed = present.names if wanted.as_json else (HASH, *CountedRows.columns)
    more = (one for one in present if one.name in needed and one.name not in schema.names)
    read, condition = import_pyarrow().schema([*schema, *more]), _condition(present, wanted)
    names = [name for name in read.names if name in present.names]
    groups = None if condition is None else _row_groups(table, own, file, read, condition)
    for batch in file.iter_batches(columns=names, row_groups=groups) if groups != [] else ():
        whole = _with_nulls(batch, read)
        yield whole if condition is None else whole.filter(condition)


def _condition(present: Any, wanted: WantedRows) -> Any:
    if wanted.hash is None or HASH not in present.names:
        return wanted.condition
    found = import_extra("pyarrow.compute").field(HASH) == wanted.hash
    return found if wanted.condition is None else found & wanted.condition


def _with_nulls(batch: Any, schema: Any) -> Any:
    """A batch with all columns of a schema; those that it lacks are null."""
    pa, known, count = import_pyarrow(), batch.schema.names, batch.num_rows
    columns = [batch.column(one.name) if one.name in known else pa.nulls(count, one.type) for one in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _find_mismatch(present: Any, wanted: Any) -> str | None:
    """The first column of another type than that wanted, in words."""
    for field in wanted:
        at = present.get_field_index(field.name)
        if at >= 0 and present.field(at).type != field.type:
            return f"{field.name} is {present.field(at).type} in this version of the class, not {field.type}"
    return None


def _row_groups(table: LakeTable, own: TableFile, file: Any, schema: Any, condition: Any) -> list[int] | None:
    """The row groups of a file that may have rows that meet a condition, by their limits; None for all."""
    if file.num_row_groups < 2:
        return None
    (fragment,) = table.dataset((own,), schema).get_fragments()
    return [group.id for group in fragment.subset(condition, schema=schema).row_groups]


def has_classes(table_path: str) -> bool:
    return table_path.partition("/")[0] in {kind.value for kind in CLASS_KINDS}


def _with_class(common: Any, table_path: str, batch: Any) -> Any:
    """The columns of every row with `ANY_CLASS_COLUMNS`, from a batch with all columns."""
    pa = import_pyarrow()
    _kind, package, name = class_of_path(table_path)
    skipped = {*common.schema.names, DATE, HASH}
    own = [field.name for field in batch.schema if field.name not in skipped and not pa.types.is_timestamp(field.type)]
    values = [_to_json(row) for row in batch.select(own).to_pylist()] if own else ["{}"] * batch.num_rows
    names = [pa.array([text] * batch.num_rows, pa.string()) for text in (package, name)]
    arrays = [*common.columns, *names, batch.column(HASH), pa.array(values, pa.string())]
    schema = pa.schema([*common.schema, *arrow_schema(ANY_CLASS_COLUMNS)])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _to_json(row: dict[str, object]) -> str:
    return json.dumps(
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items() if value is not None},
        ensure_ascii=False,
        separators=(",", ":"),
    )
