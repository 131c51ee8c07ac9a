"""Keeping the objects of one agent in a picture up to date, in the best way that the agent offers.

- SUBSCRIPTION: agents of this project publish to subscribers: first everything, then what changed. Each publication has
  a number. Where one is missing, or the agent ends the subscription, it is asked for again, and the whole that comes
  first is compared with what is known.
- INDICATIONS: qpidd publishes to everybody what changed. A query hides a change from that, whoever made it
  (QMF2.md 0.9, 7.1), so queries are repeated from time to time, and both are merged: by the agent's own time stamps,
  the older never undoes the newer. Predicates are not sent then, because later changes of an object that doesn't match
  yet have to be laid over something.
- POLLING: libqmf2's agents don't publish objects: they are asked again and again. An object that was there before a
  query was sent and is not in its answer is gone.

Nobody says beforehand whether an agent publishes, so polling listens to indications, too, and asks less often once one
came.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Iterable

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.binding_keys import any_package_key, class_keys
from qmf.console.aio.core import ClientCore
from qmf.console.aio.following.followed_objects import ChangeKind, FollowedObjects
from qmf.console.aio.following.subscriptions import Subscription
from qmf.console.aio.notifications import Missed
from qmf.console.aio.objects.class_view import with_agent
from qmf.console.aio.objects.remote_object import RemoteObject, difference
from qmf.console.aio.objects.store import is_another
from qmf.console.aio.queries.filters import Test
from qmf.console.aio.queries.object_queries import ObjectQueries, ObjectQuery
from qmf.console.aio.schemas.cache import class_runs
from qmf.errors import LinkError, NetworkError, ProtocolError, QmfError, RemoteError, RequestTimeout
from qmf.protocol import DATA_BINDING, ROW_FORM, Envelope, ObjectId, ObjectsIndication, Predicate, SubscribeRequest
from qmf.schema import ClassKey

log = logging.getLogger("qmf.console")

#: Seconds before a question that failed is asked again: the first time, and at most.
FIRST_RETRY = 0.5
LAST_RETRY = 30.0

#: Seconds between two queries at least, whatever indications give reason to ask.
SHORTEST_PAUSE = 0.1

#: Seconds that a subscription is wanted for; it is refreshed as long as somebody follows.
LIFETIME = 60


class FollowMode(enum.Enum):
    """How the objects of an agent are followed."""

    SUBSCRIPTION = "subscription"  #: the agent publishes to us what changes
    INDICATIONS = "indications"  #: the agent publishes to all what changes; queries find what that misses
    POLLING = "polling"  #: the agent is asked again and again


class FollowSpec:
    """What one follower wants of every agent.

    Attributes:
        wanted: which objects.
        predicate, test: the filter, for agents and for here.
        interval: seconds between publications, or between polls.
        recheck: seconds between polls of agents that publish.
    """

    __slots__ = ("interval", "predicate", "recheck", "test", "wanted")

    def __init__(self, wanted: ObjectQuery, predicate: Predicate, test: Test, interval: float, recheck: float) -> None:
        self.wanted = wanted
        self.predicate = predicate
        self.test = test
        self.interval = interval
        self.recheck = recheck


class AgentFollower:
    """The objects of one agent in one picture."""

    def __init__(
        self, hub: ClientCore, queries: ObjectQueries, orders: FollowSpec, picture: FollowedObjects, agent: Agent
    ) -> None:
        self.agent = agent
        self.failure: QmfError | None = None
        """Why the last attempt to ask the agent failed; None after one that worked."""
        self.first = asyncio.Event()
        """Set after the first attempt, whether it worked or not."""
        self._hub = hub
        self._queries = queries
        self._orders = orders
        self._picture = picture
        self._known: dict[ObjectId, RemoteObject] = {}
        self._gone_meanwhile: dict[ObjectId, RemoteObject] | None = None
        self._wake = asyncio.Event()
        self._refused = False
        self._stale = False
        self._fault: QmfError | None = None
        self._delay = FIRST_RETRY
        self._next_number = 1
        self._snapshot: list[RemoteObject] | None = None
        self._unlearned: set[ClassKey] = set()
        self._keys: list[str] = []
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def source(self) -> FollowMode:
        """How the agent is followed now."""
        if self._subscribes:
            return FollowMode.SUBSCRIPTION
        return FollowMode.INDICATIONS if self._publishes else FollowMode.POLLING

    def look(self) -> None:
        """Something may be different from what is known: ask again soon."""
        self._wake.set()

    def missed(self) -> None:
        """Messages that the agent published to all did not arrive."""
        if not self._subscribes:
            self.look()

    def changed(self, agent: Agent) -> None:
        """The agent told something new of itself."""
        before, self.agent = self.agent, agent
        if _abilities(before) != _abilities(agent):
            self._refused = False
            self._renew()

    def restarted(self, agent: Agent) -> None:
        """The agent started anew: objects of its earlier run are gone, others are compared with what it has now."""
        self.agent = agent
        for obj in list(self._known.values()):
            if obj.object_id.agent_epoch:
                self._gone(obj, ChangeKind.LOST)
        self._refused = False
        self._renew()

    def indicated(self, obj: RemoteObject) -> None:
        """The agent published an object to all."""
        if self._subscribes or not self._is_wanted(obj):
            return
        known = self._known.get(obj.object_id)
        if known is None and not obj.is_deleted and not _is_whole(obj):
            self.look()  # an object that a query hid when it was new: only its changes are told
            return
        self._take(obj)

    def end(self, kind: ChangeKind | None = None) -> asyncio.Task[None]:
        """Stop; `kind` says what became of the objects, None when nobody is interested any more.

        Returns:
            what still runs: telling the agent.
        """
        self._stale = True
        self._task.cancel()
        if kind is not None:
            for obj in list(self._known.values()):
                self._gone(obj, kind)
        return self._task

    # -- asking

    @property
    def _subscribes(self) -> bool:
        return self.agent.takes_subscriptions and not self._refused

    @property
    def _publishes(self) -> bool:
        return self.agent.is_qpidd or self.agent.name in self._hub.publishing

    async def _run(self) -> None:
        try:
            while True:
                try:
                    if self._subscribes:
                        await self._subscribe()
                    else:
                        await self._poll()
                except QmfError as error:
                    self.failure = error
                    self.first.set()
                    log.info(
                        "%s of agent %s can't be followed, trying again: %s", self._orders.wanted, self.agent, error
                    )
                    self._wake.clear()
                    await self._pause(self._delay)
                    self._delay = min(self._delay * 2, LAST_RETRY)
        finally:
            self.first.set()
            if self._keys:
                self._hub.spawn(self._release(self._keys))

    async def _release(self, keys: list[str]) -> None:
        try:
            await self._hub.bindings.release(keys)
        except NetworkError as error:
            log.debug("a binding ends with its connection: %s", error)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not after `look`."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _worked(self) -> None:
        self.failure = None
        self._delay = FIRST_RETRY
        self.first.set()

    # -- subscriptions

    async def _subscribe(self) -> None:
        """Subscribe, and keep the subscription alive until something is amiss."""
        seconds = self._hub.timeout
        wanted = self._orders.wanted
        await self._queries.learn_classes(self.agent, wanted, seconds)
        unlearned, self._unlearned = self._unlearned, set()
        await asyncio.gather(*(self._queries.learn(key) for key in unlearned))
        self._stale, self._fault = False, None
        self._next_number = 1
        self._snapshot = []
        name, package = wanted.class_name
        request = SubscribeRequest(
            class_key=ClassKey(package or "", name.lower()) if name else None,
            object_id=with_agent(wanted.object_id, self.agent.name) if wanted.object_id else None,
            where=self._orders.predicate,
            interval=self._orders.interval,
            lifetime=LIFETIME,
            row_form=ROW_FORM,
        )
        subscriptions = self._hub.subscriptions
        try:
            subscription = await subscriptions.start(
                self.agent, request, self._published, self._ended, what=str(wanted), timeout=seconds
            )
        except RemoteError as error:
            log.info("agent %s refused a subscription, so it is asked from time to time: %s", self.agent, error)
            self._refused = True
            return
        try:
            await self._keep(subscription)
        finally:
            subscriptions.stop(subscription)

    async def _keep(self, subscription: Subscription) -> None:
        while not self._stale and subscription.active:
            reached = self._next_number
            patience = self._hub.timeout if self._snapshot is not None else subscription.refresh_after
            await self._pause(min(patience, subscription.refresh_after))
            if self._snapshot is not None and self._next_number == reached:
                raise RequestTimeout(
                    f"the first publication of a subscription to {self._orders.wanted}",
                    self.agent.name,
                    patience,
                )
            if not self._stale and subscription.active:
                await self._hub.subscriptions.refresh(subscription)
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _ended(self, reason: str) -> None:
        self._renew(RemoteError(f"ended the subscription: {reason}", None, self.agent.name))

    def _renew(self, fault: QmfError | None = None) -> None:
        """Have the subscription made anew; after a pause if something is wrong, so that it doesn't get worse."""
        self._fault = fault
        self._stale = True
        self.look()

    def _published(self, envelope: Envelope, content: ObjectsIndication) -> None:
        if self._stale:
            return
        number = envelope.sequence
        if number is not None and number != self._next_number:
            missed = max(number - self._next_number, 1)
            self._hub.publisher.publish(Missed(self.agent, envelope.subject or "", missed))
            self._renew(ProtocolError(f"{missed} publications to a subscriber did not arrive"))
            return
        self._next_number += 1
        unknown = {
            key for key, _ in class_runs(content.objects) if key is not None and self._hub.schemas.worth_asking(key)
        }
        if unknown:
            # A class that is new at the agent: values need its schema, so it is fetched before subscribing again.
            for key in unknown:
                self._hub.saw(key, self.agent)
            self._unlearned = unknown
            self._renew()
            return
        objects = [self._queries.make(data, self.agent) for data in content.objects if data.object_id is not None]
        if self._snapshot is None:
            for obj in objects:
                if obj.data.left:
                    self._gone(self._known.get(obj.object_id, obj), ChangeKind.LEFT)
                else:
                    self._take(obj)
            return
        self._snapshot += objects
        if not envelope.partial:
            found, self._snapshot = self._snapshot, None
            self._compare(found, set(self._known), filtered=bool(self._orders.predicate))
            self._worked()

    # -- queries and indications

    async def _poll(self) -> None:
        await self._hear()
        self._stale = False
        self._wake.clear()
        before = set(self._known)
        self._gone_meanwhile = {}
        orders = self._orders
        predicate = () if self._publishes else orders.predicate
        try:
            found = await self._queries.at(self.agent, orders.wanted, predicate, self._hub.timeout)
        finally:
            gone, self._gone_meanwhile = self._gone_meanwhile, None
        living = [obj for obj in found if obj.object_id not in gone or is_another(gone[obj.object_id], obj)]
        self._compare(living, before, filtered=bool(predicate))
        self._worked()
        await asyncio.sleep(SHORTEST_PAUSE)
        await self._pause(orders.recheck if self._publishes else orders.interval)

    async def _hear(self) -> None:
        """Have the indications of the class come to us."""
        wire = self._hub.wire
        name, package = self._orders.wanted.class_name
        if self._keys or name is None or DATA_BINDING in wire.bound:
            return
        self._keys = keys = class_keys("data", package, name) if package else [any_package_key(name)]
        try:
            await self._hub.bindings.hold(keys)
        except LinkError as error:
            log.warning("what agents publish of %s can't be received, so they are asked: %s", name, error)

    def _is_wanted(self, obj: RemoteObject) -> bool:
        wanted = self._orders.wanted
        if wanted.object_id is not None:
            return obj.object_id == with_agent(wanted.object_id, self.agent.name)
        name, package = wanted.class_name
        key = obj.class_key
        return (
            key is not None
            and name is not None
            and key.name.lower() == name.lower()
            and package in (None, "", key.package)
        )

    # -- the picture

    def _compare(self, found: Iterable[RemoteObject], before: set[ObjectId], *, filtered: bool) -> None:
        """Take what an answer holds; what was there before it was asked for and isn't in it is gone.

        Of a filtered answer, nobody knows whether what isn't in it exists.
        """
        present = set()
        for obj in found:
            present.add(obj.object_id)
            self._take(obj)
        kind = ChangeKind.LEFT if filtered else ChangeKind.DELETED
        for oid in before - present:
            if oid in self._known:
                self._gone(self._known[oid], kind)

    def _take(self, newer: RemoteObject) -> None:
        """Lay what an agent said of an object over what is known."""
        known = self._known.get(newer.object_id)
        if newer.is_deleted:
            if known is not None or self._orders.test(newer):
                self._gone(newer if known is None else known.merged(newer.data), ChangeKind.DELETED)
            return
        if known is not None and is_another(known, newer):
            self._gone(known, ChangeKind.DELETED)
            known = None
        if known is not None:
            if 0 < newer.data.update_ts < known.data.update_ts:
                return
            newer = known.merged(newer.data)
        else:
            newer = newer.detached()
        self._known[newer.object_id] = newer
        if self._orders.test(newer):
            properties, statistics = difference(known, newer)
            self._picture.put(newer, properties=properties, statistics=statistics)
        elif newer.object_id in self._picture:
            self._picture.remove(newer, ChangeKind.LEFT)

    def _gone(self, obj: RemoteObject, kind: ChangeKind) -> None:
        self._known.pop(obj.object_id, None)
        if self._gone_meanwhile is not None:
            self._gone_meanwhile[obj.object_id] = obj
        was_there = obj.object_id in self._picture
        # One that came and went between two publications is told once.
        if was_there or (kind is ChangeKind.DELETED and self._orders.test(obj)):
            self._picture.remove(obj, kind)


def _abilities(agent: Agent) -> tuple[object, ...]:
    """What decides how an agent is asked."""
    info = agent.info
    return agent.is_broker, agent.takes_subscriptions, info.capability, info.direct_subject, info.schema_updated


def _is_whole(obj: RemoteObject) -> bool:
    """True when every property that the class demands is there."""
    schema = obj.schema
    values = obj.data.values
    return schema is None or all(
        item.name in values for item in schema.properties if not item.optional and item.type.name != "objId"
    )
