"""All sessions of MQTT of a broker: begun, gone on with, ended; and what they share."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Protocol

from qmf.broker.nodes.arguments import MQTT_SESSION
from qmf.broker.nodes.exchanges import Exchange, MqttExchange
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.records import SessionRecords
from qmf.broker.protocols.mqtt.retained import RetainedMessages
from qmf.broker.protocols.mqtt.session import FOR_EVER, MqttSession, SessionWill, SharedQueues
from qmf.bus.topics import MQTT_EXCHANGE

log = logging.getLogger("qmf.broker")


class SessionInUse(Exception):
    """Another user has the session."""


class SessionHolder(Protocol):
    """The connection of a session's client."""

    def end(self, code: ReasonCode, reason: str) -> None:
        """Close it; its session is given up at once."""


class MqttSessions:
    """The sessions of a broker.

    Attributes:
        operations: of the broker.
        retained: its retained messages.
        records: what is kept of the sessions over a restart.
        publisher: of the broker itself.
    """

    def __init__(self, operations: Operations) -> None:
        """Find the sessions of an earlier run; their time begins again.

        Args:
            operations: of the broker.
        """
        self.operations = operations
        self._registry = operations.registry
        self._exchange = self._open_exchange()
        self.retained = RetainedMessages(operations)
        self.records = SessionRecords(operations)
        #: Of the broker itself.
        self.publisher = operations.publisher(BROKER)
        self._shared = SharedQueues(operations)
        self._sessions: dict[str, MqttSession] = {}
        self._connections: dict[MqttSession, SessionHolder] = {}
        self._restore()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def exchange(self) -> Exchange:
        """Where all publications go; created again if somebody has deleted it."""
        if self._registry.exchange(MQTT_EXCHANGE) is not self._exchange:
            self._exchange = self._open_exchange()
        return self._exchange

    def open(
        self, client_id: str, user: str, expiry: int, connection: SessionHolder, *, clean: bool
    ) -> tuple[MqttSession, bool]:
        """The session of a client that has connected, and whether it was there.

        Args:
            client_id, user, expiry: of the client.
            connection: of the client; an older one is closed.
            clean: begin a new one.

        Raises:
            SessionInUse: it belongs to another user.
        """
        found = self._sessions.get(client_id)
        if found is not None:
            if found.user != user:
                raise SessionInUse(f"the session {client_id!r} belongs to another user")
            if (older := self._connections.get(found)) is not None:
                older.end(ReasonCode.SESSION_TAKEN_OVER, "another connection has taken over the session")
            found = self._sessions.get(client_id)  # it may have ended with its connection
        if found is not None and (clean or not found.is_whole(self.exchange)):
            self.end(found)
            found = None
        if found is None:
            session = MqttSession(client_id, user, expiry, self.operations, self.records, self._shared)
            self._sessions[client_id] = session
        else:
            session = found
            session.stop_timers()
            session.will = None
            session.expiry = expiry
        self._connections[session] = connection
        session.save()
        return session, found is not None

    def close(self, session: MqttSession, expiry: int, will: SessionWill | None, delay: int) -> None:
        """The connection of a session is gone.

        Args:
            session: which.
            expiry: seconds for which it is kept.
            will: to be published; None for nothing.
            delay: seconds until then.
        """
        self._connections.pop(session, None)
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
        loop = asyncio.get_running_loop()
        if expiry != FOR_EVER:
            session.timers.append(loop.call_later(expiry, self.end, session))
        if will is not None:
            if delay:
                session.timers.append(loop.call_later(delay, _send_will, session))
            else:
                _send_will(session)

    def end(self, session: MqttSession) -> None:
        """A session ends; its client, if there is one, is to be told."""
        if self._sessions.get(session.client_id) is session:
            del self._sessions[session.client_id]
        session.end()

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
            session = MqttSession(
                stored.client_id, stored.user, stored.expiry, self.operations, self.records, self._shared
            )
            self._sessions[stored.client_id] = session
            for subscription in stored.subscriptions:
                session.restore(subscription)
            session.durable = True
            session.received.update(stored.received)
            for packet_id in stored.released:
                session.sent.restore(packet_id, None)
            if (queue := self._registry.queue(session.queue_name)) is not None:
                session.restore_queue(queue)
            if not stored.expiry:
                self.end(session)
            elif stored.expiry != FOR_EVER:
                timer = asyncio.get_running_loop().call_later(stored.expiry, partial(self.end, session))
                session.timers.append(timer)
        used = {queue for session in self._sessions.values() for queue, _ in session.queues}
        for queue in [each for each in self._registry.queues if MQTT_SESSION in each.settings.arguments]:
            if queue not in used:  # its session was not stored, or has ended
                self.operations.delete_owned(BROKER, queue)


def _send_will(session: MqttSession) -> None:
    will, session.will = session.will, None
    if will is not None:
        will.send()
