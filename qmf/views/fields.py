"""What the values of objects are for people: the fields of a class, with their units and descriptions.

A field is a value by its name on the wire, or one of what every object has besides. A statistic with several values
(hilo, mma) has a field for each. Names are found in any case of letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from qmf._natural_order import natural_key
from qmf.schema import TYPES, ClassSchema, Property, QmfType, Statistic, Style
from qmf.views.counters import is_counter

T = TypeVar("T")


@attrs.frozen
class ObjectField:
    """A field of the objects of a class.

    Attributes:
        name: its wire name, e.g. ``latencyAvg``; or one of `COMMON_FIELDS`.
        type: type of the value: for statistics the base type, e.g. ``uint32`` for a ``hilo32``.
        unit: of the value, or None.
        desc: its description, or empty.
        member: the property or statistic that it belongs to; None for what is no value of the class.
        counter: it only grows.
    """

    name: str
    type: QmfType
    unit: str | None = None
    desc: str = ""
    member: Property | Statistic | None = None
    counter: bool = False

    @property
    def element(self) -> str:
        """Name of the property or statistic that it belongs to, e.g. ``latency``."""
        return self.name if self.member is None else self.member.name

    @property
    def statistic(self) -> bool:
        """True if it belongs to a statistic."""
        return isinstance(self.member, Statistic)

    @property
    def is_main(self) -> bool:
        """True if it stands for its property or statistic, see `main_entry`."""
        return self.name == (main_entry(self.member) if isinstance(self.member, Statistic) else self.element)

    def grows(self, *, all_integers: bool = False) -> bool:
        """True if its rate is shown: it is a counter, or `all_integers` but times count as such."""
        return self.counter or (all_integers and self.is_number and self.type.is_integer and not self.is_time)

    @property
    def is_number(self) -> bool:
        """True if its values are numbers that can be drawn; those of times and durations are."""
        number = self.type.is_integer or self.type.name in ("float", "double")
        return number and not (self.member is None and self.is_time)

    @property
    def is_time(self) -> bool:
        """True if its values are times or durations in nanoseconds, by its type."""
        return self.type.base in ("absTime", "deltaTime")

    @property
    def wire_name(self) -> str:
        """The name by which agents can compare it; empty if they can't."""
        # Averages are sent as whole numbers by some agents and as fractions by others.
        average = self.type.is_integer and self.statistic and self.is_main and self.name != self.element
        return "" if self.member is None or average else self.name

    @property
    def is_reference(self) -> bool:
        """True if its values are references to objects."""
        return self.type.name == "objId"


#: Fields of every object, besides its values.
COMMON_FIELDS: Mapping[str, ObjectField] = {
    item.name: item
    for item in (
        ObjectField("index", TYPES["lstr"], desc="What the object is called among those of its class"),
        ObjectField("agent", TYPES["lstr"], desc="The agent that has the object"),
        ObjectField("broker", TYPES["lstr"], desc="The broker that it is on"),
        ObjectField("class", TYPES["lstr"], desc="Its class"),
        ObjectField("created", TYPES["absTime"], desc="When it was created"),
        ObjectField("updated", TYPES["absTime"], desc="When its agent sent what is shown"),
    )
}


def main_entry(item: Statistic) -> str:
    """The wire name of the value that stands for a statistic: the average of samples, else the value itself."""
    return item.entries[-1 if item.type.style is Style.MMA else 0].name


def fields_of(*schemas: ClassSchema) -> dict[str, ObjectField]:
    """The fields of versions of a class by name, without `COMMON_FIELDS`: properties, then statistics."""
    found: dict[str, ObjectField] = {}
    for schema in schemas:
        for item in schema.properties:
            found.setdefault(item.name, ObjectField(item.name, item.type, item.unit, item.desc or "", item))
    for schema in schemas:
        for statistic in schema.statistics:
            counter = is_counter(schema.package, statistic)
            kind = TYPES[statistic.type.base]
            for at, entry in enumerate(statistic.entries):
                desc = ((statistic.desc or "") + entry.v1_suffix).strip()
                # The count of an mma is a number even where its samples are times.
                samples = statistic.type.style is Style.MMA and at == 0
                of = (TYPES["uint64"], "sample") if samples else (kind, statistic.unit)
                found.setdefault(entry.name, ObjectField(entry.name, *of, desc, statistic, counter))
    return found


def find_field(schemas: Sequence[ClassSchema], name: str) -> ObjectField | None:
    """The field called `name` in one of several versions of a class, or the common field of this name; else None.

    The name of an mma statistic means its average.
    """
    wanted = name.lower()
    fields = fields_of(*schemas).values()
    return (
        next((item for item in fields if item.name.lower() == wanted), None)
        or next((item for item in fields if item.is_main and item.element.lower() == wanted), None)
        or COMMON_FIELDS.get(wanted)
    )


SortKey = tuple[int, object]
#: The key of what is missing.
NO_VALUE: SortKey = (0, 0)


def sort_key(value: object) -> SortKey:
    """A key that orders values of any type: what is missing, numbers, then texts in natural order, in any case.

    NaN counts as missing.
    """
    if value is None or value != value:  # NaN is not equal to itself
        return NO_VALUE
    if isinstance(value, int | float):
        return 1, value
    return 2, natural_key(str(value).lower())


def sort_by(items: Iterable[T], value_of: Callable[[T], object], *, descending: bool = False) -> list[T]:
    """Items sorted by values of any types, see `sort_key`; those without a value come last in either direction."""
    keyed = [(sort_key(value_of(item)), item) for item in items]
    missing = [item for key, item in keyed if not key[0]]
    valued = sorted((pair for pair in keyed if pair[0][0]), key=lambda pair: pair[0], reverse=descending)
    return [item for _, item in valued] + missing
