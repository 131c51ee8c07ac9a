"""What a `Session` does, as coroutines on the session's loop: several brokers as one. `Session` only passes calls on.

The names follow the facade's in lower case with underscores; a test compares the signatures.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from qmf import schema
from qmf._loop_thread import LoopThread
from qmf.console import aio
from qmf.console.broker_connection import BrokerConnection
from qmf.console.broker_options import read_options
from qmf.console.brokers import Agent, Broker
from qmf.console.callback_filters import CallbackFilters
from qmf.console.callbacks import Console
from qmf.console.dispatcher import CallbackDispatcher
from qmf.console.identity import BrokerURL, ClassKey
from qmf.console.proxies import Object
from qmf.console.schema_views import SchemaClass, class_kind
from qmf.console.selection import select
from qmf.console.unmanaged import make_unmanaged
from qmf.errors import CallerError, NotFoundError, QmfError

if TYPE_CHECKING:
    from qmf.console.session import Session

log = logging.getLogger("qmf.console")

T = TypeVar("T")


class AsyncSession:
    """The brokers of one session, and the ways to its callbacks."""

    def __init__(
        self,
        session: Session,
        console: Console | None,
        rcvObjects: bool,
        rcvEvents: bool,
        rcvHeartbeats: bool,
        manageConnections: bool,
        userBindings: bool,
    ) -> None:
        if userBindings and console is None:
            raise CallerError("Session: userBindings=True needs a console, which gets what is bound")
        self.session = session
        self.console = console
        self.loop = LoopThread(
            "qmf-console", "call it from a Console callback or another thread, or use qmf.console.aio in coroutines"
        )
        self.dispatcher = CallbackDispatcher("qmf-console-callbacks")
        self.objects = rcvObjects and console is not None
        self.events = rcvEvents and console is not None
        self.heartbeats = rcvHeartbeats and console is not None
        self.manage_connections = manageConnections
        self.user_bindings = userBindings
        self.filters = CallbackFilters(objects=self.objects, events=self.events, user_bindings=userBindings)
        self._links: list[BrokerConnection] = []
        self._packages: set[str] = set()
        self._classes: set[ClassKey] = set()
        self._sequence = 0

    # -- brokers

    @property
    def brokers(self) -> list[Broker]:
        """The brokers added."""
        return [link.broker for link in self._links]

    async def add_broker(
        self,
        target: str | BrokerURL = "localhost",
        timeout: float | None = None,
        mechanisms: str | Sequence[str] | None = None,
        sessTimeout: float | None = None,
        **connectArgs: Any,
    ) -> Broker:
        """`Session.addBroker`."""
        link = BrokerConnection(self, read_options(target, timeout, mechanisms, sessTimeout, connectArgs))
        self.dispatcher.open()
        self._links.append(link)  # before it is connected: what is bound meanwhile is for it, too
        if self.manage_connections:
            link.start()
        else:
            try:
                await link.connect()
            except BaseException:
                if link in self._links:
                    self._links.remove(link)
                raise
        return link.broker

    async def del_broker(self, broker: Broker) -> None:
        """`Session.delBroker`."""
        if broker.link not in self._links:
            raise NotFoundError("broker of this session", str(broker.getUrl()))
        self._links.remove(broker.link)
        await broker.link.close()

    async def close(self) -> None:
        """`Session.close`, without the threads."""
        links, self._links = self._links, []
        await asyncio.gather(*(link.close() for link in links))

    # -- questions

    async def get_packages(self) -> list[str]:
        """`Session.getPackages`."""
        return sorted({name for names in await self._each(lambda link: link.packages()) for name in names})

    async def get_classes(self, packageName: str) -> list[ClassKey]:
        """`Session.getClasses`."""
        found = await self._each(lambda link: link.classes(packageName))
        return list({key: None for keys in found for key in keys})

    async def get_schema(self, classKey: ClassKey) -> SchemaClass:
        """`Session.getSchema`."""
        failure: QmfError = NotFoundError("schema", str(classKey))
        for link in self._connected():
            try:
                return await link.schema(classKey)
            except QmfError as error:
                failure = error
        raise failure

    async def get_agents(self, broker: Broker | None = None) -> list[Agent]:
        """`Session.getAgents`."""
        links = self._links if broker is None else [broker.link]
        return [agent for link in links for agent in link.agents()]

    async def get_objects(self, **kwargs: Any) -> list[Object]:
        """`Session.getObjects`."""
        wanted = select(kwargs)
        links = [wanted.broker.link] if wanted.broker else self._connected()
        if wanted.agent is not None:
            if wanted.agent.link not in links:
                raise CallerError(f"getObjects: {wanted.agent!r} is not reached through that broker")
            links = [wanted.agent.link]
        elif wanted.object_id is not None and wanted.object_id.agent_name not in (None, "broker"):
            links = [link for link in links if link.has_agent(wanted.object_id.agent_name)]
            if not links:
                raise NotFoundError("agent", str(wanted.object_id.agent_name))
        found = await asyncio.gather(*(link.objects(wanted) for link in links))
        return [obj for objects in found for obj in objects]

    async def make_object(self, classKey: ClassKey, **kwargs: Any) -> Object:
        """`Session.makeObject`."""
        return make_unmanaged(await self.get_schema(classKey), kwargs)

    # -- what is received

    async def bind_package(self, packageName: str) -> None:
        """`Session.bindPackage`."""
        self._check_user_bindings("bindPackage", objects=self.objects or self.events)
        keys: list[str] = []
        if self.objects:
            keys += self.filters.add_class(packageName, None)
        if self.events:
            keys += self.filters.add_event(packageName, None)
        await self._bind(keys)

    async def bind_class(self, pname: str, cname: str | None = None) -> None:
        """`Session.bindClass`."""
        self._check_user_bindings("bindClass", objects=self.objects)
        await self._bind(self.filters.add_class(pname, cname))

    async def bind_event(self, pname: str, ename: str | None = None) -> None:
        """`Session.bindEvent`."""
        self._check_user_bindings("bindEvent", events=self.events)
        await self._bind(self.filters.add_event(pname, ename))

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
            raise CallerError("bindAgent: labels name QMFv1 agents, which this console doesn't see; give a vendor")
        if vendor is None:
            raise CallerError("bindAgent: give a vendor, and maybe a product and an instance")
        self.filters.add_agent(*(None if part == "*" else part for part in (vendor, product, instance)))

    async def add_event_filter(
        self, package: str = "*", event: str = "*", vendor: str = "*", product: str = "*", severity: str = "*"
    ) -> None:
        """`Session.addEventFilter`."""
        if event != "*" and package == "*":
            raise CallerError("addEventFilter: an event needs its package")
        words = [word.replace(".", "_") for word in (package, event, severity, vendor, product)]
        fresh = self.filters.add_keys([f"agent.ind.event.{'.'.join(words)}.#"])
        if package != "*":
            self.filters.note_event(package, None if event == "*" else event)
        await self._bind(fresh)
        everything = aio.class_keys("event", None, None)
        if self.filters.keys.keys() & set(everything):
            for key in everything:
                self.filters.keys.pop(key, None)
            await asyncio.gather(*(link.unbind(everything) for link in self._links))

    async def add_heartbeat_filter(self, vendor: str, product: str | None = None) -> None:
        """`Session.addHeartbeatFilter`."""
        self.filters.add_agent(vendor, product, None)

    # -- callbacks

    def call_back(self, name: str, *args: object) -> None:
        """Have the console's callback run on its thread; one that isn't overridden costs nothing."""
        callback = getattr(self.console, name, None)
        if callback is not None and getattr(callback, "__func__", None) is not getattr(Console, name):
            self.dispatcher.put(name, lambda: callback(*args))

    def tell_package(self, package: str) -> None:
        """A package was seen, perhaps through another broker before."""
        if package not in self._packages and self.filters.wants_package(package):
            self.call_back("newPackage", package)
        self._packages.add(package)

    def tell_class(self, core: schema.ClassKey) -> None:
        """A class was seen, perhaps through another broker before."""
        key = ClassKey(core)
        if key not in self._classes and self.filters.wants_class(core):
            self.call_back("newClass", class_kind(key), key)
        self._classes.add(key)

    def next_sequence(self) -> int:
        """Number of one more asynchronous call."""
        self._sequence += 1
        return self._sequence

    # -- inside

    def _connected(self) -> list[BrokerConnection]:
        links = [link for link in self._links if link.connected]
        if not links:
            states = "; ".join(f"{link.broker.getUrl()}: {link.error or 'connecting'}" for link in self._links)
            raise CallerError(f"not connected: {states}" if states else "no broker: call addBroker first")
        return links

    async def _each(self, ask: Callable[[BrokerConnection], Coroutine[Any, Any, T]]) -> Iterable[T]:
        return await asyncio.gather(*(ask(link) for link in self._connected()))

    async def _bind(self, keys: list[str]) -> None:
        await asyncio.gather(*(link.bind(keys) for link in self._links))

    def _check_user_bindings(self, what: str, *, objects: bool = True, events: bool = True) -> None:
        if not self.user_bindings:
            raise CallerError(f"{what}: the session needs userBindings=True")
        if not objects:
            raise CallerError(f"{what}: the session needs rcvObjects=True")
        if not events:
            raise CallerError(f"{what}: the session needs rcvEvents=True")
