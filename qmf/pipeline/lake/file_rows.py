"""The rows of one file of a lake as Arrow batches, with the columns that a reader wants, and by a condition.

The condition is an expression of pyarrow, on some of the columns: files, row groups and rows that cannot meet it are
not read. Rows for which it is not known to be true are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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


def choose_files(files: Sequence[FeedFile], wanted: WantedRows) -> list[FeedFile]:
    """The files that may have wanted rows, by the limits of their values in the logs of their tables."""
    if wanted.condition is None:
        return list(files)
    dataset, store = import_extra("pyarrow.dataset"), import_extra("pyarrow.fs").LocalFileSystem()
    parquet, schema = dataset.ParquetFileFormat(), arrow_schema(wanted.columns)
    made = [parquet.make_fragment(item.file.url, store, _known_limits(item.file, schema)) for item in files]
    chosen = dataset.FileSystemDataset(made, schema, parquet, store).get_fragments(wanted.condition)
    urls = {fragment.path for fragment in chosen}
    return [item for item in files if item.file.url in urls]


def _known_limits(file: TableFile, schema: Any) -> Any:
    """What is true for all rows of a file, as an expression of pyarrow with columns of a schema."""
    pa, compute = import_pyarrow(), import_extra("pyarrow.compute")
    known = compute.scalar(True)
    times = (
        None if ns is None else pa.scalar(ns // 1000, pa.timestamp("us", "UTC")) for ns in (file.first_ns, file.last_ns)
    )
    for name, low, high in (*file.limits, ("_run", file.run, file.run), ("_ts", *times)):
        if name in schema.names and low is not None and high is not None:
            field = compute.field(name)
            # Of this form pyarrow knows that there may be nulls.
            known = known & ((field >= low) | field.is_null()) & ((field <= high) | field.is_null())
    return known


def file_rows(table: LakeTable, item: FeedFile, wanted: WantedRows) -> Iterator[Any]:
    """The wanted rows of a file of a table, as Arrow batches; `LakeError` if a column has another type in it."""
    schema = arrow_schema(wanted.columns)
    counted = CountedRows(wanted.left_out) if wanted.left_out and has_classes(item.path) else None
    with delta_errors(item.file.url):
        (fragment,) = table.dataset((item.file,), schema).get_fragments()
        for batch in _read(item.file.url, fragment, schema, wanted):
            chosen = batch if counted is None else counted.of(batch)
            if chosen.num_rows:
                own = chosen.select(schema.names)
                yield _with_class(own, item.path, chosen) if wanted.as_json else own


def _read(url: str, fragment: Any, schema: Any, wanted: WantedRows) -> Iterator[Any]:
    """The rows of a file that meet the condition, with all columns that are needed for the wanted ones."""
    pa, field = import_pyarrow(), import_extra("pyarrow.compute").field
    present = fragment.physical_schema
    condition = None if wanted.hash is None or HASH not in present.names else field(HASH) == wanted.hash
    for own in present:
        at = schema.get_field_index(own.name)
        if at >= 0 and schema.field(at).type != own.type:
            if not fragment.count_rows(filter=condition):
                return
            raise LakeError(
                f"{url}: {own.name} is {own.type} in this version of the class, not {schema.field(at).type}; "
                "follow one version by its hash"
            )
    if wanted.condition is not None:
        condition = wanted.condition if condition is None else condition & wanted.condition
    needed = present.names if wanted.as_json else (HASH, *CountedRows.columns)
    read = pa.schema([*schema, *(own for own in present if own.name in needed and own.name not in schema.names)])
    yield from fragment.to_batches(schema=read, columns=read.names, filter=condition)


def has_classes(table_path: str) -> bool:
    """True for tables of objects and events."""
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
