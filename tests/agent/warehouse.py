"""A hand-written module of the shape that qmf-codegen emits, with every kind of member; the tests' managed classes."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

import attrs

from qmf.agent import (
    Attribute,
    CounterAttribute,
    Event,
    HiLoAttribute,
    ManagedObject,
    MaybeAwaitable,
    MmaAttribute,
    Ref,
    ReferenceAttribute,
    Result,
)
from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Reference,
    Severity,
    Statistic,
)

PACKAGE = "org.example.stock"

SITE = ClassSchema(
    package=PACKAGE,
    name="Site",
    hash=UUID(int=0x51),
    properties=(Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True),),
)

SHELF = ClassSchema(
    package=PACKAGE,
    name="Shelf",
    hash=UUID(int=0x52),
    desc="A shelf.",
    properties=(
        Property(name="siteRef", type=TYPES["objId"], access=Access.RC, index=True, references=Reference(None, "Site")),
        Property(name="number", type=TYPES["uint16"], access=Access.RC, index=True),
        Property(name="label", type=TYPES["sstr"], access=Access.RW, optional=True, max_len=20),
        Property(name="limit", type=TYPES["uint8"], access=Access.RW, minimum=5, maximum=50),
        Property(name="weight", type=TYPES["double"], minimum=0),
        Property(name="open", type=TYPES["bool"]),
        Property(name="token", type=TYPES["uuid"]),
        Property(name="options", type=TYPES["map"], access=Access.RW),
        Property(name="tags", type=TYPES["list"]),
        Property(name="nextRef", type=TYPES["objId"], references=Reference(None, "Shelf")),
        Property(name="class", type=TYPES["lstr"]),
    ),
    statistics=(
        Statistic(name="in", type=TYPES["count64"], unit="item"),
        Statistic(name="out", type=TYPES["count32"], unit="item"),
        Statistic(name="depth", type=TYPES["count64"], assign="in - out"),
        Statistic(name="twice", type=TYPES["uint64"], assign="2 * (in - out)"),
        Statistic(name="users", type=TYPES["hilo8"]),
        Statistic(name="wait", type=TYPES["mmaTime"], unit="nanosecond"),
        Statistic(name="since", type=TYPES["absTime"]),
    ),
    methods=(
        Method(
            name="move",
            arguments=(
                Argument(name="items", type=TYPES["uint16"], maximum=1000),
                Argument(name="from", type=TYPES["sstr"], default="door"),
                Argument(name="factor", type=TYPES["double"], default=1.0),
                Argument(name="moved", type=TYPES["uint32"], direction=Direction.OUT),
                Argument(name="note", type=TYPES["lstr"], direction=Direction.OUT),
            ),
        ),
        Method(name="clear"),
        Method(name="import", arguments=(Argument(name="data", type=TYPES["map"], direction=Direction.IN_OUT),)),
        Method(name="unwritten"),
    ),
)

BELT = ClassSchema(
    package=PACKAGE,
    name="Belt",
    hash=UUID(int=0x53),
    properties=(Property(name="speed", type=TYPES["float"]),),
)

SPILL = EventSchema(
    package=PACKAGE,
    name="shelfSpill",
    severity=Severity.WARN,
    hash=UUID(int=0x54),
    arguments=(
        Argument(name="shelf", type=TYPES["objId"]),
        Argument(name="items", type=TYPES["uint8"]),
        Argument(name="class", type=TYPES["sstr"]),
    ),
)


class Site(ManagedObject):
    """A site."""

    _qmf_schema_: ClassVar[ClassSchema] = SITE

    name = Attribute[str]("name")

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name)


@attrs.frozen(kw_only=True)
class ShelfMoveResult(Result):
    """Outputs of `Shelf.move`."""

    moved: int
    note: str


@attrs.frozen(kw_only=True)
class ShelfImportResult(Result):
    """Outputs of `Shelf.import_`."""

    data: object


class Shelf(ManagedObject):
    """A shelf."""

    _qmf_schema_: ClassVar[ClassSchema] = SHELF

    siteRef = ReferenceAttribute("siteRef")
    number = Attribute[int]("number")
    label = Attribute[str | None]("label")
    limit = Attribute[int]("limit")
    weight = Attribute[float]("weight")
    open = Attribute[bool]("open")
    token = Attribute[UUID]("token")
    options = Attribute[dict[str, object]]("options")
    tags = Attribute[list[object]]("tags")
    nextRef = ReferenceAttribute("nextRef")
    class_ = Attribute[str]("class")
    in_ = CounterAttribute("in")
    out = CounterAttribute("out")
    depth = CounterAttribute("depth")
    twice = Attribute[int]("twice")
    users = HiLoAttribute("users")
    wait = MmaAttribute("wait")
    since = Attribute[int]("since")

    def __init__(
        self,
        *,
        number: int,
        siteRef: Ref = None,
        label: str | None = None,
        limit: int | None = None,
        options: dict[str, object] | None = None,
        nextRef: Ref = None,
        class_: str | None = None,
    ) -> None:
        super().__init__(
            number=number, siteRef=siteRef, label=label, limit=limit, options=options, nextRef=nextRef, class_=class_
        )

    def move(self, items: int, from_: str, factor: float) -> MaybeAwaitable[ShelfMoveResult]:
        """Move items."""
        raise NotImplementedError

    def clear(self) -> MaybeAwaitable[None]:
        """Clear."""
        raise NotImplementedError

    def import_(self, data: object) -> MaybeAwaitable[ShelfImportResult]:
        """Import."""
        raise NotImplementedError

    def unwritten(self) -> MaybeAwaitable[None]:
        """Never implemented."""
        raise NotImplementedError


class Belt(ManagedObject):
    """A belt: no index properties."""

    _qmf_schema_: ClassVar[ClassSchema] = BELT

    speed = Attribute[float]("speed")

    def __init__(self, *, speed: float | None = None) -> None:
        super().__init__(speed=speed)


@attrs.frozen(kw_only=True)
class ShelfSpill(Event):
    """Something fell."""

    _qmf_schema_: ClassVar[EventSchema] = SPILL

    shelf: Ref
    items: int
    class_: str
