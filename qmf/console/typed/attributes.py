"""Descriptors of generated proxies: properties and statistics, read with the types of their schema."""

from __future__ import annotations

import abc
from typing import Any, Generic, Never, NoReturn, Self, TypeVar, overload

from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.typed.objects import TypedObject
from qmf.console.typed.values import HiLo, Mma, typed_value
from qmf.schema import Property, QmfType, Statistic
from qmf.schema.documentation import FieldDocstring

T = TypeVar("T")


class _Descriptor(abc.ABC, Generic[T]):
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

    @overload
    def __get__(self, obj: None, owner: type[TypedObject]) -> Self: ...

    @overload
    def __get__(self, obj: TypedObject, owner: type[TypedObject]) -> T: ...

    def __get__(self, obj: TypedObject | None, owner: type[TypedObject]) -> Self | T:
        return self if obj is None else self._read(obj._qmf_remote)

    @abc.abstractmethod
    def _read(self, remote: RemoteObject) -> T:
        """The value for an object."""

    def _part(self, remote: RemoteObject, index: int) -> Any:
        """One of the numbers that the value consists of."""
        value = remote.data.values.get(self._keys[index])
        return typed_value(self._type, value, self._wheres[index], remote.agent, optional=self._optional)


class Attribute(_Descriptor[T]):
    """A property, counter or plain statistic; reading raises `MissingValueError` or `ProtocolError`."""

    def _read(self, remote: RemoteObject) -> T:
        value: T = self._part(remote, 0)
        return value


class HiLoAttribute(_Descriptor[HiLo]):
    """A statistic with high and low marks; reading raises as of `Attribute`."""

    def _read(self, remote: RemoteObject) -> HiLo:
        return HiLo(self._part(remote, 0), self._part(remote, 1), self._part(remote, 2))


class MmaAttribute(_Descriptor[Mma]):
    """A statistic over samples; reading raises as of `Attribute`."""

    def _read(self, remote: RemoteObject) -> Mma:
        part = self._part
        return Mma(part(remote, 0), part(remote, 1), part(remote, 2), part(remote, 3))
