"""The model of QMF: packages, classes, events and their parts, as frozen values.

The XML reader (`qmf.schema.reader`) makes them, generated modules have them as constants, and consoles build them from
the answers of agents. Knows no wire format.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from uuid import UUID

import attrs

from qmf.schema.types import QmfType, Style


class Kind(enum.Enum):
    """Whether a class describes objects or events. The values are those of QMFv2."""

    DATA = "_data"
    EVENT = "_event"


class Access(enum.Enum):
    """When a property may change, and by which side."""

    RC = "RC"  #: set when the object is created, and fixed from then on
    RW = "RW"  #: the agent and consoles may change it
    RO = "RO"  #: only the agent may change it


class Direction(enum.Enum):
    """Direction of an argument: to the method, from it, or both."""

    IN = "I"
    OUT = "O"
    IN_OUT = "IO"


class Severity(enum.IntEnum):
    """Severity of an event, with the numbers of syslog (QMF2.md 5.2)."""

    EMERG = 0
    ALERT = 1
    CRIT = 2
    ERROR = 3
    WARN = 4
    NOTICE = 5
    INFORM = 6
    DEBUG = 7

    @property
    def schema_name(self) -> str:
        """Its name in schema files, e.g. ``inform``."""
        return self.name.lower()


@attrs.frozen(order=True, cache_hash=True)
class ClassKey:
    """Identifies one version of a class or event class.

    Attributes:
        package: e.g. ``org.apache.qpid.broker``.
        name: as on the wire: object classes in lower case, events as written.
        kind: object or event class.
        hash: 128 bits that differ between versions; None if a peer did not send it. Opaque: only compare it.
    """

    package: str
    name: str
    kind: Kind = attrs.field(default=Kind.DATA, order=lambda kind: kind.value)
    hash: UUID | None = attrs.field(default=None, order=str)

    def __str__(self) -> str:
        return f"{self.package}:{self.name}" + (f"({self.hash})" if self.hash else "")


@attrs.frozen
class Reference:
    """The class that an `objId` refers to.

    Attributes:
        package: its package; None stands for that of the referring class.
        name: its name as written in XML.
    """

    package: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.package}:{self.name}" if self.package else self.name


@attrs.frozen(kw_only=True)
class Argument:
    """An argument of a method or of an event.

    Attributes:
        name: unique within its method or event.
        type: a type with a direct accessor (events of old schemas also use counter types).
        direction: of a method's argument; events' arguments are all IN.
        unit: e.g. ``octet``, or None.
        default: the text of the `default` attribute converted to the type, or None.
        desc: description, or None.
        minimum, maximum: bounds of the value, or None.
        max_len: longest UTF-8 encoding in bytes, or None.
        references: class that an `objId` argument refers to, or None.
    """

    name: str
    type: QmfType
    direction: Direction = Direction.IN
    unit: str | None = None
    default: object = None
    desc: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    max_len: int | None = None
    references: Reference | None = None

    @property
    def is_input(self) -> bool:
        """True if the caller passes it."""
        return self.direction is not Direction.OUT

    @property
    def is_output(self) -> bool:
        """True if the answer has it."""
        return self.direction is not Direction.IN


@attrs.frozen(kw_only=True)
class Property:
    """A property: configuration or identity of an object, which changes rarely.

    Attributes:
        name: unique within its class, statistics included.
        type: a type with a direct accessor.
        access: when it may change, and by which side.
        unit, desc: as of `Argument`.
        index: part of the object's key; keys join index properties in schema order.
        optional: may be absent.
        parent_ref: the reference names the object's parent.
        references: class that an `objId` refers to, or None.
        general_reference: the reference may name an object of any class.
        minimum, maximum: bounds of the value, or None.
        max_len: longest UTF-8 encoding in bytes, or None.
    """

    name: str
    type: QmfType
    access: Access = Access.RO
    unit: str | None = None
    desc: str | None = None
    index: bool = False
    optional: bool = False
    parent_ref: bool = False
    references: Reference | None = None
    general_reference: bool = False
    minimum: int | float | None = None
    maximum: int | float | None = None
    max_len: int | None = None


@attrs.frozen
class StatisticEntry:
    """One wire value of a statistic.

    Attributes:
        name: key in QMFv2 objects, e.g. ``latencyAvg``.
        v1_name: name in QMFv1 schemas, e.g. ``latencyAverage``.
        v1_suffix: text that QMFv1 appends to the description, e.g. `` (Average)``.
    """

    name: str
    v1_name: str
    v1_suffix: str


_EXPANSIONS: dict[Style, tuple[tuple[str, str], ...]] = {
    Style.DIRECT: (("", ""),),
    Style.COUNT: (("", ""),),
    Style.HILO: (("", ""), ("High", "High"), ("Low", "Low")),
    Style.MMA: (("Count", "Samples"), ("Min", "Min"), ("Max", "Max"), ("Avg", "Average")),
}


@attrs.frozen(kw_only=True)
class Statistic:
    """A statistic: a measurement of an object, which changes often.

    Attributes:
        name: unique within its class, properties included.
        type: any type.
        unit, desc: as of `Argument`.
        assign: expression of other statistics that this one equals, e.g. ``in - out``, or None.
        references: class that an `objId` refers to, or None.
        minimum, maximum: bounds of the value, or None.
        max_len: longest UTF-8 encoding in bytes, or None.
    """

    name: str
    type: QmfType
    unit: str | None = None
    desc: str | None = None
    assign: str | None = None
    references: Reference | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    max_len: int | None = None

    @functools.cached_property
    def entries(self) -> tuple[StatisticEntry, ...]:
        """The wire values that this statistic expands to, in wire order (QMF2.md 6)."""
        return tuple(
            StatisticEntry(self.name + v2, self.name + v1, f" ({v1})" if v1 else "")
            for v2, v1 in _EXPANSIONS[self.type.style]
        )


@attrs.frozen(kw_only=True)
class Method:
    """A method of a class.

    Attributes:
        name: unique within its class.
        arguments: in schema order, inputs and outputs mixed.
        desc: description, or None.
    """

    name: str
    arguments: tuple[Argument, ...] = ()
    desc: str | None = None

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """Arguments that the caller passes."""
        return tuple(arg for arg in self.arguments if arg.is_input)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """Arguments that the answer has."""
        return tuple(arg for arg in self.arguments if arg.is_output)


@attrs.frozen(kw_only=True)
class ClassSchema:
    """A class of managed objects.

    Attributes:
        package: package it belongs to.
        name: as written in XML or, if the schema was received from an agent, as on the wire.
        hash: version of the class, see `ClassKey`.
        properties, statistics, methods: in schema order.
        desc: description, or None.
    """

    package: str
    name: str
    hash: UUID | None = None
    properties: tuple[Property, ...] = ()
    statistics: tuple[Statistic, ...] = ()
    methods: tuple[Method, ...] = ()
    desc: str | None = None

    @property
    def key(self) -> ClassKey:
        """Key of the class; on the wire its name is in lower case."""
        return ClassKey(self.package, self.name.lower(), Kind.DATA, self.hash)

    def property(self, name: str) -> Property | None:
        """The property called `name`, or None."""
        return next((item for item in self.properties if item.name == name), None)

    def statistic(self, name: str) -> Statistic | None:
        """The statistic called `name` (not one of its expanded wire names), or None."""
        return next((item for item in self.statistics if item.name == name), None)

    def method(self, name: str) -> Method | None:
        """The method called `name`, or None."""
        return next((item for item in self.methods if item.name == name), None)


@attrs.frozen(kw_only=True)
class EventSchema:
    """A class of events.

    Attributes:
        package: package it belongs to.
        name: as written in XML; unchanged on the wire.
        severity: default severity; None if the schema was received by QMFv1, which does not have it.
        hash: version of the class, see `ClassKey`.
        arguments: in the order of the `args` attribute.
        desc: description, or None.
    """

    package: str
    name: str
    severity: Severity | None = None
    hash: UUID | None = None
    arguments: tuple[Argument, ...] = ()
    desc: str | None = None

    @property
    def key(self) -> ClassKey:
        """Key of the event class."""
        return ClassKey(self.package, self.name, Kind.EVENT, self.hash)


@attrs.frozen(kw_only=True)
class Schema:
    """One schema file: a package with its classes and events.

    Attributes:
        package: e.g. ``org.apache.qpid.broker``.
        classes, events: in file order.
        desc: description of the package, or None.
    """

    package: str
    classes: tuple[ClassSchema, ...] = ()
    events: tuple[EventSchema, ...] = ()
    desc: str | None = None

    def __iter__(self) -> Iterator[ClassSchema | EventSchema]:
        yield from self.classes
        yield from self.events
