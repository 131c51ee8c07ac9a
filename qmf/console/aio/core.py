"""The client core: makes the parts of a client, connects them, and passes messages and events from one to another.

Answers go to the rpc channel, announcements to the agent tracker, indications to their handler; changes of agents go to
every part that keeps something about them. Public calls are in `qmf.console.aio.client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.bus.base import Bus, BusEvent, Connected, Disconnected, LinkLost, ReceivedMessage
from qmf.bus.waiting import open_when_there
from qmf.console.aio.agent_requests import AgentRequests
from qmf.console.aio.agent_tracker import AgentTracker
from qmf.console.aio.agents import Agent, AgentChange, AgentChangeKind, AgentEvent
from qmf.console.aio.following.agent_follower import FollowServices, FollowSpec
from qmf.console.aio.following.follow import Follower
from qmf.console.aio.following.subscriptions import ObjectSubscriptions
from qmf.console.aio.indications import IndicationHandler, ObjectStore
from qmf.console.aio.notifications import (
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentsFound,
    AgentUpdated,
    BrokerIdentified,
    BusConnected,
    BusDisconnected,
    BusLinkLost,
    HeartbeatSeen,
    NotificationPublisher,
    Removal,
)
from qmf.console.aio.receiver import MessageReceiver
from qmf.console.aio.rpc.channel import LOCATE_BROKER, RpcChannel
from qmf.console.aio.schemas import SchemaDiscovery
from qmf.errors import ConnectError, DisconnectedError, LinkError, QmfError, RemoteError
from qmf.protocol import (
    DATA_BINDING,
    EVENT_BINDING,
    HEARTBEAT_BINDING,
    Answer,
    Envelope,
    EventsIndication,
    ExceptionResponse,
    Heartbeat,
    LocateResponse,
    MethodResponse,
    ObjectsIndication,
    ObjectsResponse,
    SchemaIdsResponse,
    SchemasResponse,
    SubscribeCancel,
    SubscribeResponse,
    SubscribeShare,
    V1Message,
    direct_exchange,
)

log = logging.getLogger("qmf.console")

#: Seconds to wait for the first answer to a locate request in the background, when the program does not wait for it.
FIRST_ANSWER = 0.5


def _to_keys(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(keys)


@attrs.frozen(kw_only=True)
class ClientOptions:
    """Options of a client: the keyword arguments of `Client`.

    Attributes:
        domain: QMF domain; agents of other domains are not found.
        timeout: seconds to wait for an answer when a call does not specify it.
        events: receive all events.
        heartbeats: receive all heartbeats. Without them, agents are found when the client connects, and are never
            removed for being silent.
        data: receive all objects that agents publish.
        bindings: more binding keys on the topic exchange, see `class_keys` and `heartbeat_keys`.
        discover: list the classes of each agent when it is found, and notify of them by `PackageSeen` and `ClassSeen`.
        wait: `Client.open` waits for a broker that isn't there yet, instead of raising `ConnectError`.
        settle: seconds that `Client.open` waits for the first agent to announce itself, at most; 0 for not at all. As
            long as agents announce themselves it waits on, at most `timeout` seconds.
    """

    domain: str = "default"
    timeout: float = 10.0
    events: bool = True
    heartbeats: bool = True
    data: bool = True
    bindings: tuple[str, ...] = attrs.field(default=(), converter=_to_keys)
    discover: bool = False
    settle: float = 0.5
    wait: bool = False

    @property
    def binding_keys(self) -> list[str]:
        """The binding keys for all that is received."""
        chosen = {HEARTBEAT_BINDING: self.heartbeats, EVENT_BINDING: self.events, DATA_BINDING: self.data}
        return [*(key for key, on in chosen.items() if on), *self.bindings]


@attrs.frozen
class ClientArguments(ClientOptions):
    """All arguments of `Client`.

    Attributes:
        target: the broker's URL, or a bus.
    """

    target: str | Bus


class ClientCore:
    """The parts of one client, and the ways between them."""

    def __init__(self, bus: Bus, options: ClientOptions) -> None:
        """Make the parts; nothing is connected yet."""
        self.bus = bus
        self.options = options
        self.publisher = NotificationPublisher()
        publish = self.publisher.publish
        self.rpc = RpcChannel(bus, options.domain)
        self.receiver = MessageReceiver(
            bus,
            options.domain,
            self._envelope,
            self._v1_message,
            self._on_returned,
            self.rpc.on_failure,
            lambda key: self.indications.on_unbound(key, self.receiver.bound),
            self.rpc.is_pending,
        )
        self.tracker = AgentTracker(
            self._agent_changed,
            lambda: self.publisher.publish(AgentsFound(len(self.agents))),
            self._probe_agents,
            ageing=options.heartbeats,
            timeout=options.timeout,
        )
        self.agents = self.tracker.agents
        self.discovery = SchemaDiscovery(self.rpc, self.agents, publish, options.timeout)
        self.schemas = self.discovery.cache
        self.store = ObjectStore()
        self.requests = AgentRequests(self.rpc, self.tracker, self.discovery, self.store, options.timeout)
        self.indications = IndicationHandler(
            self.agents, self.schemas, self.store, self.requests.make, publish, self.publisher.publish_all
        )
        self.subscriptions = ObjectSubscriptions(self.rpc, self.receiver)
        self._tasks = BackgroundTasks()
        self._services = FollowServices(
            tracker=self.tracker,
            requests=self.requests,
            subscriptions=self.subscriptions,
            receiver=self.receiver,
            discovery=self.discovery,
            store=self.store,
            publisher=self.publisher,
            tasks=self._tasks,
            timeout=options.timeout,
        )
        self.followers: set[Follower] = set()
        """The followers that run; they end with the client."""
        self._identified: tuple[str, int] | None = None
        self._bus_is_ours = False
        self._unwatch: Callable[[], None] = lambda: None

    # -- life

    async def open(self, timeout: float) -> None:
        """Connect, bind, and find the agents; errors as of `Client.open`."""
        self._unwatch = self.bus.watch(self._bus_event)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        missing = "granted no subscription"
        try:
            if not self.bus.connected:
                self._bus_is_ours = True
                if self.options.wait:
                    await open_when_there(self.bus, timeout)
                    deadline = loop.time() + timeout
                else:
                    await self.bus.open(timeout)
            async with asyncio.timeout_at(deadline):
                await self.rpc.open(self.receiver.deliver_answers, self.receiver.deliver)
                for key in self.options.binding_keys:
                    await self.receiver.bind(key)
                missing = "accepted no message"
                self.publisher.publish(BusConnected(self.bus.url, again=False))
                await self._locate(self.options.settle)
            await self.tracker.settle(self.options.settle)
        except TimeoutError:
            await self.close()
            raise ConnectError(self.bus.url, f"the broker {missing} within {timeout:g} s") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop everything; pending requests fail."""
        for follower in list(self.followers):
            await follower.close()
        self.tracker.close()
        self.rpc.on_disconnected("the console was closed")
        await self._tasks.cancel()
        await self.indications.close()
        await self.discovery.close()
        await self.subscriptions.close()
        self._unwatch()
        if self._bus_is_ours:
            await self.bus.close()
        else:
            await self.rpc.close()
            await self.receiver.close()
        self.publisher.close()

    async def locate(self, settle: float | None) -> None:
        """Ask all agents to announce themselves, and wait for that; see `Client.locate`."""
        self.rpc.check_connected()
        limit = self.options.settle if settle is None else settle
        await self._locate(limit)
        await self.tracker.settle(limit)

    async def _locate(self, limit: float) -> None:
        self.tracker.begin_search(limit or FIRST_ANSWER)
        await self.rpc.locate(self._locate_outcome)

    def follower(self, spec: FollowSpec, size: int) -> Follower:
        """A follower, not started yet; see `Client.follow`."""
        return Follower(self._services, spec, size, self.followers)

    # -- from the bus

    def _bus_event(self, event: BusEvent) -> None:
        url = self.bus.url
        match event:
            case Connected(again=True):
                self.publisher.publish(BusConnected(url, again=True))
                self._tasks.spawn(self._on_reconnected())
            case Disconnected():
                self.rpc.on_disconnected(event.reason)
                self._identified = None
                self.tracker.on_connection_lost()
                self.publisher.publish(BusDisconnected(url, event.reason, event.retry))
            case LinkLost():
                # A request that was refused in this way fails by its own `send`; here it is only reported.
                self.publisher.publish(BusLinkLost(event.address, event.condition, event.description, event.reopened))

    async def _on_reconnected(self) -> None:
        """Catch up after a reconnect; the broker may be another one than before."""
        with contextlib.suppress(DisconnectedError):
            await self.rpc.open_v1(self.receiver.deliver)
        await self._locate(self.options.settle)

    def _envelope(self, envelope: Envelope, received: ReceivedMessage) -> None:
        content = envelope.content
        if envelope.agent and not isinstance(content, LocateResponse | Heartbeat):
            self.tracker.on_mention(envelope.agent)
        if isinstance(content, ObjectsIndication | EventsIndication) and envelope.subscription is None:
            self._indication(envelope, received)
            return
        received.settle()
        match content:
            case ObjectsIndication() if envelope.agent:
                self.subscriptions.on_publication(envelope.agent, envelope, content)
            case SubscribeShare() if envelope.agent:
                self.subscriptions.on_share(envelope.agent, content)
            case SubscribeCancel() if envelope.agent:
                self.subscriptions.on_cancelled(envelope.agent, content)
            case LocateResponse() | Heartbeat():
                self._announcement(envelope, content)
            case ObjectsResponse() | SchemaIdsResponse() | SchemasResponse() | MethodResponse():
                self.rpc.on_answer(envelope)
            case SubscribeResponse():
                if envelope.agent:
                    # Before the request's task goes on: the first publication may follow at once.
                    pending = self.rpc.is_pending(envelope.correlation_id)
                    self.subscriptions.on_granted(envelope.agent, content, wanted=pending)
                self.rpc.on_answer(envelope)
            case ExceptionResponse():
                agent = self.agents.resolve(envelope.agent) if envelope.agent else None
                error = RemoteError(content.text or "no reason given", content.code, agent, dict(content.values))
                self.rpc.on_failure(envelope.correlation_id, error)
            case _:
                log.debug("skipped a %s, which no console expects", type(content).__name__)

    def _on_returned(self, answers: list[Answer]) -> None:
        """Methods have returned: the same as `_envelope`."""
        mentioned = None
        for _, _, agent in answers:
            if agent and agent is not mentioned:
                self.tracker.on_mention(agent)
                mentioned = agent
        self.rpc.on_returned(answers)

    def _v1_message(self, message: V1Message) -> None:
        if message.agent:
            self.tracker.on_mention(message.agent)
        self.rpc.answered_v1(message)

    def _indication(self, envelope: Envelope, received: ReceivedMessage) -> None:
        agent = self.agents.get(envelope.agent) if envelope.agent else None
        if agent is None:
            log.debug("skipped an indication without the name of its agent")
            received.settle()
            return
        self.indications.on_indication(envelope, agent, received)

    def _announcement(self, envelope: Envelope, content: LocateResponse | Heartbeat) -> None:
        info = content.agent
        located = isinstance(content, LocateResponse)
        self.tracker.on_announcement(info, connected=envelope.correlation_id == LOCATE_BROKER, located=located)
        agent = self.agents.get(info.name)
        if agent is None:
            return
        if agent.is_broker and self.tracker.ask_broker():
            self._tasks.spawn(self._count_agents(agent))
        if agent.is_broker and self._identified != (agent.name, agent.epoch):
            self._identified = (agent.name, agent.epoch)
            self._tasks.spawn(self._identify(agent))
        if isinstance(content, Heartbeat):
            self.indications.count(envelope, agent)
            self.publisher.publish(HeartbeatSeen(agent, info.timestamp))
        if self.options.discover:
            self.discovery.discover(agent)

    # -- agents

    def _agent_changed(self, change: AgentChange) -> None:
        agent, publish = change.agent, self.publisher.publish
        if change.kind in (AgentChangeKind.RESTARTED, AgentChangeKind.REMOVED):
            self.discovery.forget(agent.name)
            self.indications.agent_lost(agent.name)
            self.subscriptions.forget_agent(agent.name)
        match change.kind:
            case AgentChangeKind.ADDED:
                self.store.agent_added(agent.name, agent.epoch)
                publish(AgentAdded(agent))
            case AgentChangeKind.UPDATED:
                publish(AgentUpdated(agent))
            case AgentChangeKind.RESTARTED:
                assert change.old is not None
                self.rpc.agent_lost(agent.name, f"restarted (epoch {change.old.epoch}, then {agent.epoch})")
                self.store.agent_restarted(agent.name)
                publish(AgentRestarted(agent, change.old))
            case AgentChangeKind.REMOVED:
                removal, what_happened = _REMOVALS[change.event]
                self.rpc.agent_lost(agent.name, what_happened)
                self.store.agent_removed(agent.name, removal)
                self.schemas.forget_agent(agent.name)
                publish(AgentRemoved(agent, removal))

    def _locate_outcome(self, error: Exception | None) -> None:
        """The locate request to all agents has its outcome."""
        if error is None:
            self.tracker.on_accepted()
        elif isinstance(error, LinkError):
            self.publisher.publish(BusLinkLost(error.address, error.condition, error.description, reopened=True))

    def _probe_agents(self, names: list[str]) -> None:
        known = [agent for name in names if (agent := self.agents.get(name)) is not None]
        self._tasks.spawn(self.rpc.locate_again(known))

    async def _count_agents(self, broker: Agent) -> None:
        """Ask the connected broker how many agents there are: each binds its name to the direct exchange."""
        count = None
        try:
            bound = await self.requests.binding_count(broker, direct_exchange(self.options.domain))
            # qpidd's own agent is not bound; that of the embedded broker is bound by its alias as well.
            count = None if bound is None else bound + 1 if broker.is_qpidd else bound - 1
        except QmfError as error:
            log.debug("the broker does not say how many agents there are: %s", error)
        finally:
            self.tracker.broker_answered(count)

    async def _identify(self, agent: Agent) -> None:
        try:
            broker_id = await self.discovery.broker_id(agent)
        except QmfError as error:
            log.info("the broker did not answer the query for its id: %s", error)
            return
        if broker_id is not None:
            self.publisher.publish(BrokerIdentified(agent, broker_id))


_REMOVALS = {
    AgentEvent.SILENT: (Removal.SILENT, "fell silent"),
    AgentEvent.GOODBYE: (Removal.GOODBYE, "ended"),
    AgentEvent.CUT: (Removal.DISCONNECTED, "was cut off"),
}
