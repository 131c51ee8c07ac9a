"""What a client receives: the consumers of its queues, which make packets of messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.mqtt.connected_client import ConnectedClient
from qmf.broker.protocols.mqtt.mapping import Content, StoredContentReader, UnmappableError, kept_id_annotation
from qmf.broker.protocols.mqtt.session import MAX_UNDER_WAY, MqttSession, QueuedMessage, packet_id_at, seconds_left
from qmf.broker.protocols.mqtt.subscriptions import NO_TERMS, MqttSubscription, SubscriptionTerms, terms_of

log = logging.getLogger("qmf.broker")

#: Messages that are taken from a queue in one go, where nothing limits them.
_TOGETHER = 256


class ReceivingClient(Protocol):
    """A client, as its consumers see it.

    Attributes:
        connection, session: of the client.
        exchange: that of MQTT.
        clock: that of the broker, in seconds.
    """

    connection: ConnectedClient
    session: MqttSession
    exchange: Exchange
    clock: Callable[[], float]

    def finish_later(self, finish: Callable[[], None]) -> None:
        """Call something in the next turn of the loop: the queue is in the middle of a delivery now."""

    def record_later(self, message: QueuedMessage, packet_id: int) -> None:
        """Store the packet id of a message of QoS 2, then send it."""


class QueueConsumer:
    """Takes the messages of one queue for a client; a `Consumer` for the queue, a `ClientLink` for observers.

    Attributes:
        queue: which.
        shared: the shared subscription that has this queue; None for the client's own queue.
        name, source: the filter of a shared subscription, or the name of the client's queue.
        target: the id of the client.
        presettled: all its subscriptions have QoS 0: messages leave the queue as they are sent.
        transfers: messages sent so far.
    """

    selector: Callable[[Message], bool] | None = None
    exchange = None  #: see `ClientLink`
    browsing = False  #: see `ClientLink`
    transactions: TransactionCounts | None = None
    session: Hashable = 0  #: see `ClientLink`: a connection has one session

    def __init__(
        self, client: ReceivingClient, queue: Queue, shared: MqttSubscription | None, *, presettled: bool
    ) -> None:
        """Make a consumer, which begins with a grant."""
        self.queue: Queue | None = queue
        self.shared = shared
        self.name = self.source = queue.name
        self.target = client.session.client_id
        self.presettled = presettled
        self.transfers = 0
        self._queue = queue
        self._client = client
        self._connection = client.connection
        self._session = client.session
        self._terms = NO_TERMS if shared is None else terms_of([shared])
        self._reader = StoredContentReader(client.exchange.name)
        self._warned = False

    # ClientLink

    def count_unsettled(self) -> tuple[int, int]:
        entries = [
            each.item.entry
            for _, each in self._session.sent
            if each.item is not None and each.item.queue is self._queue
        ]
        return len(entries), sum(entry.size for entry in entries)

    # Consumer

    def ready(self) -> bool:
        return self.room() > 0

    def room(self) -> int:
        connection = self._connection
        if not connection.has_room or self._session.again:
            return 0
        if self.presettled:
            return _TOGETHER
        return min(connection.machine.send_quota, MAX_UNDER_WAY) - len(self._session.sent)

    def deliver(self, entry: Entry) -> None:
        self._send(entry, self._client.clock())

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        connection, now, sent = self._connection, self._client.clock(), 0
        while sent < len(entries) and connection.has_room:
            if count := self._send_run(entries, sent):
                sent += count
                continue
            self._send(entries[sent], now)
            sent += 1
        return sent

    def _send_run(self, entries: Sequence[Entry], start: int) -> int:
        """Send messages that are like the last one, from one on; how many, which may be none."""
        repeated = self._reader.repeated
        if repeated is None or len(entries) - start < 2 or type(entries) is not list:
            return 0
        head, content = repeated
        terms = self._terms_of(content.name, content.retained_for)
        qos = content.qos if content.qos < terms.qos else terms.qos
        packet_ids = self._ids_of_run(entries[start : start + _TOGETHER], content, qos)
        if packet_ids is None:
            return 0
        machine = self._connection.machine
        properties = content.properties + terms.identifiers
        retain = content.retain and terms.retain
        form = machine.publication_form(content.topic, qos, retain=retain, properties=properties)
        data, count = machine.encode_run(entries, start, head, form, packet_ids or None)
        if count:
            self.transfers += count
            self._connection.write(data)
        if count and packet_ids:
            items = [QueuedMessage(self._queue, entry, self.shared) for entry in entries[start : start + count]]
            self._session.sent.add_all(packet_ids[:count], items)
        return count

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
            packet_id = session.sent.add(message, qos, self._preferred_id(entry, content))
            if session.durable:
                if qos == 2:
                    client.record_later(message, packet_id)
                    return
                self._keep_id(entry, packet_id, content.kept_id)
        duplicate = qos == 1 and self._may_be_sent(entry, content)
        data = self._encode(entry, content, payload, terms, qos, packet_id, now, duplicate=duplicate)
        if data:
            self._connection.write(data)
        if not qos or not data:  # it is larger than the client takes
            if packet_id is not None:
                session.sent.forget(packet_id)
            self._finish(entry)

    def _encode(
        self,
        entry: Entry,
        content: Content,
        payload: bytes,
        terms: SubscriptionTerms,
        qos: int,
        packet_id: int | None,
        now: float,
        *,
        duplicate: bool,
    ) -> bytes:
        """The packet of a message; no bytes if it is larger than the client takes."""
        retain = content.retained_for is not None or (content.retain and terms.retain)
        properties = content.properties + terms.identifiers
        if (left := seconds_left(entry.message, now)) is not None:
            properties += b"\x02" + left.to_bytes(4)
        return self._connection.machine.encode_publication(
            content.topic, payload, qos, packet_id, retain=retain, duplicate=duplicate, properties=properties
        )

    def _preferred_id(self, entry: Entry, content: Content) -> int | None:
        """The packet id that a message has had before a restart, if it was under way then; None for any."""
        if self.shared is not None:
            return None
        return packet_id_at(entry.position) if content.kept_id is None else content.kept_id

    def _keep_id(self, entry: Entry, packet_id: int, kept_id: int | None) -> None:
        """Store a packet id that does not follow from the message's place, which it may not have after a restart.

        The message is sent at once: those behind it must not be sent before it.
        """
        follows = packet_id == packet_id_at(entry.position) and entry.message.deliver_at is None
        if self.shared is None and packet_id != kept_id and (not follows or kept_id is not None):
            self._client.finish_later(lambda: self._annotate(entry, packet_id))

    def _annotate(self, entry: Entry, packet_id: int) -> None:
        if not self._queue.contents.annotate(entry, kept_id_annotation(packet_id)):
            log.warning("queue %s has no room for a packet id: after a kill, a message may have another one", self.name)

    def _may_be_sent(self, entry: Entry, content: Content) -> bool:
        """True if the client may have a message from before the broker started."""
        return self.shared is None and content.delivered and entry.position <= self._session.sent_before

    def send_again(self, entry: Entry, qos: int, packet_id: int, *, duplicate: bool) -> bool:
        """Send a message with a packet id that it has.

        Returns:
            False if it cannot be sent: nothing is under way then.
        """
        try:
            content, payload = self._reader.read(entry.message)
        except UnmappableError as error:
            self._warn(error)
            return False
        terms = self._terms_of(content.name, content.retained_for)
        now = self._client.clock()
        data = self._encode(entry, content, payload, terms, qos, packet_id, now, duplicate=duplicate)
        if data:
            self._connection.write(data)
        return bool(data)

    def _ids_of_run(self, entries: Sequence[Entry], content: Content, qos: int) -> list[int] | None:
        """Packet ids for messages that are alike, none of QoS 0; None if each is to be looked at."""
        sent = self._session.sent
        if content.retained_for is not None or not 0 <= qos <= 1:
            return None
        if not qos:
            return [] if self.presettled else None
        if self.shared is not None:
            return sent.free_ids(len(entries))
        if content.kept_id is not None or self._may_be_sent(entries[0], content):
            return None
        if self._session.durable and any(entry.message.deliver_at is not None for entry in entries):
            return None
        packet_ids = [packet_id_at(entry.position) for entry in entries]
        return packet_ids if sent.are_free(packet_ids) else None

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
