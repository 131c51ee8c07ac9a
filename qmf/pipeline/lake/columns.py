"""The columns of a class, from which files, Arrow schemas and Spark schemas are made.

The lake stores them as JSON, so that it can be read without a bus and without XML. Rules:

- integers keep their width; unsigned ones of 64 bits, and durations, are decimal(20, 0): exact, where a bigint is not;
- a time has two columns: `x`, a timestamp in UTC with microseconds, and `x_ns`, all of its nanoseconds as a bigint;
- a reference has two columns: `x`, the object's name, and `x_agent`, the agent that owns it;
- uuids are text, maps and lists are JSON;
- a hilo and an mma have one column for each of their wire values, e.g. `latencyCount`;
- names that files cannot have, or that differ from others by case only, are changed, see `column_names`.

Columns of the recorder itself begin with `_`. This module knows no Arrow and no
Spark.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from qmf.pipeline.lake.column_names import safe_names, take_unused_name
from qmf.schema import TYPES, ClassSchema, EventSchema, QmfType, Statistic, Style


class ColumnType(enum.Enum):
    """How a column is stored."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    DECIMAL = "decimal(20,0)"
    FLOAT = "float"
    DOUBLE = "double"
    BOOL = "bool"
    TEXT = "text"
    TIME = "time"


class MemberKind(enum.Enum):
    """What a class or event declares."""

    PROPERTY = "property"
    STATISTIC = "statistic"
    ARGUMENT = "argument"


class MemberPart(enum.Enum):
    """Which value of its member a column holds."""

    VALUE = "value"
    HIGH = "high"
    LOW = "low"
    COUNT = "count"
    MIN = "min"
    MAX = "max"
    AVERAGE = "average"
    NANOSECONDS = "nanoseconds"
    AGENT = "agent"


@attrs.frozen(kw_only=True)
class LakeColumn:
    """One column of a class.

    Attributes:
        name: in files.
        wire: name of the value on the wire.
        member: the property, statistic or argument that the column belongs to.
        type: name of that member's type, e.g. ``mma32``.
        column_type: how the column is stored.
        kind: what the member is.
        part: which of the member's values it holds.
        unit: of the value, or None.
    """

    name: str
    wire: str
    member: str
    type: str
    column_type: ColumnType
    kind: MemberKind
    part: MemberPart
    unit: str | None = None

    @property
    def style(self) -> Style:
        """How the member is set: as a counter, a gauge, a hilo or an mma."""
        return TYPES[self.type].style


@attrs.frozen(kw_only=True, cache_hash=True)
class ClassVersion:
    """One version of a class or event, with its columns.

    Attributes:
        package, name: of the class; object classes in lower case, as on the wire.
        hash: identifies the version; empty where the agent sent none.
        event: it is a class of events.
        columns: in schema order.
    """

    package: str
    name: str
    hash: str
    event: bool
    columns: tuple[LakeColumn, ...]

    @classmethod
    def from_schema(cls, schema: ClassSchema | EventSchema) -> ClassVersion:
        """The columns of a class or an event."""
        key = schema.key
        return cls(
            package=key.package,
            name=key.name,
            hash=str(key.hash) if key.hash else "",
            event=isinstance(schema, EventSchema),
            columns=name_columns(_ColumnMaker(schema).columns()),
        )

    @classmethod
    def from_json(cls, package: str, name: str, hash: str, event: bool, columns: str) -> ClassVersion:
        """The reverse of `to_json`."""
        parsed = tuple(_parse_column(item) for item in json.loads(columns))
        return cls(package=package, name=name, hash=hash, event=event, columns=parsed)

    def to_json(self) -> str:
        """The columns as JSON, as the lake stores them."""
        return json.dumps(
            [
                {
                    "name": item.name,
                    "wire": item.wire,
                    "member": item.member,
                    "type": item.type,
                    "cell": item.column_type.value,
                    "group": item.kind.value,
                    "part": item.part.value,
                    "unit": item.unit,
                }
                for item in self.columns
            ]
        )


_COLUMN_TYPES: Mapping[str, ColumnType] = {
    "objId": ColumnType.TEXT,
    "uint8": ColumnType.INT16,
    "uint16": ColumnType.INT32,
    "uint32": ColumnType.INT64,
    "uint64": ColumnType.DECIMAL,
    "int8": ColumnType.INT8,
    "int16": ColumnType.INT16,
    "int32": ColumnType.INT32,
    "int64": ColumnType.INT64,
    "bool": ColumnType.BOOL,
    "sstr": ColumnType.TEXT,
    "lstr": ColumnType.TEXT,
    "absTime": ColumnType.TIME,
    "deltaTime": ColumnType.DECIMAL,
    "float": ColumnType.FLOAT,
    "double": ColumnType.DOUBLE,
    "uuid": ColumnType.TEXT,
    "map": ColumnType.TEXT,
    "list": ColumnType.TEXT,
}

_PARTS: Mapping[Style, tuple[MemberPart, ...]] = {
    Style.DIRECT: (MemberPart.VALUE,),
    Style.COUNT: (MemberPart.VALUE,),
    Style.HILO: (MemberPart.VALUE, MemberPart.HIGH, MemberPart.LOW),
    Style.MMA: (MemberPart.COUNT, MemberPart.MIN, MemberPart.MAX, MemberPart.AVERAGE),
}

#: The parts that have a column after that of their value, and what its name ends with.
_SECOND_PARTS: Mapping[MemberPart, str] = {MemberPart.NANOSECONDS: "_ns", MemberPart.AGENT: "_agent"}


def _parse_column(item: Mapping[str, Any]) -> LakeColumn:
    return LakeColumn(
        name=item["name"],
        wire=item["wire"],
        member=item["member"],
        type=item["type"],
        column_type=ColumnType(item["cell"]),
        kind=MemberKind(item["group"]),
        part=MemberPart(item["part"]),
        unit=item["unit"],
    )


def name_columns(columns: Iterable[LakeColumn]) -> tuple[LakeColumn, ...]:
    """Columns of a class with names that files can have, all different in any case.

    Args:
        columns: in schema order; their names are made anew from those of the wire.
    """
    given = tuple(columns)
    own = [index for index, column in enumerate(given) if column.part not in _SECOND_PARTS]
    names = dict(zip(own, safe_names([given[index].wire for index in own]), strict=True))
    taken = {name.lower() for name in names.values()}
    for index, column in enumerate(given):
        if index not in names:
            # After the column of the same value.
            names[index] = take_unused_name(f"{names[index - 1]}{_SECOND_PARTS[column.part]}", taken)
    return tuple(attrs.evolve(column, name=names[index]) for index, column in enumerate(given))


def align_columns(version: ClassVersion, known: Iterable[ClassVersion]) -> ClassVersion:
    """A version whose columns have the names that other versions of the class have.

    A column has the name that another version has for the same value on the wire, or the same name in another case;
    otherwise engines would take the columns of two versions for one, or refuse the table.

    Args:
        version: new.
        known: other versions of any classes.
    """
    by_value: dict[tuple[str, MemberPart], str] = {}
    by_case: dict[str, str] = {}
    for other in known:
        if (other.package, other.name, other.event) == (version.package, version.name, version.event):
            for column in other.columns:
                by_value.setdefault((column.wire, column.part), column.name)
                by_case.setdefault(column.name.lower(), column.name)
    taken: set[str] = set()
    wanted = [by_value.get((column.wire, column.part)) for column in version.columns]
    names: list[str] = []
    for column, name in zip(version.columns, wanted, strict=True):
        if name is None or name.lower() in taken:
            name = column.name
            while name.lower() in taken or by_case.get(name.lower(), name) in wanted:
                name += "_"
            name = by_case.get(name.lower(), name)
        taken.add(name.lower())
        names.append(name)
    renamed = (attrs.evolve(column, name=name) for column, name in zip(version.columns, names, strict=True))
    return attrs.evolve(version, columns=tuple(renamed))


class _ColumnMaker:
    """Makes the columns of one schema."""

    def __init__(self, schema: ClassSchema | EventSchema) -> None:
        self._schema = schema

    def columns(self) -> Iterator[LakeColumn]:
        """All columns, in schema order, with the names of the wire."""
        schema, part = self._schema, MemberPart.VALUE
        if isinstance(schema, EventSchema):
            for item in schema.arguments:
                base = TYPES[item.type.base]
                yield from self._member(item.name, item.name, item.type, base, MemberKind.ARGUMENT, part, item.unit)
            return
        for prop in schema.properties:
            yield from self._member(prop.name, prop.name, prop.type, prop.type, MemberKind.PROPERTY, part, prop.unit)
        for statistic in schema.statistics:
            yield from self._statistic(statistic)

    def _statistic(self, item: Statistic) -> Iterator[LakeColumn]:
        for entry, part in zip(item.entries, _PARTS[item.type.style], strict=True):
            base = TYPES["uint64" if part is MemberPart.COUNT else item.type.base]
            yield from self._member(entry.name, item.name, item.type, base, MemberKind.STATISTIC, part, item.unit)

    def _member(
        self, wire: str, member: str, type: QmfType, base: QmfType, kind: MemberKind, part: MemberPart, unit: str | None
    ) -> Iterator[LakeColumn]:
        column = LakeColumn(
            name=wire,
            wire=wire,
            member=member,
            type=type.name,
            column_type=_COLUMN_TYPES[base.name],
            kind=kind,
            part=part,
            unit=unit,
        )
        yield column
        if base.name == "absTime":
            yield attrs.evolve(column, column_type=ColumnType.INT64, part=MemberPart.NANOSECONDS, unit="nanosecond")
        elif base.name == "objId":
            yield attrs.evolve(column, column_type=ColumnType.TEXT, part=MemberPart.AGENT, unit=None)
