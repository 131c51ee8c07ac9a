"""The fields of objects: values by their names on the wire, and what every object has besides them.

A statistic with several values (hilo, mma) has a field for each. Names are found in any case of letters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from qmf.errors import NotFoundError
from qmf.schema import ClassSchema, QmfType, Style
from qmf.views.counters import is_counter
from qmf.views.text import clean
from qmf_shell.objects.right_words import check_word
from qmf_shell.session.backend import ObjectRecord

#: Fields of every object, besides its values.
COMMON_FIELDS = ("index", "agent", "broker", "class", "created", "updated")

#: Types of integers that are times, not counts.
TIME_TYPES = ("absTime", "deltaTime")

T = TypeVar("T")


@attrs.frozen
class ObjectField:
    """A field of the objects of a class.

    Attributes:
        name: its wire name, e.g. ``latencyAvg``; or one of `COMMON_FIELDS`.
        type: its type; None for `COMMON_FIELDS`.
        unit: of the value, or None.
        desc: its description, or empty.
        statistic: it belongs to a statistic.
        counter: it only grows.
        element: the property or statistic that it belongs to, e.g. ``latency``.
    """

    name: str
    type: QmfType | None = None
    unit: str | None = None
    desc: str = ""
    statistic: bool = False
    counter: bool = False
    element: str = ""

    @property
    def is_number(self) -> bool:
        """True if its values are numbers that can be drawn."""
        return self.type is not None and (
            self.type.is_integer
            or self.type.name in ("float", "double")
            or (self.statistic and self.type.style is not Style.DIRECT)
        )

    @property
    def is_reference(self) -> bool:
        """True if its values are references to objects."""
        return self.type is not None and self.type.name == "objId"

    @property
    def is_collection(self) -> bool:
        """True if its values are maps or lists."""
        return self.type is not None and self.type.name in ("map", "list")


def fields_of(schema: ClassSchema) -> dict[str, ObjectField]:
    """The fields of a class by name, in schema order, without `COMMON_FIELDS`."""
    found: dict[str, ObjectField] = {}
    for item in schema.properties:
        found[item.name] = ObjectField(item.name, item.type, item.unit, item.desc or "", element=item.name)
    for statistic in schema.statistics:
        counter = is_counter(schema.package, statistic)
        for entry in statistic.entries:
            about = (statistic.desc or "") + entry.v1_suffix
            found[entry.name] = ObjectField(
                entry.name, statistic.type, statistic.unit, about.strip(), True, counter, statistic.name
            )
    return found


def find_field(schemas: Sequence[ClassSchema], name: str) -> ObjectField:
    """The field called `name` in one of several versions of a class, or the common field of this name.

    The name of an mma statistic means its average.

    Raises:
        NotFoundError: no version has it; carries similar names.
        WrongWordError: it is a method.
    """
    found: dict[str, ObjectField] = {}
    for schema in schemas:
        for field in fields_of(schema).values():
            found.setdefault(field.name.lower(), field)
        for item in schema.statistics:
            if item.type.style is Style.MMA:
                found.setdefault(item.name.lower(), found[item.entries[-1].name.lower()])
    match = found.get(name.lower())
    if match is not None:
        return match
    if name.lower() in COMMON_FIELDS:
        return ObjectField(name.lower(), element=name.lower())
    check_word(schemas, name, "a value", "call ID {name} calls it")
    owner = clean(schemas[0].name) if schemas else "object"
    raise NotFoundError(f"value of {owner}", clean(name), [field.name for field in found.values()])


def field_value(target: ObjectRecord, field: ObjectField) -> object:
    """The value of a field of an object, or None."""
    if field.type is None and field.name in COMMON_FIELDS:
        identity = target.identity
        match field.name:
            case "index":
                return identity.index
            case "agent":
                return identity.key.agent_name
            case "broker":
                return identity.key.broker or target.broker or None
            case "class":
                return identity.class_key.name
            case "created":
                return target.created or None
            case _:
                return target.updated or None
    return target.values.get(field.name)


def sorted_by(items: Sequence[T], key: Callable[[T], object], *, descending: bool = False) -> list[T]:
    """Items sorted by values of any types: numbers before texts, items without a value last in either direction."""
    valued = [(value, item) for item in items if (value := key(item)) is not None]
    missing = [item for item in items if key(item) is None]
    valued.sort(key=lambda pair: _rank(pair[0]), reverse=descending)
    return [item for _, item in valued] + missing


def _rank(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)
