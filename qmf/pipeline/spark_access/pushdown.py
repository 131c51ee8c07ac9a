"""Filters of Spark as conditions for rows of a lake."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import datasource

from qmf.pipeline.lake import row_conditions
from qmf.pipeline.lake.row_conditions import RowCondition

#: The setting without which Spark refuses a source that takes filters.
SETTING = "spark.sql.python.filterPushdown.enabled"

_TESTS: Mapping[type, str] = {
    datasource.EqualTo: row_conditions.EQUAL,
    datasource.LessThan: row_conditions.LESS,
    datasource.LessThanOrEqual: row_conditions.AT_MOST,
    datasource.GreaterThan: row_conditions.GREATER,
    datasource.GreaterThanOrEqual: row_conditions.AT_LEAST,
    datasource.In: row_conditions.IN,
    datasource.StringStartsWith: row_conditions.STARTS,
    datasource.StringEndsWith: row_conditions.ENDS,
    datasource.StringContains: row_conditions.CONTAINS,
}


def conditions_of(filters: Iterable[Any], types: Mapping[str, Any]) -> tuple[RowCondition, ...]:
    """The filters that can be conditions. Spark applies all of them once more.

    Args:
        filters: of `pyspark.sql.datasource`.
        types: of the columns, Arrow's.
    """
    found = []
    for item in filters:
        condition = _condition(item)
        if condition is not None and condition.column in types and condition.fits(types[condition.column]):
            found.append(condition)
    return tuple(found)


def _condition(item: Any) -> RowCondition | None:
    if isinstance(item, datasource.Not):
        inner = _condition(item.child)
        return None if inner is None else RowCondition(inner.column, inner.test, inner.value, negated=not inner.negated)
    column = ".".join(item.attribute) if hasattr(item, "attribute") else ""
    if isinstance(item, (datasource.IsNull, datasource.IsNotNull)):
        negated = isinstance(item, datasource.IsNotNull)
        return RowCondition(column, row_conditions.IS_NULL, negated=negated)
    test = _TESTS.get(type(item))
    if test is None:
        return None
    value = item.value
    if test == row_conditions.IN:
        return RowCondition(column, test, tuple(map(_in_utc, value)))
    return RowCondition(column, test, _in_utc(value))


def _in_utc(value: Any) -> Any:
    """A value as Arrow has it."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return value
