"""Descriptors that generated classes declare: one per property and statistic.

At run time they are `property` objects: C code around one function for reading and one for writing. The functions are
made when the class is first used, with cell and bounds as constants. A descriptor belongs to the class that has the
schema; subclasses share it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar, overload

from qmf.agent.accessors.bounded_counter import bounded_counter_class
from qmf.agent.accessors.counter import Counter
from qmf.agent.accessors.derived_statistic import DerivedStatistic, compute
from qmf.agent.accessors.hilo import HiLo
from qmf.agent.accessors.locking import HAS_GLOBAL_LOCK, locking_subclass
from qmf.agent.accessors.mma import Mma
from qmf.agent.layout import object_state
from qmf.agent.layout.change_marks import Cells
from qmf.agent.layout.class_layout import FieldLayout, slot_name
from qmf.agent.layout.constraint_errors import read_only_error
from qmf.agent.layout.object_state import Setter, StatefulObject
from qmf.agent.layout.references import Referable, resolve
from qmf.errors import ConstraintError
from qmf.protocol.values import ObjectId
from qmf.schema import ClassSchema, Property, Statistic
from qmf.schema.documentation import FieldDocstring

if TYPE_CHECKING:
    # mypy needs a base without `__get__`, so that each descriptor states its own types.
    _Property = object
else:
    _Property = property

T = TypeVar("T")


class AttributeDescriptor(_Property):
    """Base of the descriptors.

    Args:
        schema_name: name of the property or statistic, where it differs from that of the class attribute.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = FieldDocstring(cls.__doc__)  # type: ignore[assignment]

    def __init__(self, schema_name: str = "") -> None:
        self.schema_name = schema_name
        self._owner: type | None = None
        self._set_functions(None, _unusable)  # with a setter, since `help` calls properties without one read-only

    def __set_name__(self, owner: type, name: str) -> None:
        self.schema_name = self.schema_name or name
        self._owner = owner

    @property
    def item(self) -> Property | Statistic | None:
        """The property or statistic; None outside of a class with a schema."""
        schema: ClassSchema | None = getattr(self._owner, "_qmf_schema_", None)
        return None if schema is None else schema.property(self.schema_name) or schema.statistic(self.schema_name)

    def _set_functions(self, getter: Callable[[Any], Any] | None, setter: Setter) -> None:
        if not TYPE_CHECKING:
            super().__init__(getter, setter)

    def _bind(self, field: FieldLayout) -> None:
        """Make the functions for the field, before the first object of the class is made."""
        raise NotImplementedError


class Attribute(AttributeDescriptor, Generic[T]):
    """A value set by assignment: properties, and statistics of plain types.

    Assigning checks type, range and length (ConstraintError), refuses what is fixed after construction, and marks the
    object as changed unless the value is the same. Maps and lists are copied when assigned: to change one, assign
    again. A statistic with an expression is computed on each read and cannot be assigned.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: StatefulObject, owner: type) -> T: ...
        def __get__(self, instance: StatefulObject | None, owner: type) -> Self | T: ...
        def __set__(self, instance: StatefulObject, value: T) -> None: ...

    def _bind(self, field: FieldLayout) -> None:
        if field.formula is not None:
            self._set_functions(lambda instance: compute(instance, field), _refusing_setter(field))
        elif field.fixed or field.index:
            self._set_functions(object_state.value_getter(field), _refusing_setter(field))
        else:
            self._set_functions(object_state.value_getter(field), object_state.value_setter(field))


class ReferenceAttribute(AttributeDescriptor):
    """A reference: set to a managed object, an object id or None; reads as the object id, or None.

    A reference to an object that is in no agent yet reads as None until the object is added.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: StatefulObject, owner: type) -> ObjectId | None: ...
        def __get__(self, instance: StatefulObject | None, owner: type) -> Self | ObjectId | None: ...
        def __set__(self, instance: StatefulObject, value: Referable | ObjectId | None) -> None: ...

    def _bind(self, field: FieldLayout) -> None:
        get = object_state.value_getter(field)
        setter = _refusing_setter(field) if field.fixed or field.index else object_state.value_setter(field)
        self._set_functions(lambda instance: resolve(get(instance)), setter)


class AccessorDescriptor(AttributeDescriptor):
    """Reads as an accessor object; refuses assignment, which would replace it."""

    _accessor: Callable[..., object]

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self.slot = slot_name(self.schema_name)

    if TYPE_CHECKING:

        def __set__(self, instance: StatefulObject, value: Never) -> None: ...

    def _bind(self, field: FieldLayout) -> None:
        call = "sample(...)" if isinstance(self, MmaAttribute) else "set(...)"

        def refuse(_: StatefulObject, value: object) -> None:
            raise ConstraintError(field.where, field.type.name, value, f"cannot be assigned; call .{field.name}.{call}")

        self._accessor_class = self._accessor_for(field)
        self._set_functions(attrgetter(self.slot), refuse)

    def _accessor_for(self, field: FieldLayout) -> Callable[..., object]:  # noqa: ARG002  # used by CounterAttribute
        """The class of accessors for a field."""
        return type(self)._accessor

    def _make(self, instance: StatefulObject, cells: Cells, field: FieldLayout) -> object:
        """The accessor of a new object."""
        if field.formula is not None:
            layout = object_state.layout(instance)
            used = [layout.by_name[name] for name in field.formula.names]
            sources = tuple(item.cell if item.direct else getattr(instance, item.slot) for item in used)
            return DerivedStatistic(cells, field, sources)
        return self._accessor_class(cells, field)


class CounterAttribute(AccessorDescriptor):
    """A statistic with a `Counter`."""

    _accessor = Counter if HAS_GLOBAL_LOCK else locking_subclass(Counter)

    def _accessor_for(self, field: FieldLayout) -> Callable[..., object]:
        return bounded_counter_class(field) if HAS_GLOBAL_LOCK else super()._accessor_for(field)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: StatefulObject, owner: type) -> Counter: ...
        def __get__(self, instance: StatefulObject | None, owner: type) -> Self | Counter: ...


class HiLoAttribute(AccessorDescriptor):
    """A statistic with a `HiLo`."""

    _accessor = HiLo if HAS_GLOBAL_LOCK else locking_subclass(HiLo)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: StatefulObject, owner: type) -> HiLo: ...
        def __get__(self, instance: StatefulObject | None, owner: type) -> Self | HiLo: ...


class MmaAttribute(AccessorDescriptor):
    """A statistic with an `Mma`."""

    _accessor = Mma if HAS_GLOBAL_LOCK else locking_subclass(Mma)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: StatefulObject, owner: type) -> Mma: ...
        def __get__(self, instance: StatefulObject | None, owner: type) -> Self | Mma: ...


def _unusable(_: StatefulObject, __: object) -> None:
    raise AttributeError("the class has no objects yet")


def _refusing_setter(field: FieldLayout) -> Setter:
    """The setter of a field that cannot be assigned, or only while the object has no id: part of the key."""
    set_value = object_state.value_setter(field)

    def refuse(instance: StatefulObject, value: object) -> None:
        if field.formula is not None:
            raise read_only_error(field, value)
        if field.fixed:
            raise ConstraintError(field.where, field.type.name, value, "cannot change after the object is made")
        if object_state.object_id(instance) is not None:
            raise ConstraintError(field.where, field.type.name, value, "is part of the object's id and cannot change")
        set_value(instance, value)

    return refuse
