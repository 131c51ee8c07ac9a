"""Managed objects in the published API: `Object` and `MethodResult`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from qmf.console.aio import RemoteObject
from qmf.console.aio.objects.class_view import schema_name
from qmf.console.identity import ClassKey, ObjectId
from qmf.console.schema_views import SchemaClass, SchemaMethod, SchemaProperty, SchemaStatistic
from qmf.errors import CallerError, NotFoundError
from qmf.protocol import ObjectId as CoreId
from qmf.schema import Access

if TYPE_CHECKING:
    from qmf.console.brokers import Agent, Broker

#: Seconds that a method waits for its answer where the call doesn't say otherwise.
SYNC_TIME = 60.0


class MethodResult:
    """What a method answered; its outputs are attributes, too. Prints like ``OK (0) - {'body': 'x'}``.

    Attributes:
        status: 0 for success, else a code of QMF2.md 4.6.
        text: ``OK``, or why it failed.
        outArgs: the outputs by name.
    """

    def __init__(self, status: int, text: str, outArgs: Mapping[str, object]) -> None:
        self.status = status
        self.text = text
        self.outArgs = dict(outArgs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.get("outArgs", {}).get(name)

    def __repr__(self) -> str:
        return f"{self.text} ({self.status}) - {self.outArgs}"


class Object:
    """A proxy for a managed object, or an unmanaged object made by `Session.makeObject`.

    Properties, statistics and methods are attributes; `_ref_`, for a reference `ref`, is the object that it names.
    Values don't follow the agent; see `update`. Assigning to a property that is read-write sets it at the agent, which
    agents of this project take, and raises what the agent says against it. A method is called with inputs by position,
    by name, or mixed, and

    - `_timeout`: seconds to wait, 60 by default;
    - `_async`: True to return a sequence number at once; the answer goes to `Console.methodResponse`.
    """

    _remote: RemoteObject
    _schema: SchemaClass
    _agent: Agent | None

    def __init__(self, remote: RemoteObject, schema: SchemaClass, agent: Agent | None) -> None:
        put = object.__setattr__  # past our own `__setattr__`: thousands of objects are made at a time
        put(self, "_remote", remote)
        put(self, "_schema", schema)
        put(self, "_agent", agent)

    def getAgent(self) -> Agent | None:
        """The agent that it lives in; None for an unmanaged object."""
        return self._agent

    def getBroker(self) -> Broker | None:
        """The broker through which it was found; None for an unmanaged object."""
        return self._agent.getBroker() if self._agent else None

    def getV2RoutingKey(self) -> str:
        """Where its agent takes requests."""
        return self._managed().getV2RoutingKey()

    def getObjectId(self) -> ObjectId | None:
        """Its id; None for an unmanaged object."""
        return object_id(self._remote.object_id, self._agent) if self._agent else None

    def getClassKey(self) -> ClassKey:
        """Key of its class."""
        return self._schema.getKey()

    def getSchema(self) -> SchemaClass:
        """Its class."""
        return self._schema

    def getMethods(self) -> list[SchemaMethod]:
        """Its methods."""
        return self._schema.getMethods()

    def getTimestamps(self) -> tuple[int, int, int]:
        """When it was sent, made and deleted: nanoseconds since 1970, 0 for never or unknown."""
        times = self._remote.timestamps
        return times.update, times.create, times.delete

    def isDeleted(self) -> bool:
        """True when its agent said that it is gone."""
        return self._remote.is_deleted

    def isManaged(self) -> bool:
        """True for a proxy, False for an unmanaged object."""
        return self._agent is not None

    def getIndex(self) -> str:
        """Its name within the agent; empty for an unmanaged object."""
        return self._remote.object_id.object_name

    def getProperties(self) -> list[tuple[SchemaProperty, object]]:
        """Properties with their values, in schema order; those that the object lacks are left out."""
        values = self._remote.properties
        return [(item, self._shown(values[item.name])) for item in self._schema.properties if item.name in values]

    def getStatistics(self) -> list[tuple[SchemaStatistic, object]]:
        """Statistics with their values, in schema order; those not received yet are left out."""
        found = self._remote.values_of([item.name for item in self._schema.statistics])
        pairs = zip(self._schema.statistics, found, strict=True)
        return [(item, self._shown(value)) for item, value in pairs if value is not None]

    def update(self, timeout: float | None = None) -> None:
        """Ask the agent for the present values.

        Raises:
            NotFoundError: the object, or its agent, is gone.
        """
        self._managed().run(self._remote.update(timeout))

    def mergeUpdate(self, newer: Object) -> None:
        """Take over what a later proxy of the same object knows."""
        self._managed()
        if newer.getObjectId() != self.getObjectId():
            raise CallerError(f"cannot merge {newer!r} into {self!r}: these are two objects")
        self.__dict__["_remote"] = self._remote.merged(newer._remote.data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_schema" not in self.__dict__:
            raise AttributeError(name)
        name = schema_name(name)
        for method in self._schema.methods:
            if method.name == name:
                return self._caller(name)
        if name.startswith("_") and name.endswith("_") and len(name) > 2:
            return self._dereferenced(name[1:-1])
        try:
            return self._value(name)
        except NotFoundError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name: str, value: object) -> None:
        name = schema_name(name)
        found = next((item for item in self._schema.properties if item.name == name), None)
        if found is None:
            raise AttributeError(str(NotFoundError("property", name, [item.name for item in self._schema.properties])))
        if self._agent is not None:
            if found.core.access is not Access.RW:
                where = f"{self.getClassKey().getClassName()}.{name}"
                raise AttributeError(f"{where} has access {found.core.access.value}: only its agent changes it")
            self._agent.run(self._remote.set(_timeout=None, **{name: _plain(value)}))
            return
        data = self._remote.data
        self.__dict__["_remote"] = self._remote.merged(attrs.evolve(data, values={**data.values, name: value}))

    def __dir__(self) -> list[str]:
        schema = self._schema
        names = [item.name for item in schema.properties] + [item.name for item in schema.statistics]
        return [*super().__dir__(), *names, *(item.name for item in schema.methods)]

    def __repr__(self) -> str:
        key = self.getClassKey()
        where = repr(self.getObjectId()) if self.isManaged() else "unmanaged"
        return f"{key.getPackageName()}:{key.getClassName()}[{where}] {self.getIndex()}"

    def _value(self, name: str) -> object:
        return self._shown(self._remote[name])

    def _shown(self, value: object) -> object:
        return object_id(value, self._agent) if isinstance(value, CoreId) else value

    def _dereferenced(self, name: str) -> Object | None:
        value = self._remote[name]
        if value is None:
            return None
        if not isinstance(value, CoreId):
            raise AttributeError(f"{name} is no reference")
        found = self._managed().getObjects(_objectId=ObjectId(value)) if value.object_name else []
        return found[0] if len(found) == 1 else None

    def _caller(self, method: str) -> Callable[..., Any]:
        def caller(*args: Any, _timeout: float = SYNC_TIME, _async: bool = False, **kwargs: Any) -> Any:
            agent = self._managed()
            start = agent.link.start_call if _async else agent.link.call
            plain = [_plain(item) for item in args]
            named = {name: _plain(item) for name, item in kwargs.items()}
            return agent.run(start(self._remote, method, plain, named, _timeout))

        caller.__name__ = method
        return caller

    def _managed(self) -> Agent:
        if self._agent is None:
            raise CallerError("this object is not managed: no agent has it")
        return self._agent


def object_id(core: CoreId, agent: Agent | None) -> ObjectId:
    """An id as the published API prints it: the broker's own agent is ``0``."""
    name = core.agent_name
    if agent is not None and agent.link.is_broker(name):
        name = "0"
    return ObjectId(core, name)


def _plain(value: object) -> object:
    """An argument as the core takes it."""
    if isinstance(value, Object):
        return value._remote.object_id
    return value.core if isinstance(value, ObjectId) else value
