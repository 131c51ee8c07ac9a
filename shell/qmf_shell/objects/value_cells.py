"""The cells of objects, of arguments and of events in a session, whose references have short ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.schema import Argument
from qmf.views.cells import Cell, Instant, NamedValues
from qmf.views.events import EventView, LostEvents
from qmf.views.objects import ObjectView
from qmf.views.value_cells import free_cell, property_cell, statistic_cell, value_cell
from qmf_shell.session.context import Context

#: Names of properties and statistics in the column "Type", as in qpid-tool.
CONFIG, INST = "config", "inst"
#: In place of these: what the schema does not have.
OTHER = "other"
#: Arguments of the events of brokers that tell who caused it: what happened matters more.
_ORIGIN = frozenset({"rhost", "user"})


def element_cells(context: Context, target: ObjectView, *, complete: bool = False) -> dict[tuple[str, str], Cell]:
    """All cells of an object by (`CONFIG` or `INST`, name), in schema order.

    The values ``x``, ``xHigh`` and ``xLow`` of a hilo statistic become one cell; the same goes for mma statistics.
    Values that the schema does not have come last, as `OTHER`. `complete` is as in `statistic_cell`.
    """
    cells: dict[tuple[str, str], Cell] = {}
    used: set[str] = set()
    reference = context.ids.reference_cell
    for item in target.schema.properties:
        cells[CONFIG, item.name] = property_cell(item, target.values, reference)
        used.add(item.name)
    for statistic in target.schema.statistics:
        cell = statistic_cell(statistic, target.values, complete=complete, reference=reference)
        cells[INST, statistic.name] = cell
        used.update(entry.name for entry in statistic.entries)
    for name, value in target.values.items():
        if name not in used:
            cells[OTHER, name] = free_cell(value, reference)
    return cells


ElementRow = tuple[str, str, list[Cell]]
"""What an element is, its name, and its cell of each object."""


def element_rows(context: Context, targets: Sequence[ObjectView]) -> list[ElementRow]:
    """The elements of objects side by side, as `element_cells` has them; then their times and agents."""
    cells = [element_cells(context, item) for item in targets]
    elements = dict.fromkeys(element for one in cells for element in one)
    return [
        *((kind, name, [one.get((kind, name)) for one in cells]) for kind, name in elements),
        ("time", "created", [Instant(item.created) for item in targets]),
        ("time", "updated", [Instant(item.updated) for item in targets]),
        ("", "agent", [item.identity.key.agent_name for item in targets]),
    ]


def argument_cells(context: Context, arguments: Sequence[Argument], values: Mapping[str, object]) -> dict[str, Cell]:
    """The cells of arguments by name, in schema order; values without an argument in the schema come last."""
    cells: dict[str, Cell] = {}
    reference = context.ids.reference_cell
    for item in arguments:
        if item.name in values:
            cell = value_cell(item.type, values[item.name], item.unit, measured=True, reference=reference)
            cells[item.name] = cell
    for name, value in values.items():
        if name not in cells:
            cells[name] = free_cell(value, reference)
    return cells


def event_fields(context: Context, event: EventView) -> NamedValues:
    """The cell of the arguments of an event, on one line."""
    cells = argument_cells(context, event.schema.arguments if event.schema else (), event.values)
    return NamedValues(cells, _ORIGIN if event.name.startswith("org.apache.qpid.") else frozenset())


def event_summary(context: Context, event: EventView) -> NamedValues | str:
    """The cell of what an event says, for people: its arguments, or a sentence."""
    return str(event) if isinstance(event, LostEvents) else event_fields(context, event)
