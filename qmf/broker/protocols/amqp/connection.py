"""The broker's end of a client's connection: its handshake, its failures and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable

from qmf._marks import USER
from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import Traffic
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.amqp.client_links import ClientLinks
from qmf.broker.protocols.amqp.conditions import CONDITIONS
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks
from qmf.broker.protocols.amqp.sasl import SaslServer
from qmf.broker.protocols.amqp.sole_connections import SoleConnections
from qmf.broker.protocols.services import ConnectionServices
from qmf.broker.refusal import Reason
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    AcceptedBatch,
    ConfirmedBatch,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    CreditChanged,
    Delivery,
    DeliveryBatch,
    EngineEvent,
    EventBatch,
    HeldBatch,
    LinkDetached,
    LinkRequested,
    OutcomeReceived,
    PeerSessionEnded,
)
from qmf.bus.engine.opening import ConnectionRefusal
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.transport import AmqpTransport, PendingWrites

log = logging.getLogger("qmf.broker")


#: `ClientInfo.protocol` of clients of this protocol.
AMQP = "AMQP 1.0"


class ServerConnection:
    """A connection that a client made; a `ClientSession`, the `TransportOwner`, and a `UserConnection`."""

    def __init__(
        self,
        services: ConnectionServices,
        settings: ConnectionSettings,
        resumable: ResumableLinks,
        sole: SoleConnections,
        pending: PendingWrites,
        *,
        max_links: int,
    ) -> None:
        """Make the connection for a socket that a listener has accepted.

        Args:
            resumable, sole, pending: shared by the connections of the protocol.
            max_links: that the client may have.
        """
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        operations = services.operations
        #: Authenticates the client.
        sasl = self._sasl = SaslServer(services.logins)
        engine = self._engine = Engine(settings, sasl)
        engine.admit = self._admit
        self.transport = AmqpTransport(engine, self, throttle=True, pending=pending)
        sasl.on_checked = self._on_checked
        self._services = services
        self._registry = operations.registry
        self._links = ClientLinks(self, self.transport, operations, services.clients, resumable, max_links=max_links)
        self._sessions = services.clients
        self._sole = sole
        #: What is known of the client: first its address, after its open the rest.
        self._info = ClientInfo("unknown")
        #: Its container id while it counts among its connections.
        self._container: str | None = None
        #: Runs until the client's open; how far the client had come when it was started.
        self._timer: asyncio.TimerHandle | None = None
        self._stage = 0
        self._failed = False
        self._refused = False

    def __str__(self) -> str:
        return f"{self.info.container or 'client'} at {self.info.address}"

    @property
    def info(self) -> ClientInfo:
        """See `BrokerClient`; before the client's open, only its address."""
        return self._info

    def close(self, reason: str, cause: Reason | None = None) -> None:
        if self._timer is not None:
            self.abort()  # a client that has not opened the connection would not answer the close either
            return
        self._engine.close("amqp:connection:forced" if cause is None else CONDITIONS[cause], reason)
        self.transport.flush_soon()

    def abort(self) -> None:
        self.transport.abort()

    def traffic(self) -> Traffic:
        frames_in, frames_out = self._engine.frames
        return Traffic(frames_in, frames_out, self.transport.octets_in, self.transport.octets_out)

    def end_session(self, session: Hashable, reason: str) -> None:
        self._links.end_session(session, "amqp:resource-deleted", reason)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        self._links.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        self._links.on_policy_changed()

    # Owner of the transport

    def on_connected(self) -> None:
        self._sessions.start(self)
        self._info = ClientInfo(self.transport.peer_address)
        self._sasl.host = self._info.host
        self._sasl.channel = self.transport.server_channel(self._services.own_certificate())
        self._start_timer()

    def on_writable(self) -> None:
        self._links.dispatch()

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        if self._refused:
            return
        match event:
            case DeliveryBatch():
                self._links.on_deliveries(event)
            case AcceptedBatch():
                self._links.on_accepted(event)
            case HeldBatch():
                self._links.on_held(event)
            case Delivery():
                self._links.on_delivery(event)
            case OutcomeReceived():
                self._links.on_outcome(event)
            case ConfirmedBatch():
                self._links.on_confirmed(event)
            case CreditChanged():
                self._links.on_credit(event.link)
            case LinkRequested():
                self._links.on_requested(event.link)
            case LinkDetached():
                self._links.on_ended(event.link, closed=event.closed)
            case PeerSessionEnded():
                self._links.on_session_ended(event.session_id)
            case ConnectionOpened():
                self._on_opened()
            case ConnectionClosed():
                self._leave()
                log.debug("closed: %s %s", self, event.description)
            case ConnectionFailed():
                self._on_failed(event)

    def on_disconnected(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._log_failure("it disconnected before it had opened the connection", logging.INFO)
        self._stop_timer()
        self._sasl.close()
        if error is not None:
            log.debug("lost: %s: %s", self, error)
        try:
            self._leave()
            self._links.on_disconnected()
        finally:
            # Whatever happens here, the broker must not wait for this connection when it ends.
            self.ended.set_result(None)
            self._sessions.end(self)
        del self._links  # they know this connection: all is gone with its last user, not when the cycle is found

    # Details

    def _on_checked(self) -> None:
        """The client's password was checked elsewhere."""
        self._engine.feed(b"")
        self.transport.flush_soon()

    def _admit(self, event: ConnectionOpened) -> ConnectionRefusal | None:
        """The client opens the connection."""
        user, mechanism = self._sasl.user or "", self._sasl.mechanism or ""
        sasl = self._sasl
        self._info = ClientInfo(
            self._info.address,
            event.container,
            user,
            mechanism,
            event.properties,
            AMQP,
            groups=sasl.groups,
            token_end=sasl.token_end,
        )
        refusal = self._sole.add(self, user, event)
        if refusal is None:
            self._container = event.container
            if self._info.proven_user:
                self._engine.announce(USER, self._info.proven_user)
        else:
            self._refuse(refusal.description)
            self._registry.observer.on_connection_refused(self._info, refusal.description)
        return refusal

    def _refuse(self, reason: str) -> None:
        # The timer goes on: it ends a client that does not answer the close.
        self._refused = True
        self._log_failure(reason)

    def close_for(self, refusal: ConnectionRefusal) -> None:
        self._container = None
        self._engine.close(refusal.name, refusal.description, refusal.info)
        self.transport.flush_soon()

    def _leave(self) -> None:
        """The client may connect again."""
        if self._container is not None:
            self._sole.remove(self, self._info.user, self._container)
            self._container = None

    def _on_opened(self) -> None:
        if (refusal := self._sessions.admit(self)) is not None:
            self._refuse(refusal.description)
            self._engine.close(CONDITIONS[refusal.reason], refusal.description)
            self.transport.flush_soon()
            return
        self._stop_timer()
        log.debug("connected: %s", self)

    def _on_failed(self, event: ConnectionFailed) -> None:
        sasl = self._sasl
        login = ""
        if event.authentication and sasl.claimed_mechanism:
            who = f"user {sasl.claimed_user!r}" if sasl.claimed_user else "no user"
            login = f"login of {who} by {sasl.claimed_mechanism!r} refused: "
        self._log_failure(f"{login}{event.condition}: {event.description}")
        if event.authentication:
            info = ClientInfo(self._info.address, user=sasl.claimed_user)
            self._registry.observer.on_connection_refused(info, event.description)

    def _start_timer(self) -> None:
        self._stage = self._handled
        self._timer = asyncio.get_running_loop().call_later(self._services.open_timeout, self._on_open_timeout)

    @property
    def _handled(self) -> int:
        """How far the client has come: 0 before its first byte was handled, 1 before it has logged in, 2 then."""
        return 2 if self._sasl.passed else int(self.transport.octets_in > 0)

    def _on_open_timeout(self) -> None:
        self._timer = None
        if self._handled > self._stage:
            # It goes on. When thousands of clients come back, each step of one waits for those of all others, and who
            # is dropped begins again, behind them.
            self._start_timer()
            return
        self._log_failure(f"no AMQP open within {self._services.open_timeout:g} s of its last step")
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
