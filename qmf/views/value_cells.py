"""The cells of values, by their schema: what they mean, for whoever shows them.

A reference is an `ObjectId` or an `ObjectKey`; callers say what its cell is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmf.protocol import ObjectId
from qmf.schema import Property, QmfType, Statistic, Style
from qmf.views.cells import Cell, Collection, Duration, HiLoCell, Instant, MinMaxMeanCell, Quantity
from qmf.views.objects import ObjectKey
from qmf.views.units import is_number, shortest_float32

ReferenceCells = Callable[[Any], Cell]
"""Makes the cell of a reference."""


def name_cell(reference: ObjectId | ObjectKey) -> Cell:
    """The name of an object within its agent; None for an empty one, which refers to nothing."""
    return reference.object_name or None


def value_cell(
    kind: QmfType | None,
    value: object,
    unit: str | None = None,
    *,
    measured: bool = False,
    reference: ReferenceCells = name_cell,
) -> Cell:
    """The cell of a value.

    Args:
        kind: its type in the schema; None if unknown.
        value: as the console reads it.
        unit: as in the schema, or None.
        measured: numbers are measurements, which have separators; others may be names, such as ports.
        reference: makes the cell of a reference.
    """
    if not is_number(value) or kind is None:
        return free_cell(value, reference)
    if kind.base == "absTime":
        return Instant(int(value))
    if kind.base == "deltaTime":
        return Duration(int(value))
    if kind.name == "float":
        value = shortest_float32(value)
    return Quantity(value, unit) if measured or unit else value


def free_cell(value: object, reference: ReferenceCells = name_cell) -> Cell:
    """The cell of a value without a schema; `reference` as of `value_cell`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, ObjectId | ObjectKey):
        return reference(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex(" ")
    if isinstance(value, Mapping | Sequence):
        return Collection(value)
    return str(value)


def property_cell(item: Property, values: Mapping[str, object], reference: ReferenceCells = name_cell) -> Cell:
    """The cell of a property; `reference` as of `value_cell`."""
    return value_cell(item.type, values.get(item.name), item.unit, reference=reference)


def statistic_cell(
    item: Statistic,
    values: Mapping[str, object],
    *,
    complete: bool = False,
    reference: ReferenceCells = name_cell,
) -> Cell:
    """The cell of a statistic, with all values of a hilo or mma statistic.

    Args:
        complete: a hilo or mma statistic without any value has all its parts, too, instead of being None.
        reference: makes the cell of a reference.
    """
    parts = [values.get(entry.name) for entry in item.entries]
    if all(part is None for part in parts) and not (complete and len(parts) > 1):
        return None
    numbers = [part if isinstance(part, int | float) else None for part in parts]
    if item.type.style is Style.HILO:
        value, high, low = numbers
        return HiLoCell(value, high, low, item.unit)
    if item.type.style is Style.MMA:
        count, low, high, mean = numbers
        return MinMaxMeanCell(
            None if count is None else int(count), low, high, mean, item.unit, duration=item.type.base == "deltaTime"
        )
    return value_cell(item.type, parts[0], item.unit, measured=True, reference=reference)
