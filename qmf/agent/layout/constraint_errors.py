"""What is wrong with a value for a property or statistic: the errors that accessors and descriptors share."""

from __future__ import annotations

from qmf.agent.layout.class_layout import FieldLayout
from qmf.errors import ConstraintError


def to_whole_number(value: object, field: FieldLayout) -> int:
    """A whole number of another class than `int`, as one.

    Raises:
        ConstraintError: not a whole number; `bool` is none.
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
