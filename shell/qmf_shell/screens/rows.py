"""Rows and columns of a live screen: values; nothing here knows a terminal."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from typing import Any

import attrs

from qmf.views.cells import Cell, CellForm
from qmf.views.fields import SortKey
from qmf.views.units import rate_text
from qmf_shell.results.result import Role, TableColumn


class Mark(enum.Enum):
    """What is special about a row."""

    NONE = ""
    NEW = "new"
    DELETED = "deleted"
    LOST = "lost"
    LEFT = "left"

    @property
    def gone(self) -> bool:
        """True if the row shows the last known values of something that is not there any more."""
        return self in (Mark.DELETED, Mark.LOST, Mark.LEFT)


class ThresholdState(enum.IntEnum):
    """How a value compares with its thresholds."""

    NORMAL = 0
    WARNING = 1
    CRITICAL = 2


@attrs.define(eq=False)
class Row:
    """A row.

    Attributes:
        key: identifies it, also after an update.
        item: what it shows.
        order: its place among rows that are equal in the column that sorts.
        search: text in lower case that a filter is compared with.
        mark: what is special about it.
        since: when it got its mark, in nanoseconds since 1970.
        rank: its value in the column that sorts; None until it is known, and when the row has changed.
        passes: it passes the filter; None if that is not known yet.
    """

    key: Hashable
    item: Any
    order: Any = ""
    search: str = ""
    mark: Mark = Mark.NONE
    since: int = 0
    rank: SortKey | None = None
    passes: bool | None = None


def _normal(row: Row) -> ThresholdState:
    del row
    return ThresholdState.NORMAL


def _is_unchanged(row: Row) -> bool:
    del row
    return False


@attrs.frozen(eq=False)
class ScreenColumn:
    """A column.

    Attributes:
        key: identifies it among the columns of a page.
        title: its heading.
        cell: what it shows of a row.
        value: what sorts rows, by default what it shows; None in place of a missing value.
        role: what it contains.
        right: aligned to the right.
        fixed: it stays in place when the others are scrolled sideways.
        spare: it is shown only if all others have room.
        prose: a text of which the beginning matters: what is too long loses its end.
        main: what the page is about: it has room before prose has.
        rate: it is the growth per second of the counter in the column before it.
        name: of the value that it shows, for thresholds and JSON; empty for others.
        desc: what it means, for the list of columns.
        form: how much its cells say.
        unit: of its numbers, as in the schema.
        level: how the value of a row compares with its thresholds.
        changed: whether the value of a row changed since the previous update.
    """

    key: str
    title: str
    cell: Callable[[Any], Cell]
    value: Callable[[Any], object] = attrs.field(default=attrs.Factory(lambda self: self.cell, takes_self=True))
    role: Role = Role.TEXT
    right: bool = False
    fixed: bool = False
    spare: bool = False
    prose: bool = False
    main: bool = False
    rate: bool = False
    name: str = ""
    desc: str = ""
    form: CellForm = CellForm.FULL
    unit: str | None = None
    level: Callable[[Any], ThresholdState] = _normal
    changed: Callable[[Any], bool] = _is_unchanged


def table_column(item: ScreenColumn) -> TableColumn:
    """A column as that of a table which is printed."""
    role = Role.NUMBER if item.right and item.role is Role.TEXT else item.role
    return TableColumn(item.title, role, wraps=not item.right, key=item.key, form=item.form, unit=item.unit)


def rate_cell(rate: float | None, unit: str | None) -> Cell:
    """The growth of a counter per second, below a heading that says so: ``3.2 k``, ``54.2 kB``; None if unknown."""
    if rate is None:
        return None
    text = rate_text(rate, unit)
    return text.removeprefix("+").removesuffix("/s")
