"""What assigning to a property or plain statistic does: a function for each, made for its type and bounds.

Storing the value, then the mark, is all of it: each is one step for other threads. Whoever publishes clears the mark
before reading, so a change in between is published again, and none is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmf.agent.checks import quick_range
from qmf.agent.layout import Field

Setter = Callable[[Any, Any], None]


def make_setter(field: Field) -> Setter:
    """The function that checks and stores the value of a field.

    Args:
        field: one with a plain value.

    Returns:
        takes the instance and the value; raises ConstraintError.
    """
    simple = quick_range(field.item)
    return _setter(field) if simple is None else _number_setter(field, *simple)


def _setter(field: Field) -> Setter:
    cell, mark, check = field.cell, field.mark, field.check

    def put(instance: Any, value: object) -> None:
        stored = check(value)
        cells = instance._qmf_cells
        before = cells[cell]
        # 1 == True == 1.0, so the types are compared too. A map or list counts as new each time.
        if type(before) is not type(stored) or before != stored or isinstance(stored, (dict, list)):
            cells[cell] = stored
            cells[mark] = True

    return put


def _number_setter(field: Field, kind: type[Any], least: int | float, most: int | float) -> Setter:
    """As `_setter`, with the common case checked in place: hot paths assign numbers."""
    cell, mark, general = field.cell, field.mark, _setter(field)

    def put(instance: Any, value: Any) -> None:
        if type(value) is kind and least <= value <= most:
            cells = instance._qmf_cells
            if value != cells[cell]:
                cells[cell] = value
                cells[mark] = True
        else:
            general(instance, value)

    return put
