"""Converts values of objects, methods and events to cells, by their schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.schema import Argument, Property, QmfType, Statistic, Style
from qmf.views.events import EventView
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.units import is_number, shortest_float32
from qmf_shell.results.cells import (
    Cell,
    Collection,
    Duration,
    HiLoCell,
    Instant,
    MinMaxMeanCell,
    NamedValues,
    Quantity,
    ReferenceCell,
)
from qmf_shell.session.context import Context

#: Names of properties and statistics in the column "Type", as in qpid-tool.
CONFIG, INST = "config", "inst"
#: Arguments of the events of brokers that tell who caused it: what happened matters more.
_ORIGIN = frozenset({"rhost", "user"})


def value_cell(
    context: Context, kind: QmfType, value: object, unit: str | None = None, *, measured: bool = False
) -> Cell:
    """The cell of a value of a schema type. `measured` numbers get separators; others may be names, such as ports."""
    if value is None:
        return None
    if isinstance(value, ObjectKey):
        return reference_cell(context, value)
    if is_number(value):
        if kind.base == "absTime":
            return Instant(int(value))
        if kind.base == "deltaTime":
            return Duration(int(value))
        if kind.name == "float":
            value = shortest_float32(value)
        return Quantity(value, unit) if measured or unit else value
    return free_cell(context, value)


def free_cell(context: Context, value: object) -> Cell:
    """The cell of a value without a schema."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, ObjectKey):
        return reference_cell(context, value)
    if isinstance(value, Mapping | list | tuple):
        return Collection(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex(" ") if value else ""
    return str(value)


def reference_cell(context: Context, key: ObjectKey) -> Cell:
    """The cell of a reference: with the short id if the object has one. An empty name refers to nothing."""
    if not key.object_name:
        return None
    number = context.ids.number(key)
    entry = None if number is None else context.ids.entry(number)
    if entry is None:
        return key.object_name
    return ReferenceCell(entry.number, f"{entry.identity.class_key.name} {entry.identity.index}", key.object_name)


def property_cell(context: Context, item: Property, values: Mapping[str, object]) -> Cell:
    """The cell of a property."""
    return value_cell(context, item.type, values.get(item.name), item.unit)


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) else None


def statistic_cell(context: Context, item: Statistic, values: Mapping[str, object], *, complete: bool = False) -> Cell:
    """The cell of a statistic, with all values of a hilo or mma statistic.

    Args:
        context: the session.
        item: the statistic.
        values: those of the object.
        complete: a hilo or mma statistic without any value has all its parts, too, instead of being None.
    """
    parts = [values.get(entry.name) for entry in item.entries]
    if all(part is None for part in parts) and not (complete and len(parts) > 1):
        return None
    numbers = [_number(part) for part in parts]
    if item.type.style is Style.HILO:
        value, high, low = numbers
        return HiLoCell(value, high, low, item.unit)
    if item.type.style is Style.MMA:
        count, low, high, mean = numbers
        return MinMaxMeanCell(
            None if count is None else int(count), low, high, mean, item.unit, duration=item.type.base == "deltaTime"
        )
    return value_cell(context, item.type, parts[0], item.unit, measured=True)


def element_cells(context: Context, target: ObjectView, *, complete: bool = False) -> dict[tuple[str, str], Cell]:
    """All cells of an object by (`CONFIG` or `INST`, name), in schema order.

    The values ``x``, ``xHigh`` and ``xLow`` of a hilo statistic become one cell; the same goes for mma statistics.
    Values that the schema does not have come last, as ``other``. `complete` is as in `statistic_cell`.
    """
    cells: dict[tuple[str, str], Cell] = {}
    used: set[str] = set()
    for item in target.schema.properties:
        cells[CONFIG, item.name] = property_cell(context, item, target.values)
        used.add(item.name)
    for statistic in target.schema.statistics:
        cells[INST, statistic.name] = statistic_cell(context, statistic, target.values, complete=complete)
        used.update(entry.name for entry in statistic.entries)
    for name, value in target.values.items():
        if name not in used:
            cells["other", name] = free_cell(context, value)
    return cells


def argument_cells(context: Context, arguments: Sequence[Argument], values: Mapping[str, object]) -> dict[str, Cell]:
    """The cells of arguments by name, in schema order; values without an argument in the schema come last."""
    cells: dict[str, Cell] = {}
    for item in arguments:
        if item.name in values:
            cells[item.name] = value_cell(context, item.type, values[item.name], item.unit, measured=True)
    for name, value in values.items():
        if name not in cells:
            cells[name] = free_cell(context, value)
    return cells


def event_fields(context: Context, event: EventView) -> NamedValues:
    """The cell of the arguments of an event, on one line."""
    cells = argument_cells(context, event.schema.arguments if event.schema else (), event.values)
    return NamedValues(cells, _ORIGIN if event.name.startswith("org.apache.qpid.") else frozenset())
