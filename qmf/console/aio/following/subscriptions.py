"""Subscriptions to objects at agents of this project: requested, kept alive and ended; their publications passed on.

Publications come to the same reply address as answers, with the subscription id from the agent's answer. The first may
arrive before the task that subscribed has processed that answer, so it is kept for a moment. A subscription that is not
claimed then, because its task was cancelled, is cancelled at the agent.

An agent with several subscriptions to the same objects publishes changes under one key for all of them. It asks for
that key to be bound; then publications of both ways may come, until it says with which number those under the key
continue the others. What came there before is kept until then. This module knows nothing of objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.console.aio.agents import Agent
from qmf.console.aio.receiver import MessageReceiver
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.errors import NetworkError
from qmf.protocol import (
    Envelope,
    ObjectsIndication,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
)

log = logging.getLogger("qmf.console")

#: Seconds for which a new subscription may stay unclaimed.
UNCLAIMED = 1.0

#: How often a subscription is refreshed within its lifetime, so that one refresh may get lost.
REFRESHES = 3

#: Publications under a shared key that are kept until the agent says which of them continue the others.
MAX_EARLY = 1000

#: Subscriptions remembered of an agent that was cut off.
MAX_ORPHANS = 100

OnPublication = Callable[[Envelope, ObjectsIndication], None]
OnCancelled = Callable[[str], None]

_Key = tuple[str, str]
_Publication = tuple[Envelope, ObjectsIndication]


@attrs.define(eq=False)
class SharedPart:
    """The part of a subscription's publications that comes under a shared key.

    Attributes:
        key: the routing key.
        first: number of the first publication that counts; 0 until the agent says which.
        offset: from their numbers to those that the subscription goes on with.
        early: publications that came before.
    """

    key: str
    first: int = 0
    offset: int = 0
    early: list[_Publication] = attrs.field(factory=list)


@attrs.define(eq=False)
class ObjectSubscription:
    """One subscription in place.

    Attributes:
        id: its id at the agent.
        agent: the agent.
        lifetime: seconds until it ends without a refresh, as the agent granted.
        on_publication: called with each publication, in order.
        on_cancelled: called with the reason when the agent ends it.
        active: False once either side ended it.
        shared: what comes under a shared key, once the agent asked to bind one.
    """

    id: str
    agent: Agent
    lifetime: float
    on_publication: OnPublication
    on_cancelled: OnCancelled
    active: bool = True
    shared: SharedPart | None = None

    @property
    def refresh_after(self) -> float:
        """Seconds from one refresh to the next."""
        return max(self.lifetime, 1.0) / REFRESHES


class ObjectSubscriptions:
    """The subscriptions of one client."""

    def __init__(self, rpc: RpcChannel, receiver: MessageReceiver) -> None:
        self._rpc = rpc
        self._receiver = receiver
        self._active: dict[_Key, ObjectSubscription] = {}
        self._ids: dict[str, dict[str, None]] = {}
        self._early: dict[_Key, list[_Publication]] = {}
        self._sharing: dict[_Key, list[ObjectSubscription]] = {}
        self._orphans: dict[str, list[str]] = {}
        self._tasks = BackgroundTasks()

    def __len__(self) -> int:
        return len(self._active)

    async def start(
        self,
        agent: Agent,
        request: SubscribeRequest,
        on_publication: OnPublication,
        on_cancelled: OnCancelled,
        *,
        what: str,
        timeout: float,
    ) -> ObjectSubscription:
        """Subscribe.

        Args:
            request: which objects, and how often.
            on_publication: called with each publication, in order.
            on_cancelled: called with the reason when the agent ends the subscription.
            what: the objects in words, for messages.
            timeout: seconds to wait for the agent's answer.

        Raises:
            RemoteError: the agent refused.
            RequestTimeout, NetworkError, AgentLost, ProtocolError: see `RpcChannel.request`.
        """
        for orphan in self._orphans.pop(agent.name, ()):
            self._cancel(agent, orphan)
        parts = await self._rpc.request(
            agent, request, SubscribeResponse, what=f"subscription to {what}", timeout=timeout
        )
        answer = parts[-1]
        key = (agent.name, answer.subscription_id)
        subscription = ObjectSubscription(answer.subscription_id, agent, answer.lifetime, on_publication, on_cancelled)
        self._active[key] = subscription
        self._ids.setdefault(agent.name, {})[subscription.id] = None
        for envelope, content in self._early.pop(key, ()):
            self._pass_on(subscription, envelope, content)
        return subscription

    async def refresh(self, subscription: ObjectSubscription) -> None:
        """Extend the lifetime of a subscription.

        Raises:
            NetworkError: no connection.
        """
        # An agent that has yet to say from when on publications come under the key, or whose answer was lost, is asked.
        waits = subscription.shared is not None and not subscription.shared.first
        await self._rpc.send(SubscribeRefresh(subscription_id=subscription.id, bound=waits), subscription.agent)

    def stop(self, subscription: ObjectSubscription) -> None:
        """End a subscription, here at once and at the agent a moment later."""
        if subscription.active:
            subscription.active = False
            self._remove(subscription.agent.name, subscription.id)
            self._cancel(subscription.agent, subscription.id)

    async def close(self) -> None:
        """End all subscriptions, and wait until the messages to their agents are sent."""
        for subscription in list(self._active.values()):
            self.stop(subscription)
        await self._tasks.wait()

    # -- from the bus

    def on_granted(self, agent: str, answer: SubscribeResponse, *, wanted: bool) -> None:
        """An agent granted a subscription; `wanted` when its request is still pending."""
        key = (agent, answer.subscription_id)
        self._early[key] = []
        asyncio.get_running_loop().call_later(UNCLAIMED if wanted else 0, self._drop_unclaimed, key)

    def on_publication(self, agent: str, envelope: Envelope, content: ObjectsIndication) -> None:
        """An agent sent a publication."""
        key = (agent, envelope.subscription or "")
        if key in self._active:
            self._pass_on(self._active[key], envelope, content)
        elif key in self._early:
            self._early[key].append((envelope, content))
        elif key in self._sharing:
            for subscription in list(self._sharing[key]):
                self._on_shared(subscription, envelope, content)
        else:
            log.debug("skipped a publication of %s for subscription %s, which has ended", *key)

    def on_share(self, agent: str, content: SubscribeShare) -> None:
        """An agent publishes to several subscriptions under one key, or says from when on it does."""
        subscription = self._active.get((agent, content.subscription_id))
        if subscription is None:
            return
        part = subscription.shared
        if part is None:
            part = subscription.shared = SharedPart(content.shared_key)
            self._sharing.setdefault((agent, part.key), []).append(subscription)
            self._tasks.spawn(self._bind(subscription, part))
        elif content.first_sequence and not part.first:
            part.first, part.offset = content.first_sequence, content.last_sequence + 1 - content.first_sequence
            early, part.early = part.early, []
            for envelope, publication in early:
                self._on_shared(subscription, envelope, publication)

    def on_cancelled(self, agent: str, content: SubscribeCancel) -> None:
        """An agent ended a subscription."""
        self._early.pop((agent, content.subscription_id), None)
        subscription = self._remove(agent, content.subscription_id)
        if subscription is not None:
            subscription.active = False
            subscription.on_cancelled(content.reason or "the agent gave no reason")

    def forget_agent(self, agent: str) -> None:
        """An agent is gone, cut off or restarted. No callbacks: its followers are notified of that.

        An agent that was only cut off still has its subscriptions; they are cancelled at the next `start`.
        """
        for subscription_id in self._ids.pop(agent, ()):
            subscription = self._active.pop((agent, subscription_id))
            subscription.active = False
            self._unshare(subscription)
            orphans = self._orphans.setdefault(agent, [])
            orphans.append(subscription_id)
            del orphans[:-MAX_ORPHANS]

    # -- inside

    def _remove(self, agent: str, subscription_id: str) -> ObjectSubscription | None:
        subscription = self._active.pop((agent, subscription_id), None)
        if subscription is not None:
            ids = self._ids[agent]
            del ids[subscription_id]
            if not ids:
                del self._ids[agent]
            self._unshare(subscription)
        return subscription

    async def _bind(self, subscription: ObjectSubscription, part: SharedPart) -> None:
        """Bind a shared key for a subscription, until that ends."""
        try:
            await self._receiver.hold([part.key])
            if subscription.active:
                await self.refresh(subscription)
        except NetworkError as error:
            log.info("publications of %s go on coming one by one: %s", subscription.agent, error)

    def _unshare(self, subscription: ObjectSubscription) -> None:
        part = subscription.shared
        if part is not None:
            key = (subscription.agent.name, part.key)
            self._sharing[key].remove(subscription)
            if not self._sharing[key]:
                del self._sharing[key]
            self._tasks.spawn(self._receiver.release([part.key]))

    def _on_shared(self, subscription: ObjectSubscription, envelope: Envelope, content: ObjectsIndication) -> None:
        part, number = subscription.shared, envelope.sequence
        if part is None or number is None:
            return
        if not part.first:
            if len(part.early) < MAX_EARLY:  # those that are missing then are noticed by their numbers
                part.early.append((envelope, content))
        elif number >= part.first:
            numbered = attrs.evolve(envelope, sequence=number + part.offset)
            self._pass_on(subscription, numbered, content)

    def _pass_on(self, subscription: ObjectSubscription, envelope: Envelope, content: ObjectsIndication) -> None:
        try:
            subscription.on_publication(envelope, content)
        except Exception:
            log.exception("bug: handling a publication of %s failed", subscription.agent)

    def _drop_unclaimed(self, key: _Key) -> None:
        if self._early.pop(key, None) is not None:
            agent, subscription_id = key
            self._cancel(agent, subscription_id)

    def _cancel(self, agent: Agent | str, subscription_id: str) -> None:
        self._tasks.spawn(self._send_cancel(agent, SubscribeCancel(subscription_id=subscription_id)))

    async def _send_cancel(self, agent: Agent | str, content: SubscribeCancel) -> None:
        try:
            await self._rpc.send(content, agent)
        except NetworkError as error:
            log.debug("a subscription was not cancelled and will expire: %s", error)
