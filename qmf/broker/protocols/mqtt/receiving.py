"""What a client receives: the consumers of its queues, which make packets of messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.mqtt.machine import ConnectionMachine
from qmf.broker.protocols.mqtt.mapping import StoredContentReader, UnmappableError
from qmf.broker.protocols.mqtt.session import MqttSession, QueuedMessage, seconds_left
from qmf.broker.protocols.mqtt.subscriptions import NO_TERMS, MqttSubscription, SubscriptionTerms, terms_of

log = logging.getLogger("qmf.broker")

#: Messages of QoS 1 and 2 that are under way to a client at most, whatever it allows.
MAX_UNDER_WAY = 1_000
#: Messages that are taken from a queue in one go, where nothing limits them.
_TOGETHER = 256


class ReceivingClient(Protocol):
    """The connection of a client, as its consumers see it."""

    machine: ConnectionMachine
    session: MqttSession

    @property
    def exchange_name(self) -> str:
        """Of the exchange of MQTT."""

    @property
    def has_room(self) -> bool:
        """More may be written."""

    def write(self, data: bytes) -> None:
        """Send a packet in this turn of the loop."""

    def finish_later(self, finish: Callable[[], None]) -> None:
        """Call something in the next turn of the loop: the queue is in the middle of a delivery now."""

    def record_later(self, message: QueuedMessage, packet_id: int) -> None:
        """Store the packet id of a message of QoS 2, then send it."""

    def clock(self) -> float:
        """The broker's clock, in seconds."""


class QueueConsumer:
    """Takes the messages of one queue for a client; a `Consumer` for the queue, a `ClientLink` for observers.

    Attributes:
        queue: which.
        shared: the shared subscription that has this queue; None for the client's own queue.
        presettled: all its subscriptions have QoS 0: messages leave the queue as they are sent.
        transfers: messages sent so far.
    """

    selector: Callable[[Message], bool] | None = None
    exchange = None  #: see `ClientLink`
    browsing = False  #: see `ClientLink`
    transactions: TransactionCounts | None = None

    def __init__(
        self, client: ReceivingClient, queue: Queue, shared: MqttSubscription | None, *, presettled: bool
    ) -> None:
        """Make a consumer, which begins with a grant.

        Args:
            client: whose it is.
            queue, shared, presettled: as the attributes.
        """
        self.queue: Queue | None = queue
        self.shared = shared
        self.presettled = presettled
        self.transfers = 0
        self._queue = queue
        self._client = client
        self._session = client.session
        self._terms = NO_TERMS if shared is None else terms_of([shared])
        self._reader = StoredContentReader(client.exchange_name)
        self._warned = False

    # ClientLink

    @property
    def name(self) -> str:
        """See `ClientLink`: the filter of a shared subscription, or the name of the client's queue."""
        return self._queue.name

    @property
    def session(self) -> Hashable:
        """See `ClientLink`: a connection has one session."""
        return 0

    @property
    def source(self) -> str:
        """See `ClientLink`."""
        return self._queue.name

    @property
    def target(self) -> str:
        """See `ClientLink`."""
        return self._session.client_id

    def count_unsettled(self) -> tuple[int, int]:
        """See `ClientLink`."""
        entries = [
            each.item.entry
            for _, each in self._session.sent
            if each.item is not None and each.item.queue is self._queue
        ]
        return len(entries), sum(entry.size for entry in entries)

    # Consumer

    def ready(self) -> bool:
        """See `Consumer`."""
        return self.room() > 0

    def room(self) -> int:
        """See `Consumer`."""
        client = self._client
        if not client.has_room or self._session.again:
            return 0
        if self.presettled:
            return _TOGETHER
        return min(client.machine.send_quota, MAX_UNDER_WAY) - len(self._session.sent)

    def deliver(self, entry: Entry) -> None:
        """See `Consumer`."""
        self._send(entry, self._client.clock())

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        """See `Consumer`."""
        now, sent = self._client.clock(), 0
        for entry in entries:
            if not self._client.has_room:
                break
            self._send(entry, now)
            sent += 1
        return sent

    def _send(self, entry: Entry, now: float) -> None:
        """Send a message with the QoS that both ends have, unless it is for none of the subscriptions any more."""
        client, session = self._client, self._session
        try:
            content, payload = self._reader.read(entry.message)
        except UnmappableError as error:
            self._warn(error)
            self._finish(entry)
            return
        terms = self._terms_of(content.name, content.retained_for)
        qos = content.qos if content.qos < terms.qos else terms.qos
        if qos < 0:
            self._finish(entry)
            return
        self.transfers += 1
        packet_id = None
        if qos:
            message = QueuedMessage(self._queue, entry, self.shared)
            packet_id = session.sent.add(message, qos)
            if qos == 2 and session.durable:
                client.record_later(message, packet_id)
                return
        retain = content.retained_for is not None or (content.retain and terms.retain)
        properties = content.properties + terms.identifiers
        if (left := seconds_left(entry.message, now)) is not None:
            properties += b"\x02" + left.to_bytes(4)
        data = client.machine.encode_publication(
            content.topic, payload, qos, packet_id, retain=retain, properties=properties
        )
        if data:
            client.write(data)
        if not qos or not data:  # it is larger than the client takes
            if packet_id is not None:
                session.sent.forget(packet_id)
            self._finish(entry)

    def send_again(self, entry: Entry, qos: int, packet_id: int, *, duplicate: bool) -> bool:
        """Send a message with a packet id that it has.

        Args:
            entry: it.
            qos, packet_id, duplicate: of the packet.

        Returns:
            False if it cannot be sent: nothing is under way then.
        """
        client = self._client
        try:
            content, payload = self._reader.read(entry.message)
        except UnmappableError as error:
            self._warn(error)
            return False
        terms = self._terms_of(content.name, content.retained_for)
        retain = content.retained_for is not None or (content.retain and terms.retain)
        properties = content.properties + terms.identifiers
        if (left := seconds_left(entry.message, client.clock())) is not None:
            properties += b"\x02" + left.to_bytes(4)
        data = client.machine.encode_publication(
            content.topic, payload, qos, packet_id, retain=retain, duplicate=duplicate, properties=properties
        )
        if data:
            client.write(data)
        return bool(data)

    def _terms_of(self, topic: str, retained_for: str | None) -> SubscriptionTerms:
        if self.shared is not None:
            return self._terms
        if retained_for is None:
            return self._session.subscriptions.terms(topic)
        subscription = self._session.subscriptions.get(retained_for)
        return NO_TERMS if subscription is None else terms_of([subscription])

    def _finish(self, entry: Entry) -> None:
        """A message is done with, once the queue has noted that it was delivered."""
        if not self.presettled:
            delivery = self._queue.delivery
            self._client.finish_later(lambda: delivery.accept(entry))

    def _warn(self, error: UnmappableError) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "queue %s: left out a message that cannot be one of MQTT, and others if need be: %s",
                self._queue.name,
                error,
            )
