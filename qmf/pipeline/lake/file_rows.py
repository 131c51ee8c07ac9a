"""The rows of one file of a lake as Arrow batches, with the columns that a reader wants, and by conditions.

Files, row groups and rows that cannot meet the conditions need not be read. Conditions are those of SQL: rows for which
one is not known to be true are left out. Numbers that are no numbers are larger than all others, as in Spark.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError, import_extra
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.columns import ANY_CLASS_COLUMNS, CLASS_KINDS, DATE, HASH, Columns
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import class_of_path
from qmf.pipeline.lake.runs import CountedRows, LeftOut
from qmf.pipeline.lake.table_files import TableFile

#: Tests with one value, by which parts of files are chosen by the limits of their values as well.
EQUAL, LESS, AT_MOST, GREATER, AT_LEAST = "=", "<", "<=", ">", ">="

#: One of several values; no value at all; texts that begin with, end with, or contain the value.
IN, IS_NULL, STARTS, ENDS, CONTAINS = "in", "is null", "starts", "ends", "contains"

_COMPARED = (EQUAL, LESS, AT_MOST, GREATER, AT_LEAST, IN)

#: Columns with limits in the logs of tables, and how they are there: first and last value, and units of these.
_LIMITS: Mapping[str, tuple[str, str]] = {
    "_run": ("run", "run"),
    "_ts_ns": ("first_ns", "last_ns"),
    "_received_ns": ("first_received_ns", "last_received_ns"),
    "_agent": ("first_agent", "last_agent"),
    "_object": ("first_object", "last_object"),
}


@attrs.frozen
class RowCondition:
    """A condition for one column.

    Attributes:
        column: its name.
        test: one of the above.
        value: to compare with; several for `IN`; None for `IS_NULL`.
        negated: rows for which the test is known to be false meet the condition.
    """

    column: str
    test: str
    value: Any = None
    negated: bool = False

    @property
    def holds_for_null(self) -> bool:
        """True if a row without a value meets it."""
        return self.test == IS_NULL and not self.negated

    def fits(self, type: Any) -> bool:
        """True if its value can be compared with those of a column of this Arrow type."""
        pa = import_pyarrow()
        values = self.value if self.test == IN else () if self.test == IS_NULL else (self.value,)
        if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in values):
            return False
        if self.test in (STARTS, ENDS, CONTAINS):
            return bool(pa.types.is_string(type)) and isinstance(self.value, str)
        try:
            return all(pa.scalar(value, type).as_py() == value for value in values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            return False

    def expression(self, type: Any) -> Any:
        """The condition as an expression of pyarrow; only where it `fits` the type of the column."""
        pa, compute = import_pyarrow(), import_extra("pyarrow.compute")
        field = compute.field(self.column)
        if self.test == IS_NULL:
            found = field.is_null()
            return ~found if self.negated else found
        if self.test in _TEXTS:
            found = _TEXTS[self.test](compute, field, self.value)
        elif self.test == IN:
            found = field.isin(pa.array(list(self.value), type))
            # Null is neither in nor out.
            found = compute.if_else(field.is_null(), pa.scalar(None, pa.bool_()), found)
        else:
            found = _COMPARISONS[self.test](field, pa.scalar(self.value, type))
            if pa.types.is_floating(type) and self.test in (GREATER, AT_LEAST):
                found = found | field.is_nan()
        return ~found if self.negated else found

    def may_be_between(self, low: Any, high: Any) -> bool:
        """True if values from one to another, both included, may meet the condition; values must be comparable."""
        if self.negated or self.test not in _COMPARED or low is None or high is None:
            return True
        if self.test == IN:
            return any(low <= value <= high for value in self.value)
        if self.test == EQUAL:
            return bool(low <= self.value <= high)
        if self.test in (LESS, AT_MOST):
            return bool(low < self.value or (self.test == AT_MOST and low == self.value))
        return bool(high > self.value or (self.test == AT_LEAST and high == self.value))


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    EQUAL: lambda field, value: field == value,
    LESS: lambda field, value: field < value,
    AT_MOST: lambda field, value: field <= value,
    GREATER: lambda field, value: field > value,
    AT_LEAST: lambda field, value: field >= value,
}

_TEXTS: Mapping[str, Callable[[Any, Any, str], Any]] = {
    STARTS: lambda compute, field, value: compute.starts_with(field, value),
    ENDS: lambda compute, field, value: compute.ends_with(field, value),
    CONTAINS: lambda compute, field, value: compute.match_substring(field, value),
}


def may_have(file: TableFile, conditions: Sequence[RowCondition]) -> bool:
    """True unless the limits of a file's values show that none of its rows meets all conditions."""
    for condition in conditions:
        if condition.column == "_ts" and file.first_ns is not None and file.last_ns is not None:
            if not condition.may_be_between(_time(file.first_ns), _time(file.last_ns)):
                return False
        elif condition.column in _LIMITS:
            low, high = (getattr(file, name) for name in _LIMITS[condition.column])
            if not condition.may_be_between(low, high):
                return False
    return True


def row_groups(parquet: Any, conditions: Sequence[RowCondition]) -> list[int] | None:
    """The row groups of a `ParquetFile` that may have rows that meet all conditions, by their limits; None for all."""
    own = [item for item in conditions if item.test in _COMPARED and not item.negated]
    if not own:
        return None
    metadata = parquet.metadata
    if not metadata.num_row_groups:
        return None
    first = metadata.row_group(0)
    places = {first.column(at).path_in_schema: at for at in range(metadata.num_columns)}
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if all(_may_have(group, places.get(item.column), item) for item in own):
            found.append(number)
    return found


def conjunction(conditions: Sequence[RowCondition], types: Mapping[str, Any]) -> Any:
    """All conditions as one expression of pyarrow; None for none."""
    parts = [item.expression(types[item.column]) for item in conditions]
    return reduce(lambda one, two: one & two, parts) if parts else None


def _may_have(group: Any, at: int | None, condition: RowCondition) -> bool:
    if at is None:
        return True
    column = group.column(at)
    limits = column.statistics
    # Numbers that are no numbers are not among the limits.
    if limits is None or not limits.has_min_max or column.physical_type in ("FLOAT", "DOUBLE"):
        return True
    low, high = limits.min, limits.max
    try:
        return condition.may_be_between(low, high)
    except TypeError:
        return True


def _time(ns: int) -> datetime.datetime:
    """A time as Spark has it, in microseconds."""
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=ns // 1000)


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
