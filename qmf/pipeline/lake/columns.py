"""Which columns the values of a class have: the one description that files, Arrow and Spark schemas are made from.

It travels with the lake as JSON, so that a lake can be read without a bus and without XML. Rules:

- integers keep their width; unsigned ones of 64 bits, and durations, are decimal(20, 0): exact, where a bigint is not;
- a time has two columns: `x`, a timestamp in UTC with microseconds, and `x_ns`, all of its nanoseconds as a bigint;
- a reference has two columns: `x`, the object's name, and `x_agent`, the agent that owns it;
- uuids are text, maps and lists are JSON;
- a hilo and an mma have one column for each of their wire values, e.g. `latencyCount`.

Columns of the recorder itself begin with `_`; names in schemas begin with a letter. It knows no Arrow and no Spark.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from qmf.schema import TYPES, ClassSchema, EventSchema, QmfType, Statistic, Style


class Cell(enum.Enum):
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


class Group(enum.Enum):
    """What part of a class a column belongs to."""

    PROPERTY = "property"
    STATISTIC = "statistic"
    ARGUMENT = "argument"


class Part(enum.Enum):
    """Which part of its member a column holds."""

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
class Column:
    """One column of a class.

    Attributes:
        name: its name in files.
        wire: name of the value on the wire.
        member: the property, statistic or argument that it belongs to.
        type: name of that member's type, e.g. ``mma32``.
        cell: how it is stored.
        group, part: see there.
        unit: of the value, or None.
    """

    name: str
    wire: str
    member: str
    type: str
    cell: Cell
    group: Group
    part: Part
    unit: str | None = None

    @property
    def style(self) -> Style:
        """How the member is set: tells counters, hilos and mmas."""
        return TYPES[self.type].style


@attrs.frozen(kw_only=True)
class Table:
    """One version of one class, as columns.

    Attributes:
        package, name: of the class; object classes in lower case, as on the wire.
        hash: tells versions apart; empty where the agent didn't say.
        event: it is a class of events.
        columns: in schema order.
    """

    package: str
    name: str
    hash: str
    event: bool
    columns: tuple[Column, ...]

    def to_json(self) -> str:
        """The columns as JSON."""
        return json.dumps([attrs.asdict(item, value_serializer=_plain) for item in self.columns])


_CELLS: Mapping[str, Cell] = {
    "objId": Cell.TEXT,
    "uint8": Cell.INT16,
    "uint16": Cell.INT32,
    "uint32": Cell.INT64,
    "uint64": Cell.DECIMAL,
    "int8": Cell.INT8,
    "int16": Cell.INT16,
    "int32": Cell.INT32,
    "int64": Cell.INT64,
    "bool": Cell.BOOL,
    "sstr": Cell.TEXT,
    "lstr": Cell.TEXT,
    "absTime": Cell.TIME,
    "deltaTime": Cell.DECIMAL,
    "float": Cell.FLOAT,
    "double": Cell.DOUBLE,
    "uuid": Cell.TEXT,
    "map": Cell.TEXT,
    "list": Cell.TEXT,
}

_PARTS: Mapping[Style, tuple[Part, ...]] = {
    Style.DIRECT: (Part.VALUE,),
    Style.COUNT: (Part.VALUE,),
    Style.HILO: (Part.VALUE, Part.HIGH, Part.LOW),
    Style.MMA: (Part.COUNT, Part.MIN, Part.MAX, Part.AVERAGE),
}


def table_of(schema: ClassSchema | EventSchema) -> Table:
    """The columns of a class or an event."""
    key = schema.key
    taken: set[str] = set()
    columns = tuple(_columns(schema, taken))
    return Table(
        package=key.package,
        name=key.name,
        hash=str(key.hash) if key.hash else "",
        event=isinstance(schema, EventSchema),
        columns=columns,
    )


def table_from_json(package: str, name: str, hash: str, event: bool, columns: str) -> Table:
    """The way back from `Table.to_json`."""
    parsed = tuple(_column(item) for item in json.loads(columns))
    return Table(package=package, name=name, hash=hash, event=event, columns=parsed)


def _column(item: Mapping[str, Any]) -> Column:
    return Column(
        name=item["name"],
        wire=item["wire"],
        member=item["member"],
        type=item["type"],
        cell=Cell(item["cell"]),
        group=Group(item["group"]),
        part=Part(item["part"]),
        unit=item["unit"],
    )


def _plain(_owner: object, _field: object, value: object) -> object:
    return value.value if isinstance(value, enum.Enum) else value


def _columns(schema: ClassSchema | EventSchema, taken: set[str]) -> Iterator[Column]:
    if isinstance(schema, EventSchema):
        taken.update(item.name for item in schema.arguments)
        for argument in schema.arguments:
            base = TYPES[argument.type.base]
            yield from _member(argument.name, argument.name, argument.type, base, Group.ARGUMENT, Part.VALUE,
                               argument.unit, taken)  # fmt: skip
        return
    taken.update(item.name for item in schema.properties)
    taken.update(entry.name for item in schema.statistics for entry in item.entries)
    for item in schema.properties:
        yield from _member(item.name, item.name, item.type, item.type, Group.PROPERTY, Part.VALUE, item.unit, taken)
    for statistic in schema.statistics:
        yield from _statistic(statistic, taken)


def _statistic(statistic: Statistic, taken: set[str]) -> Iterator[Column]:
    for entry, part in zip(statistic.entries, _PARTS[statistic.type.style], strict=True):
        base = TYPES["uint64" if part is Part.COUNT else statistic.type.base]
        yield from _member(
            entry.name, statistic.name, statistic.type, base, Group.STATISTIC, part, statistic.unit, taken
        )


def _member(
    wire: str, member: str, type: QmfType, base: QmfType, group: Group, part: Part, unit: str | None, taken: set[str]
) -> Iterator[Column]:
    common: dict[str, Any] = {"wire": wire, "member": member, "type": type.name, "group": group}
    yield Column(name=wire, cell=_CELLS[base.name], part=part, unit=unit, **common)
    if base.name == "absTime":
        yield Column(
            name=_free(f"{wire}_ns", taken), cell=Cell.INT64, part=Part.NANOSECONDS, unit="nanosecond", **common
        )
    elif base.name == "objId":
        yield Column(name=_free(f"{wire}_agent", taken), cell=Cell.TEXT, part=Part.AGENT, **common)


def _free(name: str, taken: set[str]) -> str:
    """The name, or a longer one where the schema uses it already."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
