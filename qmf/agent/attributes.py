"""Descriptors that generated classes declare: one per property and statistic.

They derive from `property` over `operator.attrgetter`, because reading then runs no Python code. Values lie in the
instance's `__dict__` under names no schema can have. A descriptor belongs to the class that holds the schema;
subclasses share it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar, overload

from qmf.agent.accessors import Counter, Derived, HiLo, Mma, read_only
from qmf.agent.layout import PENDING, Field, numbers
from qmf.agent.references import Referable, is_pending, resolve
from qmf.errors import ConstraintError
from qmf.protocol.values import ObjectId

if TYPE_CHECKING:
    from qmf.agent.model import ManagedObject

    # mypy needs a base without `__get__`, so that each descriptor states its own types.
    _Property = object
else:
    _Property = property

T = TypeVar("T")


class Descriptor(_Property):
    """Base of the descriptors.

    Attributes:
        schema_name: name of the property or statistic.
    """

    def __init__(self, schema_name: str) -> None:
        self.schema_name = schema_name
        self._field: Field | None = None
        self._read_by(attrgetter(f"_qmf_v_{schema_name}"))

    def _read_by(self, getter: Callable[[Any], Any]) -> None:
        if not TYPE_CHECKING:
            super().__init__(getter, doc=f"The value of {self.schema_name!r}; the docstring of the class says more.")

    def _bind(self, field: Field) -> None:
        """Learn the field, before the first instance of the class is made."""
        self._field = field

    def _place(self, instance: ManagedObject, value: object) -> None:
        """Put what a new instance holds into its `__dict__`: `value` has been checked already."""
        assert self._field is not None
        instance.__dict__[self._field.slot] = value


class Attribute(Descriptor, Generic[T]):
    """A value set by assignment: properties, and statistics of plain types.

    Assigning checks type, range and length (ConstraintError), refuses what is fixed after construction, and marks the
    object as changed unless the value is the same. Maps and lists are copied when assigned: to change one, assign
    again. A statistic with an expression is computed on each read and cannot be assigned.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: ManagedObject, owner: type) -> T: ...
        def __get__(self, instance: ManagedObject | None, owner: type) -> Self | T: ...

    def __set__(self, instance: ManagedObject, value: T) -> None:
        field = self._field
        assert field is not None
        if field.fixed or field.index or field.formula is not None:
            refuse_fixed(instance, field, value)
        stored = field.check(value)
        values = instance.__dict__
        slot = field.slot
        with instance._qmf_lock:
            before = values[slot]
            # 1 == True == 1.0, so the types are compared too. A map or list counts as new each time.
            if type(before) is type(stored) and before == stored and not isinstance(stored, (dict, list)):
                return
            values[slot] = stored
            instance._qmf_marks |= field.group

    def _bind(self, field: Field) -> None:
        super()._bind(field)
        if field.formula is not None:
            self._read_by(lambda instance: compute(instance, field))


class ReferenceAttribute(Descriptor):
    """A reference: takes a managed object, an object id or None; gives the object id, or None.

    An object that no agent has yet gives None until it is added.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: ManagedObject, owner: type) -> ObjectId | None: ...
        def __get__(self, instance: ManagedObject | None, owner: type) -> Self | ObjectId | None: ...

    def __set__(self, instance: ManagedObject, value: Referable | ObjectId | None) -> None:
        field = self._field
        assert field is not None
        if field.fixed or field.index:
            refuse_fixed(instance, field, value)
        stored = field.check(value)
        with instance._qmf_lock:
            if stored != instance.__dict__[field.slot]:
                self._place(instance, stored)
                instance._qmf_marks |= field.group

    def _bind(self, field: Field) -> None:
        super()._bind(field)
        slot = field.slot
        self._read_by(lambda instance: resolve(instance.__dict__[slot]))

    def _place(self, instance: ManagedObject, value: object) -> None:
        super()._place(instance, value)
        if isinstance(value, Referable) and is_pending(value):
            instance._qmf_marks |= PENDING


class _AccessorDescriptor(Descriptor):
    """Gives an accessor object; refuses assignment, which would replace it."""

    _accessor: Callable[[ManagedObject, Field], object]

    def __set__(self, instance: ManagedObject, value: Never) -> None:
        assert self._field is not None
        way = "sample(...)" if self._accessor is Mma else "set(...)"
        raise ConstraintError(
            self._field.where, self._field.type.name, value, f"cannot be assigned; call .{self.schema_name}.{way}"
        )

    def _place(self, instance: ManagedObject, value: object) -> None:  # noqa: ARG002  # accessors start by themselves
        field = self._field
        assert field is not None
        accessor = type(self)._accessor
        if field.formula is None:
            super()._place(instance, accessor(instance, field))
        else:
            super()._place(instance, Derived(instance, field, lambda: compute(instance, field)))


class CounterAttribute(_AccessorDescriptor):
    """A statistic with a `Counter`."""

    _accessor = Counter

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: ManagedObject, owner: type) -> Counter: ...
        def __get__(self, instance: ManagedObject | None, owner: type) -> Self | Counter: ...


class HiLoAttribute(_AccessorDescriptor):
    """A statistic with a `HiLo`."""

    _accessor = HiLo

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: ManagedObject, owner: type) -> HiLo: ...
        def __get__(self, instance: ManagedObject | None, owner: type) -> Self | HiLo: ...


class MmaAttribute(_AccessorDescriptor):
    """A statistic with an `Mma`."""

    _accessor = Mma

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: ManagedObject, owner: type) -> Mma: ...
        def __get__(self, instance: ManagedObject | None, owner: type) -> Self | Mma: ...


def compute(instance: ManagedObject, field: Field) -> int | float:
    """The value of a derived statistic now, from one consistent state of its sources."""
    with instance._qmf_lock:
        values = numbers(instance._qmf_layout, instance.__dict__)
    return field.derived(values)


def refuse_fixed(instance: ManagedObject, field: Field, value: object) -> None:
    """Raise ConstraintError for a field that cannot be assigned (now)."""
    if field.formula is not None:
        raise read_only(field, value)
    if field.fixed:
        raise ConstraintError(field.where, field.type.name, value, "cannot change after the object is made")
    if instance._qmf_id is not None:
        raise ConstraintError(field.where, field.type.name, value, "is part of the object's id and cannot change")
