"""A `Backend` over `qmf.console`: the asynchronous client of one broker on a background loop, behind blocking calls.

A call waits on the caller's thread; Ctrl-C there cancels the request on the loop. Notifications of the client (agents,
events, deleted objects, the connection) arrive on the loop's thread and are passed to callbacks at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import attrs

from qmf._loop_thread import LoopThread
from qmf.connecting import BrokerTarget
from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentsFound,
    BusConnected,
    BusDisconnected,
    ClassSeen,
    Client,
    EventRaised,
    FollowedStore,
    HeartbeatSeen,
    Missed,
    Notification,
    ObjectUpdated,
    RemoteObject,
)
from qmf.console.aio.first_objects import AGENTS_AT_FIRST
from qmf.console.aio.objects.object_query import ListFilterArguments
from qmf.errors import CallerError, ConnectError, DisconnectedError, NetworkError, NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Method
from qmf.views.events import EventView, LostEvents, event_view
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView, ViewValues, key_of_reference, object_view
from qmf_shell.session.agent_table import AgentTable
from qmf_shell.session.backend import (
    AgentRecord,
    Backend,
    CallOutcome,
    ClassName,
    ConnectionStatus,
    HeartbeatRecord,
    ObjectFeed,
    ObjectLimit,
    QueryResult,
)
from qmf_shell.session.console_feed import KEPT, ConsoleFeed, FollowRequest, SharedFollow
from qmf_shell.session.object_names import without_user
from qmf_shell.session.own_objects import OwnObjectTracker, may_be_own

#: Seconds to wait at most for the first agents after connecting.
SETTLE = 1.5
#: Seconds between attempts to connect to a broker that was not reachable when the session began.
RETRY = 2.0
#: Concurrent calls of a method on many objects: enough to hide the round trip to the agent, too few to flood it.
CONCURRENT_CALLS = 16


def _ignore(*_: object) -> None: ...


@attrs.frozen(kw_only=True)
class BackendCallbacks:
    """Callbacks for what is received without a request. All are called on the loop's thread and must not block.

    Attributes:
        on_event: an event was received, or `LostEvents` did not arrive.
        on_heartbeat: a heartbeat was received.
        on_deleted: an object of a class was deleted, at a time in nanoseconds since 1970; True if it was about what an
            agent or a console created for itself.
        on_agent_lost: an agent is gone, or has restarted: its name, the label of its broker, the time in nanoseconds
            since 1970, and the objects that it had published.
        on_agent_found: an agent is present, perhaps again: its name, the label of its broker, its epoch.
        on_change: agents, classes or the connection have changed.
        on_connection: the connection to the broker with this URL was made (True) or lost, for a reason.
    """

    on_event: Callable[[EventView], None] = _ignore
    on_heartbeat: Callable[[HeartbeatRecord], None] = _ignore
    on_deleted: Callable[[ObjectKey, ClassName, int, bool], None] = _ignore
    on_agent_lost: Callable[[str, str, int, Sequence[ObjectView]], None] = _ignore
    on_agent_found: Callable[[str, str, int], None] = _ignore
    on_change: Callable[[], None] = _ignore
    on_connection: Callable[[str, bool, str], None] = _ignore


class ConsoleBackend(Backend):
    """Access to one broker; see `Backend`. May be called from any thread except the loop's."""

    def __init__(
        self,
        target: str | BrokerTarget,
        *,
        timeout: float,
        callbacks: BackendCallbacks,
        objects: bool,
        label: str = "",
        persist: bool = False,
        settle: float = SETTLE,
        events: bool = True,
        discover: bool | None = None,
    ) -> None:
        """Prepare the access to a broker; nothing is connected yet.

        Args:
            target: the broker, or its URL.
            timeout: seconds to wait for the connection, and for every answer.
            callbacks: called for what is received without a request.
            objects: receive all objects that agents publish, to notice which are deleted.
            label: the broker in the keys of objects, in sessions with several brokers.
            persist: if the broker cannot be reached, go on without it, and retry until it can.
            settle: seconds to wait at most for the first agent; 0 for not at all. Sessions without `objects`, which run
                some commands and end, wait until all agents are found.
            events: receive events.
            discover: request the classes of agents as they appear; None: if objects are received.
        """
        self._timeout = timeout
        self._callbacks = callbacks
        self._objects = objects
        self._label = label
        self._persist = persist
        self._settle = min(settle, timeout)
        self._events = events
        self._discover = objects if discover is None else discover
        self._loop = LoopThread("qmf-shell")
        self._target = BrokerTarget.of(target)
        self._client: Client | None = None
        self._retrying: asyncio.Task[None] | None = None
        self._agents = AgentTable()
        url = str(self._target)
        self._name = label or without_user(url)
        self._health = ConnectionStatus(url, connected=False, name=self._name)
        self._own = OwnObjectTracker()
        self._followed = FollowedStore(self._follow, KEPT)

    def __enter__(self) -> Self:
        """Connect, and wait a short time for the first agents.

        Raises:
            ConnectError: no connection. Not raised with `persist`.
        """
        try:
            self._loop.run(self._begin())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        # Without a loop there is nothing to close: the connection failed, or was never started.
        if client is not None and self._loop.running:
            with contextlib.suppress(CallerError):
                self._loop.run(self._followed.close())
                self._loop.run(client.close())
        self._loop.stop()

    async def _begin(self) -> None:
        try:
            await self._open()
        except ConnectError:
            if not self._persist:
                raise
            self._retrying = asyncio.create_task(self._open_later())

    async def _open(self) -> None:
        client = Client(
            self._target.make_bus(),
            domain=self._target.domain,
            timeout=self._timeout,
            data=self._objects,
            events=self._events,
            discover=self._discover,
            settle=self._settle,
        )
        client.listen(self._on_notification)
        self._health = attrs.evolve(self._health, url=client.url)
        self._client = client
        try:
            await client.open(self._timeout)
            while self._settle and not self._objects and not await client.agents_found():
                pass
        except BaseException as error:
            self._client = None
            await client.close()
            reason = error.reason if isinstance(error, ConnectError) else str(error)
            self._health = attrs.evolve(self._health, reason=reason)
            raise
        self._health = ConnectionStatus(client.url, name=self._name)
        self._agents.replace(AgentRecord.of(item, self._health.url) for item in client.agents)

    async def _open_later(self) -> None:
        while True:
            await asyncio.sleep(RETRY)
            try:
                await self._open()
            except NetworkError:
                continue
            self._callbacks.on_change()
            return

    # -- state that is known without a request

    @property
    def status(self) -> ConnectionStatus:
        finding = None if self._client is None else self._client.finding_agents
        return self._health if finding is None else attrs.evolve(self._health, finding=str(finding))

    def agents(self) -> Sequence[AgentRecord]:
        return self._agents.agents()

    # -- requests

    def classes(self) -> QueryResult[ClassKey]:
        answers = self._loop.run(self._open_client().classes())
        return QueryResult(answers.items, _reasons(answers.failures))

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        return self._loop.run(self._open_client().schema(key))

    def objects(
        self,
        names: Sequence[ClassName],
        where: Sequence[object] = (),
        first: ObjectLimit | None = None,
        text: str = "",
    ) -> QueryResult[ObjectView]:
        return self._loop.run(self._query(self._open_client(), names, where, first, text))

    def sends_first(self, name: ClassName) -> bool:
        """See `Backend.sends_first`. Without a connection there are no agents; the request says so."""
        client = self._client
        if client is None:
            return True
        return all(agent.supports_subscriptions or not self._may_have(client, agent, name) for agent in client.agents)

    def follow(
        self, names: Sequence[ClassName], where: Sequence[object] = (), *, interval: float, recheck: float
    ) -> ObjectFeed:
        feed = ConsoleFeed(self._loop, self._object, self._label)
        requests = [FollowRequest(package, name, where, interval, recheck) for package, name in names]
        self._loop.run(feed.start(self._followed, requests))
        return feed

    def get(self, identity: ObjectIdentity) -> ObjectView | None:
        return self._loop.run(self._get(self._open_client(), identity))

    def call(self, target: ObjectView, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        return self._loop.run(self._call(target, method, arguments))

    def call_all(
        self,
        targets: Sequence[ObjectView],
        method: Method,
        arguments: Mapping[str, object],
        on_outcome: Callable[[int, CallOutcome], None],
    ) -> None:
        self._loop.run(self._call_all(targets, method, arguments, on_outcome))

    def set_properties(self, target: ObjectView, values: Mapping[str, object]) -> None:
        handle = target.handle
        assert isinstance(handle, RemoteObject)
        self._loop.run(handle.set(**_without_broker(values)))

    def _open_client(self) -> Client:
        if self._client is None:
            raise DisconnectedError(self._health.url, self._health.reason or "closed")
        return self._client

    async def _query(
        self,
        client: Client,
        names: Sequence[ClassName],
        where: Sequence[object],
        first: ObjectLimit | None,
        text: str,
    ) -> QueryResult[ObjectView]:
        wanted: ListFilterArguments = {"where": list(where) if where else None, "text": text}
        if first is not None:
            in_turn = first.by_name and len(client.agents) > AGENTS_AT_FIRST
            wanted |= {"limit": first.limit, "order": first.order, "in_turn": in_turn}
        answers = await asyncio.gather(*(client.objects(name, package=package, **wanted) for package, name in names))
        found = {item.identity.key: item for answer in answers for item in map(self._object, answer)}
        failures = {agent: error for answer in answers for agent, error in answer.failures.items()}
        existing = [item for item in found.values() if not item.deleted]
        totals = [answer.total for answer in answers if answer.total is not None]
        total = sum(totals) if first is not None else len(existing)
        return QueryResult(existing, _reasons(failures), total if len(totals) == len(answers) else None)

    @staticmethod
    def _may_have(client: Client, agent: Agent, name: ClassName) -> bool:
        """False if an agent uses other classes only; of one whose classes are not known yet, it is not sure."""
        keys = client.known_classes(agent=agent.name)
        return not keys or any((key.package, key.name) == name for key in keys)

    async def _get(self, client: Client, identity: ObjectIdentity) -> ObjectView | None:
        key = identity.key
        try:
            found = await client.objects(object_id=key.object_id)
            if not found and key.agent_epoch:
                # The agent was restarted: the object may exist again, with the new epoch.
                found = await client.objects(
                    identity.class_key.name, package=identity.class_key.package, agent=key.agent_name
                )
        except NotFoundError:
            return None  # its agent no longer exists
        objects = [self._object(item) for item in found]
        objects = [item for item in objects if item.identity.key == key and not item.deleted]
        return objects[0] if objects else None

    def _follow(self, request: FollowRequest) -> SharedFollow:
        return SharedFollow(self._open_client(), request)

    def _object(self, item: RemoteObject) -> ObjectView:
        return object_view(item, self._label, self._name)

    async def _call(self, target: ObjectView, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        handle = target.handle
        assert isinstance(handle, RemoteObject)
        outputs = await handle.call(method.name, **_without_broker(arguments))
        return {name: key_of_reference(value, handle.agent, self._label) for name, value in outputs.items()}

    async def _call_all(
        self,
        targets: Sequence[ObjectView],
        method: Method,
        arguments: Mapping[str, object],
        on_outcome: Callable[[int, CallOutcome], None],
    ) -> None:
        slots = asyncio.Semaphore(CONCURRENT_CALLS)

        async def one(number: int, target: ObjectView) -> None:
            async with slots:
                try:
                    outcome: CallOutcome = await self._call(target, method, arguments)
                except QmfError as error:
                    outcome = error
            on_outcome(number, outcome)

        await asyncio.gather(*(one(number, target) for number, target in enumerate(targets)))

    # -- notifications

    def _on_update(self, item: RemoteObject) -> None:
        key = ObjectKey(item.object_id.object_name, item.agent, broker=self._label)
        name = (item.class_key.package, item.class_key.name) if item.class_key else ("", "")
        own = may_be_own(name) and self._own.notice(key, name, ViewValues(item, self._label))
        if item.is_deleted:
            self._callbacks.on_deleted(key, name, item.timestamps.delete, own)

    def _on_notification(self, notification: Notification) -> None:
        match notification:
            case EventRaised(event):
                self._callbacks.on_event(event_view(event, self._health.url, self._label))
            case Missed(agent=agent) if notification.of_events:
                url, count = self._health.url, notification.lost_events
                self._callbacks.on_event(LostEvents(agent.name, count, time.time_ns(), url))
            case ObjectUpdated(object=item):
                self._on_update(item)
            case BusConnected(url=url):
                self._health = ConnectionStatus(self._health.url, name=self._name)
                self._callbacks.on_connection(url, True, "")
                self._callbacks.on_change()
            case BusDisconnected(url=url, reason=reason):
                self._health = ConnectionStatus(self._health.url, connected=False, reason=reason, name=self._name)
                self._callbacks.on_connection(url, False, reason)
                self._callbacks.on_change()
            case HeartbeatSeen(agent=agent, timestamp=timestamp):
                now = time.time_ns()
                if not self._agents.has(agent.name, agent.epoch):
                    self._agents.put(AgentRecord.of(agent, self._health.url))
                self._agents.on_heartbeat(agent.name, now)
                interval = agent.info.heartbeat_interval
                self._callbacks.on_heartbeat(HeartbeatRecord(agent.name, timestamp, now, interval, self._health.url))
            case AgentRemoved(agent=agent) | AgentRestarted(agent=agent):
                self._agents.remove(agent.name)
                if isinstance(notification, AgentRestarted):
                    self._agents.put(AgentRecord.of(agent, self._health.url))
                self._agent_lost(agent.name)
                self._callbacks.on_change()
            case AgentAdded(agent=agent):
                self._agents.put(AgentRecord.of(agent, self._health.url))
                self._callbacks.on_agent_found(agent.name, self._label, agent.epoch)
                self._callbacks.on_change()
            case ClassSeen() | AgentsFound():
                self._callbacks.on_change()

    def _agent_lost(self, agent: str) -> None:
        lost = [] if self._client is None else self._client.lost_objects(agent=agent)
        self._callbacks.on_agent_lost(agent, self._label, time.time_ns(), [self._object(item.object) for item in lost])


def _without_broker(values: Mapping[str, object]) -> dict[str, Any]:
    """Values for the console: the opposite of `key_of_reference`."""
    return {name: value.object_id if isinstance(value, ObjectKey) else value for name, value in values.items()}


def _reasons(failures: Mapping[str, QmfError]) -> Mapping[str, str]:
    return {agent: str(error) for agent, error in failures.items()}
