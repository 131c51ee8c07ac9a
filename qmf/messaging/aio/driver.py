"""One network connection: handshake, and the events of its links passed to who owns them.

A `Driver` knows engine and transport, not addresses, messages or reconnecting. It connects once and closes once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qmf._version import __version__
from qmf.bus.client.failures import failure_reason, handshake_reason, unopened_reason
from qmf.bus.engine import events
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    AcceptedBatch,
    ConnectionFailed,
    ConnectionOpened,
    CreditChanged,
    Delivery,
    DeliveryBatch,
    Drained,
    EngineEvent,
    EventBatch,
    LinkAttached,
    LinkDetached,
    LinkRequested,
    MessageTooLarge,
    OutcomeConfirmed,
    OutcomeReceived,
    SessionEnded,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.transport import AmqpTransport
from qmf.bus.url import BusUrl
from qmf.messaging.exceptions import (
    AuthenticationFailure,
    ConnectError,
    ConnectionClosed,
    ConnectionError,
    HeartbeatTimeout,
    VersionError,
)
from qmf.messaging.options import ConnectionOptions

#: Seconds that a broker has to confirm the end of a connection.
CLOSE_TIMEOUT = 3.0


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
        """A message was larger than the options allow; the link is being detached."""

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """The broker decided about a message."""

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """The broker accepted messages."""
        for settled in batch.events():
            self.on_outcome(settled)

    def on_settled(self, delivery_tag: int) -> None:
        """The broker settled a received message."""

    def on_drained(self) -> None:
        """The broker has used or returned all credit."""


class Driver:
    """A network connection to a broker.

    Attributes:
        url: of the broker.
        engine, transport: what links are opened with.
        product: what the broker calls itself, once connected; or empty.
        capabilities: what the broker offers, once connected.
    """

    def __init__(self, url: BusUrl, options: ConnectionOptions, on_lost: Callable[[ConnectionError], None]) -> None:
        """Args:

        url: of the broker.
        options: how to connect.
        on_lost: called once if the connection ends after `connect` succeeded and before `close`.
        """
        self.url = url
        self.product = ""
        self.capabilities: frozenset[str] = frozenset()
        self._settings = _settings(url, options)
        self._ssl_context = options.ssl_context
        self._on_lost = on_lost
        self.engine = Engine(self._settings)
        self.transport = AmqpTransport(self.engine, self)
        self._owners: dict[Link, LinkOwner] = {}
        self._session_owners: dict[EngineSession, Callable[[str, str], None]] = {}
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._error: ConnectionError | None = None
        self._closing = False

    async def connect(self) -> None:
        """Connect, log in and open the connection.

        Raises:
            ConnectError, AuthenticationFailure, VersionError: the connection could not be made; it is closed then.

        Cancelling closes it as well.
        """
        tls = self.url.tls
        connected = False
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self.transport,
                self.url.host,
                self.url.port,
                ssl=self._ssl_context if tls else None,
                server_hostname=self.url.host if tls else None,
            )
            connected = True
            await self._opened
        except (OSError, UnicodeError) as error:
            await self._discard()
            raise ConnectError(text=f"cannot connect to {self.url}: {handshake_reason(error, self.url)}") from error
        except BaseException:
            if not connected:
                self._closing = True
                self._opened.cancel()
                self.transport.give_up()
            await self._discard()
            raise

    async def close(self, timeout: float | None = None) -> None:
        """Close the connection in good order, or at once if the broker does not answer within `timeout` seconds."""
        self._closing = True
        if not self._ended.done() and self.transport.connected:
            self.engine.close()
            self.transport.flush_soon()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT if timeout is None else min(timeout, CLOSE_TIMEOUT)):
                    await asyncio.shield(self._ended)
        await self._discard()

    async def _discard(self) -> None:
        self._closing = True
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()
        if self.transport.connected:
            self.transport.abort()
            await asyncio.shield(self._ended)
        else:
            self.engine.free()

    def own(self, link: Link, owner: LinkOwner) -> None:
        """Pass the events of a link to its owner from now on."""
        self._owners[link] = owner

    def disown(self, link: Link) -> None:
        """Stop passing the events of a link."""
        self._owners.pop(link, None)

    def own_session(self, session: EngineSession, on_ended: Callable[[str, str], None]) -> None:
        """Call `on_ended` with condition and description when the broker ends a session."""
        self._session_owners[session] = on_ended

    # TransportOwner

    def on_connected(self) -> None:
        """See `TransportOwner`."""

    def on_writable(self) -> None:
        """See `TransportOwner`."""
        for owner in list(self._owners.values()):
            owner.on_credit()

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """See `TransportOwner`."""
        HANDLERS[type(event)](self, event)

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        if self._error is None:
            if self._opened.done():
                reason = "the broker closed the connection" if error is None else failure_reason(error, self.url)
                self._note(ConnectionClosed(text=f"connection to {self.url} lost: {reason}"))
            else:
                self._note(ConnectError(text=f"cannot connect to {self.url}: {unopened_reason(error, self.url)}"))
        assert self._error is not None
        self._ended.set_result(None)
        self._owners.clear()
        if not self._closing:
            self._closing = True
            self._on_lost(self._error)

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

    def _on_outcome(self, event: OutcomeReceived) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_outcome(event)

    def _on_confirmed(self, event: OutcomeConfirmed) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_settled(event.delivery_tag)

    def _on_credit(self, event: CreditChanged) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_credit()
        self.engine.answer_drain(event.link)

    def _on_drained(self, event: Drained) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_drained()

    def _on_attached(self, event: LinkAttached) -> None:
        if (owner := self._owners.get(event.link)) is not None:
            owner.on_attached()

    def _on_detached(self, event: LinkDetached) -> None:
        if (owner := self._owners.pop(event.link, None)) is not None:
            owner.on_detached(event.condition, event.description)

    def _on_requested(self, event: LinkRequested) -> None:
        self.engine.refuse_link(event.link, "amqp:not-allowed", "this peer only opens links itself")

    def _on_session_ended(self, event: SessionEnded) -> None:
        on_ended = self._session_owners.pop(event.session, None)
        if on_ended is not None and not event.answer:
            on_ended(event.condition, event.description)

    def _on_opened(self, event: ConnectionOpened) -> None:
        self.product = event.product
        self.capabilities = event.capabilities
        if not self._opened.done():
            self._opened.set_result(None)

    def _on_closed(self, event: events.ConnectionClosed) -> None:
        self._note(ConnectionClosed(event.condition or None, _text("the broker closed the connection", event)))

    def _on_failed(self, event: ConnectionFailed) -> None:
        self._note(self._failure(event))

    # Failures

    def _note(self, error: ConnectionError) -> None:
        """Remember the first reason; before the connection was open, `connect` raises it."""
        if self._error is None:
            self._error = error
        if not self._opened.done():
            self._closing = True
            failure = error if isinstance(error, ConnectError) else ConnectError(error.code, error.text)
            self._opened.set_exception(failure)

    def _failure(self, event: ConnectionFailed) -> ConnectionError:
        if event.authentication:
            name = self._settings.username
            who = f"user {name!r}" if name is not None else "anonymous access"
            mechanism = self.engine.sasl_mechanism or " or ".join(self._settings.mechanisms or ())
            return AuthenticationFailure(text=f"cannot connect to {self.url}: {who} was refused (SASL {mechanism})")
        if event.condition == "amqp:connection:framing-error" and not self._opened.done():
            return VersionError(text=f"{self.url}: the peer does not support AMQP 1.0: {event.description}")
        if event.condition == "amqp:resource-limit-exceeded" and "idle" in event.description:
            return HeartbeatTimeout(text=f"connection to {self.url} lost: no sign of life from the broker")
        return ConnectionClosed(event.condition or None, _text(f"connection to {self.url} failed", event))


#: What is done with each event of the engine.
HANDLERS: dict[type[EngineEvent | EventBatch], Callable[[Driver, Any], None]] = {
    DeliveryBatch: Driver._on_deliveries,
    AcceptedBatch: Driver._on_accepted,
    Delivery: Driver._on_delivery,
    MessageTooLarge: Driver._on_too_large,
    OutcomeReceived: Driver._on_outcome,
    OutcomeConfirmed: Driver._on_confirmed,
    CreditChanged: Driver._on_credit,
    Drained: Driver._on_drained,
    LinkAttached: Driver._on_attached,
    LinkDetached: Driver._on_detached,
    LinkRequested: Driver._on_requested,
    SessionEnded: Driver._on_session_ended,
    ConnectionOpened: Driver._on_opened,
    events.ConnectionClosed: Driver._on_closed,
    ConnectionFailed: Driver._on_failed,
}


def _text(what: str, event: events.ConnectionClosed | ConnectionFailed) -> str:
    return f"{what}: {event.description}" if event.description else what


def _settings(url: BusUrl, options: ConnectionOptions) -> ConnectionSettings:
    username = url.username if url.username is not None else options.username
    password = url.password if url.password is not None else options.password
    mechanisms = options.mechanisms
    if mechanisms is None:
        mechanisms = ("ANONYMOUS",) if username is None else ("PLAIN",)
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return ConnectionSettings(
        container=options.container or "",
        hostname=url.host,
        idle_timeout=None if options.heartbeat is None else 2 * options.heartbeat,
        max_message=options.max_message_size,
        mechanisms=mechanisms,
        username=username,
        password=password,
        properties={
            "product": "qmf",
            "version": __version__,
            "qpid.client_process": program,
            "qpid.client_pid": os.getpid(),
            "qpid.client_ppid": os.getppid(),
            **options.properties,
        },
    )
