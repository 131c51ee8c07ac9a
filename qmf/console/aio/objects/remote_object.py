"""Remote objects: the values of an object as its agent sent them, and requests to it.

The objects of one answer may be encoded as rows; each stays a row until it is read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from qmf._compile import fast_constructor
from qmf.console.aio.objects.class_fields import (
    ClassFields,
    ValueField,
    Values,
    detach_data,
    difference,
    merge,
)
from qmf.console.aio.objects.values import PreparedMethod, property_values, schema_name, with_agent
from qmf.errors import CallerError, ConstraintError, NotFoundError, RemoteError
from qmf.protocol import ErrorCode, ObjectData, ObjectId
from qmf.protocol.objects import as_dict
from qmf.schema import ClassKey, ClassSchema, Method

#: Name of the method that sets properties at agents of this project. No schema name starts with ``_``.
SET_PROPERTIES = "_set_properties"

#: Inputs of a method by position.
Args = tuple[object, ...]


@attrs.frozen
class Timestamps:
    """Times of an object, in nanoseconds since 1970 by its agent's clock; 0 where the agent sent none.

    Attributes:
        update: when this state was sent.
        create: when the object was created.
        delete: when it was deleted; 0 before.
    """

    update: int
    create: int
    delete: int


class CallResult(Mapping[str, Any]):
    """The outputs of a method, by name or as attributes; empty for a method without outputs.

    `result["name"]` always works; `result.name` works unless mappings have a method of that name, like `items`.
    """

    __slots__ = ("_outputs",)

    def __init__(self, outputs: Mapping[str, object]) -> None:
        self._outputs = dict(outputs)

    def __getitem__(self, name: str) -> Any:
        return self._outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._outputs[name]
        except KeyError:
            raise AttributeError(str(NotFoundError("output", name, self._outputs))) from None

    def __repr__(self) -> str:
        return f"CallResult({self._outputs!r})"


class ObjectClient(Protocol):
    """The operations of a client that remote objects use."""

    async def refresh(self, target: RemoteObject, timeout: float | None) -> ObjectData:
        """Ask the agent for the object's current state."""

    def invoke(
        self,
        target: RemoteObject,
        method: str,
        inputs: Values,
        timeout: float | None,
        on_behalf_of: str | None = None,
    ) -> Awaitable[Values]:
        """Call a method of the object with checked inputs; returns the outputs as sent. To be awaited at once."""

    async def dereference(self, target: ObjectId, timeout: float | None) -> RemoteObject:
        """Ask for the object that a reference points to."""


@attrs.frozen
class _ForUser:
    """An `ObjectClient` that calls methods on behalf of a user of the program."""

    client: ObjectClient
    user: str

    async def refresh(self, target: RemoteObject, timeout: float | None) -> ObjectData:
        return await self.client.refresh(target, timeout)

    def invoke(
        self,
        target: RemoteObject,
        method: str,
        inputs: Values,
        timeout: float | None,
        on_behalf_of: str | None = None,
    ) -> Awaitable[Values]:
        return self.client.invoke(target, method, inputs, timeout, on_behalf_of or self.user)

    async def dereference(self, target: ObjectId, timeout: float | None) -> RemoteObject:
        return await self.client.dereference(target, timeout)


class RemoteObject:
    """An object of an agent: its values as last received, and its methods.

    Values don't change by themselves: `update` asks for them again, and notifications hold new `RemoteObject`s. Values
    are attributes (`queue.msgDepth`) and items (`queue["msgDepth"]`); methods are awaitable attributes
    (`await broker.echo(1, "x")`). If a schema uses a name that this class uses itself, like `schema`, use the item or
    `call`; a name that is a Python keyword gets a ``_`` appended (`shelf.class_`). A value that the object doesn't
    have at the moment, like an optional property that is not set, is None.

    An object without a client belongs to no agent: it has values, but requests raise `CallerError`.
    """

    __slots__ = ("_client", "_fields", "_id", "_place", "_received", "agent")

    agent: str
    """Name of its agent."""
    _id: ObjectId | None
    #: The object as its agent sent it; or those among which it is the one at `_place`, until it is read.
    _received: ObjectData | Sequence[ObjectData]
    _place: int
    _fields: ClassFields | None
    _client: ObjectClient | None

    def __init__(
        self, data: ObjectData, object_id: ObjectId, agent: str, fields: ClassFields | None, client: ObjectClient | None
    ) -> None:
        put = object.__setattr__  # past our own `__setattr__`
        put(self, "_received", data)
        put(self, "_place", 0)
        put(self, "_fields", fields)
        put(self, "_client", client)
        put(self, "agent", agent)
        put(self, "_id", object_id)

    @property
    def _data(self) -> ObjectData:
        received = self._received
        if not isinstance(received, ObjectData):
            received = received[self._place]
            object.__setattr__(self, "_received", received)
        return received

    @property
    def object_id(self) -> ObjectId:
        """Its id, agent name included."""
        found = self._id
        if found is None:
            found = with_agent(self._data.object_id or ObjectId(""), self.agent)
            object.__setattr__(self, "_id", found)
        return found

    @property
    def class_key(self) -> ClassKey | None:
        """Its class; None for data without schema."""
        return self._data.class_key

    @property
    def schema(self) -> ClassSchema | None:
        """The schema of its class; None for data without schema, or when no agent sent the schema."""
        return self._fields.schema if self._fields else None

    @property
    def data(self) -> ObjectData:
        """The merged data that the agent sent, with wire names and values. Values may be decoded only when read."""
        return self._data

    @property
    def timestamps(self) -> Timestamps:
        """When it was sent, created and deleted."""
        return Timestamps(self._data.update_ts, self._data.create_ts, self._data.delete_ts)

    @property
    def is_deleted(self) -> bool:
        """True once its agent reported that it was deleted."""
        return self._data.delete_ts != 0

    @property
    def properties(self) -> Mapping[str, object]:
        """The properties received, by name, in schema order; without a schema, every value."""
        if self._fields is None:
            return MappingProxyType(as_dict(self._data.values))
        return self._group(self._fields.properties)

    @property
    def statistics(self) -> Mapping[str, object]:
        """The statistics received, by wire name (`latencyAvg`), in schema order; empty without a schema."""
        return self._group(self._fields.statistics) if self._fields else MappingProxyType({})

    @property
    def methods(self) -> Mapping[str, Method]:
        """Its methods by name; empty without a schema."""
        return MappingProxyType(
            {name: item.method for name, item in self._fields.methods.items()} if self._fields else {}
        )

    @property
    def typed_values(self) -> Mapping[str, Any]:
        """All values received, by wire name, as `[]` reads them; each is converted when it is read."""
        return _TypedValues(self)

    def values_of(self, names: Iterable[str]) -> list[Any]:
        """The values with these names, as `[]` reads them; faster than `[]` for many values."""
        unpacked = self._with(attrs.evolve(self._data, values=as_dict(self._data.values)))
        return [unpacked[name] for name in names]

    def __getitem__(self, name: str) -> Any:
        """The value with this name; None when the object doesn't have it at the moment.

        Raises:
            NotFoundError: its class has no such value.
        """
        values = self._data.values
        if self._fields is None:
            if name in values:
                return values[name]
            raise NotFoundError("value", name, values)
        field = self._fields.field(name)
        if field is not None:
            return field.read(values.get(field.key), self.agent)
        if name in values:
            return values[name]  # sent by the agent, but not in the schema
        raise NotFoundError(f"value of {self._name()}", name, self._fields.names())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        name = schema_name(name)
        if self._fields is not None and name in self._fields.methods:
            return self._caller(name)
        try:
            return self[name]
        except NotFoundError:
            known = [*(self._fields.names() if self._fields else self._data.values), *self.methods]
            raise AttributeError(str(NotFoundError(f"attribute of {self._name()}", name, known))) from None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in RemoteObject.__slots__:
            raise AttributeError(f"{name} can't be assigned; write: await obj.set({name}=...)")
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        names = self._fields.names() if self._fields else self._data.values
        return [*super().__dir__(), *names, *self.methods]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteObject) and other.object_id == self.object_id

    def __hash__(self) -> int:
        return hash(self.object_id)

    def __repr__(self) -> str:
        return f"<{self._name()} {self.object_id} at {self.agent}>"

    async def update(self, timeout: float | None = None) -> None:
        """Ask the agent for the current values.

        Args:
            timeout: seconds to wait; None for the client's.

        Raises:
            NotFoundError: the agent or the object no longer exists.
            RequestTimeout, NetworkError, AgentLost, RemoteError: see `qmf.console.aio.Client`.
        """
        object.__setattr__(self, "_received", await self._require_client().refresh(self, timeout))

    async def call(self, method: str, /, *args: object, _timeout: float | None = None, **kwargs: object) -> CallResult:
        """Call a method.

        Args:
            method: its name.
            args: inputs in schema order.
            kwargs: inputs by name; an input with a default in the schema may be left out.
            _timeout: seconds to wait; None for the client's.

        Returns:
            the outputs, typed by the schema.

        Raises:
            NotFoundError: no such method or input; names similar ones. Nothing was sent.
            ConstraintError: an input is missing, or doesn't fit its type. Nothing was sent.
            RemoteError: the agent refused the call, or the method failed.
            RequestTimeout, NetworkError, AgentLost: no answer; the method may have been carried out.
        """
        client = self._require_client()
        prepared, inputs = self._bind(method, args, kwargs)
        outputs = await client.invoke(self, method, inputs, _timeout)
        return CallResult(prepared.typed_outputs(outputs, self.agent) if prepared else outputs)

    def check_call(self, method: str, /, *args: object, **kwargs: object) -> None:
        """Check the arguments of a call without making it.

        Raises:
            NotFoundError, ConstraintError: as of `call`.
        """
        self._require_client()
        self._bind(method, args, kwargs)

    async def set(self, /, *, _timeout: float | None = None, **values: object) -> None:
        """Set read-write properties, all or none; only agents of this project support this.

        Raises:
            NotFoundError: no such property. Nothing was sent.
            ConstraintError: a property is not read-write, or a value doesn't fit. Nothing was sent.
            RemoteError: the agent refused, or is not an agent of this project.
            RequestTimeout, NetworkError, AgentLost: no answer; the properties may have been set.
        """
        client = self._require_client()
        sent = property_values(self._fields.schema, values) if self._fields else values
        try:
            await client.invoke(self, SET_PROPERTIES, sent, _timeout)
        except RemoteError as error:
            if error.code != ErrorCode.UNKNOWN_METHOD:
                raise
            who = "qpidd" if self.agent.startswith("apache.org:qpidd:") else "this agent"
            text = f"{who} cannot set properties, as agents of this project can: look for a method of {self._name()}"
            raise RemoteError(text, error.code, error.agent, error.values) from error
        data = attrs.evolve(self._data, values={**as_dict(self._data.values), **sent})
        object.__setattr__(self, "_received", data)

    async def follow(self, reference: str, timeout: float | None = None) -> RemoteObject | None:
        """The object that a reference property points to; None when the reference is not set.

        Raises:
            NotFoundError: no such property, or the object no longer exists.
            TypeError: the property is not a reference.
        """
        value = self[reference]
        if value is None:
            return None
        if not isinstance(value, ObjectId):
            raise TypeError(f"{reference} of {self._name()} is not a reference")
        return await self._require_client().dereference(value, timeout) if value.object_name else None

    def with_update(self, newer: ObjectData) -> RemoteObject:
        """A new object with an update merged over this one."""
        return RemoteObject(
            merge(self._data, newer, self._fields), self.object_id, self.agent, self._fields, self._client
        )

    def on_behalf_of(self, user: str) -> RemoteObject:
        """The same object, whose methods are called and properties set on behalf of a user of this program.

        Agents of this project show that user in their audit, beside the one that the program has logged in as.
        """
        client = self._client
        return (
            self
            if client is None
            else RemoteObject(self._data, self.object_id, self.agent, self._fields, _ForUser(client, user))
        )

    def without(self, names: Collection[str]) -> RemoteObject:
        """The same object, without the values with these wire names."""
        values = {name: value for name, value in as_dict(self._data.values).items() if name not in names}
        return self._with(attrs.evolve(self._data, values=values))

    def without_message(self) -> RemoteObject:
        """The same object, without a reference to the message that it came in, so that it can be kept for long."""
        data = detach_data(self._data)
        return self if data is self._data else self._with(data)

    def _with(self, data: ObjectData) -> RemoteObject:
        return RemoteObject(data, self.object_id, self.agent, self._fields, self._client)

    def _require_client(self) -> ObjectClient:
        if self._client is None:
            raise CallerError("this object is not managed: it belongs to no agent")
        return self._client

    def _bind(self, method: str, args: Args, kwargs: Values) -> tuple[PreparedMethod | None, Values]:
        """A method and the inputs of a call, checked and ready for the wire; without a schema, inputs as they are."""
        if self._fields is None:
            if args:
                where = f"{class_name_of(self)}.{method}"
                raise ConstraintError(where, "no schema", args, "must be given arguments by name")
            return None, kwargs
        prepared = self._fields.methods.get(method)
        if prepared is None:
            raise NotFoundError(f"method of {class_name_of(self)}", method, self._fields.methods)
        return prepared, prepared.bind(args, kwargs)

    def _caller(self, method: str) -> Callable[..., Awaitable[CallResult]]:
        def caller(*args: object, _timeout: float | None = None, **kwargs: object) -> Awaitable[CallResult]:
            return self.call(method, *args, _timeout=_timeout, **kwargs)

        caller.__name__ = method
        return caller

    def _group(self, fields: Mapping[str, ValueField]) -> Mapping[str, object]:
        values = as_dict(self._data.values)
        return MappingProxyType(
            {key: field.read(values[key], self.agent) for key, field in fields.items() if key in values}
        )

    def _name(self) -> str:
        key = self.class_key
        return f"{key.package}:{key.name}" if key else "object"


class _TypedValues(Mapping[str, Any]):
    __slots__ = ("_obj",)

    def __init__(self, obj: RemoteObject) -> None:
        self._obj = obj

    def __getitem__(self, name: str) -> Any:
        if name not in self._obj.data.values:
            raise KeyError(name)
        return self._obj[name]

    def __contains__(self, name: object) -> bool:
        return name in self._obj.data.values

    def __iter__(self) -> Iterator[str]:
        return iter(self._obj.data.values)

    def __len__(self) -> int:
        return len(self._obj.data.values)


def class_name_of(obj: RemoteObject) -> str:
    """Name of an object's class, for messages; ``object`` for data without schema."""
    return obj.class_key.name if obj.class_key else "object"


_make = fast_constructor(RemoteObject)


def remote_objects(
    items: Sequence[ObjectData], agent: str, fields: ClassFields | None, client: ObjectClient | None
) -> list[RemoteObject]:
    """Remote objects of one class; the data of each is taken out of the sequence when the object is read."""
    # In the order of the slots.
    return [_make(client, fields, None, place, items, agent) for place in range(len(items))]


def changed_groups(old: RemoteObject | None, new: RemoteObject) -> tuple[bool, bool]:
    """Whether properties, and whether statistics, differ between two states of an object; see `difference`."""
    return (True, True) if old is None else difference(old.data, new.data, new._fields)
