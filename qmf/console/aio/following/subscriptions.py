"""Subscriptions at agents of this project: asked for, kept alive, ended, and their publications handed on.

Publications come to the same reply address as answers, with the id that the agent gave in its answer. The first may be
processed before whoever subscribed wakes up to learn that id, so it waits here for a moment. A subscription that nobody
here knows, because its asker gave up, is cancelled at the agent. Knows nothing of objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.console.aio.wire import Target, Wire
from qmf.errors import NetworkError
from qmf.protocol import (
    Envelope,
    ObjectsIndication,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
)

log = logging.getLogger("qmf.console")

#: Seconds for which a subscription that was granted may stay without anybody to claim it.
UNCLAIMED = 1.0

#: A subscription is refreshed so many times within its life, so that one refresh may get lost.
REFRESHES = 3

#: Subscriptions remembered of an agent that was cut off.
MAX_ORPHANS = 100

Published = Callable[[Envelope, ObjectsIndication], None]
Ended = Callable[[str], None]

_Key = tuple[str, str]


@attrs.define(eq=False)
class Subscription:
    """One subscription in place.

    Attributes:
        id: the agent's name for it.
        agent: where.
        interval: seconds between publications, as granted.
        lifetime: seconds that it lives without a refresh, as granted.
        active: False once either side ended it.
    """

    id: str
    agent: Agent
    interval: float
    lifetime: float
    published: Published
    ended: Ended
    active: bool = True

    @property
    def refresh_after(self) -> float:
        """Seconds from one refresh to the next."""
        return max(self.lifetime, 1.0) / REFRESHES


class ObjectSubscriptions:
    """The subscriptions of one client."""

    def __init__(self, wire: Wire, questions: RpcChannel) -> None:
        self._wire = wire
        self._questions = questions
        self._active: dict[_Key, Subscription] = {}
        self._early: dict[_Key, list[tuple[Envelope, ObjectsIndication]]] = {}
        self._orphans: dict[str, list[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._active)

    async def start(
        self, agent: Agent, request: SubscribeRequest, published: Published, ended: Ended, *, what: str, timeout: float
    ) -> Subscription:
        """Subscribe.

        Args:
            agent: at whom.
            request: to what.
            published: called with each publication, in order.
            ended: called with the reason when the agent ends the subscription.
            what: the objects, for messages.
            timeout: seconds to wait for the agent's answer.

        Raises:
            RemoteError: the agent refused.
            RequestTimeout, NetworkError, AgentLost, ProtocolError: see `RpcChannel.ask`.
        """
        for orphan in self._orphans.pop(agent.name, ()):
            self._cancel(self._questions.address(agent), orphan)
        parts = await self._questions.ask(
            agent, request, SubscribeResponse, what=f"subscription to {what}", timeout=timeout
        )
        answer = parts[-1]
        key = (agent.name, answer.subscription_id)
        subscription = Subscription(answer.subscription_id, agent, answer.interval, answer.lifetime, published, ended)
        self._active[key] = subscription
        for envelope, content in self._early.pop(key, ()):
            self._hand_on(subscription, envelope, content)
        return subscription

    async def refresh(self, subscription: Subscription) -> None:
        """Say that it is still wanted.

        Raises:
            NetworkError: no connection.
        """
        await self._send(subscription.agent, SubscribeRefresh(subscription_id=subscription.id))

    def stop(self, subscription: Subscription) -> None:
        """End it, here at once and at the agent in a moment."""
        if subscription.active:
            subscription.active = False
            self._active.pop((subscription.agent.name, subscription.id), None)
            self._cancel(self._questions.address(subscription.agent), subscription.id)

    async def close(self) -> None:
        """End all; what is to be told to agents has been told then, as far as there is a connection."""
        for subscription in list(self._active.values()):
            self.stop(subscription)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- from the bus

    def granted(self, agent: str, answer: SubscribeResponse, *, wanted: bool) -> None:
        """An agent's answer came; `wanted` when somebody waits for it."""
        key = (agent, answer.subscription_id)
        self._early[key] = []
        asyncio.get_running_loop().call_later(UNCLAIMED if wanted else 0, self._drop_unclaimed, key)

    def published(self, agent: str, envelope: Envelope, content: ObjectsIndication) -> None:
        """A publication came."""
        key = (agent, envelope.subscription or "")
        if key in self._active:
            self._hand_on(self._active[key], envelope, content)
        elif key in self._early:
            self._early[key].append((envelope, content))
        else:
            log.debug("a publication of %s for subscription %s, which is not ours any more", *key)

    def cancelled(self, agent: str, content: SubscribeCancel) -> None:
        """The agent ended a subscription."""
        self._early.pop((agent, content.subscription_id), None)
        subscription = self._active.pop((agent, content.subscription_id), None)
        if subscription is not None:
            subscription.active = False
            subscription.ended(content.reason or "the agent gave no reason")

    def forget_agent(self, agent: str) -> None:
        """The agent is gone, cut off or restarted. Nobody is told: who subscribed heard of it.

        One that was only cut off still has its subscriptions; they are cancelled when it is subscribed to again.
        """
        for key in [key for key in self._active if key[0] == agent]:
            self._active.pop(key).active = False
            orphans = self._orphans.setdefault(agent, [])
            orphans.append(key[1])
            del orphans[:-MAX_ORPHANS]

    # -- inside

    def _hand_on(self, subscription: Subscription, envelope: Envelope, content: ObjectsIndication) -> None:
        try:
            subscription.published(envelope, content)
        except Exception:
            log.exception("bug: a publication of %s could not be handled", subscription.agent)

    def _drop_unclaimed(self, key: _Key) -> None:
        if self._early.pop(key, None) is not None:
            agent, subscription_id = key
            self._cancel(Target(self._wire.direct, agent), subscription_id)

    def _cancel(self, target: Target, subscription_id: str) -> None:
        self._spawn(self._tell(target, SubscribeCancel(subscription_id=subscription_id)))

    async def _send(self, agent: Agent, content: SubscribeRefresh | SubscribeCancel) -> None:
        await self._wire.send(content, self._questions.address(agent), None, confirm=False)

    async def _tell(self, target: Target, content: SubscribeCancel) -> None:
        try:
            await self._wire.send(content, target, None, confirm=False)
        except NetworkError as error:
            log.debug("a subscription ends at its agent by itself: %s", error)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
