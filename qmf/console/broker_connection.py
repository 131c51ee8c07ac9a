"""One broker of a session: its client, the proxies of what the client finds, and the callbacks for what it reports.

All coroutines here run on the session's loop. Proxies (`Broker`, `Agent`, `Object`, `Event`) are made here and read
from any thread: what they read is frozen or replaced as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from qmf._background_tasks import BackgroundTasks
from qmf._loop_thread import LoopThread
from qmf.console import aio
from qmf.console.broker_options import AddBrokerOptions
from qmf.console.console_notifier import ConsoleNotifier
from qmf.console.events import Event
from qmf.console.identity import ClassKey
from qmf.console.proxies import Agent, Broker, MethodCall, MethodResult, Object, SessionApi
from qmf.console.schema_views import SchemaClass
from qmf.console.selection import Selection, select
from qmf.errors import CallerError, LinkError, NetworkError, QmfError, RemoteError
from qmf.protocol import ErrorCode
from qmf.schema import ClassKey as CoreKey

log = logging.getLogger("qmf.console")

#: Seconds before the first retry of a managed connection; doubled each time up to the last.
FIRST_DELAY = 1.0
LAST_DELAY = 128.0

#: The keys that the client binds itself, to find agents.
_ALWAYS = aio.heartbeat_keys(None)

#: Schemas that are remembered by identity.
MAX_RECENT = 1000

#: Seconds for which `addBroker` waits for the first agents; a broker on the same site needs some milliseconds.
SETTLE = 0.5


class BrokerConnection:
    """The connection to one broker.

    Attributes:
        session: the session.
        broker: the proxy of the broker.
        error: why the last attempt to connect failed, or the connection was lost; None while it is connected.
        broker_id: the id of the broker, once it is known.
        run: runs a coroutine on the session's loop, from any other thread.
    """

    def __init__(
        self,
        session: SessionApi,
        loop: LoopThread,
        notifier: ConsoleNotifier,
        options: AddBrokerOptions,
        *,
        managed: bool,
    ) -> None:
        """Make a connection; `managed` ones are restored after each loss."""
        self.session = session
        self.run = loop.run
        self.broker = Broker(self, options.url)
        self.error: str | None = None
        self.broker_id: UUID | None = None
        self._notifier = notifier
        self._options = options
        self._managed = managed
        self._client: aio.Client | None = None
        self._agents: dict[str, Agent] = {}
        self._schemas: dict[ClassKey, SchemaClass] = {}
        self._recent: dict[int, tuple[aio.AnySchema, SchemaClass]] = {}
        self._tasks = BackgroundTasks()
        self._connecting: asyncio.Task[None] | None = None
        self._up = False

    # -- read from any thread

    @property
    def connected(self) -> bool:
        """True while the broker is connected."""
        return self._up

    @property
    def finding_agents(self) -> bool:
        """True while agents are being found."""
        return self._client is not None and self._client.finding_agents is not None

    @property
    def reply_key(self) -> str:
        """The routing key under which answers are received; empty before the first connection."""
        return self._client.reply_key if self._client else ""

    def is_broker(self, name: str | None) -> bool:
        """True for the name of the connected broker's agent."""
        agent = self._agents.get(name or "")
        return agent is not None and agent.core.is_broker

    def has_agent(self, name: str | None) -> bool:
        """True when an agent of this name is present."""
        return name in self._agents

    def agents(self) -> list[Agent]:
        """The agents present."""
        return list(self._agents.values())

    # -- life

    async def connect(self) -> None:
        """Connect once.

        Raises:
            ConnectError: no connection; `error` keeps the reason.
        """
        options = self._options
        client = aio.Client(
            options.make_bus(reconnect=self._managed),
            timeout=options.session_timeout,
            events=False,
            data=False,
            bindings=self._notifier.binding_keys,
            discover=self._notifier.console is not None,
            settle=SETTLE,
        )
        client.listen(self._on_notification)
        self._client = client
        try:
            await client.open(options.timeout)
        except NetworkError as error:
            self.error = str(error)
            self._client = None
            raise

    async def keep_connecting(self) -> None:
        """Try to connect until it succeeds."""
        delay = FIRST_DELAY
        while True:
            try:
                await self.connect()
            except NetworkError as error:
                log.info("%s; next attempt in %g s", error, delay)
                self._notifier.call("brokerConnectionFailed", self.broker)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_DELAY)
            else:
                return

    def start(self) -> None:
        """Connect in the background."""
        self._connecting = self._tasks.spawn(self.keep_connecting())

    async def close(self) -> None:
        """Disconnect; pending calls fail, and their results are errors."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        await self._tasks.wait()
        if self._up:
            self._on_connection_lost("closed by the program")

    # -- requests

    @property
    def client(self) -> aio.Client:
        """The client.

        Raises:
            CallerError: the broker has never been connected, or the connection was closed.
        """
        if self._client is None:
            raise CallerError(f"not connected to {self.broker.getUrl()}: {self.error or 'closed'}")
        return self._client

    async def objects(self, wanted: Selection) -> list[Object]:
        """The objects of a selection; the caller has evaluated its `broker`."""
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
        self._tasks.spawn(self._notify_objects(wanted, notifiable))
        return []

    async def call(self, call: MethodCall) -> MethodResult:
        """Call a method; an error that the agent answers is a result, too."""
        try:
            outputs = await call.target.call(call.method, *call.args, _timeout=call.timeout, **call.kwargs)
        except RemoteError as error:
            code = ErrorCode.EXCEPTION if error.code is None else error.code
            return MethodResult(int(code), error.text, {})
        return MethodResult(0, "OK", outputs)

    async def start_call(self, call: MethodCall) -> int:
        """Call a method in the background; the result goes to the console.

        Raises:
            CallerError: the session has no console; or the arguments are wrong.
        """
        if self._notifier.console is None:
            raise CallerError(f"{call.method}(_async=True) needs a Session with a console, which gets the result")
        call.target.check_call(call.method, *call.args, **call.kwargs)
        number = self._notifier.next_sequence()
        self._tasks.spawn(self._answer(number, call))
        return number

    async def schema(self, key: ClassKey) -> SchemaClass:
        """The schema of a class or event."""
        return self.schema_view(await self.client.schema(key.core), key)

    async def bind(self, keys: list[str]) -> None:
        """Bind keys; without a connection, they are bound by the next one."""
        if self._client is not None and self._up:
            await self._client.bind(*keys)

    async def unbind(self, keys: list[str]) -> None:
        """Unbind keys."""
        if self._client is not None and self._up:
            await self._client.unbind(*keys)

    # -- proxies

    def schema_view(self, core: aio.AnySchema, key: ClassKey) -> SchemaClass:
        """The view of a schema; always the same object."""
        view = self._schemas.get(key)
        if view is None:
            view = self._schemas[key] = SchemaClass(core, key)
        return view

    def class_view(self, core: aio.AnySchema, key: CoreKey) -> SchemaClass:
        """`schema_view` for objects and events: faster, because thousands of them have the same schema."""
        recent = self._recent.get(id(core))
        if recent is None or recent[0] is not core:
            if len(self._recent) >= MAX_RECENT:
                self._recent.clear()
            recent = self._recent[id(core)] = core, self.schema_view(core, ClassKey(key))
        return recent[1]

    def object_view(self, core: aio.RemoteObject) -> Object | None:
        """A proxy of an object; None for an object without schema, which the published API requires."""
        agent = self._agents.get(core.agent)
        if agent is None:
            return None
        if core.schema is None or core.class_key is None:
            log.warning("left out an object without schema: %r", core)
            return None
        return Object(core, self.class_view(core.schema, core.class_key), agent)

    def _event_view(self, core: aio.RemoteEvent) -> Event:
        schema = self.class_view(core.schema, core.class_key) if core.schema and core.class_key else None
        return Event(core, self._agent_view(core.agent), schema)

    def _agent_view(self, core: aio.Agent) -> Agent:
        view = self._agents.get(core.name)
        if view is None:
            view = self._agents[core.name] = Agent(self, core)
        view.core = core
        return view

    # -- notifications

    def _on_notification(self, item: aio.Notification) -> None:
        notifier = self._notifier
        match item:
            case aio.BusConnected():
                self._up = True
                self._tasks.spawn(self._rebind())
                self.error = None
                notifier.call("brokerConnected", self.broker)
            case aio.BusDisconnected(reason=reason):
                self._on_connection_lost(reason)
            case aio.AgentAdded(agent=agent):
                notifier.agent("newAgent", self._agent_view(agent))
            case aio.AgentUpdated(agent=agent):
                self._agent_view(agent)
            case aio.AgentRestarted(agent=agent):
                notifier.agent("delAgent", self._agent_view(agent))
                notifier.agent("newAgent", self._agent_view(agent))
            case aio.AgentRemoved(agent=agent):
                view = self._agent_view(agent)
                del self._agents[agent.name]
                notifier.agent("delAgent", view)
            case aio.HeartbeatSeen(agent=agent, timestamp=timestamp):
                notifier.heartbeat(self._agent_view(agent), timestamp)
            case aio.BrokerIdentified(broker_id=broker_id):
                self.broker_id = broker_id
                notifier.call("brokerInfo", self.broker)
            case aio.PackageSeen(package=package):
                notifier.package_seen(package)
            case aio.ClassSeen(class_key=key):
                notifier.class_seen(key)
            case aio.ObjectUpdated():
                self._object_updated(item)
            case aio.EventRaised(event=event):
                notifier.call("event", self.broker, self._event_view(event))
            case aio.Missed():
                log.warning("%s", item)
            case aio.BusLinkLost():
                error = LinkError(item.address, item.condition, item.description)
                log.warning("%s: %s", self.broker.getUrl(), error)

    def _object_updated(self, item: aio.ObjectUpdated) -> None:
        view = self.object_view(item.object)
        if view is None:
            return
        if item.properties:
            self._notifier.call("objectProps", self.broker, view)
        if item.statistics:
            self._notifier.call("objectStats", self.broker, view)

    def _on_connection_lost(self, reason: str) -> None:
        self.error = reason
        for view in self.agents():
            self._notifier.agent("delAgent", view)
        self._agents.clear()
        if self._up:
            self._up = False
            self._notifier.call("brokerDisconnected", self.broker)
        else:
            self._notifier.call("brokerConnectionFailed", self.broker)

    async def _rebind(self) -> None:
        """Bind and unbind what the filters changed while there was no connection."""
        wanted = self._notifier.binding_keys
        client = self._client
        if client is None:
            return
        surplus = [key for key in client.bindings if key not in wanted and key not in _ALWAYS]
        try:
            await client.bind(*wanted)
            await client.unbind(*surplus)
        except NetworkError as error:
            log.warning("%s: cannot bind: %s", self.broker.getUrl(), error)

    async def _answer(self, number: int, call: MethodCall) -> None:
        try:
            result = await self.call(call)
        except (QmfError, ValueError) as error:
            result = MethodResult(int(ErrorCode.EXCEPTION), str(error), {})
        self._notifier.call("methodResponse", self.broker, number, result)

    async def _notify_objects(self, wanted: Selection, notifiable: Callable[..., object]) -> None:
        try:
            found = await self.objects(wanted)
        except (QmfError, ValueError) as error:
            self._notifier.call_function(notifiable, qmf_exception=str(error))
            return
        for item in found:
            self._notifier.call_function(notifiable, qmf_object=item)
        self._notifier.call_function(notifiable, qmf_complete=True)
