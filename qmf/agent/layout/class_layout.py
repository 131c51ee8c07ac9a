"""The layout of a managed class: `FieldLayout` of a property or statistic, `ClassLayout` of a class.

Built when the first object of a class is made, then read only. A field has the place of its value in an object, the
check of its values, the mark that a change sets, and its values on the wire. Plain values lie in the cells of an object
(`change_marks`), accessors in slots.

Knows the schema and the Python names of a class; knows no object, no agent and no message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from qmf.agent.layout.change_marks import FIRST_VALUE, PROPERTIES_CELL, STATISTICS_CELL, Cells
from qmf.agent.layout.checks import Check, bounds, make_check
from qmf.agent.layout.expressions import Expression
from qmf.codec import wrap_value
from qmf.errors import CallerError
from qmf.schema import TYPES, Access, ClassKey, ClassSchema, Property, QmfType, Statistic, Style, zero_value

#: Groups of values: what changed is published group by group.
PROPERTIES = 1
STATISTICS = 2
BOTH = PROPERTIES | STATISTICS


class FieldLayout:
    """One property or statistic of a class.

    Attributes:
        name: name in the schema.
        python_name: name of the descriptor in the class; differs for keywords of Python.
        slot: name of the slot that holds the accessor of an object.
        cell: index of the plain value in the cells of an object; set by `ClassLayout`.
        where: ``Class.name``, for errors.
        item: the declaration in the schema.
        type: type in the schema.
        direct: there is a plain value and no accessor.
        group: `PROPERTIES` or `STATISTICS`.
        mark: index of the change mark in the cells.
        optional: may be unset.
        required: must be given when an object is made.
        fixed: cannot change after that.
        index: part of the object's key.
        low, high: bounds of integer values.
        start: first value of an accessor: 0, or the smallest allowed value.
        check: checks a value before it is stored.
        wire: names and types of the values on the wire, in order.
        formula: the expression of a derived statistic, or None.
    """

    __slots__ = (
        "cell",
        "check",
        "direct",
        "fixed",
        "formula",
        "group",
        "high",
        "index",
        "item",
        "low",
        "mark",
        "name",
        "optional",
        "python_name",
        "required",
        "slot",
        "start",
        "type",
        "where",
        "wire",
    )

    def __init__(self, item: Property | Statistic, class_name: str, python_name: str) -> None:
        self.item = item
        self.name = item.name
        self.python_name = python_name
        self.slot = slot_name(item.name)
        self.cell = 0
        self.where = f"{class_name}.{item.name}"
        self.type: QmfType = item.type
        self.direct = item.type.style is Style.DIRECT
        base = TYPES[item.type.base]
        self.formula: Expression | None = None
        self.low, self.high = bounds(item)
        self.start = max(0, int(self.low))
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
        self.mark = PROPERTIES_CELL if self.group == PROPERTIES else STATISTICS_CELL
        self.check: Check = make_check(item, self.where, optional=self.optional)

    def initial(self) -> object:
        """The value of a new object that is given none: zero, or the bound next to it; None if it may be unset."""
        if self.optional:
            return None
        zero = zero_value(self.type)
        return min(max(zero, self.low), self.high) if self.type.is_integer and isinstance(zero, int) else zero

    def derive(self, values: Mapping[str, int | float]) -> int | float:
        """The value of the formula, limited to the field's range: a difference may be negative between two updates."""
        assert self.formula is not None
        value = self.formula.evaluate(values)
        if not self.type.is_integer:
            return value
        return int(min(max(value, self.low), self.high))


def _wire_of(fields: Sequence[FieldLayout]) -> tuple[tuple[str, Wrapper | None], ...]:
    """Name and wrapper of each value of some fields on the wire, in order."""
    return tuple((name, wrapper_of(base)) for field in fields for name, base in field.wire)


class ClassLayout:
    """The fields of one class.

    Attributes:
        schema: the class's schema.
        key: its class key, as on the wire.
        properties, statistics: fields in schema order.
        by_name: fields by schema name and by Python name.
        index: fields that make the object's key.
        required: fields that a new object must be given.
        references: fields that hold a reference.
        accessors: fields with an accessor; those with a formula come last.
        accessor_factories: makes the accessor of a new object, given the object, its cells and the field; by field.
        derived: statistics with a formula.
        sources: fields that formulas use.
        wire: by group, or both: name and wrapper of each value on the wire, in order.
        readers, takers: by group, or both: functions that read values (`qmf.agent.model.value_readers`).
        encoders: by group, or both: functions that encode values (`qmf.agent.publishing.object_writer`).
        row_function: makes the row of an object (`qmf.agent.publishing.row_writer`); None until it was made.
    """

    __slots__ = (
        "_fields",
        "_initial",
        "_mutable",
        "accessor_factories",
        "accessors",
        "by_name",
        "derived",
        "encoders",
        "index",
        "key",
        "properties",
        "readers",
        "references",
        "required",
        "row_function",
        "schema",
        "sources",
        "statistics",
        "takers",
        "wire",
    )

    def __init__(self, schema: ClassSchema, python_names: Mapping[str, str]) -> None:
        """Build; `python_names`: name of the descriptor by schema name.

        Raises:
            CallerError: the class lacks a descriptor, or a formula uses a name that is not a number of the class.
        """
        self.schema = schema
        self.key: ClassKey = schema.key
        declared: list[Property | Statistic] = [*schema.properties, *schema.statistics]
        missing = [item.name for item in declared if item.name not in python_names]
        if missing:
            raise CallerError(f"class {schema.name} declares no attribute for {', '.join(missing)}")
        fields = [FieldLayout(item, schema.name, python_names[item.name]) for item in declared]
        self.properties = tuple(fields[: len(schema.properties)])
        self.statistics = tuple(fields[len(schema.properties) :])
        self.by_name: dict[str, FieldLayout] = {field.python_name: field for field in self}
        self.by_name.update({field.name: field for field in self})
        self.index = self._those(lambda field: field.index)
        self.required = self._those(lambda field: field.required)
        self.references = self._those(lambda field: field.type.name == "objId")
        self.accessors = tuple(
            sorted(self._those(lambda field: not field.direct), key=lambda field: bool(field.formula))
        )
        self.accessor_factories: dict[FieldLayout, Callable[[Any, Cells, FieldLayout], object]] = {}
        direct = self._those(lambda field: field.direct)
        for cell, field in enumerate(direct, FIRST_VALUE):
            field.cell = cell
        self._initial: Cells = [True, True, None, None, *(field.initial() for field in direct)]
        self._mutable = self._those(lambda field: field.direct and isinstance(field.initial(), (dict, list)))
        self.derived = self._those(lambda field: field.formula is not None)
        sources = {name for field in self.derived for name in self._checked_sources(field)}
        self.sources = self._those(lambda field: field.name in sources)
        self._fields = {
            PROPERTIES: self.properties,
            STATISTICS: self.statistics,
            BOTH: self.properties + self.statistics,
        }
        self.wire: dict[int, tuple[tuple[str, Wrapper | None], ...]] = {
            group: _wire_of(fields) for group, fields in self._fields.items()
        }
        self.readers: dict[int, Callable[[Any], Any]] = {}
        self.takers: dict[int, Callable[[Any], Any]] = {}
        self.encoders: dict[int, Callable[[Any], Any]] = {}
        self.row_function: Callable[..., bytes] | None = None

    def _those(self, test: Callable[[FieldLayout], bool]) -> tuple[FieldLayout, ...]:
        """The fields that pass a test, in schema order."""
        return tuple(filter(test, self))

    def __iter__(self) -> Iterator[FieldLayout]:
        yield from self.properties
        yield from self.statistics

    def field(self, name: str) -> FieldLayout:
        """The field with a schema name or Python name.

        Raises:
            CallerError: the class has no such property or statistic.
        """
        found = self.by_name.get(name)
        if found is None:
            raise CallerError(f"class {self.schema.name} has no property or statistic {name!r}")
        return found

    def fields(self, groups: int) -> tuple[FieldLayout, ...]:
        """The fields of a group, or of both, in wire order."""
        return self._fields[groups]

    def new_cells(self) -> Cells:
        """The cells of a new object: first values, marked as changed."""
        cells = self._initial[:]
        for field in self._mutable:
            cells[field.cell] = field.initial()
        return cells

    def _checked_sources(self, field: FieldLayout) -> Sequence[str]:
        """The names in the formula of a derived statistic, which must be plain numbers of the class."""
        assert field.formula is not None
        if field.type.style is Style.MMA:
            raise CallerError(f"{field.where}: min/max/average statistics cannot be assigned")
        known: dict[str, FieldLayout] = {item.name: item for item in self}
        for name in field.formula.names:
            source = known.get(name)
            numeric = source is not None and (source.type.is_integer or source.type.python == "float")
            if source is None or not numeric or source.formula is not None or source.type.style is Style.MMA:
                reason = f"{name!r} in the expression {field.formula.text!r} is not a plain number of the class"
                raise CallerError(f"{field.where}: {reason}")
        return field.formula.names


#: Gives a value the type that has its width on the wire.
Wrapper = Callable[[Any], object]


def wrapper_of(base: QmfType) -> Wrapper | None:
    """The class in which `wrap_value` wraps values of a type; None if it leaves them as they are."""
    zero = zero_value(base)
    kind = type(wrap_value(base, zero))
    return None if kind is type(zero) else kind


def slot_name(schema_name: str) -> str:
    """Name of the slot for an accessor; no schema can have such a name."""
    return f"_qmf_v_{schema_name}"
