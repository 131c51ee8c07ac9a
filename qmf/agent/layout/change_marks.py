"""The cells of an object, and its change marks.

An object has a list of *cells*: a change mark for each of the two groups of values, what notes its changes, the object
itself, and the plain values. A setter stores the value, then the mark: each is one step for other threads. A mark that
is set already is left alone, so an object is noted once for many changes. Knows no object and no field.
"""

from __future__ import annotations

from typing import Any

#: The cells of an object: change marks of the two groups, what notes its changes, the object, then plain values.
Cells = list[Any]
PROPERTIES_CELL = 0
STATISTICS_CELL = 1
NOTE_CELL = 2
OBJECT_CELL = 3
FIRST_VALUE = 4


def set_mark(cells: Cells, mark: int) -> None:
    """Set a change mark that is not set, and have the object noted; any thread.

    Args:
        cells: of the object.
        mark: `PROPERTIES_CELL` or `STATISTICS_CELL`.
    """
    cells[mark] = True
    # Another thread may just be removing the object from its agent, so that either may be None.
    obj, note = cells[OBJECT_CELL], cells[NOTE_CELL]
    if note is not None:
        note(obj)
