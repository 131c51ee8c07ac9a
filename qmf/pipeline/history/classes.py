"""The classes of a lake: their schemas, and cells of their rows as the values that were on the wire.

Schemas are those of the XML that the recorder stored, or follow from the columns where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import attrs

from qmf.errors import QmfError
from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.errors import MissingExtraError
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.protocol import ObjectId
from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassKey,
    ClassSchema,
    EventSchema,
    Kind,
    Property,
    Severity,
    Statistic,
    parse_schema,
)

AnySchema = ClassSchema | EventSchema


def key_of(version: ClassVersion) -> ClassKey:
    try:
        hash = UUID(version.hash) if version.hash else None
    except ValueError:
        hash = None
    return ClassKey(version.package, version.name, Kind.EVENT if version.event else Kind.DATA, hash)


def schema_of(version: ClassVersion, xml: str) -> AnySchema:
    """The schema of a version; `MissingExtraError` if lxml is not installed."""
    if xml:
        try:
            read = parse_schema(xml.encode(), f"{version.package}:{version.name}", part=True)
        except ModuleNotFoundError as error:
            raise MissingExtraError("lxml", "history") from error
        except QmfError:
            return _from_columns(version)  # a foreign agent's schema that breaks the rules of XML schemas
        found: tuple[AnySchema, ...] = (*read.classes, *read.events)
        if found:
            return attrs.evolve(found[0], hash=key_of(version).hash)
    return _from_columns(version)


def _from_columns(version: ClassVersion) -> AnySchema:
    """What the columns say: names, types and units, without descriptions."""
    members = list(_members(version))
    hash = key_of(version).hash
    if version.event:
        arguments = tuple(Argument(name=name, type=TYPES[type], unit=unit) for _, name, type, unit in members)
        return EventSchema(
            package=version.package, name=version.name, severity=Severity.INFORM, hash=hash, arguments=arguments
        )
    return ClassSchema(
        package=version.package,
        name=version.name,
        hash=hash,
        properties=tuple(
            Property(name=name, type=TYPES[type], unit=unit, access=Access.RO)
            for kind, name, type, unit in members
            if kind is MemberKind.PROPERTY
        ),
        statistics=tuple(
            Statistic(name=name, type=TYPES[type], unit=unit)
            for kind, name, type, unit in members
            if kind is MemberKind.STATISTIC
        ),
    )


def _members(version: ClassVersion) -> Iterator[tuple[MemberKind, str, str, str | None]]:
    seen: set[str] = set()
    for column in version.columns:
        if column.member not in seen:
            seen.add(column.member)
            yield column.kind, column.member, column.type, column.unit


_Convert = Callable[[Any], object]


class CellReader:
    def __init__(self, columns: Sequence[LakeColumn]) -> None:
        """Prepare the reading of columns of a class version; the agent of a reference is read beside it."""
        # Times in microseconds have their nanoseconds in another column.
        chosen = [column for column in columns if column.column_type is not ColumnType.TIME]
        self.columns = tuple(chosen)
        self._agents = {column.wire: at for at, column in enumerate(chosen) if column.part is MemberPart.AGENT}
        self._cells = [
            (at, column.wire, _converter(column))
            for at, column in enumerate(chosen)
            if column.part is not MemberPart.AGENT
        ]

    @classmethod
    def of(cls, version: ClassVersion) -> CellReader:
        return cls(version.columns)

    @property
    def sql(self) -> str:
        """The columns as a part of a query, beginning with a comma; they don't contain the rounded times."""
        return "".join(f", {quote_name(column.name)}" for column in self.columns)

    def values(self, cells: Sequence[Any], agent: str) -> dict[str, object]:
        """The values of a row by wire name, without nulls; `agent` owns the references that name none."""
        found: dict[str, object] = {}
        for at, wire, convert in self._cells:
            cell = cells[at]
            if cell is None:
                continue
            owner = self._agents.get(wire)
            found[wire] = convert(cell) if owner is None else ObjectId(cell, cells[owner] or agent)
        return found


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
