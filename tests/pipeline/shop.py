"""Classes with every type, and a managed class to publish: what the pipeline's tests record."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

import attrs

from qmf.agent import Attribute, CounterAttribute, Event, HiLoAttribute, ManagedObject, MmaAttribute, ReferenceAttribute
from qmf.schema import TYPES, Access, Argument, ClassSchema, EventSchema, Property, Severity, Statistic, Style

PACKAGE = "org.example.shop"

EVERYTHING = ClassSchema(
    package=PACKAGE,
    name="Everything",
    hash=UUID(int=0x11),
    properties=tuple(
        Property(name=f"p{name}", type=type) for name, type in TYPES.items() if type.style is Style.DIRECT
    ),
    statistics=tuple(Statistic(name=f"s{name}", type=type) for name, type in TYPES.items()),
)

TILL = ClassSchema(
    package=PACKAGE,
    name="Till",
    hash=UUID(int=0x12),
    properties=(
        Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True),
        Property(name="opened", type=TYPES["absTime"]),
        Property(name="limit", type=TYPES["uint64"]),
        Property(name="options", type=TYPES["map"]),
        Property(name="nextRef", type=TYPES["objId"], optional=True),
    ),
    statistics=(
        Statistic(name="sales", type=TYPES["count64"]),
        Statistic(name="queue", type=TYPES["hilo32"]),
        Statistic(name="service", type=TYPES["mmaTime"], unit="nanosecond"),
    ),
)

ROBBED = EventSchema(
    package=PACKAGE,
    name="tillRobbed",
    severity=Severity.ALERT,
    hash=UUID(int=0x13),
    arguments=(Argument(name="till", type=TYPES["sstr"]), Argument(name="amount", type=TYPES["uint64"])),
)


class Till(ManagedObject):
    """A till."""

    _qmf_schema_: ClassVar[ClassSchema] = TILL

    name = Attribute[str]("name")
    opened = Attribute[int]("opened")
    limit = Attribute[int]("limit")
    options = Attribute[dict[str, object]]("options")
    nextRef = ReferenceAttribute("nextRef")
    sales = CounterAttribute("sales")
    queue = HiLoAttribute("queue")
    service = MmaAttribute("service")

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name)


@attrs.frozen(kw_only=True)
class TillRobbed(Event):
    """A till was robbed."""

    _qmf_schema_: ClassVar[EventSchema] = ROBBED

    till: str
    amount: int
