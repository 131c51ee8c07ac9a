"""The state of a managed object: its values, their changes, its owner, and encodings that are kept.

Only this module reads and writes the attributes in `StatefulObject`; the rest of the agent calls its functions.
`references` owns the object id. Functions that are compiled for a class get the expressions for the state from here.

Values lie in a list of *cells* (`change_marks`). Setting a value stores the value, then the mark: each is one step for
other threads. The agent clears a mark before it reads the values, so a change in between is published again, and none
is missed. What concerns changes and encodings belongs to the event loop's thread; values may be set and read in any
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from qmf._compile import compile_function
from qmf.agent.layout.change_marks import (
    NOTE_CELL,
    OBJECT_CELL,
    PROPERTIES_CELL,
    STATISTICS_CELL,
    Cells,
    set_mark,
)
from qmf.agent.layout.checks import range_condition, simple_range
from qmf.agent.layout.class_layout import PROPERTIES, STATISTICS, ClassLayout, FieldLayout
from qmf.agent.layout.references import Referable, is_pending
from qmf.protocol.objects import Entries, Lead
from qmf.protocol.values import ObjectId

#: The state of an object ``obj``, as expressions for functions that are compiled for a class.
CELLS_OF_OBJ = "obj._qmf_cells"
TIMES_OF_OBJ = "obj._qmf_update_ts, obj._qmf_create_ts"

#: Slots for encoded properties: as entries of a message's map, and as the prepared part of a row.
ENTRIES, LEAD = "_qmf_entries", "_qmf_lead"

Getter = Callable[[Any], Any]
Setter = Callable[[Any, Any], None]


class StatefulObject(Referable):
    """Base of managed objects: the attributes of their state.

    Attributes:
        _qmf_layout: of the class.
        _qmf_cells: change marks and plain values; accessors share the list.
        _qmf_owner: the store that the object is in, or None.
        _qmf_create_ts, _qmf_update_ts: when the object was added, or what it stands for began, and when it was last
            published, ns since 1970.
        _qmf_pending: a reference may be set to an object without an id.
        _qmf_due: groups of values that the next publication sends.
        _qmf_properties_tick, _qmf_statistics_tick: when a change of the group was last noted.
        _qmf_entries, _qmf_lead: the properties encoded for messages and for rows, or None.
    """

    __slots__ = (
        "_qmf_cells",
        "_qmf_create_ts",
        "_qmf_due",
        "_qmf_entries",
        "_qmf_layout",
        "_qmf_lead",
        "_qmf_owner",
        "_qmf_pending",
        "_qmf_properties_tick",
        "_qmf_statistics_tick",
        "_qmf_update_ts",
    )

    _qmf_layout: ClassLayout
    _qmf_cells: Cells
    _qmf_owner: object | None
    _qmf_create_ts: int
    _qmf_update_ts: int
    _qmf_pending: bool
    _qmf_due: int
    _qmf_properties_tick: int
    _qmf_statistics_tick: int
    _qmf_entries: Entries | None
    _qmf_lead: Lead | None


TObject = TypeVar("TObject", bound=StatefulObject)


def initialize(obj: StatefulObject, layout: ClassLayout) -> Cells:
    """Set up the state of a new object: no values, no agent; the cells, for its accessors."""
    obj._qmf_id = None
    obj._qmf_layout = layout
    cells = obj._qmf_cells = layout.new_cells()
    obj._qmf_owner = None
    obj._qmf_create_ts = obj._qmf_update_ts = 0
    obj._qmf_pending = False
    obj._qmf_due = 0
    obj._qmf_properties_tick = obj._qmf_statistics_tick = 0
    obj._qmf_entries = obj._qmf_lead = None
    return cells


def layout(obj: StatefulObject) -> ClassLayout:
    """The layout of the object's class."""
    return obj._qmf_layout


def cells(obj: StatefulObject) -> Cells:
    """The object's change marks and plain values."""
    return obj._qmf_cells


# -- identity and owner


def object_id(obj: StatefulObject) -> ObjectId | None:
    """The object id, or None until the object is added to an agent. It stays when the object is removed."""
    return obj._qmf_id


def object_name(obj: StatefulObject) -> str:
    """The name in the id of an object that has one."""
    found = obj._qmf_id
    assert found is not None
    return found.object_name


def set_object_id(obj: StatefulObject, object_id: ObjectId) -> None:
    """Give the object an id."""
    obj._qmf_id = object_id


def attach(obj: StatefulObject, owner: object, object_id: ObjectId, created: int, note: Callable[[Any], None]) -> None:
    """Add the object to an agent's store; all of its values count as changed.

    Args:
        obj: in no store.
        owner: the store.
        created: since when there is what the object stands for, ns since 1970.
        note: called with the object when one of its change marks is set, in any thread; and now.
    """
    obj._qmf_id = object_id
    obj._qmf_create_ts = obj._qmf_update_ts = created
    cells = obj._qmf_cells
    # In this order: setters in other threads note nothing until they can, and the last line does it for them.
    cells[OBJECT_CELL] = obj
    cells[NOTE_CELL] = note
    cells[PROPERTIES_CELL] = cells[STATISTICS_CELL] = True
    obj._qmf_owner = owner
    note(obj)


def detach(obj: StatefulObject) -> None:
    """Remove the object from its store."""
    obj._qmf_owner = None
    obj._qmf_cells[NOTE_CELL] = obj._qmf_cells[OBJECT_CELL] = None


def owner(obj: StatefulObject) -> object | None:
    """The store that the object is in, or None."""
    return obj._qmf_owner


def select_owned(store: object, objects: Iterable[TObject]) -> list[TObject]:
    """Those of some objects that are in a store."""
    return [obj for obj in objects if obj._qmf_owner is store]


def times(obj: StatefulObject) -> tuple[int, int]:
    """When the object was last published and when it was added, ns since 1970; 0 for never."""
    return obj._qmf_update_ts, obj._qmf_create_ts


def id_and_times(obj: StatefulObject) -> tuple[ObjectId, int, int]:
    """The id of an object that has one, and `times`: what an encoder needs of each object."""
    found = obj._qmf_id
    assert found is not None
    return found, obj._qmf_update_ts, obj._qmf_create_ts


def set_update_time(obj: StatefulObject, now: int) -> None:
    """The object is published at a time, ns since 1970."""
    obj._qmf_update_ts = now


# -- plain values


def value(obj: StatefulObject, field: FieldLayout) -> Any:
    """The plain value of a field."""
    return obj._qmf_cells[field.cell]


def set_first_values(obj: StatefulObject, values: Mapping[FieldLayout, object]) -> None:
    """Check and store plain values of a new object.

    Raises:
        ConstraintError: one does not fit.
    """
    cells = obj._qmf_cells
    for field, value in values.items():
        stored = cells[field.cell] = field.check(value)
        if isinstance(stored, Referable) and is_pending(stored):
            obj._qmf_pending = True


def value_getter(field: FieldLayout) -> Getter:
    """The function that reads the plain value of a field."""
    cell = field.cell
    return lambda obj: obj._qmf_cells[cell]


def value_setter(field: FieldLayout) -> Setter:
    """The function that checks and stores the plain value of a field; it raises ConstraintError."""
    if field.type.base == "objId":
        return _reference_setter(field)
    simple = simple_range(field.item)
    return general_setter(field) if simple is None else _number_setter(field, *simple)


def general_setter(field: FieldLayout) -> Setter:
    """The setter for values of any type but references."""
    cell, mark, check = field.cell, field.mark, field.check

    def set_value(obj: StatefulObject, value: object) -> None:
        stored = check(value)
        cells = obj._qmf_cells
        before = cells[cell]
        # 1 == True == 1.0, so the types are compared too. A map or list counts as new each time.
        if type(before) is not type(stored) or before != stored or isinstance(stored, (dict, list)):
            cells[cell] = stored
            if not cells[mark]:
                set_mark(cells, mark)

    return set_value


def _reference_setter(field: FieldLayout) -> Setter:
    cell, mark, check = field.cell, field.mark, field.check

    def set_reference(obj: StatefulObject, value: object) -> None:
        stored = check(value)
        cells = obj._qmf_cells
        if stored != cells[cell]:
            cells[cell] = stored
            if isinstance(stored, Referable) and is_pending(stored):
                obj._qmf_pending = True
            if not cells[mark]:
                set_mark(cells, mark)

    return set_reference


_SET_NUMBER = """\
def set_number(obj, value):
    if type(value) is kind and {fits}:
        cells = obj._qmf_cells
        if value != cells[{cell}]:
            cells[{cell}] = value
            if not cells[{mark}]:
                set_mark(cells, {mark})
    else:
        general(obj, value)
"""


def _number_setter(field: FieldLayout, kind: type[Any], least: int | float, most: int | float) -> Setter:
    """As `general_setter`, with the common case checked in place: hot paths assign numbers."""
    names: dict[str, object] = {
        "kind": kind,
        "general": general_setter(field),
        "set_mark": set_mark,
        "least": least,
        "most": most,
    }
    fits = "least <= value <= most"
    if kind is int:
        fits = range_condition("value", int(least), int(most))
    source = _SET_NUMBER.format(fits=fits, cell=field.cell, mark=field.mark)
    return compile_function("set_number", source, names, field.where)


# -- changes


def is_unresolved(obj: StatefulObject) -> bool:
    """Whether a reference is set to an object that has no id yet, as of the last `note_changes`."""
    return obj._qmf_pending


def note_changes(obj: StatefulObject, tick: int) -> None:
    """Turn change marks into groups that are due for publication, and remember the time for subscriptions.

    Args:
        tick: a number that only grows.
    """
    cells = obj._qmf_cells
    if obj._qmf_pending:
        # In this order, since another thread may just be setting a reference.
        obj._qmf_pending = False
        if any(is_pending(cells[field.cell]) for field in obj._qmf_layout.references):
            obj._qmf_pending = True
        else:
            # A reference became valid without being set; its group is not known here.
            cells[PROPERTIES_CELL] = cells[STATISTICS_CELL] = True
    if cells[PROPERTIES_CELL]:
        cells[PROPERTIES_CELL] = False
        obj._qmf_entries = obj._qmf_lead = None
        obj._qmf_due |= PROPERTIES
        obj._qmf_properties_tick = tick
    if cells[STATISTICS_CELL]:
        cells[STATISTICS_CELL] = False
        obj._qmf_due |= STATISTICS
        obj._qmf_statistics_tick = tick


def groups_changed_since(obj: StatefulObject, tick: int) -> int:
    """The groups with changes that were noted after `tick`."""
    return (PROPERTIES if obj._qmf_properties_tick > tick else 0) | (
        STATISTICS if obj._qmf_statistics_tick > tick else 0
    )


def take_due(obj: StatefulObject) -> int:
    """The groups that are due for publication; none is due after that."""
    due = obj._qmf_due
    obj._qmf_due = 0
    return due


def restore_due(obj: StatefulObject, groups: int) -> None:
    """Make groups due for publication again: they could not be sent."""
    obj._qmf_due |= groups


def mark_statistics(obj: StatefulObject) -> None:
    """Set the change mark of the statistics."""
    if not obj._qmf_cells[STATISTICS_CELL]:
        set_mark(obj._qmf_cells, STATISTICS_CELL)


# -- encoded properties


def kept_encoding(obj: StatefulObject, slot: str, tick: Callable[[], int]) -> Any:
    """The properties as they were last encoded, or None if they changed since then.

    Args:
        slot: `ENTRIES` for messages, `LEAD` for rows.
        tick: gives the next tick for `note_changes`.
    """
    cells = obj._qmf_cells
    if cells[PROPERTIES_CELL]:
        note_changes(obj, tick())
    return None if cells[PROPERTIES_CELL] else getattr(obj, slot)


def keep_encoding(obj: StatefulObject, slot: str, encoding: Entries | Lead) -> None:
    """Keep the properties that were just encoded until a change of them is noted; arguments as of `kept_encoding`."""
    # Not while a property changed meanwhile, nor while a reference is held as an object: its id may change unnoticed.
    cells = obj._qmf_cells
    if cells[PROPERTIES_CELL] or obj._qmf_pending:
        return
    if not any(isinstance(cells[field.cell], Referable) for field in obj._qmf_layout.references):
        setattr(obj, slot, encoding)
