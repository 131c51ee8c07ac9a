"""What tests ask of an object's marks."""

from __future__ import annotations

from qmf.agent import ManagedObject
from qmf.agent.layout.class_layout import PROPERTIES, PROPERTIES_CELL, STATISTICS, STATISTICS_CELL


def changed(obj: ManagedObject) -> int:
    """The groups that the next publication would send."""
    cells = obj._qmf_cells
    samples = obj._qmf_layout.samples
    if samples is not None and samples(obj):
        cells[STATISTICS_CELL] = True
    marks = (PROPERTIES if cells[PROPERTIES_CELL] else 0) | (STATISTICS if cells[STATISTICS_CELL] else 0)
    return marks | obj._qmf_due


def settle(obj: ManagedObject) -> None:
    """Forget all changes."""
    obj._qmf_cells[PROPERTIES_CELL] = obj._qmf_cells[STATISTICS_CELL] = False
    obj._qmf_due = 0
