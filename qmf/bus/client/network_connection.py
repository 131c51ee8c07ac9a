"""One network connection of a client to a broker: its handshakes, and the events of its links passed to their owners.

A `NetworkConnection` connects once and closes once; `persistent_connection.py` makes one after the other. Addresses,
messages and attaching links again are matters of their owners.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from qmf.bus.client.failures import (
    FailureKind,
    NetworkFailure,
    failure_reason,
    framing_reason,
    handshake_reason,
    unopened_reason,
)
from qmf.bus.client.sasl import SaslClient
from qmf.bus.client.settings import ClientSettings
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
    Drained,
    EngineEvent,
    EventBatch,
    HeldBatch,
    LinkAttached,
    LinkDetached,
    LinkRequested,
    MessageTooLarge,
    OutcomeReceived,
    PeerSessionEnded,
    SessionEnded,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.transport import AmqpTransport
from qmf.bus.url import BusUrl
from qmf.bus.websocket import WebSocketLayer, client_layer
from qmf.sasl.gssapi import GSSAPI, GssapiClient
from qmf.sasl.mechanism import SaslError

#: Connects a protocol to a broker.
Dial = Callable[[asyncio.BaseProtocol], Awaitable[None]]

#: Seconds that a broker has to confirm the end of a connection, or of a link.
CLOSE_TIMEOUT = 2.0


class LinkOwner:
    """Owner of a link; called on the loop's thread, must not block. What an owner does not override does nothing."""

    __slots__ = ()

    def on_attached(self) -> None:
        """The broker granted the link."""

    def on_detached(self, condition: str, description: str) -> None:
        """The link is gone: refused, ended by the broker, or with its session."""

    def on_credit(self) -> None:
        """There is credit to send, or room after there was none."""

    def on_delivery(self, delivery: Delivery) -> None:
        """A message arrived."""

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        """Messages arrived."""
        for delivery in batch.events():
            self.on_delivery(delivery)

    def on_too_large(self, event: MessageTooLarge) -> None:
        """A message was larger than the settings allow; the link is being detached."""

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """The broker decided about a message."""

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """The broker accepted messages."""
        for settled in batch.events():
            self.on_outcome(settled)

    def on_held(self, batch: HeldBatch) -> None:
        """The broker accepted messages, and waits until they are settled."""
        for settled in batch.events():
            self.on_outcome(settled)

    def on_settled(self, delivery_tag: int) -> None:
        """The broker settled a received message."""

    def on_confirmed(self, batch: ConfirmedBatch) -> None:
        """The broker settled received messages."""
        for delivery_tag in batch.delivery_tags:
            self.on_settled(delivery_tag)

    def on_drained(self) -> None:
        """The broker has used or returned all credit."""


class NetworkConnection:
    """A network connection to a broker.

    Attributes:
        url: of the broker.
        engine, transport: what links are opened with.
        peer: what the broker said of itself when it opened the connection.
        failure: the first reason for which the connection ended, or None.
    """

    def __init__(
        self,
        url: BusUrl,
        settings: ClientSettings,
        on_lost: Callable[[NetworkFailure], None],
        dial: Dial | None = None,
    ) -> None:
        """Make a connection that is not open yet.

        Args:
            url: of the broker.
            settings: of the connection.
            on_lost: called once if the connection ends after `connect` has succeeded and before `close`.
            dial: makes the transport; None for TCP to the URL, with TLS where it says so.
        """
        self.url = url
        self.peer = ConnectionOpened("", frozenset())
        self.failure: NetworkFailure | None = None
        self._settings = settings
        self._sasl = SaslClient(settings.credentials, settings.mechanisms)
        self.engine = Engine(settings.engine, self._sasl)
        self.transport = AmqpTransport(self.engine, self)
        self._dial = dial
        self._on_lost = on_lost
        self._owners: dict[Link, LinkOwner] = {}
        #: Owners of links on which we send: they may be waiting for room.
        self._senders: dict[Link, LinkOwner] = {}
        #: Done when the broker has confirmed our detach of a link, or is gone.
        self._detaching: dict[Link, asyncio.Future[None]] = {}
        self._session_owners: dict[EngineSession, Callable[[str, str], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._connected = False
        #: The end is expected: nobody is notified of it.
        self._closing = False

    @property
    def usable(self) -> bool:
        """True while links can be opened."""
        return self.failure is None and not self._closing

    async def connect(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        """Connect, log in and open the connection. When this fails or is cancelled, the connection is closed.

        Args:
            tls: None for a connection without TLS.
            timeout: seconds for everything together.

        Raises:
            NetworkFailure: the connection could not be made.
        """
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._get_ticket()
                await self._handshake(tls, timeout)
        except BaseException as error:
            stage = "connected, but no answer in AMQP" if self._connected else "no connection"
            await self._discard()
            if isinstance(error, TimeoutError) and limit.expired():
                raise NetworkFailure(self.url, f"{stage} within {timeout:g} s") from None
            if isinstance(error, OSError | UnicodeError):
                raise NetworkFailure(self.url, handshake_reason(error, self.url)) from error
            raise

    async def _get_ticket(self) -> None:
        """Where GSSAPI may be used: others may have to be asked for a ticket, which must not keep the loop waiting."""
        settings = self._settings
        if GSSAPI not in (name.upper() for name in settings.mechanisms or ()):
            return
        host, user = settings.credentials.host, settings.credentials.username
        try:
            self._sasl.ticket = await asyncio.to_thread(GssapiClient, host, user or "")
        except SaslError as error:
            raise NetworkFailure(self.url, str(error), FailureKind.AUTHENTICATION) from error

    async def _handshake(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        if self._dial is not None:
            await self._dial(self.transport)
        else:
            await self._connect_tcp(tls, timeout)
        await self._opened

    async def _connect_tcp(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        layer: WebSocketLayer | None = None

        def make_protocol() -> asyncio.BaseProtocol:
            nonlocal layer
            if self.url.path is None:
                return self.transport
            layer = client_layer(attrs.evolve(self.url, username=None), lambda: self.transport, timeout)
            return layer

        try:
            await self._loop.create_connection(
                make_protocol,
                self.url.host,
                self.url.port,
                ssl=tls,
                server_hostname=self.url.host if tls is not None else None,
                # Longer than our own time-out, whose error is better.
                ssl_handshake_timeout=timeout + 1 if tls is not None else None,
            )
            if layer is not None:
                await layer.opened
        except asyncio.CancelledError:
            self._closing = True
            self.transport.give_up()
            raise
        finally:
            if layer is not None and not self.transport.connected:
                layer.abort()

    async def close(self, timeout: float | None = None) -> None:
        """Close the connection in good order, or at once if the broker does not answer within `timeout` seconds.

        Without `timeout`, it is `CLOSE_TIMEOUT`.

        When this is cancelled, the transport is aborted.
        """
        self._closing = True
        try:
            if self.failure is None and self.transport.connected:
                self.engine.close()
                self.transport.flush_soon()
                await _wait(self._ended, CLOSE_TIMEOUT if timeout is None else min(timeout, CLOSE_TIMEOUT))
        except asyncio.CancelledError:
            self.transport.abort()
            raise
        await self._discard()

    async def _discard(self) -> None:
        """Leave no transport behind, however far the connection has come."""
        self._closing = True
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # retrieved here; `connect` raises its own
        if self.transport.connected:
            self.transport.abort()
            await asyncio.shield(self._ended)
        else:
            self.engine.free()

    # Owners of links and sessions

    def set_owner(self, link: Link, owner: LinkOwner) -> None:
        """Pass the events of a link to its owner from now on."""
        self._owners[link] = link.direct = owner
        if link.is_sender:
            self._senders[link] = owner

    def remove_owner(self, link: Link) -> None:
        """Stop passing the events of a link."""
        self._owners.pop(link, None)
        self._senders.pop(link, None)
        link.direct = None

    def set_session_owner(self, session: EngineSession, on_ended: Callable[[str, str], None]) -> None:
        """Call `on_ended` with condition and description when the broker ends a session."""
        self._session_owners[session] = on_ended

    def detach(self, link: Link) -> asyncio.Future[None]:
        """End a link, whose owner gets no more events.

        Returns:
            done when the broker has confirmed that, or is gone.
        """
        self.remove_owner(link)
        confirmed = self._loop.create_future()
        if link.detached:
            confirmed.set_result(None)
        else:
            self._detaching[link] = confirmed
            self.engine.links.detach(link)
            self.transport.flush_soon()
        return confirmed

    # TransportOwner

    def on_connected(self) -> None:
        """See `TransportOwner`."""
        self._connected = True
        self._sasl.channel = self.transport.client_channel()

    def on_writable(self) -> None:
        """See `TransportOwner`."""
        if self._senders:
            for link, owner in list(self._senders.items()):
                if not link.quiet:
                    owner.on_credit()

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """See `TransportOwner`."""
        HANDLERS[type(event)](self, event)

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        if self._opened.done():
            reason = "the broker closed the connection" if error is None else failure_reason(error, self.url)
        else:
            reason = unopened_reason(error, self.url)
        failure = self._note(NetworkFailure(self.url, reason, FailureKind.LOST))
        self._ended.set_result(None)
        self._owners.clear()
        self._senders.clear()
        for confirmed in self._detaching.values():
            _resolve(confirmed)
        if not self._closing:
            self._closing = True
            self._on_lost(failure)

    # Events

    def _on_delivery(self, event: Delivery) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_delivery(event)

    def _on_deliveries(self, event: DeliveryBatch) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_deliveries(event)

    def _on_too_large(self, event: MessageTooLarge) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_too_large(event)

    def _on_accepted(self, event: AcceptedBatch) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_accepted(event)

    def _on_held(self, event: HeldBatch) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_held(event)

    def _on_outcome(self, event: OutcomeReceived) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_outcome(event)

    def _on_confirmed(self, event: ConfirmedBatch) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_confirmed(event)

    def _on_credit(self, event: CreditChanged) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_credit()
        self.engine.links.answer_drain(event.link)

    def _on_drained(self, event: Drained) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_drained()

    def _on_attached(self, event: LinkAttached) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_attached()

    def _on_detached(self, event: LinkDetached) -> None:
        if (confirmed := self._detaching.pop(event.link, None)) is not None:
            _resolve(confirmed)
        owner = self._owners.get(event.link)
        self.remove_owner(event.link)
        if owner is not None:
            owner.on_detached(event.condition, event.description)

    def _on_requested(self, event: LinkRequested) -> None:
        self.engine.links.refuse(event.link, "amqp:not-allowed", "this peer only opens links itself")

    def _on_peer_session_ended(self, event: PeerSessionEnded) -> None:
        """A session of the broker had no links here."""

    def _on_session_ended(self, event: SessionEnded) -> None:
        on_ended = self._session_owners.pop(event.session, None)
        if on_ended is not None and not event.answer:
            on_ended(event.condition, event.description)

    def _on_opened(self, event: ConnectionOpened) -> None:
        self.peer = event
        _resolve(self._opened)

    def _on_closed(self, event: ConnectionClosed) -> None:
        self._fail("the broker closed the connection", FailureKind.CLOSED, event)

    def _on_failed(self, event: ConnectionFailed) -> None:
        if event.authentication:
            self._note(NetworkFailure(self.url, event.description, FailureKind.AUTHENTICATION))
        elif event.condition == "amqp:connection:framing-error" and not self._opened.done():
            self._note(NetworkFailure(self.url, framing_reason(event.description, self.url), FailureKind.PROTOCOL))
        elif event.condition == "amqp:resource-limit-exceeded" and "idle" in event.description:
            self._fail("connection failed", FailureKind.SILENCE, event)
        else:
            self._fail("connection failed", FailureKind.CLOSED, event)

    # Failures

    def _fail(self, what: str, kind: FailureKind, event: ConnectionClosed | ConnectionFailed) -> None:
        self._note(NetworkFailure(self.url, what, kind, event.condition, event.description))

    def _note(self, failure: NetworkFailure) -> NetworkFailure:
        """Remember the first failure, which `connect` raises if the connection was not open before; returns it."""
        self.failure = self.failure or failure
        if not self._opened.done():  # it may be cancelled
            self._closing = True
            self._opened.set_exception(self.failure)
        return self.failure


#: What is done with each event of the engine.
HANDLERS: dict[type[EngineEvent | EventBatch], Callable[[NetworkConnection, Any], None]] = {
    DeliveryBatch: NetworkConnection._on_deliveries,
    AcceptedBatch: NetworkConnection._on_accepted,
    HeldBatch: NetworkConnection._on_held,
    Delivery: NetworkConnection._on_delivery,
    MessageTooLarge: NetworkConnection._on_too_large,
    OutcomeReceived: NetworkConnection._on_outcome,
    ConfirmedBatch: NetworkConnection._on_confirmed,
    CreditChanged: NetworkConnection._on_credit,
    Drained: NetworkConnection._on_drained,
    LinkAttached: NetworkConnection._on_attached,
    LinkDetached: NetworkConnection._on_detached,
    LinkRequested: NetworkConnection._on_requested,
    SessionEnded: NetworkConnection._on_session_ended,
    PeerSessionEnded: NetworkConnection._on_peer_session_ended,
    ConnectionOpened: NetworkConnection._on_opened,
    ConnectionClosed: NetworkConnection._on_closed,
    ConnectionFailed: NetworkConnection._on_failed,
}


async def _wait(future: asyncio.Future[None], timeout: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await asyncio.shield(future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
