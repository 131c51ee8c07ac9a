"""What assigning to a property or plain statistic does: a function for each, made for its type and bounds.

Storing the value, then the mark, is all of it: each is one step for other threads. Whoever publishes clears the mark
before reading, so a change in between is published again, and none is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmf._compile import compile_function
from qmf.agent.layout.checks import simple_range
from qmf.agent.layout.class_layout import FieldLayout

Setter = Callable[[Any, Any], None]


def make_setter(field: FieldLayout) -> Setter:
    """The function that checks and stores the value of a field.

    Args:
        field: one with a plain value.

    Returns:
        takes the instance and the value; raises ConstraintError.
    """
    simple = simple_range(field.item)
    return general_setter(field) if simple is None else _number_setter(field, *simple)


def general_setter(field: FieldLayout) -> Setter:
    """The function that checks and stores the value of a field of any type."""
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


_NUMBER = """\
def put(instance, value):
    if type(value) is kind and {fits}:
        cells = instance._qmf_cells
        if value != cells[{cell}]:
            cells[{cell}] = value
            cells[{mark}] = True
    else:
        general(instance, value)
"""


def _number_setter(field: FieldLayout, kind: type[Any], least: int | float, most: int | float) -> Setter:
    """As `general_setter`, with the common case checked in place: hot paths assign numbers."""
    names: dict[str, object] = {"kind": kind, "general": general_setter(field), "least": least, "most": most}
    fits = "least <= value <= most"
    if kind is int:
        fits = range_condition("value", int(least), int(most))
    source = _NUMBER.format(fits=fits, cell=field.cell, mark=field.mark)
    setter: Setter = compile_function("put", source, names, field.where)
    return setter


def range_condition(name: str, least: int, most: int) -> str:
    """The condition, as source, that a whole number is within bounds.

    That one has left the range of an unsigned type shows in one step, from the bits beyond the type's; negative numbers
    have ones there without end.
    """
    bits = most.bit_length()
    return f"not {name} >> {bits}" if least == 0 and most == (1 << bits) - 1 else f"{least} <= {name} <= {most}"
