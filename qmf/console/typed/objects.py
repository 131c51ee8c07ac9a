"""Typed objects: proxies of remote objects, and results of their methods, with the types of their schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Never, NoReturn, Self, TypeAlias, TypeVar, overload

from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.typed.values import UNSET, argument_value, class_name, is_class, make_instance
from qmf.errors import CallerError, unknown_attribute
from qmf.protocol import ObjectId
from qmf.schema import ClassSchema
from qmf.schema.documentation import document

TResult = TypeVar("TResult", bound="TypedResult")

#: What a reference can be set to.
Ref: TypeAlias = "TypedObject | RemoteObject | ObjectId"


class TypedObject:
    """An object of an agent, with the types of its schema: base class of generated proxies.

    ``Queue(remote)`` makes a proxy of a `RemoteObject`; ``client.objects(Queue)`` queries for proxies. Values are as
    last received, see `RemoteObject`. Two proxies of the same object are equal.
    """

    __slots__ = ("_qmf_remote",)

    _qmf_schema_: ClassVar[ClassSchema]
    _qmf_remote: RemoteObject

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls, "seconds to wait for the answer; None for the client's timeout")

    def __init__(self, remote: RemoteObject) -> None:
        """Wrap a remote object.

        Raises:
            CallerError: the object is of another class.
        """
        if not is_class(remote.class_key, self._qmf_schema_.key):
            raise CallerError(f"{remote!r} is not a {class_name(self._qmf_schema_)}")
        object.__setattr__(self, "_qmf_remote", remote)

    @classmethod
    def _qmf_wrap(cls, remote: RemoteObject) -> Self:
        """The proxy of a remote object; raises as the constructor does."""
        return cls(remote)

    def __setattr__(self, name: str, value: Never) -> NoReturn:
        if not hasattr(type(self), name):
            raise unknown_attribute(type(self), name)
        raise AttributeError(
            f"{name} can't be assigned; properties with access RW are set by: await obj.set({name}=...)"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedObject) and other._qmf_remote == self._qmf_remote

    def __hash__(self) -> int:
        return hash(self._qmf_remote)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._qmf_remote.object_id} at {self._qmf_remote.agent}>"

    @overload
    async def _qmf_call(
        self, method: str, timeout: float | None, result: type[TResult], /, *inputs: object
    ) -> TResult: ...

    @overload
    async def _qmf_call(self, method: str, timeout: float | None, result: None, /, *inputs: object) -> None: ...

    async def _qmf_call(
        self, method: str, timeout: float | None, result: type[TypedResult] | None, /, *inputs: object
    ) -> TypedResult | None:
        """Call a method with its inputs in the order of the generated class's schema.

        Raises:
            ProtocolError: an output is missing, or not of its schema type. The method was carried out.
            Others as of `RemoteObject.call`.
        """
        schema = self._qmf_schema_.method(method)
        if schema is None:
            raise TypeError(f"class {self._qmf_schema_.name} has no method {method!r}")
        names = [item.name for item in schema.inputs]
        given = {name: _plain(value) for name, value in zip(names, inputs, strict=True)}
        remote = self._qmf_remote
        outputs = await remote.call(method, _timeout=timeout, **given)
        if result is None:
            return None
        where = f"{self._qmf_schema_.name}.{method}"
        values = {item.name: argument_value(item, outputs, where, remote.agent) for item in schema.outputs}
        return make_instance(result, values)

    async def _qmf_set(self, timeout: float | None, values: Mapping[str, object]) -> None:
        """Set the properties that are not `UNSET`; without any, nothing is sent. Raises as `RemoteObject.set`."""
        given = {name: _plain(value) for name, value in values.items() if value is not UNSET}
        if given:
            await self._qmf_remote.set(_timeout=timeout, **given)


class TypedResult:
    """Outputs of a method: base class of generated result classes, which have one field per output."""

    __slots__ = ()


def _plain(value: object) -> object:
    return value._qmf_remote if isinstance(value, TypedObject) else value
