"""A session of MQTT: the subscriptions of a client, their queue, and what is under way; it may outlive connections."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import attrs

from qmf.broker.nodes.arguments import MQTT_SESSION
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.entries import ACQUIRED, Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import QueueSettings
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.connected_client import ConnectedClient
from qmf.broker.protocols.mqtt.mapping import PACKET_ID, Content, UnmappableError, read_content
from qmf.broker.protocols.mqtt.records import SessionRecords
from qmf.broker.protocols.mqtt.sent_messages import MAX_PACKET_ID, SentMessages, SentMessageState
from qmf.broker.protocols.mqtt.subscriptions import MqttSubscription, SessionSubscriptions
from qmf.broker.protocols.mqtt.will import PendingWill

#: Messages of QoS 1 and 2 that are under way to a client at most, whatever it allows.
MAX_UNDER_WAY = 1_000
#: Kept for ever.
FOR_EVER = 0xFFFFFFFF


@attrs.define(eq=False)
class QueuedMessage:
    """A message that is under way to a client. It is never changed; not frozen, since that takes longer to create.

    Attributes:
        queue: that it is from.
        entry: it in this queue.
        shared: the shared subscription that it is for; None for one of the client's own.
    """

    queue: Queue
    entry: Entry
    shared: MqttSubscription | None = None

    @property
    def is_there(self) -> bool:
        """False if it has left the queue meanwhile: a tool may have purged it."""
        return self.entry.state is ACQUIRED


class SharedQueues:
    """Which sessions have which shared subscriptions: their queue ends with the last one."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._members: dict[str, set[MqttSession]] = {}

    def join(self, name: str, session: MqttSession) -> None:
        """A session has a subscription with this queue."""
        self._members.setdefault(name, set()).add(session)

    def leave(self, name: str, session: MqttSession) -> None:
        """A session has it no longer."""
        members = self._members.get(name, set())
        members.discard(session)
        if not members:
            self._members.pop(name, None)
            if (queue := self._operations.registry.queue(name)) is not None:
                self._operations.delete_owned(BROKER, queue)


class MqttSession:
    """The session of one client; a `LastingSession` for observers.

    Attributes:
        expiry: seconds for which it is kept when its connection is lost.
        subscriptions: of the client.
        queue: of those that are not shared; None before there is one.
        sent: messages that are under way to the client.
        received: packet ids of messages from the client with QoS 2 that it has not released.
        again: messages that are to be sent again, with their packet ids, when the client takes more.
        will: published when the session ends, or its delay; None for nothing.
        timers: until the session, or the delay of its will, ends.
        ended: it must not be used any more.
        sent_before: place in its queue up to which messages may have been sent before the broker started.
    """

    def __init__(
        self,
        client_id: str,
        user: str,
        expiry: int,
        operations: Operations,
        records: SessionRecords,
        shared: SharedQueues,
        end: Callable[[MqttSession], None],
    ) -> None:
        self.client_id = client_id
        self.user = user
        self.expiry = expiry
        self.protocol = ""
        self.client: ConnectedClient | None = None
        self.subscriptions = SessionSubscriptions()
        self.queue: Queue | None = None
        self.sent: SentMessages[QueuedMessage] = SentMessages()
        self.received: set[int] = set()
        self.again: deque[int] = deque()
        self.will: PendingWill | None = None
        self.timers: list[asyncio.TimerHandle] = []
        self.ended = False
        self.sent_before = 0
        self._operations = operations
        self._registry = operations.registry
        self._records = records
        self._shared = shared
        self._end = end
        self.durable = bool(expiry) and operations.registry.recorder is not None

    # LastingSession

    @property
    def will_topic(self) -> str:
        """See `LastingSession`: that of the client, or the one that waits for its delay."""
        will = self.will if self.client is None else self.client.machine.will
        return "" if will is None else will.topic

    @property
    def subscription_count(self) -> int:
        return len(self.subscriptions)

    @property
    def inflight(self) -> int:
        return len(self.sent)

    @property
    def unreleased(self) -> int:
        return len(self.received)

    def disconnect(self, reason: str) -> None:
        if self.client is not None:
            self.client.end(ReasonCode.ADMINISTRATIVE_ACTION, reason)

    def discard(self, reason: str) -> None:
        self.disconnect(reason)
        self._end(self)

    # What is kept

    @property
    def queue_name(self) -> str:
        """Name of the queue of those subscriptions that are not shared."""
        return f"mqtt/{self.client_id}"

    def save(self) -> None:
        """Record the session as it is now, if it is kept over a restart."""
        if self.durable:
            self._records.put_session(self.client_id, self.user, self.expiry)

    # Subscriptions

    def subscribe(self, principal: Principal, exchange: Exchange, subscription: MqttSubscription) -> None:
        """Add a subscription, in place of one with its filter.

        Raises:
            OperationRefused: the policy refuses it.
            NameInUse: its queue has a name that something else has.
            BindingRefused, NodeDeclarationError: see `Operations.subscribe`.
        """
        operations, spec = self._operations, BindingSpec(subscription.pattern)
        if subscription.group:
            name = shared_name(subscription)
            queue = self._registry.queue(name)
            if queue is None:
                operations.subscribe(principal, exchange, name, self._settings(shared=True), spec)
            else:
                operations.ask_subscription(principal, exchange, name, queue.settings, spec.key)
                if exchange.binding(queue, spec.key) is None:
                    operations.bind(principal, exchange, queue, spec)
            self._shared.join(name, self)
        elif self.queue is None or self._registry.queue(self.queue_name) is not self.queue:
            self.queue = operations.subscribe(
                principal, exchange, self.queue_name, self._settings(shared=False), spec
            ).queue
        else:
            operations.ask_subscription(principal, exchange, self.queue_name, self.queue.settings, spec.key)
            if exchange.binding(self.queue, spec.key) is None:
                operations.bind(principal, exchange, self.queue, spec)
        self.subscriptions.add(subscription)
        if self.durable:
            self._records.put_subscription(self.client_id, subscription)
        self._filter_own()

    def unsubscribe(self, principal: Principal, exchange: Exchange, text: str) -> MqttSubscription | None:
        """Remove a subscription; gives it, or None if there is none with this filter.

        Raises:
            OperationRefused: the policy refuses it.
        """
        subscription = self.subscriptions.get(text)
        if subscription is None:
            return None
        if not subscription.group and self.queue is not None:
            self._operations.unbind(principal, exchange, self.queue, subscription.pattern)
        self.subscriptions.remove(text)
        if self.durable:
            self._records.remove_subscription(self.client_id, text)
        self._filter_own()
        return subscription

    def leave(self, subscription: MqttSubscription) -> None:
        """A shared subscription was removed, and nothing is received from its queue any more."""
        self._shared.leave(shared_name(subscription), self)

    def restore(self, subscription: MqttSubscription) -> None:
        """A subscription of an earlier run."""
        self.subscriptions.add(subscription)
        if subscription.group:
            self._shared.join(shared_name(subscription), self)

    def restore_queue(self, queue: Queue) -> None:
        """The queue of an earlier run; messages that were sent from it keep their packet ids."""
        self.queue = queue
        first = list(islice(queue.contents.order, MAX_UNDER_WAY))
        self.sent_before = first[-1].position if first else 0
        self._filter_own()
        for entry, content in sent_entries(queue):
            if content is None or not self.restore_sent(queue, entry, content.packet_id, None):
                queue.delivery.put_back([entry])

    def restore_sent(self, queue: Queue, entry: Entry, packet_id: int | None, shared: MqttSubscription | None) -> bool:
        """A message was sent to the client with QoS 2 in an earlier run; False if it cannot have been.

        Args:
            queue, entry, shared: as of `QueuedMessage`.
            packet_id: that it was sent with, as the message says.
        """
        # Whoever has sent a message with such an annotation by AMQP has not sent it to this client.
        if packet_id is None or not 0 < packet_id <= MAX_PACKET_ID or self.sent.get(packet_id) is not None:
            return False
        self.sent.restore(packet_id, QueuedMessage(queue, entry, shared))
        return True

    @property
    def queues(self) -> Sequence[tuple[Queue, MqttSubscription | None]]:
        """What the client receives from: its own queue, and those of its shared subscriptions with these."""
        found: list[tuple[Queue, MqttSubscription | None]] = []
        if self.queue is not None and self._registry.queue(self.queue_name) is self.queue:
            found.append((self.queue, None))
        for subscription in self.subscriptions:
            if subscription.group and (queue := self._registry.queue(shared_name(subscription))) is not None:
                found.append((queue, subscription))
        return found

    def is_whole(self, exchange: Exchange) -> bool:
        """False if somebody has deleted a queue or a binding of the session: it has lost messages, and is to end."""
        queue = self.queue
        for subscription in self.subscriptions:
            if subscription.group:
                if self._registry.queue(shared_name(subscription)) is None:
                    return False
            elif queue is None or exchange.binding(queue, subscription.pattern) is None:
                return False
        return True

    def _settings(self, *, shared: bool) -> QueueSettings:
        """Of a queue. A full one gives up its oldest message: one client that is away must not stop all senders."""
        durable = self._registry.recorder is not None if shared else self.durable
        properties = {
            "durable": durable,
            "exclusive": not shared,
            "qpid.policy_type": "ring",
            MQTT_SESSION: "" if shared else self.client_id,
        }
        return read_node_declaration(("queue",), properties, limits=self._registry.limits).queue

    def _filter_own(self) -> None:
        """Leave out what the client has published itself, where it does not want that."""
        if self.queue is None:
            return
        if not any(item.no_local for item in self.subscriptions.own):
            self.queue.filter = None
            return
        client_id, keeps_own = self.client_id, self.subscriptions.keeps_own

        def keeps(message: Message) -> bool:
            origin = message.origin
            own = origin is not None and origin.container == client_id and origin.protocol.startswith("MQTT")
            return not own or keeps_own(message.subject)

        self.queue.filter = keeps

    # The end

    def end(self) -> None:
        """The session is gone: so is its queue, and all that was recorded. Its will is published, if there is one."""
        if self.ended:
            return
        self.ended = True
        self.stop_timers()
        will, self.will = self.will, None
        if will is not None:
            will.send()
        for packet_id, each in self.sent:
            if each.item is not None and each.item.shared is not None and each.item.is_there:
                if each.state is SentMessageState.SENT:
                    each.item.queue.delivery.release([each.item.entry], failed=True)
                else:
                    each.item.queue.delivery.accept(each.item.entry)  # no other client may have it (4.8.2)
            if self.durable:
                self._records.remove_released(self.client_id, packet_id)
        for subscription in self.subscriptions:
            if subscription.group:
                self.leave(subscription)
            if self.durable:
                self._records.remove_subscription(self.client_id, subscription.text)
        if self.durable:
            for packet_id in self.received:
                self._records.remove_received(self.client_id, packet_id)
            self._records.remove_session(self.client_id)
        if self.queue is not None:
            self._operations.delete_owned(BROKER, self.queue)

    def stop_timers(self) -> None:
        """Nothing ends by itself any more."""
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


def sent_entries(queue: Queue) -> Iterator[tuple[Entry, Content | None]]:
    """What an earlier run has sent with QoS 2, acquired; None for a message that cannot be one of MQTT."""
    mark = PACKET_ID.encode()
    for entry in queue.contents.take(0, lambda message: mark in message.data):
        try:
            content = read_content(entry.message, "")[0]  # nothing is sent now
        except UnmappableError:
            content = None
        yield entry, content


def packet_id_at(position: int) -> int:
    """Packet id of a message at a place in the queue of its session.

    Places are kept over a restart of the broker, so that messages under way have their packet ids then without a write
    for each. Such messages are close together: hardly ever do two of them have the same one.
    """
    return (position - 1) % MAX_PACKET_ID + 1


def shared_name(subscription: MqttSubscription) -> str:
    """Name of the queue of a shared subscription: its filter."""
    return subscription.text


def seconds_left(message: Message, now: float) -> int | None:
    """The rest of a message's time to live, at least one second; None for no end."""
    if message.expires_at is None:
        return None
    return min(max(1, math.ceil(message.expires_at - now)), 0xFFFFFFFF)
