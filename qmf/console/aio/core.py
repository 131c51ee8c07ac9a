"""What a client does with each kind of message, connection event and change of an agent.

The one place where the parts meet: answers go to the requests, announcements to the tracker, indications to the store
and the listeners. Public calls are in `qmf.console.aio.client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable

from qmf.bus.base import Bus, BusEvent, Connected, Disconnected, LinkLost, ReceivedMessage
from qmf.console.aio.agents.registry import Agent, AgentChange, AgentChangeKind, AgentEvent, AgentRegistry
from qmf.console.aio.agents.tracker import AgentTracker
from qmf.console.aio.binding_keys import key_matches
from qmf.console.aio.bindings import SharedBindings
from qmf.console.aio.following.subscriptions import ObjectSubscriptions
from qmf.console.aio.gaps import SequenceGaps
from qmf.console.aio.indications import IndicationHandler, MakeObject
from qmf.console.aio.notifications import (
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentUpdated,
    BrokerIdentified,
    BusConnected,
    BusDisconnected,
    BusLinkLost,
    ClassSeen,
    HeartbeatSeen,
    Missed,
    PackageSeen,
    Removal,
)
from qmf.console.aio.objects.store import ObjectStore
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.console.aio.rpc.requests import PendingRequests
from qmf.console.aio.rpc.v1 import is_answer, is_last, refusal
from qmf.console.aio.schemas.cache import SchemaCache, class_runs, distinct_keys
from qmf.console.aio.schemas.discovery import SchemaDiscovery
from qmf.console.aio.streams import NotificationPublisher
from qmf.console.aio.wire import LOCATE_BROKER, Wire
from qmf.errors import ConnectError, DisconnectedError, ProtocolError, QmfError, RemoteError
from qmf.protocol import (
    AgentInfo,
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
    V1Message,
)
from qmf.schema import ClassKey

log = logging.getLogger("qmf.console")


class ClientCore:
    """The parts of one client, and the ways between them."""

    def __init__(
        self, bus: Bus, domain: str, timeout: float, make: MakeObject, *, ageing: bool, discover: bool
    ) -> None:
        self.timeout = timeout
        self.publisher = NotificationPublisher()
        self.requests = PendingRequests()
        self.wire = Wire(bus, domain, self._envelope, self._v1, self._broken_answer)
        self.questions = RpcChannel(self.wire, self.requests)
        self.tracker = AgentTracker(self._agent_changed, ageing=ageing)
        self.explorer = SchemaDiscovery(self.questions, self.tracker.agents, lambda: self.timeout)
        self.schemas = SchemaCache(self.explorer.schema)
        self.store = ObjectStore()
        self.indications = IndicationHandler(
            self.schemas, self.store, make, self.publisher.publish, lambda name: self.agents.get(name) is not None
        )
        self.gaps = SequenceGaps()
        self.wire.on_unbound = self._unbound
        self.bindings = SharedBindings(self.wire)
        self.subscriptions = ObjectSubscriptions(self.wire, self.questions)
        self.closing: dict[object, Callable[[], Coroutine[None, None, None]]] = {}
        """What else ends with the client, by whom: called first by `close`."""
        self.publishing: set[str] = set()
        """Names of the agents that publish objects; most of libqmf2's don't."""
        self.reason = "not opened yet"
        """Why there is no connection, where there is none."""
        self.strays = 0
        self._discover = discover
        self._discovering: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unwatch: Callable[[], None] = lambda: None
        self._identified: tuple[str, int] | None = None

    @property
    def agents(self) -> AgentRegistry:
        """The agents present."""
        return self.tracker.agents

    async def open(self, timeout: float, keys: Iterable[str], settle: float) -> None:
        """Connect, subscribe, and find the agents."""
        self._unwatch = self.wire.bus.watch(self._bus_event)
        deadline = asyncio.get_running_loop().time() + timeout
        silent = "granted no subscription"
        try:
            await self.wire.connect(timeout)
            async with asyncio.timeout_at(deadline):
                await self.wire.open(keys)
                silent = "took no message"
                self.publisher.publish(BusConnected(self.wire.bus.url, again=False))
                await self.wire.locate()
            await self.tracker.settle(settle)
        except TimeoutError:
            await self.close()
            raise ConnectError(self.wire.bus.url, f"the broker {silent} within {timeout:g} s") from None
        except BaseException:
            await self.close()
            raise

    async def _return(self) -> None:
        """Make up for what was missed without a connection; the broker may be another one than before."""
        with contextlib.suppress(DisconnectedError):
            await self.wire.open_v1()
        await self.wire.locate()

    async def close(self) -> None:
        """Stop everything; outstanding requests fail."""
        for end in list(self.closing.values()):
            await end()
        self.tracker.close()
        self.reason = "the console was closed"
        self.requests.lose_all(self.disconnected())
        tasks = [*self._tasks, *self._discovering.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.indications.close()
        await self.schemas.close()
        await self.subscriptions.close()
        self._unwatch()
        await self.wire.close()
        self.publisher.close()

    def disconnected(self) -> DisconnectedError:
        """The error for a question that can't be asked."""
        return DisconnectedError(self.wire.bus.url, self.reason)

    def saw_all(self, keys: Iterable[ClassKey | None], agent: Agent) -> None:
        """`saw` for each key, once."""
        for key in distinct_keys(keys):
            self.saw(key, agent)

    def saw(self, key: ClassKey, agent: Agent) -> None:
        """Note that an agent uses a class, and tell it when it is news."""
        if self.schemas.saw_package(key.package):
            self.publisher.publish(PackageSeen(key.package))
        if self.schemas.saw(key, agent.name):
            self.publisher.publish(ClassSeen(key, agent))

    # -- from the bus

    def _bus_event(self, event: BusEvent) -> None:
        url = self.wire.bus.url
        match event:
            case Connected(again=True):
                self.publisher.publish(BusConnected(url, again=True))
                self.spawn(self._return())
            case Disconnected():
                self.reason = event.reason
                self.requests.lose_all(DisconnectedError(url, event.reason))
                self._identified = None
                self.tracker.cut()
                self.publisher.publish(BusDisconnected(url, event.reason, event.retry))
            case LinkLost():
                # A request that was refused this way fails by its own `send`; here it is only told.
                self.publisher.publish(BusLinkLost(event.address, event.condition, event.description, event.reopened))

    def _envelope(self, envelope: Envelope, received: ReceivedMessage) -> None:
        content = envelope.content
        if isinstance(content, ObjectsIndication | EventsIndication) and envelope.subscription is None:
            self._indication(envelope, content, received)
            return
        received.settle()
        match content:
            case ObjectsIndication() if envelope.agent:
                self._touch(envelope)
                self.subscriptions.published(envelope.agent, envelope, content)
            case SubscribeCancel() if envelope.agent:
                self._touch(envelope)
                self.subscriptions.cancelled(envelope.agent, content)
            case LocateResponse() | Heartbeat():
                self._announcement(envelope, content)
            case ObjectsResponse() | SchemaIdsResponse() | SchemasResponse() | MethodResponse() | SubscribeResponse():
                self._touch(envelope)
                number = _number(envelope.correlation_id)
                if isinstance(content, SubscribeResponse) and envelope.agent:
                    # Before the asker wakes up, for the first publication may be right behind.
                    self.subscriptions.granted(envelope.agent, content, wanted=number in self.requests)
                self.requests.part(number, content, last=not envelope.partial)
            case ExceptionResponse():
                self._touch(envelope)
                agent = self.agents.resolve(envelope.agent) if envelope.agent else None
                error = RemoteError(content.text or "no reason given", content.code, agent, dict(content.values))
                self.requests.refuse(_number(envelope.correlation_id), error)
            case _:
                self.strays += 1
                log.debug("a %s is nothing for a console", type(content).__name__)

    def _v1(self, message: V1Message) -> None:
        if message.agent:
            self.tracker.mentioned(message.agent)
        for frame in message.frames:
            error = refusal(frame, message.agent)
            if error is not None:
                self.requests.refuse(frame.sequence, error)
            elif is_answer(frame):
                self.requests.part(frame.sequence, frame, last=is_last(frame))
            else:
                self.strays += 1

    def _broken_answer(self, correlation_id: str, error: ProtocolError) -> None:
        self.requests.refuse(_number(correlation_id), error)

    def _touch(self, envelope: Envelope) -> None:
        if envelope.agent:
            self.tracker.mentioned(envelope.agent)

    def _announcement(self, envelope: Envelope, content: LocateResponse | Heartbeat) -> None:
        info: AgentInfo = content.agent
        self.tracker.announced(info, connected=envelope.correlation_id == LOCATE_BROKER)
        agent = self.agents.get(info.name)
        if agent is None:
            return
        if agent.is_broker and self._identified != (agent.name, agent.epoch):
            self._identified = (agent.name, agent.epoch)
            self.spawn(self._identify(agent))
        if isinstance(content, Heartbeat):
            self._count(agent, envelope)
            self.publisher.publish(HeartbeatSeen(agent, info.timestamp))
        self._consider_discovery(agent)

    def _indication(
        self, envelope: Envelope, content: ObjectsIndication | EventsIndication, received: ReceivedMessage
    ) -> None:
        self._touch(envelope)
        agent = self.agents.get(envelope.agent) if envelope.agent else None
        if agent is None:
            self.strays += 1
            log.debug("skipped an indication that doesn't say from which agent it is")
            received.settle()
            return
        self._count(agent, envelope)
        if isinstance(content, ObjectsIndication):
            self.publishing.add(agent.name)
            updated = class_runs(content.objects)
            self.saw_all((key for key, _ in updated), agent)
            self.indications.objects(updated, agent, received)
        else:
            raised = class_runs(content.events)
            self.saw_all((key for key, _ in raised), agent)
            self.indications.events(raised, agent, received)

    def _count(self, agent: Agent, envelope: Envelope) -> None:
        if envelope.sequence is None or envelope.subject is None:
            return
        missed = self.gaps.missed(agent.name, envelope.subject, envelope.sequence)
        if missed:
            log.info("%d messages of %s under %s did not arrive", missed, agent, envelope.subject)
            self.publisher.publish(Missed(agent, envelope.subject, missed))

    def _unbound(self, key: str) -> None:
        kept = self.wire.bound
        self.gaps.forget_subjects(
            lambda subject: key_matches(key, subject) and not any(key_matches(other, subject) for other in kept)
        )

    # -- from the tracker

    def _agent_changed(self, change: AgentChange) -> None:
        agent = change.agent
        if change.change in (AgentChangeKind.RESTARTED, AgentChangeKind.REMOVED):
            self.explorer.forget(agent.name)
            self.gaps.forget_agent(agent.name)
            self.subscriptions.forget_agent(agent.name)
        match change.change:
            case AgentChangeKind.ADDED:
                self.publisher.publish(AgentAdded(agent))
            case AgentChangeKind.UPDATED:
                self.publisher.publish(AgentUpdated(agent))
            case AgentChangeKind.RESTARTED:
                assert change.old is not None
                self.requests.lose_agent(agent.name, f"restarted (epoch {change.old.epoch}, then {agent.epoch})")
                self.store.drop_agent(agent.name, transient_only=True)
                self.publisher.publish(AgentRestarted(agent, change.old))
            case AgentChangeKind.REMOVED:
                self.requests.lose_agent(agent.name, _GONE[change.sign])
                self.store.drop_agent(agent.name)
                self.publishing.discard(agent.name)
                self.schemas.forget_agent(agent.name)
                self.publisher.publish(AgentRemoved(agent, _REMOVALS[change.sign]))

    def _consider_discovery(self, agent: Agent) -> None:
        if (
            self._discover
            and self.explorer.can_list(agent)
            and not self.explorer.is_listed(agent)
            and agent.name not in self._discovering
        ):
            task = asyncio.get_running_loop().create_task(self._explore(agent))
            self._discovering[agent.name] = task
            task.add_done_callback(lambda _: self._discovering.pop(agent.name, None))

    async def _explore(self, agent: Agent) -> None:
        try:
            for key in await self.explorer.classes(agent, self.timeout):
                self.saw(key, agent)
        except QmfError as error:
            log.info("agent %s didn't tell its classes, asking again at its next heartbeat: %s", agent, error)

    async def _identify(self, agent: Agent) -> None:
        try:
            broker_id = await self.explorer.broker_id(agent, self.timeout)
        except QmfError as error:
            log.info("the broker didn't tell its id: %s", error)
            return
        if broker_id is not None:
            self.publisher.publish(BrokerIdentified(agent, broker_id))

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run something until it ends or the client closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_REMOVALS = {
    AgentEvent.SILENT: Removal.SILENT,
    AgentEvent.GOODBYE: Removal.GOODBYE,
    AgentEvent.CUT: Removal.DISCONNECTED,
}
_GONE = {AgentEvent.SILENT: "fell silent", AgentEvent.GOODBYE: "ended", AgentEvent.CUT: "was cut off"}


def _number(correlation_id: str | None) -> int:
    """The request that an answer belongs to; 0, which is none, for a correlation id that isn't ours."""
    text = correlation_id or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
