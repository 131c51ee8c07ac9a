"""Conditions for rows of a lake, of which files, row groups and rows that cannot meet them need not be read.

Conditions are those of SQL: rows for which one is not known to be true are left out. Numbers that are no numbers are
larger than all others, as in Spark.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import attrs

from qmf.pipeline.errors import import_extra
from qmf.pipeline.lake.arrow import import_pyarrow
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
