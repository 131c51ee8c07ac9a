"""Schemas in the published API: flat descriptions with numeric type codes and statistics expanded as QMFv1 has them."""

from __future__ import annotations

import enum

from qmf.console.identity import ClassKey
from qmf.schema import TYPES, Access, Argument, ClassSchema, EventSchema, Method, Property, Statistic

_ACCESS = {Access.RC: "1", Access.RW: "2", Access.RO: "3"}


class _Owner(enum.Enum):
    """What an argument belongs to: only those of methods have a direction."""

    METHOD = enum.auto()
    EVENT = enum.auto()


class _SchemaItem:
    """What a schema describes by name; prints as that."""

    name: str

    def __repr__(self) -> str:
        return self.name


class _SchemaValue(_SchemaItem):
    """What properties and arguments have in common."""

    def __init__(self, core: Property | Argument, package: str) -> None:
        self.name = core.name
        self.type = core.type.code
        self.refPackage = (core.references.package or package) if core.references else None
        self.refClass = core.references.name if core.references else None
        self.unit = core.unit
        self.min = core.minimum
        self.max = core.maximum
        self.maxlen = core.max_len
        self.desc = core.desc


class SchemaProperty(_SchemaValue):
    """A property of a class.

    Attributes:
        name: its name.
        type: code of its type (QMF2.md 6).
        access: ``1`` read-create, ``2`` read-write, ``3`` read-only.
        index: True when it is part of the object's key.
        optional: True when an object may lack it.
        refPackage, refClass: class that a reference points to, or None.
        unit, min, max, maxlen, desc: as in the schema, or None.
    """

    def __init__(self, core: Property, package: str) -> None:
        super().__init__(core, package)
        self.core = core
        self.access = _ACCESS[core.access]
        self.index = core.index
        self.optional = core.optional


class SchemaStatistic(_SchemaItem):
    """One value of a statistic; a hilo has three of them, an mma four.

    Attributes:
        name: as QMFv1 has it, e.g. ``latencyAverage``.
        type: code of its type (QMF2.md 6).
        unit, desc: as in the schema, or None.
    """

    def __init__(self, core: Statistic, name: str, suffix: str) -> None:
        self.core = core
        self.name = name
        self.type = TYPES[core.type.base].code
        self.unit = core.unit
        self.desc = f"{core.desc}{suffix}" if core.desc else None


class SchemaArgument(_SchemaValue):
    """An argument of a method or an event.

    Attributes:
        name: its name.
        type: code of its type (QMF2.md 6).
        dir: ``I``, ``O`` or ``IO``; only arguments of methods have it.
        refPackage, refClass: class that a reference points to, or None.
        unit, min, max, maxlen, desc, default: as in the schema, or None.
    """

    dir: str

    def __init__(self, core: Argument, package: str, owner: _Owner) -> None:
        super().__init__(core, package)
        self.core = core
        if owner is _Owner.METHOD:
            self.dir = core.direction.value
        self.default = core.default


class SchemaMethod:
    """A method of a class; prints like ``echo(sequence, body)``, with the inputs only.

    Attributes:
        name: its name.
        desc: as in the schema, or None.
        arguments: inputs and outputs, in schema order.
    """

    def __init__(self, core: Method, package: str) -> None:
        self.core = core
        self.name = core.name
        self.desc = core.desc
        self.arguments = [SchemaArgument(item, package, _Owner.METHOD) for item in core.arguments]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(item.name for item in self.core.inputs)})"


class SchemaClass:
    """A class or event class.

    Attributes:
        kind: `CLASS_KIND_TABLE` for classes, `CLASS_KIND_EVENT` for events.
        classKey: its key.
        properties, statistics, methods: of a class, in schema order.
        arguments: of an event, in schema order.
    """

    CLASS_KIND_TABLE = 1
    CLASS_KIND_EVENT = 2

    def __init__(self, core: ClassSchema | EventSchema, key: ClassKey) -> None:
        self.core = core
        self.classKey = key
        self.properties: list[SchemaProperty] = []
        self.statistics: list[SchemaStatistic] = []
        self.methods: list[SchemaMethod] = []
        self.arguments: list[SchemaArgument] = []
        if isinstance(core, ClassSchema):
            self.kind = self.CLASS_KIND_TABLE
            self.properties = [SchemaProperty(item, core.package) for item in core.properties]
            self.statistics = [
                SchemaStatistic(item, entry.v1_name, entry.v1_suffix)
                for item in core.statistics
                for entry in item.entries
            ]
            self.methods = [SchemaMethod(item, core.package) for item in core.methods]
        else:
            self.kind = self.CLASS_KIND_EVENT
            self.arguments = [SchemaArgument(item, core.package, _Owner.EVENT) for item in core.arguments]

    def getKey(self) -> ClassKey:
        """Its key."""
        return self.classKey

    def getProperties(self) -> list[SchemaProperty]:
        """Properties, in schema order; none for events."""
        return self.properties

    def getStatistics(self) -> list[SchemaStatistic]:
        """Statistics, expanded, in schema order; none for events."""
        return self.statistics

    def getMethods(self) -> list[SchemaMethod]:
        """Methods, in schema order; none for events."""
        return self.methods

    def getArguments(self) -> list[SchemaArgument]:
        """Arguments of an event, in schema order; none for classes."""
        return self.arguments

    def __repr__(self) -> str:
        return f"{'Table' if self.kind == self.CLASS_KIND_TABLE else 'Event'} Class: {self.classKey!r} "


def class_kind(key: ClassKey) -> int:
    """The number of a key's kind, for callbacks."""
    return SchemaClass.CLASS_KIND_EVENT if key.getType() == ClassKey.TYPE_EVENT else SchemaClass.CLASS_KIND_TABLE
