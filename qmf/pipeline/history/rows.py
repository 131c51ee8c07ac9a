"""Columns of a class version, and their cells as the values that were on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberPart
from qmf.protocol import ObjectId

_Convert = Callable[[Any], object]


class CellReader:
    """Makes values of the cells of a class version."""

    def __init__(self, columns: Sequence[LakeColumn]) -> None:
        """Prepare the reading of a class version's cells.

        Args:
            columns: those to read; the agent of a reference is read beside it.
        """
        chosen = [column for column in columns if not _is_rounded(column)]
        self.columns = tuple(chosen)
        self._agents = {column.wire: at for at, column in enumerate(chosen) if column.part is MemberPart.AGENT}
        self._cells = [
            (at, column.wire, _converter(column))
            for at, column in enumerate(chosen)
            if column.part is not MemberPart.AGENT
        ]

    @classmethod
    def of(cls, version: ClassVersion) -> CellReader:
        """All columns of a class version."""
        return cls(version.columns)

    @property
    def sql(self) -> str:
        """The columns as a part of a query, beginning with a comma; they don't contain the rounded times."""
        return "".join(f", {quote_name(column.name)}" for column in self.columns)

    def values(self, cells: Sequence[Any], agent: str) -> dict[str, object]:
        """The values of a row by wire name, without those that are null.

        Args:
            cells: of the columns in `sql`.
            agent: owner of the references that name none.
        """
        found: dict[str, object] = {}
        for at, wire, convert in self._cells:
            cell = cells[at]
            if cell is None:
                continue
            owner = self._agents.get(wire)
            found[wire] = convert(cell) if owner is None else ObjectId(cell, cells[owner] or agent)
        return found


def _is_rounded(column: LakeColumn) -> bool:
    """True for times in microseconds, whose nanoseconds are in another column."""
    return column.column_type is ColumnType.TIME


def _converter(column: LakeColumn) -> _Convert:
    if column.type in ("map", "list"):
        return _from_json
    if column.type == "uuid":
        return _uuid
    if column.column_type is ColumnType.DECIMAL:
        return int
    return _same


def _same(cell: Any) -> object:
    return cell


def _from_json(cell: str) -> object:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _uuid(cell: str) -> object:
    try:
        return UUID(cell)
    except ValueError:
        return cell


def any_values(text: str) -> Mapping[str, object]:
    """The values of a row whose class is unknown, from JSON."""
    found = _from_json(text)
    return found if isinstance(found, dict) else {}
