"""Following the objects of one agent in the best way that the agent offers.

- SUBSCRIPTION: agents of this project publish to subscribers, first everything, then what changed. Publications are
  numbered. If one is missing, or the agent ends the subscription, it is requested again, and the first complete
  publication is compared with what is known.
- INDICATIONS: qpidd publishes changes to all consoles. A query by any console hides a change from that (QMF2.md 0.9,
  7.1), so queries are repeated from time to time, and both are merged: by the agent's own time stamps, an older state
  never replaces a newer one. No predicate is sent then, because a later change of an object that doesn't match yet
  must be merged over its earlier state.
- POLLING: libqmf2's agents don't publish objects, so they are queried regularly. An object that existed before a query
  was sent and is not in its answer is gone.

Agents don't announce whether they publish objects. So polling receives indications, too, and polls less often once one
has arrived. The states are in `follow_state`.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Iterable, Iterator, Sequence

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.console.aio.agent_requests import AgentRequests
from qmf.console.aio.agent_tracker import AgentTracker
from qmf.console.aio.agents import Agent
from qmf.console.aio.following.follow_state import TRANSITIONS, FollowEvent, FollowState
from qmf.console.aio.following.followed_objects import AgentObjects, ChangeKind, FollowedObjects
from qmf.console.aio.following.subscriptions import ObjectSubscription, ObjectSubscriptions
from qmf.console.aio.indications import ObjectStore
from qmf.console.aio.notifications import Missed, NotificationPublisher
from qmf.console.aio.objects.object_query import ObjectQuery, Test
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.objects.values import with_agent
from qmf.console.aio.receiver import MessageReceiver, any_package_key, class_keys
from qmf.console.aio.schemas import SchemaDiscovery
from qmf.errors import LinkError, ProtocolError, QmfError, RemoteError, RequestTimeout
from qmf.protocol import DATA_BINDING, ROW_FORM, Envelope, ObjectsIndication, Predicate, SubscribeRequest
from qmf.protocol.objects import class_runs
from qmf.schema import ClassKey

log = logging.getLogger("qmf.console")

#: Seconds before a failed request is repeated: the first time, and at most.
FIRST_RETRY = 0.5
LAST_RETRY = 30.0

#: Shortest time between two queries in seconds, however many indications ask for one.
SHORTEST_PAUSE = 0.1

#: Lifetime of a subscription in seconds; it is refreshed as long as its objects are followed.
LIFETIME = 60


#: Objects of a snapshot that are compared in one turn of the event loop; about 5 ms.
PART = 500


class FollowMode(enum.Enum):
    """How the objects of an agent are followed."""

    SUBSCRIPTION = "subscription"  #: the agent publishes changes to this client
    INDICATIONS = "indications"  #: the agent publishes changes to all; queries find those that are not published
    POLLING = "polling"  #: the agent is queried regularly


@attrs.frozen
class FollowSpec:
    """What is followed, and how often agents publish or are queried.

    Attributes:
        query: which objects.
        predicate: the filter for agents.
        test: the filter for this console.
        interval: seconds between publications, or between queries.
        recheck: seconds between queries to agents that publish to all.
    """

    query: ObjectQuery
    predicate: Predicate
    test: Test
    interval: float
    recheck: float


@attrs.frozen(kw_only=True)
class FollowServices:
    """The parts of a client that following uses.

    Attributes:
        tracker: the agents present, and whether more are being found.
        requests, subscriptions: requests to agents.
        receiver: binds the keys of indications.
        discovery, store: what is known of classes and published objects.
        publisher: source of notifications.
        tasks: for work that outlives a follower.
        timeout: seconds to wait for answers.
    """

    tracker: AgentTracker
    requests: AgentRequests
    subscriptions: ObjectSubscriptions
    receiver: MessageReceiver
    discovery: SchemaDiscovery
    store: ObjectStore
    publisher: NotificationPublisher
    tasks: BackgroundTasks
    timeout: float


class AgentFollower:
    """Keeps the objects of one agent up to date."""

    def __init__(self, services: FollowServices, spec: FollowSpec, followed: FollowedObjects, agent: Agent) -> None:
        self.agent = agent
        self.failure: QmfError | None = None
        """Why the last request to the agent failed; None after one that was answered."""
        self.tried = asyncio.Event()
        """Set after the first attempt, whether it succeeded or not."""
        self._requests = services.requests
        self._subscriptions = services.subscriptions
        self._receiver = services.receiver
        self._discovery = services.discovery
        self._schemas = services.discovery.cache
        self._store = services.store
        self._publisher = services.publisher
        self._tasks = services.tasks
        self._timeout = services.timeout
        self._spec = spec
        self._objects = AgentObjects(spec.test, followed)
        self._state = FollowState.STARTING
        self._refused = False  # the agent refused a subscription
        self._wake = asyncio.Event()
        self._fault: QmfError | None = None  # why the subscription is outdated, if something is wrong
        self._delay = FIRST_RETRY
        self._next_number = 1
        self._snapshot: list[RemoteObject] = []
        self._comparison: asyncio.Task[None] | None = None
        self._waiting: list[Sequence[RemoteObject]] = []  # published while the snapshot is compared
        self._unknown_classes: set[ClassKey] = set()
        self._held_keys: list[str] = []
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def mode(self) -> FollowMode:
        """How the agent is followed now."""
        if self._subscribes:
            return FollowMode.SUBSCRIPTION
        return FollowMode.INDICATIONS if self._publishes else FollowMode.POLLING

    # -- from the client

    def messages_missed(self) -> None:
        """Messages that the agent published to all did not arrive."""
        if not self._subscribes:
            self._wake.set()

    def agent_updated(self, agent: Agent) -> None:
        """The agent announced new information about itself."""
        before, self.agent = self.agent, agent
        if _abilities(before) != _abilities(agent):
            self._refused = False
            self._outdate()

    def agent_restarted(self, agent: Agent) -> None:
        """The agent restarted: objects of its earlier run are gone, the others are compared with what it has now."""
        self.agent = agent
        self._drop_comparison()
        for obj in self._objects:
            if obj.object_id.agent_epoch:
                self._objects.remove(obj, ChangeKind.LOST)
        self._refused = False
        self._outdate()

    def on_indication(self, obj: RemoteObject) -> None:
        """The agent published an object to all."""
        if self._subscribes or not self._is_wanted(obj):
            return
        if self._objects.get(obj.object_id) is None and not obj.is_deleted and not _is_complete(obj):
            self._wake.set()  # a query hid the object when it was new: only its changes are published
            return
        self._objects.update(obj)

    def end(self, kind: ChangeKind | None = None) -> asyncio.Task[None]:
        """Stop; `kind` is what happened to the objects, None when they are no longer followed.

        Returns:
            the task that ends the subscription.
        """
        self._advance(FollowEvent.END)
        self._drop_comparison()
        self._task.cancel()
        if kind is not None:
            for obj in self._objects:
                self._objects.remove(obj, kind)
        return self._task

    # -- requests

    @property
    def _subscribes(self) -> bool:
        return self.agent.supports_subscriptions and not self._refused

    @property
    def _publishes(self) -> bool:
        return self.agent.is_qpidd or self._store.has_publisher(self.agent.name)

    def _advance(self, event: FollowEvent) -> None:
        self._state = TRANSITIONS.next(self._state, event)

    async def _run(self) -> None:
        try:
            while True:
                try:
                    if self._subscribes:
                        await self._subscribe()
                    else:
                        await self._poll()
                except QmfError as error:
                    self._advance(FollowEvent.FAIL)
                    self.failure = error
                    self.tried.set()
                    log.info("following %s of agent %s failed, trying again: %s", self._spec.query, self.agent, error)
                    self._wake.clear()
                    await self._pause(self._delay)
                    self._delay = min(self._delay * 2, LAST_RETRY)
                self._advance(FollowEvent.RESUME)
        finally:
            self.tried.set()
            if self._held_keys:
                self._tasks.spawn(self._receiver.release(self._held_keys))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until the next wake-up."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _on_success(self) -> None:
        self.failure = None
        self._delay = FIRST_RETRY
        self.tried.set()

    # -- subscriptions

    async def _subscribe(self) -> None:
        """Subscribe, and keep the subscription alive until it is outdated or ended."""
        query = self._spec.query
        name, package = query.class_name
        await self._discovery.learn_classes(self.agent, package, name)
        unknown, self._unknown_classes = self._unknown_classes, set()
        await asyncio.gather(*(self._schemas.learn(key) for key in unknown))
        self._drop_comparison()
        self._advance(FollowEvent.SUBSCRIBE)
        self._fault = None
        self._wake.clear()  # what outdated the subscription before, as its first publication may at once
        self._next_number = 1
        self._snapshot = []
        request = SubscribeRequest(
            class_key=ClassKey(package or "", name.lower()) if name else None,
            object_id=with_agent(query.object_id, self.agent.name) if query.object_id else None,
            where=self._spec.predicate,
            interval=self._spec.interval,
            lifetime=LIFETIME,
            row_form=ROW_FORM,
            can_share=True,
        )
        try:
            subscription = await self._subscriptions.start(
                self.agent, request, self._on_publication, self._on_cancelled, what=str(query), timeout=self._timeout
            )
        except RemoteError as error:
            self._without_subscription(error.text)
            return
        try:
            await self._keep(subscription)
        finally:
            self._subscriptions.stop(subscription)

    async def _keep(self, subscription: ObjectSubscription) -> None:
        while self._state.subscribed and subscription.active:
            reached, in_snapshot = self._next_number, self._state is FollowState.SNAPSHOT
            limit = self._timeout if in_snapshot else subscription.refresh_after
            await self._pause(min(limit, subscription.refresh_after))
            if self._state is FollowState.SNAPSHOT and self._next_number == reached:
                what = f"the first publication of a subscription to {self._spec.query}"
                raise RequestTimeout(what, self.agent.name, limit)
            if self._state.subscribed and subscription.active:
                await self._subscriptions.refresh(subscription)
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _without_subscription(self, reason: str) -> None:
        """The agent gives no subscription for these objects, and would not if it were asked again."""
        self._refused = True
        log.warning("agent %s gives no subscription to %s, so it is queried: %s", self.agent, self._spec.query, reason)

    def _on_cancelled(self, reason: str) -> None:
        if self._state is FollowState.SNAPSHOT:
            self._without_subscription(reason)  # too many objects, as it found out while it published them
            self._outdate()
            return
        self._outdate(RemoteError(f"ended the subscription: {reason}", None, self.agent.name))

    def _outdate(self, fault: QmfError | None = None) -> None:
        """Have the subscription replaced; if something is wrong, after a pause, so that the load does not grow."""
        self._fault = fault
        self._drop_comparison()
        self._advance(FollowEvent.OUTDATE)
        self._wake.set()

    def _on_publication(self, envelope: Envelope, content: ObjectsIndication) -> None:
        if not self._state.subscribed:
            return
        number = envelope.sequence
        if number is not None and number != self._next_number:
            self._miss(max(number - self._next_number, 1), envelope.subject or "")
            return
        self._next_number += 1
        unknown = {key for key, _ in class_runs(content.objects) if key is not None and self._schemas.worth_asking(key)}
        if unknown:
            # A class that is new at the agent: its schema is fetched first, then the subscription is replaced.
            self._schemas.saw_all(unknown, self.agent)
            self._unknown_classes = unknown
            self._outdate()
            return
        objects = [obj for obj in self._requests.make(content.objects, self.agent) if obj.data.object_id is not None]
        if self._comparison is not None:
            self._waiting.append(objects)
            return
        if self._state is FollowState.UPDATING:
            self._update(objects)
            return
        self._snapshot += objects
        if not envelope.partial:
            self._complete_snapshot()

    def _miss(self, missed: int, subject: str) -> None:
        """Report publications that did not arrive, and have the subscription replaced."""
        self._publisher.publish(Missed(self.agent, subject, missed))
        self._outdate(ProtocolError(f"{missed} publications to a subscriber did not arrive"))

    def _update(self, objects: Iterable[RemoteObject]) -> None:
        for obj in objects:
            if obj.data.left:
                self._objects.remove(self._objects.get(obj.object_id) or obj, ChangeKind.LEFT)
            else:
                self._objects.update(obj)

    def _complete_snapshot(self) -> None:
        """All objects that there were when the subscription began are here."""
        objects, self._snapshot = self._snapshot, []
        self._advance(FollowEvent.COMPLETE)
        steps = self._objects.compare(objects, self._objects.ids(), filtered=bool(self._spec.predicate), part=PART)
        if len(objects) > PART:
            self._comparison = asyncio.get_running_loop().create_task(self._compare(steps))
        else:
            _run_all(steps)
            self._on_success()

    async def _compare(self, steps: Iterator[None]) -> None:
        """Compare a large snapshot step by step, then take what was published meanwhile."""
        for _ in steps:
            await asyncio.sleep(0)
        self._comparison = None
        waiting, self._waiting = self._waiting, []
        for objects in waiting:
            self._update(objects)
        self._on_success()

    def _drop_comparison(self) -> None:
        """The snapshot that is being compared is of no use any more."""
        if self._comparison is not None:
            self._comparison.cancel()
            self._comparison = None
        self._waiting = []

    # -- queries and indications

    async def _poll(self) -> None:
        """Query the agent once, and pause."""
        await self._bind_indications()
        self._advance(FollowEvent.QUERY)
        self._wake.clear()
        predicate = () if self._publishes else self._spec.predicate
        before = self._objects.start_query()
        found: list[RemoteObject] = []
        try:
            found = await self._requests.query(self.agent, self._spec.query, predicate)
        finally:
            living = self._objects.end_query(found)
        _run_all(self._objects.compare(living, before, filtered=bool(predicate)))
        self._advance(FollowEvent.ANSWER)
        self._on_success()
        await asyncio.sleep(SHORTEST_PAUSE)
        await self._pause(self._spec.recheck if self._publishes else self._spec.interval)

    async def _bind_indications(self) -> None:
        """Bind the keys under which objects of the class are published."""
        name, package = self._spec.query.class_name
        if self._held_keys or name is None or DATA_BINDING in self._receiver.bound:
            return
        self._held_keys = keys = class_keys("data", package, name) if package else [any_package_key(name)]
        try:
            await self._receiver.hold(keys)
        except LinkError as error:
            log.warning("objects of %s that agents publish can't be received, so agents are queried: %s", name, error)

    def _is_wanted(self, obj: RemoteObject) -> bool:
        query = self._spec.query
        if query.object_id is not None:
            return obj.object_id == with_agent(query.object_id, self.agent.name)
        name, package = query.class_name
        key = obj.class_key
        return (
            key is not None
            and name is not None
            and key.name.lower() == name.lower()
            and package in (None, "", key.package)
        )


def _run_all(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def _abilities(agent: Agent) -> tuple[object, ...]:
    """What determines how an agent is asked."""
    info = agent.info
    return agent.is_broker, agent.supports_subscriptions, info.capability, info.direct_subject, info.schema_updated


def _is_complete(obj: RemoteObject) -> bool:
    """True when the object has every property that its class requires."""
    schema = obj.schema
    values = obj.data.values
    return schema is None or all(
        item.name in values for item in schema.properties if not item.optional and item.type.name != "objId"
    )
