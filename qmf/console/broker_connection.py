"""One broker of a session: the client behind it, the views of its agents, and its callbacks.

All coroutines here run on the session's loop. Views (`Broker`, `Agent`, `Object`, `Event`) are made here and are read
from any thread: what they read is frozen or replaced as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from qmf.console import aio
from qmf.console.broker_options import BrokerOptions
from qmf.console.brokers import Agent, Broker
from qmf.console.events import Event
from qmf.console.identity import ClassKey
from qmf.console.proxies import MethodResult, Object
from qmf.console.schema_views import SchemaClass
from qmf.console.selection import Selection, select
from qmf.errors import CallerError, LinkError, NetworkError, QmfError, RemoteError
from qmf.protocol import ErrorCode
from qmf.schema import ClassKey as CoreKey

if TYPE_CHECKING:
    from qmf.console.async_session import AsyncSession
    from qmf.console.session import Session

log = logging.getLogger("qmf.console")

T = TypeVar("T")

Values = Mapping[str, object]

#: Seconds before the first retry of a managed connection; doubled each time up to the last.
FIRST_DELAY = 1.0
LAST_DELAY = 128.0

#: What the client binds by itself, to know the agents.
_ALWAYS = aio.heartbeat_keys(None)

#: Views of schemas that are found by identity.
MAX_LATELY = 1000

#: Seconds for which `addBroker` waits for the first agents; a broker on the same site needs some milliseconds.
SETTLE = 0.5


class BrokerConnection:
    """Keeps one broker's client and speaks for it."""

    def __init__(self, core: AsyncSession, options: BrokerOptions) -> None:
        self.core = core
        self.broker = Broker(self, options.url)
        self.error: str | None = None
        self.broker_id: UUID | None = None
        self._options = options
        self._client: aio.Client | None = None
        self._agents: dict[str, Agent] = {}
        self._schemas: dict[ClassKey, SchemaClass] = {}
        self._lately: dict[int, tuple[aio.AnySchema, SchemaClass]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._up = False

    # -- read from any thread

    @property
    def session(self) -> Session:
        """The session that it belongs to."""
        return self.core.session

    @property
    def connected(self) -> bool:
        """True while the connection is there."""
        return self._up

    @property
    def session_id(self) -> str:
        """The key under which the client gets its answers; empty before the first connection."""
        return self._client.reply_key if self._client else ""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the session's loop and wait for it."""
        return self.core.loop.run(work)

    def is_broker(self, name: str | None) -> bool:
        """True for the name of the agent inside the connected broker."""
        agent = self._agents.get(name or "")
        return agent is not None and agent.core.is_broker

    def has_agent(self, name: str | None) -> bool:
        """True when an agent of this name is present."""
        return name in self._agents

    def agents(self) -> list[Agent]:
        """The agents present."""
        return list(self._agents.values())

    def agent(self, broker_bank: int, agent_bank: str) -> Agent | None:
        """The agent with that bank, or None."""
        return next((item for item in self.agents() if broker_bank == 1 and item.agentBank == agent_bank), None)

    # -- life

    async def connect(self) -> None:
        """Connect once.

        Raises:
            ConnectError: no connection; `error` keeps the reason.
        """
        options = self._options
        client = aio.Client(
            options.make_bus(reconnect=self.core.manage_connections),
            timeout=options.session_timeout,
            events=False,
            data=False,
            bindings=self.core.filters.keys,
            discover=self.core.console is not None,
            settle=SETTLE,
        )
        client.listen(self._notified)
        self._client = client
        try:
            await client.open(options.timeout)
        except NetworkError as error:
            self.error = str(error)
            self._client = None
            raise

    async def keep_connecting(self) -> None:
        """Connect, however long it takes."""
        delay = FIRST_DELAY
        while True:
            try:
                await self.connect()
            except NetworkError as error:
                log.info("%s; next attempt in %g s", error, delay)
                self.core.call_back("brokerConnectionFailed", self.broker)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_DELAY)
            else:
                return

    def start(self) -> None:
        """Connect in the background."""
        self._connecting = self._spawn(self.keep_connecting())

    async def close(self) -> None:
        """Disconnect; outstanding calls fail, and their answers say so."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._up:
            self._lost("closed by the program")

    # -- questions

    @property
    def client(self) -> aio.Client:
        """The client.

        Raises:
            CallerError: there is no connection, nor has there been one.
        """
        if self._client is None:
            raise CallerError(f"not connected to {self.broker.getUrl()}: {self.error or 'closed'}")
        return self._client

    async def objects(self, wanted: Selection) -> list[Object]:
        """Objects that fit a selection; `broker` of the selection has been obeyed by the caller."""
        found = await self.client.objects(
            wanted.name,
            package=wanted.package,
            class_key=wanted.class_key,
            object_id=wanted.object_id,
            agent=wanted.agent.core.name if wanted.agent else None,
            where=wanted.values or None,
            timeout=wanted.timeout,
        )
        return [view for view in (self.object_view(item) for item in found) if view is not None]

    async def get_objects(
        self, agent: Agent, notifiable: Callable[..., object] | None, arguments: Mapping[str, Any]
    ) -> list[Object]:
        """`Agent.getObjects`."""
        wanted = select({**arguments, "_agent": agent})
        if notifiable is None:
            return await self.objects(wanted)
        if not callable(notifiable):
            raise CallerError(f"getObjects: notifiable must be callable, not {notifiable!r}")
        self._spawn(self._notify_objects(wanted, notifiable))
        return []

    async def call(
        self, target: aio.RemoteObject, method: str, args: Sequence[object], kwargs: Values, timeout: float
    ) -> MethodResult:
        """Call a method; what the agent says is the result, whatever it is."""
        try:
            outputs = await target.call(method, *args, _timeout=timeout, **kwargs)
        except RemoteError as error:
            code = ErrorCode.EXCEPTION if error.code is None else error.code
            return MethodResult(int(code), error.text, {})
        return MethodResult(0, "OK", outputs)

    async def start_call(
        self, target: aio.RemoteObject, method: str, args: Sequence[object], kwargs: Values, timeout: float
    ) -> int:
        """Call a method in the background; the answer goes to the console.

        Raises:
            CallerError: the session has no console; or the arguments are wrong.
        """
        if self.core.console is None:
            raise CallerError(f"{method}(_async=True) needs a Session with a console, which gets the answer")
        target.check_call(method, *args, **kwargs)
        number = self.core.next_sequence()
        self._spawn(self._answer(number, self.call(target, method, args, kwargs, timeout)))
        return number

    async def packages(self) -> list[str]:
        """Names of packages."""
        return list(await self.client.packages())

    async def classes(self, package: str) -> list[ClassKey]:
        """Keys of the classes and events of a package."""
        return [ClassKey(key) for key in await self.client.classes(package)]

    async def schema(self, key: ClassKey) -> SchemaClass:
        """A class in full."""
        return self.schema_view(await self.client.schema(key.core), key)

    async def bind(self, keys: list[str]) -> None:
        """Receive more; without a connection the next one will."""
        if self._client is not None and self._up:
            await self._client.bind(*keys)

    async def unbind(self, keys: list[str]) -> None:
        """Receive less."""
        if self._client is not None and self._up:
            await self._client.unbind(*keys)

    # -- views

    def schema_view(self, core: aio.AnySchema, key: ClassKey) -> SchemaClass:
        """The one view of a schema."""
        view = self._schemas.get(key)
        if view is None:
            view = self._schemas[key] = SchemaClass(core, key)
        return view

    def class_view(self, core: aio.AnySchema, key: CoreKey) -> SchemaClass:
        """`schema_view` for objects and events, which come by the thousand with the same schema."""
        lately = self._lately.get(id(core))
        if lately is None or lately[0] is not core:
            if len(self._lately) >= MAX_LATELY:
                self._lately.clear()
            lately = self._lately[id(core)] = core, self.schema_view(core, ClassKey(key))
        return lately[1]

    def object_view(self, core: aio.RemoteObject) -> Object | None:
        """A proxy; None where the object has no schema, which the published API can't do without."""
        agent = self._agents.get(core.agent)
        if agent is None:
            return None
        if core.schema is None or core.class_key is None:
            log.warning("left out an object without schema: %r", core)
            return None
        return Object(core, self.class_view(core.schema, core.class_key), agent)

    def _agent_view(self, core: aio.Agent) -> Agent:
        view = self._agents.get(core.name)
        if view is None:
            view = self._agents[core.name] = Agent(self, core)
        view.core = core
        return view

    # -- news

    def _notified(self, news: aio.Notification) -> None:
        tell = self.core.call_back
        match news:
            case aio.BusConnected():
                self._up = True
                self._spawn(self._rebind())
                self.error = None
                tell("brokerConnected", self.broker)
            case aio.BusDisconnected(reason=reason):
                self._lost(reason)
            case aio.AgentAdded(agent=agent):
                view = self._agent_view(agent)
                self._tell_agent("newAgent", view)
            case aio.AgentUpdated(agent=agent):
                self._agent_view(agent)
            case aio.AgentRestarted(agent=agent):
                self._tell_agent("delAgent", self._agent_view(agent))
                self._tell_agent("newAgent", self._agent_view(agent))
            case aio.AgentRemoved(agent=agent):
                view = self._agent_view(agent)
                del self._agents[agent.name]
                self._tell_agent("delAgent", view)
            case aio.HeartbeatSeen(agent=agent, timestamp=timestamp):
                view = self._agent_view(agent)
                if self.core.heartbeats and self.core.filters.wants_agent(agent):
                    tell("heartbeat", view, timestamp)
            case aio.BrokerIdentified(broker_id=broker_id):
                self.broker_id = broker_id
                tell("brokerInfo", self.broker)
            case aio.PackageSeen(package=package):
                self.core.tell_package(package)
            case aio.ClassSeen(class_key=key):
                self.core.tell_class(key)
            case aio.ObjectUpdated():
                self._tell_object(news)
            case aio.EventRaised(event=event):
                tell("event", self.broker, Event(event, self._agent_view(event.agent)))
            case aio.Missed(agent=agent, subject=subject, count=count):
                log.warning("%d messages of agent %s under %s did not arrive", count, agent, subject)
            case aio.BusLinkLost():
                error = LinkError(news.address, news.condition, news.description)
                log.warning("%s: %s", self.broker.getUrl(), error)

    def _tell_agent(self, name: str, view: Agent) -> None:
        if self.core.filters.wants_agent(view.core):
            self.core.call_back(name, view)

    def _tell_object(self, news: aio.ObjectUpdated) -> None:
        view = self.object_view(news.object)
        if view is None:
            return
        if news.properties:
            self.core.call_back("objectProps", self.broker, view)
        if news.statistics:
            self.core.call_back("objectStats", self.broker, view)

    def _lost(self, reason: str) -> None:
        self.error = reason
        for view in self.agents():
            self._tell_agent("delAgent", view)
        self._agents.clear()
        if self._up:
            self._up = False
            self.core.call_back("brokerDisconnected", self.broker)
        else:
            self.core.call_back("brokerConnectionFailed", self.broker)

    async def _rebind(self) -> None:
        """Catch up with what was bound and unbound while there was no connection."""
        wanted = self.core.filters.keys
        client = self._client
        if client is None:
            return
        surplus = [key for key in client.bindings if key not in wanted and key not in _ALWAYS]
        try:
            await client.bind(*wanted)
            await client.unbind(*surplus)
        except NetworkError as error:
            log.warning("%s: cannot bind: %s", self.broker.getUrl(), error)

    async def _answer(self, number: int, work: Coroutine[Any, Any, MethodResult]) -> None:
        try:
            result = await work
        except (QmfError, ValueError) as error:
            result = MethodResult(int(ErrorCode.EXCEPTION), str(error), {})
        self.core.call_back("methodResponse", self.broker, number, result)

    async def _notify_objects(self, wanted: Selection, notifiable: Callable[..., object]) -> None:
        def later(**kwargs: Any) -> None:
            self.core.dispatcher.put("notifiable", lambda: notifiable(**kwargs))

        try:
            found = await self.objects(wanted)
        except (QmfError, ValueError) as error:
            later(qmf_exception=str(error))
            return
        for item in found:
            later(qmf_object=item)
        later(qmf_complete=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
