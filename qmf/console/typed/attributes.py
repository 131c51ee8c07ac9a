"""Descriptors of generated proxies: properties and statistics, read with the types of their schema."""

from __future__ import annotations

from typing import Any, Generic, Never, NoReturn, Self, TypeVar, overload

from qmf.console.typed.objects import TypedObject
from qmf.console.typed.values import HiLo, Mma, typed_value
from qmf.schema import Property, QmfType, Statistic
from qmf.schema.documentation import FieldDocstring

T = TypeVar("T")


class _Descriptor:
    """A property or statistic; type and wire names come from the schema of the class.

    Args:
        schema_name: its name in the schema, if that is not the name of the class attribute.
    """

    _keys: tuple[str, ...]
    _wheres: tuple[str, ...]
    _type: QmfType
    _optional: bool

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = FieldDocstring(cls.__doc__)  # type: ignore[assignment]

    def __init__(self, schema_name: str = "") -> None:
        self.schema_name = schema_name
        self.item: Property | Statistic | None = None

    def __set_name__(self, owner: type[TypedObject], name: str) -> None:
        schema = owner._qmf_schema_
        self.schema_name = self.schema_name or name
        item = schema.property(self.schema_name)
        statistic = schema.statistic(self.schema_name)
        if item is not None:
            self._keys, self._type = (item.name,), item.type
            self._optional = item.optional or item.type.name == "objId"
        elif statistic is not None:
            self._keys, self._type = tuple(entry.name for entry in statistic.entries), statistic.type
            self._optional = statistic.type.name == "objId"
        else:
            raise TypeError(f"class {schema.name} has no property or statistic {self.schema_name!r}")
        self._wheres = tuple(f"{schema.name}.{key}" for key in self._keys)
        self.item = item or statistic

    def __set__(self, obj: TypedObject, value: Never) -> NoReturn:
        # For type checkers, and for `help()`, which lists it as data; at run time `TypedObject` refuses first.
        raise AttributeError(f"{self.schema_name} can't be assigned")

    def _read(self, obj: TypedObject) -> list[Any]:
        remote = obj._qmf_remote
        values = remote.data.values
        return [
            typed_value(self._type, values.get(key), where, remote.agent, optional=self._optional)
            for key, where in zip(self._keys, self._wheres, strict=True)
        ]


class Attribute(_Descriptor, Generic[T]):
    """A property, counter or plain statistic; reading raises `MissingValueError` or `ProtocolError`."""

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> T: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | T:
        if obj is None:
            return self
        value: T = self._read(obj)[0]
        return value


class HiLoAttribute(_Descriptor):
    """A statistic with high and low marks; reading raises as of `Attribute`."""

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> HiLo: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | HiLo:
        return self if obj is None else HiLo(*self._read(obj))


class MmaAttribute(_Descriptor):
    """A statistic over samples; reading raises as of `Attribute`."""

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> Mma: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | Mma:
        return self if obj is None else Mma(*self._read(obj))
