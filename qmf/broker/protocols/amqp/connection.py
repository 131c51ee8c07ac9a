"""The broker's end of a client's connection: its handshake, its failures and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable

from qmf.broker.client_info import ClientInfo
from qmf.broker.connection_limits import ConnectionCounts
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.observer import Traffic
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.amqp.client_links import ClientLinks
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks
from qmf.broker.protocols.amqp.sasl import SaslEngine
from qmf.broker.protocols.amqp.sole_connections import SoleConnections
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    AcceptedBatch,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    CreditChanged,
    Delivery,
    DeliveryBatch,
    EngineEvent,
    EventBatch,
    LinkDetached,
    LinkRequested,
    OutcomeConfirmed,
    OutcomeReceived,
)
from qmf.bus.engine.opening import Refusal
from qmf.bus.transport import AmqpTransport, PendingWrites

log = logging.getLogger("qmf.broker")


class ServerConnection:
    """A connection that a client made; a `ConnectedClient` for observers.

    Attributes:
        ended: done when the connection is gone.
        transport: carries the connection.
    """

    def __init__(
        self,
        operations: Operations,
        resumable: ResumableLinks,
        engine: Engine,
        *,
        open_timeout: float,
        max_links: int,
        counts: ConnectionCounts,
        sole: SoleConnections,
        pending: PendingWrites,
        on_start: Callable[[ServerConnection], None],
        on_end: Callable[[ServerConnection], None],
    ) -> None:
        """Args:

        operations, resumable: of the broker.
        engine: of this connection.
        open_timeout: seconds that the client has for its handshakes.
        max_links: that the client may have.
        counts: the open connections of the broker, with their limits.
        sole: the same by container.
        pending: shared by the broker's connections.
        on_start: called once, when the client is connected; never when its TLS handshake fails.
        on_end: called once after that, when the connection is gone.
        """
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport = AmqpTransport(engine, self, throttle=True, pending=pending)
        if isinstance(engine, SaslEngine):
            engine.on_progress = self.transport.flush_soon
        self._registry = operations.registry
        self._links = ClientLinks(self, self.transport, operations, resumable, max_links=max_links)
        self._open_timeout = open_timeout
        self._counts = counts
        self._sole = sole
        engine.admit = self._admit
        self._on_start = on_start
        self._on_end = on_end
        self._address = "unknown"
        #: Container id of the client while it counts among its connections.
        self._container: str | None = None
        #: Set by the client's open.
        self._info: ClientInfo | None = None
        #: Runs until the client's open.
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False
        self._refused = False

    def __str__(self) -> str:
        return f"{self.info.container or 'client'} at {self._address}"

    @property
    def info(self) -> ClientInfo:
        """See `BrokerClient`; before the client's open, only its address."""
        return self._info or ClientInfo(self._address)

    def close(self, condition: str, description: str) -> None:
        """Close the connection with an AMQP error. `ended` is done when the client has answered."""
        if self._timer is not None:
            self.transport.abort()  # a client that has not opened the connection would not answer the close either
            return
        self.transport.engine.close(condition, description)
        self.transport.flush_soon()

    def traffic(self) -> Traffic:
        """See `ConnectedClient`."""
        frames_in, frames_out = self.transport.engine.frames
        return Traffic(frames_in, frames_out, self.transport.octets_in, self.transport.octets_out)

    def end_session(self, session: Hashable, condition: str, description: str) -> None:
        """See `ConnectedClient`."""
        self._links.end_session(session, condition, description)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted."""
        self._links.on_node_deleted(node)

    # Owner of the transport

    def on_connected(self) -> None:
        """See `TransportOwner`."""
        self._on_start(self)
        self._address = self.transport.peer_address
        self._timer = asyncio.get_running_loop().call_later(self._open_timeout, self._on_open_timeout)

    def on_writable(self) -> None:
        """See `TransportOwner`."""
        self._links.dispatch()

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """See `TransportOwner`."""
        if self._refused:
            return
        match event:
            case DeliveryBatch():
                self._links.on_deliveries(event)
            case AcceptedBatch():
                self._links.on_accepted(event)
            case Delivery():
                self._links.on_delivery(event)
            case OutcomeReceived():
                self._links.on_outcome(event)
            case OutcomeConfirmed():
                self._links.on_confirmed(event)
            case CreditChanged():
                self._links.on_credit(event.link)
            case LinkRequested():
                self._links.on_requested(event.link)
            case LinkDetached():
                self._links.on_detached(event.link, closed=event.closed)
            case ConnectionOpened():
                self._on_opened(event)
            case ConnectionClosed():
                self._leave()
                log.debug("closed: %s %s", self, event.description)
            case ConnectionFailed():
                engine = self.transport.engine
                login = ""
                if event.authentication and isinstance(engine, SaslEngine) and engine.claimed_mechanism:
                    who = f"user {engine.claimed_user!r}" if engine.claimed_user else "no user"
                    login = f"login of {who} by {engine.claimed_mechanism!r} refused: "
                self._log_failure(f"{login}{event.condition}: {event.description}")
                if event.authentication and isinstance(engine, SaslEngine):
                    info = ClientInfo(self._address, user=engine.claimed_user)
                    self._registry.observer.on_connection_refused(info, event.description)

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        if self._timer is not None:
            self._log_failure("it disconnected before it had opened the connection", logging.INFO)
        self._stop_timer()
        if error is not None:
            log.debug("lost: %s: %s", self, error)
        try:
            self._leave()
            self._links.on_disconnected()
            if self._info is not None:
                self._counts.remove(_host(self._address), self._info.user)
                self._registry.observer.on_disconnected(self)
        finally:
            # Whatever happens here, the broker must not wait for this connection when it ends.
            self.ended.set_result(None)
            self._on_end(self)
        del self._links  # they know this connection: all is gone with its last user, not when the cycle is found

    # Details

    def _admit(self, event: ConnectionOpened) -> Refusal | None:
        """The client opens the connection."""
        engine = self.transport.engine
        user = engine.user if isinstance(engine, SaslEngine) else ""
        refusal = self._sole.add(self, user, event)
        if refusal is None:
            self._container = event.container
        else:
            # The timer goes on: it ends a client that does not answer the close.
            self._refused = True
            info = ClientInfo(self._address, event.container, user, engine.sasl_mechanism or "", event.properties)
            self._log_failure(refusal.description)
            self._registry.observer.on_connection_refused(info, refusal.description)
        return refusal

    def close_for(self, refusal: Refusal) -> None:
        """See `Connected`."""
        self._container = None
        self.transport.engine.close(refusal.name, refusal.description, refusal.info)
        self.transport.flush_soon()

    def _leave(self) -> None:
        """The client may connect again."""
        if self._container is not None:
            engine = self.transport.engine
            self._sole.remove(self, engine.user if isinstance(engine, SaslEngine) else "", self._container)
            self._container = None

    def _on_opened(self, event: ConnectionOpened) -> None:
        engine = self.transport.engine
        mechanism = engine.sasl_mechanism or ""
        user = engine.user if isinstance(engine, SaslEngine) else ""
        info = ClientInfo(self._address, event.container, user, mechanism, event.properties)
        if reason := self._counts.add(_host(self._address), user):
            # The timer goes on: it ends a client that does not answer the close.
            self._refused = True
            self._log_failure(reason)
            self._registry.observer.on_connection_refused(info, reason)
            engine.close("amqp:resource-limit-exceeded", reason)
            self.transport.flush_soon()
            return
        self._stop_timer()
        self._info = info
        log.debug("connected: %s", self)
        self._registry.observer.on_connected(self)

    def _on_open_timeout(self) -> None:
        self._timer = None
        self._log_failure(f"no AMQP open within {self._open_timeout:g} s")
        self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _log_failure(self, reason: str, level: int = logging.WARNING) -> None:
        """Count and log a failure, once per connection."""
        if not self._failed:
            self._failed = True
            self._registry.counters.failures += 1
            log.log(level, "dropped %s: %s", self, reason)


def _host(address: str) -> str:
    return address.rpartition(":")[0]
