"""The state of managed objects, for tests: changes without a publication, and values that no check let in."""

from __future__ import annotations

from qmf.agent import ManagedObject
from qmf.agent.layout import object_state


def changed(obj: ManagedObject) -> int:
    """The groups that the next publication would send; they stay due."""
    object_state.note_changes(obj, 0)
    due = object_state.take_due(obj)
    object_state.restore_due(obj, due)
    return due


def settle(obj: ManagedObject) -> None:
    """Forget all changes."""
    object_state.note_changes(obj, 0)
    object_state.take_due(obj)


def wire(obj: ManagedObject, *names: str) -> list[object]:
    """The values of fields as they would be sent."""
    values = obj._qmf_values()
    return [values[name] for name in names]


def store_unchecked(obj: ManagedObject, name: str, value: object) -> None:
    """Store a plain value that the check of its field would refuse."""
    object_state.cells(obj)[object_state.layout(obj).field(name).cell] = value
