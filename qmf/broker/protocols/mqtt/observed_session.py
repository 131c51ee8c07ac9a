"""A session of MQTT as observers of the broker see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.session import MqttSession


class SessionHolder(ClientSession, Protocol):
    """The connection of a session's client."""

    @property
    def will_topic(self) -> str:
        """Where the will of the client is published; empty without one."""

    def end(self, code: ReasonCode, reason: str) -> None:
        """Close it; its session is given up at once."""


class ObservedSession:
    """A session, with the connection of its client; a `LastingSession`.

    Attributes:
        session: it.
        client_id, user, protocol: see `LastingSession`.
    """

    def __init__(self, session: MqttSession, end: Callable[[MqttSession], None]) -> None:
        self.session = session
        self.client_id, self.user = session.client_id, session.user
        self.protocol = ""
        self._holder: SessionHolder | None = None
        self._end = end

    def connect(self, holder: SessionHolder) -> None:
        """The client is connected."""
        self._holder = holder
        self.protocol = holder.info.protocol

    def on_disconnected(self) -> None:
        """The client is gone."""
        self._holder = None

    # LastingSession

    @property
    def durable(self) -> bool:
        return self.session.durable

    @property
    def expiry(self) -> int:
        return self.session.expiry

    @property
    def client(self) -> SessionHolder | None:
        return self._holder

    @property
    def queue(self) -> Queue | None:
        return self.session.queue

    @property
    def will_topic(self) -> str:
        """See `LastingSession`: that of the client, or the one that waits for its delay."""
        if self._holder is not None:
            return self._holder.will_topic
        return "" if self.session.will is None else self.session.will.topic

    @property
    def subscription_count(self) -> int:
        return len(self.session.subscriptions)

    @property
    def inflight(self) -> int:
        return len(self.session.sent)

    @property
    def unreleased(self) -> int:
        return len(self.session.received)

    def disconnect(self, reason: str) -> None:
        if self._holder is not None:
            self._holder.end(ReasonCode.ADMINISTRATIVE_ACTION, reason)

    def discard(self, reason: str) -> None:
        self.disconnect(reason)
        self._end(self.session)
