"""Remote objects: what an agent said of an object, and the way back to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from qmf._compile import fast_constructor
from qmf.console.aio.objects.class_view import ClassView, ValueField, schema_name, with_agent
from qmf.console.aio.objects.values import MergedValues, lay, plain
from qmf.errors import CallerError, NotFoundError
from qmf.protocol import ObjectData, ObjectId
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.row_objects import RowObjects
from qmf.schema import ClassKey, ClassSchema, Method

#: Inputs of a method by position, and values by name.
Args = tuple[object, ...]
Values = Mapping[str, object]


@attrs.frozen
class Timestamps:
    """Times of an object, in nanoseconds since 1970 by its agent's clock; 0 where the agent doesn't say.

    Attributes:
        update: when this state was sent.
        create: when the object was made.
        delete: when it ended; 0 while it lives.
    """

    update: int
    create: int
    delete: int


class CallResult(Mapping[str, Any]):
    """The outputs of a method, by name or as attributes; empty for a method without outputs.

    `result["name"]` always works; `result.name` does unless a mapping has a method of that name, like `items`.
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
    """What an object needs of its client."""

    async def refresh(self, target: RemoteObject, timeout: float | None) -> ObjectData:
        """Ask the agent for the object's present state."""

    async def call(
        self, target: RemoteObject, method: str, args: Args, kwargs: Values, timeout: float | None
    ) -> CallResult:
        """Call a method of the object."""

    def check_call(self, target: RemoteObject, method: str, args: Args, kwargs: Values) -> dict[str, object]:
        """Check the inputs of a call without sending anything."""

    async def assign(self, target: RemoteObject, values: Values, timeout: float | None) -> dict[str, object]:
        """Set properties of the object; returns the new values as sent."""

    async def dereference(self, target: ObjectId, timeout: float | None) -> RemoteObject:
        """Ask for the object that a reference names."""


class RemoteObject:
    """An object at an agent: its values as last received, and its methods.

    Values don't follow the agent: `update` asks for them anew, notifications bring new `RemoteObject`s. Values are
    attributes (`queue.msgDepth`) and items (`queue["msgDepth"]`); methods are awaitable attributes
    (`await broker.echo(1, "x")`). Where a schema uses a name that this class uses itself, like `schema`, the item and
    `call` still reach it; a name that is a keyword of Python gets a ``_`` behind it (`shelf.class_`). A value that the
    object doesn't have at the moment, like an unset optional property, is None.

    An object without a client stands for none at an agent: it has values, and can't be asked for anything.
    """

    __slots__ = ("_client", "_id", "_place", "_said", "_view", "agent")

    agent: str
    """Name of the agent that it lives in."""
    _id: ObjectId | None
    #: What the agent sent. While that is a row of many it stays one, at an offset, until the object is looked at.
    _said: ObjectData | RowObjects
    _place: int
    _view: ClassView | None
    _client: ObjectClient | None

    def __init__(
        self, data: ObjectData, object_id: ObjectId, agent: str, view: ClassView | None, client: ObjectClient | None
    ) -> None:
        put = object.__setattr__  # past our own `__setattr__`
        put(self, "_said", data)
        put(self, "_place", 0)
        put(self, "_view", view)
        put(self, "_client", client)
        put(self, "agent", agent)
        put(self, "_id", object_id)

    @property
    def _data(self) -> ObjectData:
        said = self._said
        if isinstance(said, RowObjects):
            said = said.at(self._place)
            object.__setattr__(self, "_said", said)
        return said

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
        """Its class in full; None for data without schema, or where the schema could not be learned."""
        return self._view.schema if self._view else None

    @property
    def data(self) -> ObjectData:
        """What the agent sent, merged, with wire names and values. The values may be unpacked only as they are read."""
        return self._data

    @property
    def timestamps(self) -> Timestamps:
        """When it was sent, made and deleted."""
        return Timestamps(self._data.update_ts, self._data.create_ts, self._data.delete_ts)

    @property
    def is_deleted(self) -> bool:
        """True once the agent said that it is gone."""
        return self._data.delete_ts != 0

    @property
    def properties(self) -> Mapping[str, object]:
        """The properties received, by name, in schema order; without a schema, every value."""
        if self._view is None:
            return MappingProxyType(plain(self._data.values))
        return self._group(self._view.properties)

    @property
    def statistics(self) -> Mapping[str, object]:
        """The statistics received, by wire name (`latencyAvg`), in schema order; none without a schema."""
        return self._group(self._view.statistics) if self._view else MappingProxyType({})

    @property
    def methods(self) -> Mapping[str, Method]:
        """Its methods by name; none without a schema."""
        return MappingProxyType({method.name: method for method in self.schema.methods} if self.schema else {})

    def values_of(self, names: Iterable[str]) -> list[Any]:
        """The values called so, as `[]` reads them, one after the other: quicker where many are wanted."""
        data = attrs.evolve(self._data, values=plain(self._data.values))
        unpacked = RemoteObject(data, self.object_id, self.agent, self._view, self._client)
        return [unpacked[name] for name in names]

    def __getitem__(self, name: str) -> Any:
        """The value called `name`; None when the object doesn't have it at the moment.

        Raises:
            NotFoundError: its class has no such value.
        """
        values = self._data.values
        if self._view is None:
            if name in values:
                return values[name]
            raise NotFoundError("value", name, values)
        slot = self._view.slot(name)
        if slot is not None:
            return slot.read(values.get(slot.key), self.agent)
        if name in values:
            return values[name]  # sent though the schema doesn't list it
        raise NotFoundError(f"value of {self._name()}", name, self._view.names())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        name = schema_name(name)
        if name in self.methods:
            return self._caller(name)
        try:
            return self[name]
        except NotFoundError:
            known = [*(self._view.names() if self._view else self._data.values), *self.methods]
            raise AttributeError(str(NotFoundError(f"attribute of {self._name()}", name, known))) from None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in RemoteObject.__slots__:
            raise AttributeError(f"{name} can't be assigned; write: await obj.set({name}=...)")
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        names = self._view.names() if self._view else self._data.values
        return [*super().__dir__(), *names, *self.methods]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteObject) and other.object_id == self.object_id

    def __hash__(self) -> int:
        return hash(self.object_id)

    def __repr__(self) -> str:
        return f"<{self._name()} {self.object_id} at {self.agent}>"

    async def update(self, timeout: float | None = None) -> None:
        """Ask the agent for the present values.

        Args:
            timeout: seconds to wait; None for the client's.

        Raises:
            NotFoundError: the agent, or the object, is not there any more.
            RequestTimeout, NetworkError, AgentLost, RemoteError: see `qmf.console.aio.Client`.
        """
        object.__setattr__(self, "_said", await self._requester().refresh(self, timeout))

    async def call(self, method: str, /, *args: object, _timeout: float | None = None, **kwargs: object) -> CallResult:
        """Call a method.

        Args:
            method: its name.
            args: inputs in schema order.
            kwargs: inputs by name; what the schema gives a default for may be left out.
            _timeout: seconds to wait; None for the client's.

        Returns:
            the outputs, typed by the schema.

        Raises:
            NotFoundError: no such method or input; names similar ones. Nothing was sent.
            ConstraintError: an input is missing, or doesn't fit its type. Nothing was sent.
            RemoteError: the agent refused, or the method failed.
            RequestTimeout, NetworkError, AgentLost: no answer; the method may have been carried out.
        """
        return await self._requester().call(self, method, args, kwargs, _timeout)

    def check_call(self, method: str, /, *args: object, **kwargs: object) -> None:
        """Check a call as `call` does, without making it.

        Raises:
            NotFoundError, ConstraintError: as of `call`.
        """
        self._requester().check_call(self, method, args, kwargs)

    async def set(self, /, *, _timeout: float | None = None, **values: object) -> None:
        """Set properties that are read-write, all or none; agents of this project understand it.

        Raises:
            NotFoundError: no such property. Nothing was sent.
            ConstraintError: a property is not read-write, or a value doesn't fit. Nothing was sent.
            RemoteError: the agent refused; foreign agents know no such method.
            RequestTimeout, NetworkError, AgentLost: no answer; the properties may have been set.
        """
        sent = await self._requester().assign(self, values, _timeout)
        data = attrs.evolve(self._data, values={**plain(self._data.values), **sent})
        object.__setattr__(self, "_said", data)

    async def follow(self, reference: str, timeout: float | None = None) -> RemoteObject | None:
        """The object that a reference property names; None when the reference is not set.

        Raises:
            NotFoundError: no such property, or the object is not there any more.
            TypeError: the property is no reference.
        """
        value = self[reference]
        if value is None:
            return None
        if not isinstance(value, ObjectId):
            raise TypeError(f"{reference} of {self._name()} is no reference")
        return await self._requester().dereference(value, timeout) if value.object_name else None

    def merged(self, newer: ObjectData) -> RemoteObject:
        """This object with an update laid over it; this one stays as it is."""
        return RemoteObject(merge(self._data, newer, self._view), self.object_id, self.agent, self._view, self._client)

    def detached(self) -> RemoteObject:
        """The same, for who keeps it long: without the rest of the message that it came in."""
        values = self._data.values
        if not isinstance(values, LazyValues):
            return self
        data = attrs.evolve(self._data, values=values.detached())
        return RemoteObject(data, self.object_id, self.agent, self._view, self._client)

    def _requester(self) -> ObjectClient:
        if self._client is None:
            raise CallerError("this object is not managed: no agent has it")
        return self._client

    def _caller(self, method: str) -> Callable[..., Awaitable[CallResult]]:
        def caller(*args: object, _timeout: float | None = None, **kwargs: object) -> Awaitable[CallResult]:
            return self.call(method, *args, _timeout=_timeout, **kwargs)

        caller.__name__ = method
        return caller

    def _group(self, slots: Mapping[str, ValueField]) -> Mapping[str, object]:
        values = plain(self._data.values)
        return MappingProxyType(
            {key: slot.read(values[key], self.agent) for key, slot in slots.items() if key in values}
        )

    def _name(self) -> str:
        key = self.class_key
        return f"{key.package}:{key.name}" if key else "object"


_make = fast_constructor(RemoteObject)


def remote(
    data: ObjectData, object_id: ObjectId, agent: str, view: ClassView | None, client: ObjectClient | None
) -> RemoteObject:
    """The same as ``RemoteObject(...)``, quicker."""
    return _make(client, object_id, 0, data, view, agent)  # in the order of the slots


def of_rows(rows: RowObjects, agent: str, view: ClassView | None, client: ObjectClient | None) -> list[RemoteObject]:
    """The objects of a block; what the agent said of each is read when it is looked at."""
    return [_make(client, None, offset, rows, view, agent) for offset in rows.offsets]


def merge(old: ObjectData, new: ObjectData, view: ClassView | None) -> ObjectData:
    """An object with an update laid over it (QMF2.md 4.7).

    An update holds the properties, or the statistics, or both. Where it holds properties, an optional one that it
    leaves out is not set any more.
    """
    unset: list[str] = []
    if view is not None and view.groups(new.values)[0]:
        unset = [name for name in view.optional if name not in new.values]
    return ObjectData(
        values=lay(old.values, new.values, unset),
        object_id=old.object_id,
        class_key=new.class_key or old.class_key,
        update_ts=new.update_ts or old.update_ts,
        create_ts=new.create_ts or old.create_ts,
        delete_ts=new.delete_ts or old.delete_ts,
        subtypes={**old.subtypes, **new.subtypes} if new.subtypes else old.subtypes,
        left=old.left,
    )


def difference(old: RemoteObject | None, new: RemoteObject) -> tuple[bool, bool]:
    """Whether properties, and whether statistics, of two states of an object are different.

    What is neither, because the schema is not known, counts as a property.
    """
    if old is None:
        return True, True
    view = new._view
    quick = _quick_difference(old.data.values, new.data.values, view)
    if quick is not None:
        return quick
    before, after = plain(old.data.values), plain(new.data.values)
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if view is None:
        return bool(names), False
    statistics = names & view.statistics.keys()
    return len(names) > len(statistics), bool(statistics)


def _quick_difference(before: Values, after: Values, view: ClassView | None) -> tuple[bool, bool] | None:
    """`difference` as far as bytes and names tell it; None where values have to be unpacked."""
    if isinstance(after, MergedValues) and not after.hidden:
        if after.older is before:
            return None  # the first update of a group: the same values may have been known
        if not isinstance(before, MergedValues) or before.hidden or after.older is not before.older:
            return None
        before, after = before.newer, after.newer
    if not isinstance(before, LazyValues) or not isinstance(after, LazyValues) or before.layout is not after.layout:
        return None
    if before.raw() == after.raw():
        return False, False
    if view is None or before.names != after.names:
        return None
    # Statistics only: whatever is different is one of them.
    return (False, True) if view.groups(after) == (False, True) and view.covers(after) else None
