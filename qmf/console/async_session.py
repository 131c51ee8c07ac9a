"""The asynchronous side of `Session`: coroutines that run on the session's loop and treat several brokers as one.

Its methods have the names of the facade's, in lower case with underscores; a test compares the signatures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from qmf._loop_thread import LoopThread
from qmf.console import aio
from qmf.console.broker_connection import BrokerConnection
from qmf.console.broker_options import AddBrokerOptions
from qmf.console.callbacks import Console
from qmf.console.console_notifier import ConsoleNotifier
from qmf.console.identity import ClassKey
from qmf.console.proxies import Agent, Broker, Object, SessionApi
from qmf.console.schema_views import SchemaClass
from qmf.console.selection import select
from qmf.console.unmanaged import make_unmanaged
from qmf.errors import CallerError, NotFoundError, QmfError

T = TypeVar("T")


class AsyncSession:
    """The brokers of one session, and the thread that serves them."""

    def __init__(self, session: SessionApi, notifier: ConsoleNotifier, manage_connections: bool) -> None:
        """Make a session; its threads start with the first broker.

        Args:
            session: the facade.
            notifier: makes the callbacks.
            manage_connections: connect in the background, and again after each loss.
        """
        self._session = session
        self._notifier = notifier
        self._filters = notifier.filters
        self._managed = manage_connections
        advice = "call it from a Console callback or another thread, or use qmf.console.aio in coroutines"
        self._loop = LoopThread("qmf-console", advice)
        self._connections: list[BrokerConnection] = []

    # -- for the facade, on any thread

    @property
    def console(self) -> Console | None:
        """The console that gets the callbacks."""
        return self._notifier.console

    @property
    def brokers(self) -> list[Broker]:
        """The brokers added."""
        return [connection.broker for connection in self._connections]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the session's loop and wait for its result; see `LoopThread.run`."""
        return self._loop.run(work)

    def stop(self) -> None:
        """Disconnect, run the callbacks that wait, and end the threads."""
        if self._loop.running:
            self._loop.run(self.close())
            self._notifier.close()
            self._loop.stop()

    # -- brokers

    async def add_broker(self, options: AddBrokerOptions) -> Broker:
        """`Session.addBroker`, with its arguments checked."""
        connection = BrokerConnection(self._session, self._loop, self._notifier, options, managed=self._managed)
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

    async def del_broker(self, broker: Broker) -> None:
        """`Session.delBroker`."""
        if broker not in self.brokers:
            raise NotFoundError("broker of this session", str(broker.getUrl()))
        connection = self._connection(broker)
        self._connections.remove(connection)
        await connection.close()

    async def close(self) -> None:
        """`Session.close`, without the threads."""
        connections, self._connections = self._connections, []
        await asyncio.gather(*(connection.close() for connection in connections))

    # -- requests

    async def get_packages(self) -> list[str]:
        """`Session.getPackages`."""
        found = await self._each(lambda connection: connection.client.packages())
        return sorted({name for names in found for name in names})

    async def get_classes(self, packageName: str) -> list[ClassKey]:
        """`Session.getClasses`."""
        found = await self._each(lambda connection: connection.client.classes(packageName))
        return list(dict.fromkeys(ClassKey(key) for keys in found for key in keys))

    async def get_schema(self, classKey: ClassKey) -> SchemaClass:
        """`Session.getSchema`."""
        failure: QmfError = NotFoundError("schema", str(classKey))
        for connection in self._connected_brokers():
            try:
                return await connection.schema(classKey)
            except QmfError as error:
                failure = error
        raise failure

    async def get_agents(self, broker: Broker | None = None) -> list[Agent]:
        """`Session.getAgents`."""
        brokers = self.brokers if broker is None else [broker]
        return [agent for item in brokers for agent in item.getAgents()]

    async def is_finding_agents(self, broker: Broker | None = None) -> bool:
        """`Session.isFindingAgents`."""
        connections = self._connections if broker is None else [self._connection(broker)]
        return any(connection.finding_agents for connection in connections)

    async def get_objects(self, **kwargs: Any) -> list[Object]:
        """`Session.getObjects`."""
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

    async def make_object(self, classKey: ClassKey, **kwargs: Any) -> Object:
        """`Session.makeObject`."""
        return make_unmanaged(await self.get_schema(classKey), kwargs)

    # -- what is received

    async def bind_package(self, packageName: str) -> None:
        """`Session.bindPackage`."""
        notifier = self._notifier
        self._check_user_bindings("bindPackage", objects=notifier.objects or notifier.events)
        keys: list[str] = []
        if notifier.objects:
            keys += self._filters.add_class(packageName, None)
        if notifier.events:
            keys += self._filters.add_event(packageName, None)
        await self._bind(keys)

    async def bind_class(self, pname: str, cname: str | None = None) -> None:
        """`Session.bindClass`."""
        self._check_user_bindings("bindClass", objects=self._notifier.objects)
        await self._bind(self._filters.add_class(pname, cname))

    async def bind_event(self, pname: str, ename: str | None = None) -> None:
        """`Session.bindEvent`."""
        self._check_user_bindings("bindEvent", events=self._notifier.events)
        await self._bind(self._filters.add_event(pname, ename))

    async def bind_agent(
        self,
        vendor: str | None = None,
        product: str | None = None,
        instance: str | None = None,
        label: str | None = None,
    ) -> None:
        """`Session.bindAgent`."""
        self._check_user_bindings("bindAgent")
        if label is not None:
            raise CallerError("bindAgent: labels name QMFv1 agents, which this console does not support; give a vendor")
        if vendor is None:
            raise CallerError("bindAgent: give a vendor, and optionally a product and an instance")
        self._filters.add_agent(*(None if part == "*" else part for part in (vendor, product, instance)))

    async def add_event_filter(
        self, package: str = "*", event: str = "*", vendor: str = "*", product: str = "*", severity: str = "*"
    ) -> None:
        """`Session.addEventFilter`."""
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

    async def add_heartbeat_filter(self, vendor: str, product: str | None = None) -> None:
        """`Session.addHeartbeatFilter`."""
        self._filters.add_agent(vendor, product, None)

    # -- inside

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
