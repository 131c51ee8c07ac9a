"""Subscriptions: the changes of selected objects are published to a console, at an interval of its own.

For consoles of this project only (QMF2.md 4.8). The first publication has all objects, each further one the changes
since the previous one; none is sent without changes. High, low and averages are those of the agent's own interval. A
subscription ends when the console cancels it, without a message when it does not refresh it in time, and with a
cancellation by the agent when the agent closes or too many objects match.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import attrs

from qmf.agent.clock import Clock
from qmf.agent.metrics import AgentMetrics
from qmf.agent.objects.object_sources import ObjectSources
from qmf.agent.publishing.object_writer import ObjectWriter
from qmf.agent.publishing.row_writer import RowObjectWriter, RowWriter
from qmf.agent.request_errors import RequestRefused
from qmf.agent.requests.access import AccessControl, Action
from qmf.agent.requests.selections import class_of_selection, compile_where, selection_of
from qmf.agent.requests.subscription_group import GrantedSubscription, GroupPublication, SharedKey, SubscriptionGroup
from qmf.agent.requests.subscription_view import SubscriptionView, TooManyMatchesError
from qmf.agent.sending.message_batcher import MAX_ROW_BYTES, MAX_ROWS, MessageBatcher
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import CallerError, NetworkError
from qmf.protocol import (
    ROW_FORM,
    Envelope,
    ErrorCode,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    parse_reply_to,
    topic_exchange,
)

_log = logging.getLogger("qmf.agent")

#: Attribute of agents with subscriptions, and its value: the version of the subscription protocol.
ANNOUNCEMENT = "_subscriptions"
VERSION = 1

#: Least seconds between publications: people see no more, and a thousand changed objects take some 10 ms to encode.
MIN_INTERVAL = 1.0

#: Most seconds until a subscription must be refreshed: this long it may continue after its console has ended.
MAX_LIFETIME = 600.0

#: Subscriptions at the same time: several hundred consoles. Those of the same objects share most of the work.
MAX_SUBSCRIPTIONS = 1000

#: Objects in one subscription. The agent remembers each by some 100 bytes.
MAX_MATCHES = 100_000

_LIFETIME_LIMIT = (1 << 32) - 1


def _at_least(least: float) -> Any:
    def check(_: object, attribute: attrs.Attribute[float], value: float) -> None:
        if not least <= value < math.inf:
            raise CallerError(f"{attribute.name!r} of subscriptions must be at least {least:g}, not {value!r}")

    return check


@attrs.frozen(kw_only=True)
class SubscriptionLimits:
    """Limits of subscriptions.

    Attributes:
        min_interval: least seconds between publications; a shorter interval is raised to this.
        max_lifetime: most seconds until a refresh; a longer lifetime is cut to this.
        max_count: subscriptions at the same time; more are refused.
        max_matches: objects in one subscription; when more match it is refused, or cancelled later.
    """

    min_interval: float = attrs.field(default=MIN_INTERVAL, validator=_at_least(0.001))
    max_lifetime: float = attrs.field(default=MAX_LIFETIME, validator=_at_least(1))
    max_count: int = attrs.field(default=MAX_SUBSCRIPTIONS, validator=_at_least(1))
    max_matches: int = attrs.field(default=MAX_MATCHES, validator=_at_least(1))


class SubscriptionHandler:
    """All subscriptions to one agent; belongs to the event loop's thread."""

    def __init__(
        self,
        sources: ObjectSources,
        writer: ObjectWriter,
        sender: MessageSender,
        access: AccessControl,
        clock: Clock,
        metrics: AgentMetrics,
        *,
        limits: SubscriptionLimits | None,
        interval: float,
        domain: str,
    ) -> None:
        """Set up.

        Args:
            limits: limits of subscriptions; None refuses all.
            interval: seconds for subscriptions without an interval.
        """
        self._sources = sources
        self._writer = writer
        self._row_writer = RowObjectWriter(RowWriter(sources.store))
        self._topic = topic_exchange(domain)
        self._sender = sender
        self._access = access
        self._clock = clock
        self._metrics = metrics
        self._limits = limits
        self._interval = interval
        self._all: dict[str, GrantedSubscription] = {}
        #: Subscriptions that are being answered.
        self._granting = 0
        #: The groups that others join after their first publication, by key.
        self._groups: dict[str, SubscriptionGroup] = {}
        #: The groups that wait for their first publication, which new subscriptions join.
        self._waiting: dict[str, SubscriptionGroup] = {}
        self._shared: WeakValueDictionary[str, SharedKey] = WeakValueDictionary()

    @property
    def count(self) -> int:
        """The number of subscriptions."""
        return len(self._all)

    async def answer(self, request: Envelope, content: SubscribeRequest) -> None:
        """Grant a subscription and start publishing to it.

        Raises:
            RequestRefused: the request is invalid, not allowed, or there are too many.
        """
        limits = self._limits
        if limits is None:
            raise RequestRefused(ErrorCode.FEATURE_NOT_IMPLEMENTED, "this agent has no subscriptions")
        if request.correlation_id is None:
            raise RequestRefused(ErrorCode.INVALID_PARAMETER, "a request to subscribe needs a correlation-id")
        selection = selection_of(content, "OBJECT")
        matches = compile_where(content.where)
        class_key = class_of_selection(self._sources, selection)
        await self._access.check(request, Action.SUBSCRIBE, class_key=class_key, object_id=selection.object_id)
        writer = self._row_writer if content.row_form >= ROW_FORM else self._writer
        view = SubscriptionView(
            self._sources, writer, selection, matches, self._clock, self._metrics, limits.max_matches
        )
        if await view.exceeds_limit():
            raise RequestRefused(ErrorCode.EXCEPTION, _too_many(limits))
        self._expire()
        if len(self._all) + self._granting >= limits.max_count:
            raise RequestRefused(ErrorCode.EXCEPTION, f"too many subscriptions: {limits.max_count} are the limit")
        interval = max(content.interval or self._interval, limits.min_interval)
        lifetime = self._granted_lifetime(content.lifetime, limits)
        granted = SubscribeResponse(subscription_id=str(uuid4()), interval=interval, lifetime=lifetime)
        self._granting += 1
        try:
            await self._sender.answer(request, granted)
        finally:
            self._granting -= 1
        # Only now: a group that waits may publish at any time, and a console must know its subscription by then.
        group = self._group(repr((selection, interval, writer is self._writer)), view, writer, interval)
        expires = self._clock.monotonic() + lifetime
        subscription = GrantedSubscription(
            granted.subscription_id, request.reply_to or "", lifetime, expires, group, content.can_share
        )
        group.members.append(subscription)
        self._all[subscription.id] = subscription
        self._metrics.add("subscriptions")
        if group.task is None:
            group.task = asyncio.get_running_loop().create_task(self._serve(group))

    def _group(
        self, key: str, view: SubscriptionView, writer: ObjectWriter | RowObjectWriter, interval: float
    ) -> SubscriptionGroup:
        """The group whose first publication a new subscription waits for."""
        waiting = self._waiting.get(key)
        if waiting is None:
            shared = self._shared.get(key)
            if shared is None:
                subject = f"direct-subscription.{uuid4()}"
                shared = self._shared[key] = SharedKey(subject, f"{self._topic}/{subject}")
            waiting = self._waiting[key] = SubscriptionGroup(key, view, writer, self._batcher(writer), interval, shared)
        return waiting

    def _batcher(self, writer: ObjectWriter | RowObjectWriter) -> MessageBatcher:
        if writer is self._row_writer:
            return MessageBatcher(self._metrics, MAX_ROWS, MAX_ROW_BYTES)
        return MessageBatcher(self._metrics)

    async def refresh(self, request: Envelope, content: SubscribeRefresh) -> None:
        """Extend the lifetime of a subscription; if it does not exist, send a cancellation."""
        self._expire()
        subscription = self._all.get(content.subscription_id)
        if subscription is None or self._limits is None:
            if request.reply_to:
                reason = "there is no such subscription"
                await self._send_cancel(request.reply_to, content.subscription_id, reason)
            return
        if content.lifetime:
            subscription.lifetime = self._granted_lifetime(content.lifetime, self._limits)
        subscription.expires = self._clock.monotonic() + subscription.lifetime
        subscription.bound = content.bound

    async def cancel(self, request: Envelope, content: SubscribeCancel) -> None:  # noqa: ARG002  # the id is enough
        """End a subscription."""
        subscription = self._all.get(content.subscription_id)
        if subscription is not None:
            self._end(subscription)

    async def close(self) -> None:
        """Cancel all subscriptions."""
        ending = list(self._all.values())
        for subscription in ending:
            self._end(subscription)
        tasks = {item.group.task for item in ending if item.group.task is not None}
        await asyncio.gather(*tasks, return_exceptions=True)
        for subscription in ending:
            if self._sender.connected:
                await self._send_cancel(subscription.reply_to, subscription.id, "the agent closes")

    @staticmethod
    def _granted_lifetime(lifetime: int, limits: SubscriptionLimits) -> int:
        longest = min(math.floor(limits.max_lifetime), _LIFETIME_LIMIT)
        return min(lifetime or longest, longest)

    def _expire(self) -> None:
        now = self._clock.monotonic()
        for subscription in list(self._all.values()):
            if now >= subscription.expires:
                _log.debug("subscription %s was not refreshed", subscription.id)
                self._end(subscription)

    def _end(self, subscription: GrantedSubscription) -> None:
        if self._all.pop(subscription.id, None) is None:
            return
        group = subscription.group
        group.members.remove(subscription)
        if group.members:
            return
        for groups in (self._groups, self._waiting):
            if groups.get(group.key) is group:
                del groups[group.key]
        if group.task is not None and group.task is not asyncio.current_task():
            group.task.cancel()

    async def _send_cancel(self, reply_to: str | None, subscription_id: str, reason: str) -> None:
        content = SubscribeCancel(subscription_id=subscription_id, reason=reason)
        await self._sender.answer_encoded(self._sender.encode(content, *parse_reply_to(reply_to)))

    async def _serve(self, group: SubscriptionGroup) -> None:
        due = self._clock.monotonic()
        while group.members:
            if self._sender.connected and self._clock.monotonic() >= due:
                async with group.shared.lock:
                    if self._waiting.get(group.key) is group:
                        del self._waiting[group.key]
                    await self._try_to_publish(group)
                    self._share(group)
            now = self._clock.monotonic()
            if now >= due:
                due = max(due + group.interval, now)
            await self._clock.sleep(min([due, *(member.expires for member in group.members)]) - now)
            self._expire()

    def _share(self, group: SubscriptionGroup) -> None:
        """Let a group that has published join the group of its key, or be that group."""
        if group.started and group.members:
            known = self._groups.setdefault(group.key, group)
            if known is not group:
                known.absorb(group)

    async def _try_to_publish(self, group: SubscriptionGroup) -> None:
        try:
            await group.arrange_sharing(self._sender)
            await GroupPublication(group, self._sender).run()
        except NetworkError as error:
            _log.info("%d subscriptions will go on after a reconnect: %s", len(group.members), error)
        except TooManyMatchesError:
            assert self._limits is not None
            for subscription in list(group.members):
                self._end(subscription)
                await self._send_cancel(subscription.reply_to, subscription.id, _too_many(self._limits))
        except RequestRefused as refusal:
            self._metrics.warn_once("subscription", "a subscription skips a publication: %s", refusal.text)
        except Exception:  # noqa: BLE001  # a bug must not end the subscription for good
            _log.exception("publishing to a subscription failed; the next interval tries again")


def _too_many(limits: SubscriptionLimits) -> str:
    return f"more than {limits.max_matches} objects match"
