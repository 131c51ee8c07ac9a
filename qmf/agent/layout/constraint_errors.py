"""The ConstraintErrors that accessors and descriptors share."""

from __future__ import annotations

from qmf.agent.layout.class_layout import FieldLayout
from qmf.errors import ConstraintError


def to_whole_number(value: object, field: FieldLayout) -> int:
    """An instance of a subclass of `int` as an `int`.

    Raises:
        ConstraintError: it is not a whole number, or a `bool`.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise ConstraintError(field.where, field.type.name, value, "must be a whole number")


def range_error(field: FieldLayout, value: int) -> ConstraintError:
    """The error for a number beyond the bounds of a field."""
    return ConstraintError(field.where, field.type.name, value, f"must be {field.low} to {field.high}")


def read_only_error(field: FieldLayout, value: object) -> ConstraintError:
    """The error for setting a derived statistic."""
    text = field.formula.text if field.formula else ""
    return ConstraintError(field.where, field.type.name, value, f"is computed as {text!r} and cannot be set")
