"""Brokers, agents and objects in the published API: `Broker`, `Agent` and `Object`, which refer to each other.

They are proxies: what they do is done by the connection to their broker.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

import attrs

from qmf.console import aio
from qmf.console.aio import RemoteObject
from qmf.console.aio.objects.values import schema_name
from qmf.console.identity import BrokerURL, ClassKey, ObjectId
from qmf.console.schema_views import SchemaClass, SchemaMethod, SchemaProperty, SchemaStatistic
from qmf.errors import CallerError, NotFoundError
from qmf.protocol import ObjectId as CoreId
from qmf.schema import Access


class MethodResult:
    """The result of a method call; its outputs are attributes, too. Prints like ``OK (0) - {'body': 'x'}``.

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


T = TypeVar("T")

#: Seconds that a method waits for its answer when the call does not specify it.
SYNC_TIME = 60.0


class SessionApi(Protocol):
    """The methods of `Session` that are used through `Broker.session`, `Agent.session` and `Event.session`."""

    @property
    def brokers(self) -> list[Broker]: ...
    def close(self) -> None: ...
    def delBroker(self, broker: Broker) -> None: ...
    def getPackages(self) -> list[str]: ...
    def getClasses(self, packageName: str) -> list[ClassKey]: ...
    def getSchema(self, classKey: ClassKey) -> SchemaClass: ...
    def getAgents(self, broker: Broker | None = None) -> list[Agent]: ...
    def getObjects(self, **kwargs: Any) -> list[Object]: ...
    def makeObject(self, classKey: ClassKey, **kwargs: Any) -> Object: ...


@attrs.frozen
class MethodCall:
    """A call of a method, as a program makes it.

    Attributes:
        target: the object.
        method: name of the method.
        args, kwargs: inputs by position and by name.
        timeout: seconds to wait for the answer.
    """

    target: RemoteObject
    method: str
    args: Sequence[object]
    kwargs: Mapping[str, object]
    timeout: float


class ConnectionApi(Protocol):
    """The operations of a `BrokerConnection` that proxies use."""

    broker: Broker
    session: SessionApi
    error: str | None
    broker_id: UUID | None

    @property
    def connected(self) -> bool:
        """True while the broker is connected."""

    @property
    def reply_key(self) -> str:
        """The routing key under which answers are received; empty before the first connection."""

    def agents(self) -> list[Agent]:
        """The agents present."""

    def is_broker(self, name: str | None) -> bool:
        """True for the name of the connected broker's agent."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the session's loop and wait for its result."""

    async def get_objects(
        self, agent: Agent, notifiable: Callable[..., object] | None, arguments: Mapping[str, Any]
    ) -> list[Object]:
        """`Agent.getObjects`."""

    async def call(self, call: MethodCall) -> MethodResult:
        """Call a method; an error that the agent answers is a result, too."""

    async def start_call(self, call: MethodCall) -> int:
        """Call a method in the background; returns a sequence number."""


class Agent:
    """An agent, as reached through one broker.

    Attributes:
        brokerBank: always 1.
        isV2: always True.
    """

    isV2 = True
    brokerBank = 1

    def __init__(self, connection: ConnectionApi, core: aio.Agent) -> None:
        self.connection = connection
        self.core = core

    @property
    def session(self) -> SessionApi:
        """The session that found it."""
        return self.connection.session

    @property
    def broker(self) -> Broker:
        """The broker through which it is reached."""
        return self.connection.broker

    @property
    def agentBank(self) -> str:
        """Its name; ``0`` for the agent of the connected broker."""
        return "0" if self.core.is_broker else self.core.name

    @property
    def label(self) -> str:
        """``BrokerAgent`` for the agent of the connected broker, else ``QMFv2 Agent``."""
        return "BrokerAgent" if self.core.is_broker else "QMFv2 Agent"

    @property
    def epoch(self) -> int:
        """Number of its start; 0 when it announced none."""
        return self.core.epoch

    def getBroker(self) -> Broker:
        """The broker through which it is reached."""
        return self.connection.broker

    def getBrokerBank(self) -> int:
        """Always 1."""
        return self.brokerBank

    def getAgentBank(self) -> str:
        """Its name; ``0`` for the agent of the connected broker."""
        return self.agentBank

    def getV2RoutingKey(self) -> str:
        """The routing key of requests to it."""
        return "broker" if self.core.is_broker else self.core.name

    def getObjects(self, notifiable: Callable[..., object] | None = None, **kwargs: Any) -> list[Object]:
        """Objects of this agent; arguments as of `Session.getObjects`.

        Args:
            notifiable: called from the session's callback thread with `qmf_object=` for each object and then with
                `qmf_complete=True`, or with `qmf_exception=` and the reason. This call then returns an empty list
                at once.
        """
        return self.run(self.connection.get_objects(self, notifiable, kwargs))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the session's loop and wait for its result."""
        return self.connection.run(work)

    def __repr__(self) -> str:
        return f"Agent(v2) at bank {self.brokerBank}.{self.agentBank} ({self.label})"


class Broker:
    """A connection to a broker, made by `Session.addBroker`.

    Attributes:
        host, port: its address.
        authUser: the user name for the connection, or None.
    """

    SYNC_TIME = 60

    def __init__(self, connection: ConnectionApi, url: BrokerURL) -> None:
        self.connection = connection
        self.host = url.host
        self.port = url.port
        self.authUser = url.authName
        self._url = url

    @property
    def session(self) -> SessionApi:
        """The session that it belongs to."""
        return self.connection.session

    @property
    def error(self) -> str | None:
        """See `getError`."""
        return self.connection.error

    def isConnected(self) -> bool:
        """True while it is connected."""
        return self.connection.connected

    def getError(self) -> str | None:
        """Why the last attempt to connect failed, or the connection was lost; None while it is connected."""
        return self.connection.error

    def getBrokerId(self) -> UUID | None:
        """The id of the broker; None before `Console.brokerInfo`, and for brokers without QMF."""
        return self.connection.broker_id

    def getBrokerBank(self) -> int:
        """Always 1."""
        return 1

    def getAgent(self, brokerBank: int, agentBank: int | str) -> Agent | None:
        """The agent with that bank, or None.

        Args:
            brokerBank: 1.
            agentBank: the agent's name, or 0 for the agent of the broker itself.
        """
        bank = str(agentBank)
        return next((item for item in self.getAgents() if brokerBank == 1 and item.agentBank == bank), None)

    def getBrokerAgent(self) -> Agent | None:
        """The agent of the broker itself; None when it has none."""
        return self.getAgent(1, 0)

    def getSessionId(self) -> str:
        """The routing key under which this connection receives answers."""
        return self.connection.reply_key

    def getAgents(self) -> list[Agent]:
        """The agents reached through it."""
        return self.connection.agents()

    def getAmqpSession(self) -> Any:
        """Not supported: AMQP 1.0 has no such session.

        Raises:
            CallerError: always.
        """
        raise CallerError("getAmqpSession: the connection uses AMQP 1.0, which has no AMQP 0-10 session")

    def getUrl(self) -> BrokerURL:
        """Host and port."""
        return self._url

    def getFullUrl(self, noAuthIfGuestDefault: bool = True) -> str:
        """The URL with scheme, user and password.

        Args:
            noAuthIfGuestDefault: leave user and password out when both are ``guest``.
        """
        name, password = self._url.authName, self._url.authPass
        default = noAuthIfGuestDefault and name == password == "guest"
        login = "" if not name or default else f"{name}/{password}@" if password else f"{name}@"
        return f"{self._url.scheme}://{login}{self._url}"

    def __repr__(self) -> str:
        return f"Broker connected at: {self.getUrl()}" if self.isConnected() else "Disconnected Broker"


class Object:
    """A proxy for a managed object, or an unmanaged object made by `Session.makeObject`.

    Properties, statistics and methods are attributes; `_ref_`, for a reference `ref`, is the object that it points to.
    Values don't change by themselves; see `update`. Assigning to a read-write property sets it at the agent, if this is
    an agent of this project, and raises the agent's error if it refuses. A method is called with inputs by position, by
    name, or both, and

    - `_timeout`: seconds to wait, 60 by default;
    - `_async`: True to return a sequence number at once; the result goes to `Console.methodResponse`.
    """

    _remote: RemoteObject
    _schema: SchemaClass
    _agent: Agent | None

    def __init__(self, remote: RemoteObject, schema: SchemaClass, agent: Agent | None) -> None:
        put = object.__setattr__  # faster than our own `__setattr__`: thousands of objects are made at a time
        put(self, "_remote", remote)
        put(self, "_schema", schema)
        put(self, "_agent", agent)

    def getAgent(self) -> Agent | None:
        """Its agent; None for an unmanaged object."""
        return self._agent

    def getBroker(self) -> Broker | None:
        """The broker through which it was found; None for an unmanaged object."""
        return self._agent.getBroker() if self._agent else None

    def getV2RoutingKey(self) -> str:
        """The routing key of requests to its agent."""
        return self._require_agent().getV2RoutingKey()

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
        """When it was sent, created and deleted: nanoseconds since 1970, 0 for never or unknown."""
        times = self._remote.timestamps
        return times.update, times.create, times.delete

    def isDeleted(self) -> bool:
        """True once its agent reported that it was deleted."""
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
        return [(item, self._with_agent(values[item.name])) for item in self._schema.properties if item.name in values]

    def getStatistics(self) -> list[tuple[SchemaStatistic, object]]:
        """Statistics with their values, in schema order; those not received yet are left out."""
        found = self._remote.values_of([item.name for item in self._schema.statistics])
        pairs = zip(self._schema.statistics, found, strict=True)
        return [(item, self._with_agent(value)) for item, value in pairs if value is not None]

    def update(self, timeout: float | None = None) -> None:
        """Ask the agent for the current values.

        Raises:
            NotFoundError: the object or its agent no longer exists.
        """
        self._require_agent().run(self._remote.update(timeout))

    def mergeUpdate(self, newer: Object) -> None:
        """Merge the values of a later proxy of the same object."""
        self._require_agent()
        if newer.getObjectId() != self.getObjectId():
            raise CallerError(f"cannot merge {newer!r} into {self!r}: these are different objects")
        self.__dict__["_remote"] = self._remote.with_update(newer._remote.data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_schema" not in self.__dict__:
            raise AttributeError(name)
        name = schema_name(name)
        for method in self._schema.methods:
            if method.name == name:
                return self._caller(name)
        if name.startswith("_") and name.endswith("_") and len(name) > 2:
            return self._dereference(name[1:-1])
        try:
            return self._with_agent(self._remote[name])
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
            self._agent.run(self._remote.set(_timeout=None, **{name: plain_value(value)}))
            return
        data = self._remote.data
        self.__dict__["_remote"] = self._remote.with_update(attrs.evolve(data, values={**data.values, name: value}))

    def __dir__(self) -> list[str]:
        schema = self._schema
        names = [item.name for item in schema.properties] + [item.name for item in schema.statistics]
        return [*super().__dir__(), *names, *(item.name for item in schema.methods)]

    def __repr__(self) -> str:
        key = self.getClassKey()
        where = repr(self.getObjectId()) if self.isManaged() else "unmanaged"
        return f"{key.getPackageName()}:{key.getClassName()}[{where}] {self.getIndex()}"

    def _with_agent(self, value: object) -> object:
        return object_id(value, self._agent) if isinstance(value, CoreId) else value

    def _dereference(self, name: str) -> Object | None:
        value = self._remote[name]
        if value is None:
            return None
        if not isinstance(value, CoreId):
            raise AttributeError(f"{name} is not a reference")
        found = self._require_agent().getObjects(_objectId=ObjectId(value)) if value.object_name else []
        return found[0] if len(found) == 1 else None

    def _caller(self, method: str) -> Callable[..., Any]:
        def caller(*args: Any, _timeout: float = SYNC_TIME, _async: bool = False, **kwargs: Any) -> Any:
            agent = self._require_agent()
            named = {name: plain_value(item) for name, item in kwargs.items()}
            call = MethodCall(self._remote, method, [plain_value(item) for item in args], named, _timeout)
            return agent.run(agent.connection.start_call(call) if _async else agent.connection.call(call))

        caller.__name__ = method
        return caller

    def _require_agent(self) -> Agent:
        if self._agent is None:
            raise CallerError("this object is not managed: it belongs to no agent")
        return self._agent


def object_id(core: CoreId, agent: Agent | None) -> ObjectId:
    """An id as the published API prints it: the broker's own agent is ``0``."""
    name = core.agent_name
    if agent is not None and agent.connection.is_broker(name):
        name = "0"
    return ObjectId(core, name)


def plain_value(value: object) -> object:
    """A value as the asynchronous client expects it."""
    if isinstance(value, Object):
        return value._remote.object_id
    return value.core if isinstance(value, ObjectId) else value
