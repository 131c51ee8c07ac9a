"""What a client subscribes to: its subscriptions are changed, and their queues have consumers while it is connected."""

from __future__ import annotations

import logging

from qmf.broker.nodes.bindings import BindingRefused
from qmf.broker.nodes.node_declaration import NodeDeclarationError
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NameInUse
from qmf.broker.operations.held_rights import HeldRights
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.mqtt.codec.packets import SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.topics import filter_error
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.mapping import RETAINED_FOR
from qmf.broker.protocols.mqtt.receiving import QueueConsumer, ReceivingClient
from qmf.broker.protocols.mqtt.session import QueuedMessage
from qmf.broker.protocols.mqtt.sessions import MqttSessions
from qmf.broker.protocols.mqtt.subscriptions import MqttSubscription
from qmf.broker.sessions import ClientSessions

log = logging.getLogger("qmf.broker")


class ClientConsumers:
    """The consumers of one client."""

    def __init__(
        self,
        client: ReceivingClient,
        principal: Principal,
        clients: ClientSessions,
        sessions: MqttSessions,
        max_subscriptions: int,
    ) -> None:
        self._client = client
        self._session = client.session
        self._connection = client.connection
        self._principal = principal
        self._operations = operations = sessions.operations
        self._registry = operations.registry
        self._clients = clients
        self._sessions = sessions
        self._max_subscriptions = max_subscriptions
        #: By the filters of shared subscriptions; that of the client's own queue is empty.
        self._all: dict[str, QueueConsumer] = {}
        #: What was granted, by filters, to be asked for when there are other rules.
        self._held: HeldRights[str] = HeldRights(operations)
        #: Messages that were sent by consumers that have stopped.
        self._sent_before = 0

    @property
    def transfers(self) -> int:
        """Messages that were sent to the client so far."""
        return self._sent_before + sum(consumer.transfers for consumer in self._all.values())

    def of(self, message: QueuedMessage) -> QueueConsumer | None:
        """The consumer of the queue that a message is from."""
        return self._all.get("" if message.shared is None else message.shared.text)

    def resume(self) -> None:
        """Receive what the session is subscribed to.

        Raises:
            OperationRefused: the policy refuses it now.
        """
        with self._held.record_grants(""):
            for queue, shared in self._session.queues:
                self._consume(queue, shared)

    def dispatch(self) -> None:
        """There may be room: deliver what waits."""
        for consumer in list(self._all.values()):
            if consumer.queue is not None and len(consumer.queue.contents):
                consumer.queue.delivery.dispatch()

    def has_lost_queue(self) -> bool:
        """True if somebody has deleted a queue that the client receives from."""
        return any(
            consumer.queue is not None and self._registry.queue(consumer.queue.name) is not consumer.queue
            for consumer in self._all.values()
        )

    def stop_all(self) -> None:
        """Receive nothing more."""
        for name in list(self._all):
            self._stop(name)

    def missing_right(self) -> str:
        """Why a right of the client has ended, since there are other rules; empty if it has all."""
        return self._held.first_missing(self._principal)

    def subscribe(self, request: SubscriptionRequest, identifier: int) -> tuple[ReasonCode, str]:
        """Add a subscription, in place of one with its filter; gives what the client is answered.

        Args:
            identifier: of it; 0 for none.
        """
        session, text = self._session, request.topic_filter
        if error := filter_error(text):
            return ReasonCode.TOPIC_FILTER_INVALID, error
        if len(session.subscriptions) >= self._max_subscriptions and session.subscriptions.get(text) is None:
            return ReasonCode.QUOTA_EXCEEDED, f"a session has at most {self._max_subscriptions} subscriptions"
        subscription = MqttSubscription.of(request, identifier)
        try:
            with self._held.record_grants(text):
                session.subscribe(self._principal, self._sessions.exchange, subscription)
                for queue, shared in session.queues:
                    if shared == subscription or (shared is None and not subscription.group):
                        self._consume(queue, shared)
        except OperationRefused as error:
            return ReasonCode.NOT_AUTHORIZED, str(error)
        except (NameInUse, BindingRefused, NodeDeclarationError) as error:
            log.warning("%s cannot subscribe to %r: %s", self._connection, text, error)
            return ReasonCode.UNSPECIFIED_ERROR, f"the queue of the subscription cannot be used: {error}"
        return ReasonCode(request.qos), ""

    def unsubscribe(self, text: str) -> bool:
        """End the subscription with a filter; False if there is none.

        Raises:
            OperationRefused: the policy refuses it.
        """
        found = self._session.unsubscribe(self._principal, self._sessions.exchange, text)
        self._held.forget(text)
        if found is None:
            return False
        if found.group:
            self._stop(text)
            self._session.leave(found)
        elif self._session.queue is not None:
            self._consume(self._session.queue, None)
        return True

    def send_retained(self, request: SubscriptionRequest, *, existed: bool) -> None:
        """Put the retained messages of a new subscription into the session's queue, each for it alone."""
        subscription, queue = self._session.subscriptions.get(request.topic_filter), self._session.queue
        if subscription is None or subscription.group or queue is None:
            return
        if request.retain_handling == 2 or (request.retain_handling == 1 and existed):
            return
        for message in self._sessions.retained_for(subscription.pattern):
            marked = message.with_annotation(RETAINED_FOR, subscription.text)
            self._sessions.publisher.publish(queue, marked)

    def _consume(self, queue: Queue, shared: MqttSubscription | None) -> None:
        """Receive from a queue; again, if that has to change."""
        name = "" if shared is None else shared.text
        subscriptions = self._session.subscriptions.own if shared is None else [shared]
        presettled = not any(item.qos for item in subscriptions)
        current = self._all.get(name)
        if current is not None:
            if current.presettled == presettled and current.shared == shared:
                return
            self._stop(name)
        grant = self._operations.consume(self._principal, queue)
        consumer = QueueConsumer(self._client, queue, shared, presettled=presettled)
        self._all[name] = consumer
        grant.begin(consumer)
        self._clients.link_attached(self._connection, queue)
        self._registry.observer.on_attached(self._connection, consumer)

    def _stop(self, name: str) -> None:
        """Receive from a queue no more."""
        consumer = self._all.pop(name, None)
        if consumer is None:
            return
        self._sent_before += consumer.transfers
        if consumer.queue is not None:
            consumer.queue.delivery.remove_consumer(consumer)
            self._registry.observer.on_detached(self._connection, consumer)
            self._clients.link_detached(self._connection, consumer.queue)
