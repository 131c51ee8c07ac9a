"""The columns of the rows of each kind and class, from which files, Arrow schemas and Spark schemas are made.

Every row has the columns of its kind first, whose names begin with `_` where a class has others. The lake stores the
columns of a class as JSON, so that it can be read without a bus and without XML. Rules:

- integers keep their width; unsigned ones of 64 bits, and durations, are decimal(20, 0): exact, where a bigint is not;
- a time has two columns: `x`, a timestamp in UTC with microseconds, and `x_ns`, all of its nanoseconds as a bigint;
- a reference has two columns: `x`, the object's name, and `x_agent`, the agent that owns it;
- uuids are text, maps and lists are JSON;
- a hilo and an mma have one column for each of their wire values, e.g. `latencyCount`;
- names that files cannot have, or that differ from others by case only, are changed: Parquet files,
  Delta tables and SQL don't take all characters, and most engines take names that differ by case only for the same.

This module knows no Arrow and no Spark.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property, Statistic, Style

#: Characters that the names of columns of Delta tables and of fields in paths must not have.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f ,;{}()=.`\"'\\/]")


def safe_names(wires: Sequence[str]) -> list[str]:
    """A name for each name of the wire, in order: the same wherever possible, all different in any case.

    Good names are kept, whatever others would become.
    """
    names: list[str | None] = [None] * len(wires)
    taken: set[str] = set()
    for good in (True, False):
        for index, wire in enumerate(wires):
            safe = _safe(wire)
            if names[index] is None and (not good or (safe == wire and safe.lower() not in taken)):
                names[index] = take_unused_name(safe, taken)
    return [name for name in names if name is not None]


def take_unused_name(name: str, taken: set[str]) -> str:
    """A good name, or a longer one where it is among those taken, which are in lower case; it is taken then."""
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _safe(wire: str) -> str:
    # Text that was not UTF-8 on the wire holds surrogates.
    name = _UNSAFE.sub("_", wire.encode("utf-8", "replace").decode())
    return f"x{name}" if not name or name.startswith("_") else name


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


#: The fields of a column that have other names in JSON.
_JSON_KEYS: Mapping[str, str] = {"column_type": "cell", "kind": "group"}


@attrs.frozen(kw_only=True)
class LakeColumn:
    """One column of a class: its name in files, and the value on the wire that it holds.

    That is one of the values of a member, whose type (``mma32``) and kind are given; `unit` is that of the value.
    """

    name: str
    wire: str
    member: str
    type: str
    column_type: ColumnType = attrs.field(converter=ColumnType)
    kind: MemberKind = attrs.field(converter=MemberKind)
    part: MemberPart = attrs.field(converter=MemberPart)
    unit: str | None = None

    @property
    def style(self) -> Style:
        """How the member is set: as a counter, a gauge, a hilo or an mma."""
        return TYPES[self.type].style


@attrs.frozen(kw_only=True, cache_hash=True)
class ClassVersion:
    """One version of a class or event, with its columns in schema order.

    Package and name are those of the wire: object classes in lower case. The hash is empty where the agent sent none.
    """

    package: str
    name: str
    hash: str
    event: bool
    columns: tuple[LakeColumn, ...]

    @classmethod
    def from_schema(cls, schema: ClassSchema | EventSchema) -> ClassVersion:
        key = schema.key
        return cls(
            package=key.package,
            name=key.name,
            hash=str(key.hash) if key.hash else "",
            event=isinstance(schema, EventSchema),
            columns=name_columns(_columns(schema)),
        )

    @classmethod
    def from_json(cls, package: str, name: str, hash: str, event: bool, columns: str) -> ClassVersion:
        names = {key: name for name, key in _JSON_KEYS.items()}
        parsed = ({names.get(key, key): value for key, value in item.items()} for item in json.loads(columns))
        own = tuple(LakeColumn(**item) for item in parsed)
        return cls(package=package, name=name, hash=hash, event=event, columns=own)

    def to_json(self) -> str:
        """The columns as JSON, as the lake stores them."""
        return json.dumps(
            [
                {
                    _JSON_KEYS.get(name, name): value.value if isinstance(value, enum.Enum) else value
                    for name, value in attrs.asdict(item).items()
                }
                for item in self.columns
            ]
        )


_COLUMN_TYPES: Mapping[str, ColumnType] = {
    **{name: ColumnType(name) for name in ("int8", "int16", "int32", "int64", "bool", "float", "double")},
    **dict.fromkeys(("objId", "sstr", "lstr", "uuid", "map", "list"), ColumnType.TEXT),
    **dict.fromkeys(("uint64", "deltaTime"), ColumnType.DECIMAL),
    "uint8": ColumnType.INT16,
    "uint16": ColumnType.INT32,
    "uint32": ColumnType.INT64,
    "absTime": ColumnType.TIME,
}

_PARTS: Mapping[Style, tuple[MemberPart, ...]] = {
    Style.DIRECT: (MemberPart.VALUE,),
    Style.COUNT: (MemberPart.VALUE,),
    Style.HILO: (MemberPart.VALUE, MemberPart.HIGH, MemberPart.LOW),
    Style.MMA: (MemberPart.COUNT, MemberPart.MIN, MemberPart.MAX, MemberPart.AVERAGE),
}

#: The parts that have a column after that of their value, and what its name ends with.
_SECOND_PARTS: Mapping[MemberPart, str] = {MemberPart.NANOSECONDS: "_ns", MemberPart.AGENT: "_agent"}


def name_columns(columns: Iterable[LakeColumn]) -> tuple[LakeColumn, ...]:
    """Columns of a class, in schema order, with names made anew from those of the wire.

    Files can have them, and they are all different in any case.
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
    """A version whose columns have the names that the other ones of its class have, which are among those known.

    Otherwise engines would take the columns of two versions for one, or refuse the table.
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


def _columns(schema: ClassSchema | EventSchema) -> Iterator[LakeColumn]:
    """All columns of a schema, in its order, with the names of the wire."""
    if isinstance(schema, EventSchema):
        for item in schema.arguments:
            yield from _member_columns(item.name, item, item.type.base, MemberKind.ARGUMENT)
        return
    for prop in schema.properties:
        yield from _member_columns(prop.name, prop, prop.type.name, MemberKind.PROPERTY)
    for statistic in schema.statistics:
        for entry, part in zip(statistic.entries, _PARTS[statistic.type.style], strict=True):
            base = "uint64" if part is MemberPart.COUNT else statistic.type.base
            yield from _member_columns(entry.name, statistic, base, MemberKind.STATISTIC, part)


def _member_columns(
    wire: str,
    member: Argument | Property | Statistic,
    base: str,
    kind: MemberKind,
    part: MemberPart = MemberPart.VALUE,
) -> Iterator[LakeColumn]:
    """The columns of one value of a member: its own, and that after it."""
    column = LakeColumn(
        name=wire,
        wire=wire,
        member=member.name,
        type=member.type.name,
        column_type=_COLUMN_TYPES[base],
        kind=kind,
        part=part,
        unit=member.unit,
    )
    yield column
    if base == "absTime":
        yield attrs.evolve(column, column_type=ColumnType.INT64, part=MemberPart.NANOSECONDS, unit="nanosecond")
    elif base == "objId":
        yield attrs.evolve(column, column_type=ColumnType.TEXT, part=MemberPart.AGENT, unit=None)


Columns = tuple[tuple[str, ColumnType], ...]

#: The first columns of every row. `_run` is the run of the recorder that wrote the row, `_seq` the row's number in that
#: run, from 1 without a gap: unique together. `_ts` is the time of the sample or event by its sender's clock,
#: `_received_ns` the time of its arrival by the recorder's.
COMMON_COLUMNS: Columns = (
    ("_run", ColumnType.TEXT),
    ("_seq", ColumnType.INT64),
    ("_ts", ColumnType.TIME),
    ("_ts_ns", ColumnType.INT64),
    ("_received_ns", ColumnType.INT64),
    ("_agent", ColumnType.TEXT),
    ("_epoch", ColumnType.INT64),
)

#: The columns after `COMMON_COLUMNS`, by kind; objects and events continue with the columns of their class.
KIND_COLUMNS: Mapping[RowKind, Columns] = MappingProxyType(
    {
        RowKind.OBJECTS: (
            ("_object", ColumnType.TEXT),
            ("_object_epoch", ColumnType.INT64),
            ("_create_ns", ColumnType.INT64),
            ("_delete_ns", ColumnType.INT64),
            # The message held properties; otherwise they are those of an earlier message.
            ("_properties", ColumnType.BOOL),
            # The message held statistics; otherwise their columns are null.
            ("_statistics", ColumnType.BOOL),
        ),
        RowKind.EVENTS: (("_severity", ColumnType.INT16), ("_object", ColumnType.TEXT)),
        RowKind.UNTYPED: (
            ("event", ColumnType.BOOL),
            ("package", ColumnType.TEXT),
            ("class", ColumnType.TEXT),
            ("object", ColumnType.TEXT),
            ("severity", ColumnType.INT16),
            ("values", ColumnType.TEXT),
            # Why it has no schema.
            ("reason", ColumnType.TEXT),
        ),
        # An interval of an agent's heartbeats, of which `_ts_ns` is the last one; or of all agents since the row of all
        # before, without an agent.
        RowKind.HEARTBEATS: (
            ("interval", ColumnType.DOUBLE),
            # The first heartbeat; null where the last one is the only one.
            ("first_ns", ColumnType.INT64),
            ("count", ColumnType.INT64),
            # From the arrival of the last heartbeat to that of the row, `_received_ns`.
            ("silent_ns", ColumnType.INT64),
            # When the agent's next row comes at the latest, as long as none is missed; null at the interval's end.
            ("open_until_ns", ColumnType.INT64),
        ),
        RowKind.AGENTS: (("change", ColumnType.TEXT), ("reason", ColumnType.TEXT), ("interval", ColumnType.DOUBLE)),
        RowKind.SCHEMAS: (
            ("package", ColumnType.TEXT),
            ("class", ColumnType.TEXT),
            ("hash", ColumnType.TEXT),
            ("event", ColumnType.BOOL),
            ("columns", ColumnType.TEXT),
            ("xml", ColumnType.TEXT),
            # Path of the table, inside the lake, that has the rows of the class.
            ("table", ColumnType.TEXT),
        ),
        RowKind.GAPS: (
            ("reason", ColumnType.TEXT),
            ("subject", ColumnType.TEXT),
            ("count", ColumnType.INT64),
            # When the gap began; null where it is a moment.
            ("since_ns", ColumnType.INT64),
        ),
    }
)


def some_columns(kind: RowKind, *names: str) -> Columns:
    """Some of the columns that all rows of a kind have."""
    types = dict((*COMMON_COLUMNS, *KIND_COLUMNS[kind]))
    return tuple((name, types[name]) for name in names)


#: The columns after `KIND_COLUMNS` where rows of all classes are read together: the class, and its values as a JSON
#: object.
ANY_CLASS_COLUMNS: Columns = (
    ("package", ColumnType.TEXT),
    ("class", ColumnType.TEXT),
    ("hash", ColumnType.TEXT),
    ("values", ColumnType.TEXT),
)

#: The kinds whose rows belong to a class.
CLASS_KINDS = (RowKind.OBJECTS, RowKind.EVENTS)

#: The column of a row's day in UTC, ``2030-01-31``, by which tables are partitioned.
DATE = "_date"

#: The column of tables of classes that tells versions apart; empty for a class without a hash.
HASH = "_hash"
