"""All sessions of MQTT of a broker: begun, gone on with, ended; and what they share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.arguments import MQTT_SESSION
from qmf.broker.nodes.exchanges import Exchange, MqttExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.protocols.mqtt.client_counts import ClientCounts
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.connected_client import ConnectedClient
from qmf.broker.protocols.mqtt.records import SessionRecords, StoredWill
from qmf.broker.protocols.mqtt.retained import RetainedMessages
from qmf.broker.protocols.mqtt.session import FOR_EVER, MqttSession, SharedQueues, sent_entries
from qmf.broker.protocols.mqtt.system_topics import SystemTopics
from qmf.broker.protocols.mqtt.will import PendingWill
from qmf.bus.topics import MQTT_EXCHANGE

log = logging.getLogger("qmf.broker")


class SessionInUse(Exception):
    """Another user has the session."""


class MqttSessions:
    """The sessions of a broker.

    Attributes:
        operations: of the broker.
        retained: its retained messages.
        records: what is kept of the sessions over a restart.
        publisher: of the broker itself.
        counts: of its clients.
        expired: sessions that have ended with their time.
        system: what it publishes of itself.
    """

    def __init__(self, operations: Operations, sys_interval: float) -> None:
        """Find the sessions of an earlier run; their time begins again.

        Args:
            sys_interval: as of `MqttOptions`.
        """
        self.operations = operations
        self._registry = operations.registry
        self._exchange = self._open_exchange()
        self.retained = RetainedMessages(operations)
        self.records = SessionRecords(operations)
        self.publisher = operations.publisher(BROKER)
        self.counts = ClientCounts()
        self.expired = 0
        self._shared = SharedQueues(operations)
        self._sessions: dict[str, MqttSession] = {}
        self.system = SystemTopics(self, sys_interval)
        self._restore()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[MqttSession]:
        return iter(list(self._sessions.values()))

    @property
    def exchange(self) -> Exchange:
        """Where all publications go; created again if somebody has deleted it."""
        if self._registry.exchange(MQTT_EXCHANGE) is not self._exchange:
            self._exchange = self._open_exchange()
        return self._exchange

    @property
    def retained_count(self) -> int:
        """Number of retained messages."""
        return len(self.retained)

    def retained_for(self, pattern: str) -> Sequence[Message]:
        """What a new subscription with a filter is sent: retained messages, and the broker's own values."""
        return [*self.retained.matching(pattern), *self.system.matching(pattern)]

    def subscription_counts(self) -> tuple[int, int]:
        """Subscriptions of all sessions, and those of them that are shared."""
        counts = [session.subscriptions.counts for session in self._sessions.values()]
        return sum(own + shared for own, shared in counts), sum(shared for _, shared in counts)

    def holder(self, client_id: str, user: str) -> ConnectedClient | None:
        """The connection that a client would take the session over from; None for none."""
        found = self._sessions.get(client_id)
        return None if found is None or found.user != user else found.client

    def open(
        self, client_id: str, user: str, expiry: int, connection: ConnectedClient, *, clean: bool
    ) -> tuple[MqttSession, bool]:
        """The session of a client that has connected, and whether it was there.

        Args:
            connection: of the client; an older one is closed.
            clean: begin a new one.

        Raises:
            SessionInUse: it belongs to another user.
        """
        found = self._sessions.get(client_id)
        if found is not None:
            if found.user != user:
                raise SessionInUse(f"the session {client_id!r} belongs to another user")
            if found.client is not None:
                found.client.end(ReasonCode.SESSION_TAKEN_OVER, "another connection has taken over the session")
            found = self._sessions.get(client_id)  # it may have ended with its connection
        if found is not None and (clean or not found.is_whole(self.exchange)):
            self.end(found)
            found = None
        if found is None:
            session = self._add(client_id, user, expiry)
        else:
            session = found
            session.stop_timers()
            session.will = None
            session.expiry = expiry
        session.save()
        session.client, session.protocol = connection, connection.info.protocol
        self._registry.observer.on_session_connected(session)
        return session, found is not None

    def close(self, session: MqttSession, expiry: int, will: PendingWill | None) -> None:
        """The connection of a session is gone.

        Args:
            expiry: seconds for which it is kept.
            will: to be published; None for nothing.
        """
        if session.ended:
            if will is not None:
                will.send()
            return
        session.will = will
        if not expiry:
            self.end(session)
            return
        if expiry != session.expiry:
            session.expiry = expiry
            session.save()
        session.client = None
        self._registry.observer.on_session_disconnected(session)
        self._begin_waiting(session)

    def _add(self, client_id: str, user: str, expiry: int) -> MqttSession:
        session = MqttSession(client_id, user, expiry, self.operations, self.records, self._shared, self.end)
        self._sessions[client_id] = session
        self._registry.observer.on_session_begun(session)
        return session

    def _begin_waiting(self, session: MqttSession) -> None:
        """The session has no client: its time begins, and that of its will."""
        loop = asyncio.get_running_loop()
        if session.expiry != FOR_EVER:
            session.timers.append(loop.call_later(session.expiry, self._expire, session))
        if session.will is not None:
            if session.will.delay:
                session.timers.append(loop.call_later(session.will.delay, _send_will, session))
            else:
                _send_will(session)

    def end(self, session: MqttSession) -> None:
        """A session ends; its client, if there is one, is to be told."""
        if self._sessions.get(session.client_id) is session:
            del self._sessions[session.client_id]
            session.end()
            self._registry.observer.on_session_ended(session)

    def _expire(self, session: MqttSession) -> None:
        """The time of a session has passed."""
        self.expired += 1
        self.end(session)

    def shut_down(self) -> None:
        """The broker ends: nothing ends by its time any more."""
        for session in self._sessions.values():
            session.stop_timers()

    def _open_exchange(self) -> Exchange:
        found = self._registry.exchange(MQTT_EXCHANGE)
        if isinstance(found, Exchange):
            return found
        settings = ExchangeSettings(MqttExchange.kind, durable=self._registry.recorder is not None)
        created = self.operations.create(BROKER, MQTT_EXCHANGE, NodeDeclaration(exchange=settings))
        assert isinstance(created, Exchange)
        return created

    def _restore(self) -> None:
        for stored in list(self.records.restore()):
            session = self._add(stored.client_id, stored.user, stored.expiry)
            session.durable = True
            for subscription in stored.subscriptions:
                session.restore(subscription)
            session.received.update(stored.received)
            for packet_id in stored.released:
                session.sent.restore(packet_id, None)
            if (queue := self._registry.queue(session.queue_name)) is not None:
                session.restore_queue(queue)
            if stored.will is not None:
                session.will = self._restored_will(stored.client_id, stored.will)
        self._restore_shared()
        for session in list(self._sessions.values()):
            if session.expiry:
                self._begin_waiting(session)
            else:
                self.end(session)
        used = {queue for session in self._sessions.values() for queue, _ in session.queues}
        for queue in [each for each in self._registry.queues if MQTT_SESSION in each.settings.arguments]:
            if queue not in used:  # its session was not stored, or has ended
                self.operations.delete_owned(BROKER, queue)

    def _restore_shared(self) -> None:
        """What was sent with QoS 2 for a shared subscription is still for the same client."""
        names = {each.text for session in self._sessions.values() for each in session.subscriptions if each.group}
        for name in sorted(names):
            if (queue := self._registry.queue(name)) is None:
                continue
            for entry, content in sent_entries(queue):
                session = None if content is None else self._sessions.get(content.sent_to or "")
                shared = None if session is None else session.subscriptions.get(name)
                if (
                    content is None
                    or session is None
                    or shared is None
                    or not session.restore_sent(queue, entry, content.packet_id, shared)
                ):
                    queue.delivery.put_back([entry])

    def _restored_will(self, client_id: str, stored: StoredWill) -> PendingWill:
        """The will of a client that was connected when the broker was killed; published by its rights."""
        principal = stored.principal
        origin = ClientInfo(principal.address, client_id, principal.user, protocol=principal.protocol)
        publisher = self.operations.publisher(principal)
        return PendingWill(stored.will, publisher, self.exchange, origin, self.retained, self.records)


def _send_will(session: MqttSession) -> None:
    will, session.will = session.will, None
    if will is not None:
        will.send()
