"""The published console API: `Session`, which treats several brokers as one.

Each of its methods is a coroutine that runs on the session's background loop (`blocking`). Unmanaged objects, which
belong to no agent, are what `Session.makeObject` returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from qmf._closable import Closable
from qmf._loop_thread import LoopThread, blocking
from qmf.console import aio
from qmf.console.aio import ClassFields, RemoteObject
from qmf.console.broker_connection import BrokerConnection
from qmf.console.broker_options import AddBrokerOptions, read_options
from qmf.console.callbacks import Console
from qmf.console.console_notifier import ConsoleNotifier
from qmf.console.identity import BrokerURL, ClassKey
from qmf.console.proxies import Agent, Broker, Object
from qmf.console.schema_views import SchemaClass
from qmf.console.selection import select
from qmf.errors import CallerError, NotFoundError, QmfError
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import TYPES, ClassSchema, check_value, zero_value


def make_unmanaged(view: SchemaClass, given: Mapping[str, Any]) -> Object:
    """An object with the given values; all others are zero.

    Args:
        view: its class.
        given: values of properties by name.

    Raises:
        NotFoundError: it is an event, or the class has no such property.
        ConstraintError: a value doesn't fit its type.
    """
    schema = view.core
    if not isinstance(schema, ClassSchema):
        raise NotFoundError("class", repr(view.getKey()))
    known = {item.name: item for item in schema.properties}
    values: dict[str, object] = {item.name: zero_value(item.type) for item in schema.properties if not item.optional}
    for statistic in schema.statistics:
        values.update((entry.name, zero_value(TYPES[statistic.type.base])) for entry in statistic.entries)
    for name, value in given.items():
        if name not in known:
            raise NotFoundError(f"property of {schema.key.name}", name, known)
        item = known[name]
        values[name] = check_value(
            item.type,
            value,
            where=f"{schema.key.name}.{name}",
            minimum=item.minimum,
            maximum=item.maximum,
            max_len=item.max_len,
        )
    data = ObjectData(values=values, class_key=view.getKey().core)
    return Object(RemoteObject(data, ObjectId(""), "", ClassFields(schema), None), view, None)


T = TypeVar("T")


class Session(Closable):
    """A console session with one or more brokers.

    Use it as ``with Session() as session``, or call `close` at the end. Its methods block; they may be called from any
    thread, callbacks included. Ctrl-C during a call cancels that call only. Errors are those of `qmf.errors`.
    """

    def __init__(
        self,
        console: Console | None = None,
        rcvObjects: bool = True,
        rcvEvents: bool = True,
        rcvHeartbeats: bool = True,
        manageConnections: bool = False,
        userBindings: bool = False,
    ) -> None:
        """Make a session; it starts its threads when the first broker is added.

        Args:
            console: gets the callbacks; without one, nothing that agents publish is received.
            rcvObjects: receive objects that agents publish, for `objectProps` and `objectStats`.
            rcvEvents: receive events.
            rcvHeartbeats: call `heartbeat`.
            manageConnections: connect in the background, and again whenever the connection is lost.
            userBindings: receive only the objects and events that `bindClass` and the like select.

        Raises:
            CallerError: `userBindings` without a console.
        """
        self._notifier = ConsoleNotifier(console, rcvObjects, rcvEvents, rcvHeartbeats, userBindings)
        self._filters = self._notifier.filters
        self._managed = manageConnections
        advice = "call it from a Console callback or another thread, or use qmf.console.aio in coroutines"
        self._loop = LoopThread("qmf-console", advice)
        self._connections: list[BrokerConnection] = []

    def __repr__(self) -> str:
        return f"QMF Console Session Manager (brokers: {len(self.brokers)})"

    @property
    def console(self) -> Console | None:
        """The console that gets the callbacks."""
        return self._notifier.console

    @property
    def brokers(self) -> list[Broker]:
        """The brokers added."""
        return [connection.broker for connection in self._connections]

    def close(self) -> None:
        """Disconnect from all brokers, run the callbacks that wait, and end the threads. A second call does nothing."""
        if self._loop.running:
            self._loop.run(self._close())
            self._notifier.close()
            self._loop.stop()

    def addBroker(
        self,
        target: str | BrokerURL = "localhost",
        timeout: float | None = None,
        mechanisms: str | Sequence[str] | None = None,
        sessTimeout: float | None = None,
        **connectArgs: Any,
    ) -> Broker:
        """Connect to a broker.

        Args:
            target: ``host``, ``host:port``, ``user/password@host``, ``amqp://...`` or ``amqps://...``.
            timeout: seconds for connecting; None for 10.
            mechanisms: SASL mechanisms allowed, separated by spaces or as a sequence; None for all.
            sessTimeout: seconds that requests of the session itself wait for an answer; None for 60.
            connectArgs: `username`, `password`, `heartbeat` (seconds), and for ``amqps`` `ssl_certfile`,
                `ssl_keyfile`, `ssl_trustfile` (paths) and `ssl_skip_hostname_check`.

        Returns:
            the broker; with `manageConnections` it may not be connected yet.

        Raises:
            ConnectError: no connection within the time; not with `manageConnections`.
            CallerError: an invalid or unknown argument.
        """
        return self._loop.run(self._add_broker(read_options(target, timeout, mechanisms, sessTimeout, connectArgs)))

    @blocking
    async def delBroker(self, broker: Broker) -> None:
        """Disconnect from a broker.

        Raises:
            NotFoundError: it doesn't belong to this session.
        """
        if broker not in self.brokers:
            raise NotFoundError("broker of this session", str(broker.getUrl()))
        connection = self._connection(broker)
        self._connections.remove(connection)
        await connection.close()

    @blocking
    async def getPackages(self) -> list[str]:
        """Names of the packages of all agents, sorted."""
        found = await self._each(lambda connection: connection.client.packages())
        return sorted({name for names in found for name in names})

    @blocking
    async def getClasses(self, packageName: str) -> list[ClassKey]:
        """Keys of the classes and events of a package."""
        found = await self._each(lambda connection: connection.client.classes(packageName))
        return list(dict.fromkeys(ClassKey(key) for keys in found for key in keys))

    @blocking
    async def getSchema(self, classKey: ClassKey) -> SchemaClass:
        """The schema of a class or event.

        Raises:
            NotFoundError: no agent has it.
        """
        return await self._schema(classKey)

    @blocking
    async def getAgents(self, broker: Broker | None = None) -> list[Agent]:
        """The agents present, of one broker or of all."""
        brokers = self.brokers if broker is None else [broker]
        return [agent for item in brokers for agent in item.getAgents()]

    @blocking
    async def isFindingAgents(self, broker: Broker | None = None) -> bool:
        """True while agents of one broker or of any are still being found: what asks all agents is not complete then.

        `addBroker` waits for it, at most for `sessTimeout`.
        """
        connections = self._connections if broker is None else [self._connection(broker)]
        return any(connection.finding_agents for connection in connections)

    @blocking
    async def getObjects(self, /, **kwargs: Any) -> list[Object]:
        """Ask agents for objects.

        Args:
            kwargs: one of

                - `_class`: name of a class, with or without `_package`;
                - `_key`: key of a class, as `getClasses` returns it;
                - `_schema`: a class, as `getSchema` returns it;
                - `_objectId`: id of an object;

                and optionally `_agent` and `_broker` to ask only these, `_timeout` in seconds (60), and values that
                properties must have, by name.

        Raises:
            CallerError: an invalid or unknown argument, or no connection.
            QmfError: no agent answered; when only some fail, that is logged.
        """
        wanted = select(kwargs)
        connections = self._connected_brokers() if wanted.broker is None else [self._connection(wanted.broker)]
        if wanted.agent is not None:
            broker = wanted.agent.broker
            connections = [connection for connection in connections if connection.broker is broker]
            if not connections:
                raise CallerError(f"getObjects: {wanted.agent!r} is not reached through that broker")
        elif wanted.object_id is not None and wanted.object_id.agent_name not in (None, "broker"):
            name = wanted.object_id.agent_name
            connections = [connection for connection in connections if connection.has_agent(name)]
            if not connections:
                raise NotFoundError("agent", str(name))
        found = await asyncio.gather(*(connection.objects(wanted) for connection in connections))
        return [obj for objects in found for obj in objects]

    @blocking
    async def makeObject(self, /, classKey: ClassKey, **kwargs: Any) -> Object:
        """An object that belongs to no agent, with the given properties; all other values are zero.

        Raises:
            NotFoundError: no such class or property.
            ConstraintError: a value doesn't fit its type.
        """
        return make_unmanaged(await self._schema(classKey), kwargs)

    @blocking
    async def bindPackage(self, packageName: str) -> None:
        """Receive objects and events of a package, as far as the session receives them; needs `userBindings`."""
        notifier = self._notifier
        self._check_user_bindings("bindPackage", objects=notifier.objects or notifier.events)
        keys: list[str] = []
        if notifier.objects:
            keys += self._filters.add_class(packageName, None)
        if notifier.events:
            keys += self._filters.add_event(packageName, None)
        await self._bind(keys)

    @blocking
    async def bindClass(self, pname: str, cname: str | None = None) -> None:
        """Receive objects of a class, or of all in a package; needs `userBindings` and `rcvObjects`."""
        self._check_user_bindings("bindClass", objects=self._notifier.objects)
        await self._bind(self._filters.add_class(pname, cname))

    def bindClassKey(self, classKey: ClassKey) -> None:
        """Receive objects of a class; needs `userBindings` and `rcvObjects`."""
        self.bindClass(classKey.getPackageName(), classKey.getClassName())

    @blocking
    async def bindEvent(self, pname: str, ename: str | None = None) -> None:
        """Receive an event, or all in a package; needs `userBindings` and `rcvEvents`."""
        self._check_user_bindings("bindEvent", events=self._notifier.events)
        await self._bind(self._filters.add_event(pname, ename))

    def bindEventKey(self, eventKey: ClassKey) -> None:
        """Receive an event; needs `userBindings` and `rcvEvents`."""
        self.bindEvent(eventKey.getPackageName(), eventKey.getClassName())

    @blocking
    async def bindAgent(
        self,
        vendor: str | None = None,
        product: str | None = None,
        instance: str | None = None,
        label: str | None = None,
    ) -> None:
        """Call `newAgent`, `delAgent` and `heartbeat` only for such agents; ``*`` matches all. Needs `userBindings`.

        Raises:
            CallerError: no vendor, or a label, which only agents of QMFv1 have.
        """
        self._check_user_bindings("bindAgent")
        if label is not None:
            raise CallerError("bindAgent: labels name QMFv1 agents, which this console does not support; give a vendor")
        if vendor is None:
            raise CallerError("bindAgent: give a vendor, and optionally a product and an instance")
        self._filters.add_agent(*(None if part == "*" else part for part in (vendor, product, instance)))

    @blocking
    async def addEventFilter(
        self, package: str = "*", event: str = "*", vendor: str = "*", product: str = "*", severity: str = "*"
    ) -> None:
        """Receive only such events, besides those that were selected before; ``*`` matches all.

        Agents of libqmf2 don't put severity and names into their routing keys, so their events are no longer received
        once a filter was added.

        Args:
            package, event: names; an event needs its package.
            vendor, product: parts of the agent's name.
            severity: ``emerg``, ``alert``, ``crit``, ``error``, ``warn``, ``note``, ``info`` or ``debug``.
        """
        if event != "*" and package == "*":
            raise CallerError("addEventFilter: an event needs its package")
        parts = [part.replace(".", "_") for part in (package, event, severity, vendor, product)]
        added = self._filters.add_keys([f"agent.ind.event.{'.'.join(parts)}.#"])
        if package != "*":
            self._filters.note_event(package, None if event == "*" else event)
        await self._bind(added)
        everything = aio.class_keys("event", None, None)
        if self._filters.remove_keys(everything):
            await asyncio.gather(*(connection.unbind(everything) for connection in self._connections))

    def addAgentFilter(self, vendor: str, product: str | None = None) -> None:
        """The same as `addHeartbeatFilter`."""
        self.addHeartbeatFilter(vendor, product)

    @blocking
    async def addHeartbeatFilter(self, vendor: str, product: str | None = None) -> None:
        """Call `newAgent`, `delAgent` and `heartbeat` only for such agents, and for the connected broker's."""
        self._filters.add_agent(vendor, product, None)

    # -- on the loop

    async def _add_broker(self, options: AddBrokerOptions) -> Broker:
        connection = BrokerConnection(self, self._loop, self._notifier, options, managed=self._managed)
        self._notifier.open()
        self._connections.append(connection)  # before it is connected, so that it gets what is bound meanwhile
        if self._managed:
            connection.start()
        else:
            try:
                await connection.connect()
            except BaseException:
                if connection in self._connections:
                    self._connections.remove(connection)
                raise
        return connection.broker

    async def _close(self) -> None:
        connections, self._connections = self._connections, []
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _schema(self, classKey: ClassKey) -> SchemaClass:
        failure: QmfError = NotFoundError("schema", str(classKey))
        for connection in self._connected_brokers():
            try:
                return await connection.schema(classKey)
            except QmfError as error:
                failure = error
        raise failure

    def _connection(self, broker: Broker) -> BrokerConnection:
        for connection in self._connections:
            if connection.broker is broker:
                return connection
        raise CallerError(f"not connected to {broker.getUrl()}: {broker.getError() or 'closed'}")

    def _connected_brokers(self) -> list[BrokerConnection]:
        connected = [connection for connection in self._connections if connection.connected]
        if not connected:
            states = "; ".join(f"{broker.getUrl()}: {broker.getError() or 'connecting'}" for broker in self.brokers)
            raise CallerError(f"not connected: {states}" if states else "no broker: call addBroker first")
        return connected

    async def _each(self, ask: Callable[[BrokerConnection], Coroutine[Any, Any, T]]) -> Iterable[T]:
        return await asyncio.gather(*(ask(connection) for connection in self._connected_brokers()))

    async def _bind(self, keys: list[str]) -> None:
        await asyncio.gather(*(connection.bind(keys) for connection in self._connections))

    def _check_user_bindings(self, what: str, *, objects: bool = True, events: bool = True) -> None:
        if not self._notifier.user_bindings:
            raise CallerError(f"{what}: the session needs userBindings=True")
        if not objects:
            raise CallerError(f"{what}: the session needs rcvObjects=True")
        if not events:
            raise CallerError(f"{what}: the session needs rcvEvents=True")
