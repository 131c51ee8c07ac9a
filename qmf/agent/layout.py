"""What the runtime base knows of a managed class: one `Field` per property and statistic, one `Layout` per class.

Built when the first object of a class is made, then read only. A field says under which name of the instance's
`__dict__` its value lies, how values are checked, which mark a change sets, and what it expands to on the wire.
Knows the schema and the class's descriptors; knows no object, no agent and no message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qmf.agent.checks import Check, bounds, make_check
from qmf.agent.expressions import Expression
from qmf.errors import CallerError
from qmf.schema import TYPES, Access, ClassKey, ClassSchema, Property, QmfType, Statistic, Style, zero_value

#: Marks of an object: which groups of values changed since they were published last.
PROPERTIES = 1
STATISTICS = 2
#: A reference to an object without id yet; the publisher looks again at each interval.
PENDING = 4
BOTH = PROPERTIES | STATISTICS


class Field:
    """One property or statistic of a class.

    Attributes:
        name: name in the schema.
        python_name: name of the descriptor in the class; differs for Python's keywords.
        slot: key in the `__dict__` of instances.
        where: ``Class.name``, as errors say it.
        item: its declaration.
        type: its type.
        direct: the slot holds the value itself, not an accessor.
        group: `PROPERTIES` or `STATISTICS`, the mark that a change sets.
        optional: may be unset.
        required: must be given when an object is made.
        fixed: cannot change after that.
        index: part of the object's key.
        low, high: bounds of integer values.
        check: checks a value to be stored.
        wire: names and types of its values on the wire, in order.
        formula: the expression that it equals, or None.
    """

    __slots__ = (
        "check",
        "direct",
        "fixed",
        "formula",
        "group",
        "high",
        "index",
        "item",
        "low",
        "name",
        "optional",
        "python_name",
        "required",
        "slot",
        "type",
        "where",
        "wire",
    )

    def __init__(self, item: Property | Statistic, class_name: str, python_name: str) -> None:
        self.item = item
        self.name = item.name
        self.python_name = python_name
        self.slot = f"_qmf_v_{item.name}"
        self.where = f"{class_name}.{item.name}"
        self.type: QmfType = item.type
        self.direct = item.type.style is Style.DIRECT
        base = TYPES[item.type.base]
        self.formula: Expression | None = None
        self.low, self.high = bounds(item)
        if isinstance(item, Property):
            self.group = PROPERTIES
            self.index = item.index
            self.optional = item.optional
            self.fixed = item.access is Access.RC
            self.required = (item.index or self.fixed) and not item.optional and base.name != "objId"
            self.wire: tuple[tuple[str, QmfType], ...] = ((item.name, base),)
        else:
            self.group = STATISTICS
            self.index = self.optional = self.fixed = self.required = False
            self.wire = tuple((entry.name, base) for entry in item.entries)
            if item.assign:
                self.formula = Expression(item.assign, self.where)
        self.check: Check = make_check(item, self.where, optional=self.optional)

    def initial(self) -> object:
        """What an object holds that was made without a value for this field."""
        return None if self.optional else zero_value(self.type)

    def derived(self, values: Mapping[str, int | float]) -> int | float:
        """The value of the formula, held to the field's range: a difference may dip below zero between two updates."""
        assert self.formula is not None
        value = self.formula.evaluate(values)
        if not self.type.is_integer:
            return value
        return int(min(max(value, self.low), self.high))


class Layout:
    """The fields of one class.

    Attributes:
        schema: the class's schema.
        key: its class key, as on the wire.
        properties, statistics: fields in schema order.
        by_name: fields by schema name and by Python name.
        index: fields that make the object's key.
        references: fields that hold a reference.
        derived: statistics with a formula.
        sources: fields that formulas use.
    """

    __slots__ = ("by_name", "derived", "index", "key", "properties", "references", "schema", "sources", "statistics")

    def __init__(self, schema: ClassSchema, python_names: Mapping[str, str]) -> None:
        """Build.

        Args:
            schema: the class.
            python_names: name of the descriptor by schema name.

        Raises:
            CallerError: the class lacks a descriptor, or a formula uses what is no number of the class.
        """
        self.schema = schema
        self.key: ClassKey = schema.key
        declared: list[Property | Statistic] = [*schema.properties, *schema.statistics]
        missing = [item.name for item in declared if item.name not in python_names]
        if missing:
            raise CallerError(f"class {schema.name} declares no attribute for {', '.join(missing)}")
        self.properties = tuple(Field(item, schema.name, python_names[item.name]) for item in schema.properties)
        self.statistics = tuple(Field(item, schema.name, python_names[item.name]) for item in schema.statistics)
        self.by_name: dict[str, Field] = {field.python_name: field for field in self}
        self.by_name.update({field.name: field for field in self})
        self.index = tuple(field for field in self.properties if field.index)
        self.references = tuple(field for field in self if field.type.name == "objId")
        self.derived = tuple(field for field in self.statistics if field.formula is not None)
        for field in self.derived:
            self._check_formula(field)
        names = {name for field in self.derived if field.formula for name in field.formula.names}
        self.sources = tuple(field for field in self if field.name in names)

    def __iter__(self) -> Iterator[Field]:
        yield from self.properties
        yield from self.statistics

    def fields(self, groups: int) -> tuple[Field, ...]:
        """The fields of the groups whose marks are set in `groups`, in wire order."""
        if groups & BOTH == BOTH:
            return self.properties + self.statistics
        return self.properties if groups & PROPERTIES else self.statistics

    def _check_formula(self, field: Field) -> None:
        assert field.formula is not None
        if field.type.style is Style.MMA:
            raise CallerError(f"{field.where}: min/max/average statistics cannot be assigned")
        known: dict[str, Field] = {item.name: item for item in self}
        for name in field.formula.names:
            source = known.get(name)
            numeric = source is not None and (source.type.is_integer or source.type.python == "float")
            if source is None or not numeric or source.formula is not None or source.type.style is Style.MMA:
                raise CallerError(
                    f"{field.where}: {name!r} in the expression {field.formula.text!r} is no plain number of the class"
                )


def numbers(layout: Layout, values: Mapping[str, Any]) -> dict[str, int | float]:
    """What the class's formulas use, read from an instance's `__dict__` with its lock held."""
    return {
        field.name: (values[field.slot] if field.direct else values[field.slot].value) or 0 for field in layout.sources
    }
