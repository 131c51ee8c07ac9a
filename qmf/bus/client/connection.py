"""One connection of a client to a broker, from the TCP handshake to its end. It never reconnects: see `amqp_bus.py`.

The states are those of `connection_state.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable

from qmf.bus.base import LinkLost
from qmf.bus.client.connection_state import TRANSITIONS, BusConnectionState, BusConnectionTrigger
from qmf.bus.client.dialect import Dialect, dialect_of
from qmf.bus.client.failures import failure_reason, framing_reason, handshake_reason, unopened_reason
from qmf.bus.client.persistent_link import PersistentLink
from qmf.bus.client.receiver_link import ReceiverLink
from qmf.bus.client.sender_link import SenderLink
from qmf.bus.client.sender_links import SenderLinks
from qmf.bus.client.subscription import AmqpSubscription
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
    LinkAttached,
    LinkDetached,
    LinkRequested,
    OutcomeReceived,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.transport import AmqpTransport
from qmf.bus.url import BusUrl
from qmf.errors import AuthenticationError, ConnectError, DisconnectedError, LinkError

log = logging.getLogger("qmf.bus")

#: Seconds that closing may wait for each of: outcomes of messages, the broker's answer to our close or detach.
CLOSE_PATIENCE = 2.0


class ClientConnection:
    """A connection; it is connected once and closed once.

    Attributes:
        url: of the broker.
        broker: container id of the broker, once connected.
        transport: carries the connection.
    """

    def __init__(
        self,
        url: BusUrl,
        settings: ConnectionSettings,
        *,
        on_lost: Callable[[str], None],
        on_link_lost: Callable[[LinkLost], None],
    ) -> None:
        """Args:

        url: of the broker.
        settings: of the engine.
        on_lost: called with the reason when the connection ends after `connect` has succeeded and before `close`.
        on_link_lost: called when the broker has detached a link, or refused a message that nobody waits for.
        """
        self.url = url
        self.broker = ""
        self.transport = AmqpTransport(Engine(settings), self)
        self._settings = settings
        self._on_lost = on_lost
        self._on_link_lost = on_link_lost
        self._state = BusConnectionState.CONNECTING
        #: The first reason for which the connection ended.
        self._error: ConnectError | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drained = asyncio.Event()
        self._ended = asyncio.Event()
        self._dialect: Dialect = dialect_of("")
        #: The users of the engine's links.
        self._links: dict[Link, PersistentLink] = {}
        self._senders: SenderLinks | None = None
        self._receivers: dict[AmqpSubscription, ReceiverLink] = {}

    @property
    def is_open(self) -> bool:
        """True while the connection can be used."""
        return self._state is BusConnectionState.OPEN

    @property
    def reason(self) -> str:
        """Why the connection ended, or empty."""
        return self._error.reason if self._error is not None else ""

    @property
    def senders(self) -> SenderLinks:
        """The links on which messages are sent; once connected."""
        assert self._senders is not None
        return self._senders

    async def connect(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        """Connect, with all handshakes.

        Args:
            tls: None for a connection without TLS.
            timeout: seconds for everything together.

        Raises:
            ConnectError, AuthenticationError: as in `Bus.open`. The transport is closed then.
        """
        attempt = self._attempt = asyncio.get_running_loop().create_task(self._handshake(tls, timeout))
        try:
            await asyncio.wait({attempt}, timeout=timeout)
        finally:
            late, state = not attempt.done(), self._state
            attempt.cancel()
            (failure,) = await asyncio.gather(attempt, return_exceptions=True)
            if failure is not None:
                await self._abort()
        if failure is None:
            return
        if isinstance(failure, ConnectError):
            raise failure
        if isinstance(failure, OSError | UnicodeError):
            raise ConnectError(str(self.url), handshake_reason(failure, self.url)) from failure
        if not isinstance(failure, asyncio.CancelledError):
            raise failure
        if not late:
            raise ConnectError(str(self.url), "closed while connecting")
        stage = "no connection" if state is BusConnectionState.CONNECTING else "connected, but no answer in AMQP"
        raise ConnectError(str(self.url), f"{stage} within {timeout:g} s")

    async def _handshake(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self.transport,
                self.url.host,
                self.url.port,
                ssl=tls,
                server_hostname=self.url.host if tls is not None else None,
                # Longer than our own time-out, whose error is better.
                ssl_handshake_timeout=timeout + 1 if tls is not None else None,
            )
        except asyncio.CancelledError:
            self.transport.give_up()
            raise
        await self._opened

    async def close(self) -> None:
        """Wait for the outcomes of messages, close the connection and its transport.

        Never raises because of a lost broker. When cancelled, the transport is aborted.
        """
        if self._attempt is not None and not self._attempt.done():
            self._attempt.cancel()
            return  # `connect` cleans up
        try:
            if self.is_open:
                await self._close_orderly()
        except asyncio.CancelledError:
            self.transport.abort()
            raise
        await self._abort()

    async def _close_orderly(self) -> None:
        if self.senders.busy:
            self._change(BusConnectionTrigger.DRAIN)
            await _wait(self._drained)
        self._change(BusConnectionTrigger.CLOSE)
        if self._state is BusConnectionState.CLOSING:
            self.transport.engine.close()
            self.transport.flush_soon()
            await _wait(self._ended)

    async def _abort(self) -> None:
        """Leave no transport behind, in whatever state the connection is."""
        self._change(BusConnectionTrigger.CLOSE)
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # retrieved here; `connect` raises its own
        if self._state is BusConnectionState.CLOSING:
            self.transport.abort()
            await self._ended.wait()
        else:
            self.transport.engine.free()

    # Subscriptions

    async def subscribe(self, subscription: AmqpSubscription) -> None:
        """Attach a link for a subscription, and wait for the broker's answer.

        Raises:
            LinkError: the broker refused.
            DisconnectedError: the connection ended.
        """
        try:
            await self.attach(subscription)
        except BaseException:
            if (receiver := self._receivers.pop(subscription, None)) is not None:
                receiver.close()
            raise

    def attach(self, subscription: AmqpSubscription) -> asyncio.Future[None]:
        """Like `subscribe`, without waiting: the result has the broker's answer."""
        if self._state is BusConnectionState.ENDED:
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            answer.set_exception(DisconnectedError(str(self.url), self.reason))
            return answer
        receiver = self._receivers[subscription] = ReceiverLink(
            self.transport, self._links, self._on_link_lost, subscription=subscription, dialect=self._dialect
        )
        receiver.attach()
        return receiver.granted

    def attach_later(self, subscription: AmqpSubscription, error: LinkError) -> None:
        """The broker has refused a subscription with this error: report that, and try again after a pause."""
        if (receiver := self._receivers.get(subscription)) is not None:  # it may have been closed since
            receiver.attach_later(error)

    async def unsubscribe(self, subscription: AmqpSubscription) -> None:
        """Detach the link of a subscription, and wait until the broker has confirmed that, or is gone."""
        receiver = self._receivers.pop(subscription, None)
        if receiver is not None:
            receiver.close()
            await _wait(receiver.ended)

    # Owner of the transport

    def on_connected(self) -> None:
        """See `TransportOwner`."""
        self._change(BusConnectionTrigger.TRANSPORT_CONNECTED)

    def on_writable(self) -> None:
        """See `TransportOwner`."""
        if self._senders is not None:
            self._senders.send_pending()
            if self._state is BusConnectionState.DRAINING and not self._senders.busy:
                self._drained.set()

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """See `TransportOwner`."""
        match event:
            case DeliveryBatch():
                if isinstance(link := self._links.get(event.link), ReceiverLink):
                    link.on_deliveries(event)
            case AcceptedBatch():
                if isinstance(link := self._links.get(event.link), SenderLink):
                    link.on_accepted(event)
            case _:
                self._on_single(event)

    def _on_single(self, event: EngineEvent) -> None:
        match event:
            case Delivery():
                if isinstance(link := self._links.get(event.link), ReceiverLink):
                    link.on_delivery(event)
            case OutcomeReceived():
                if isinstance(link := self._links.get(event.link), SenderLink):
                    link.on_outcome(event)
            case CreditChanged():
                if isinstance(link := self._links.get(event.link), SenderLink):
                    link.on_credit()
            case LinkAttached():
                if (link := self._links.get(event.link)) is not None:
                    link.on_attached()
            case LinkDetached():
                if (link := self._links.get(event.link)) is not None:
                    link.on_detached(event, reattach=self._state is not BusConnectionState.CLOSING)
            case LinkRequested():
                self.transport.engine.refuse_link(event.link, "amqp:not-allowed", "this peer only opens links itself")
            case ConnectionOpened():
                self._on_opened(event)
            case ConnectionClosed():
                self._fail(ConnectError(str(self.url), _reason("the broker closed the connection", event)))
            case ConnectionFailed():
                self._fail(self._failure(event))

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        before = self._state
        self._change(BusConnectionTrigger.DISCONNECTED)
        if self._error is None:
            self._error = ConnectError(str(self.url), self._end_reason(error, before))
        if not self._opened.done():
            self._opened.set_exception(self._error)
        gone = DisconnectedError(str(self.url), self._error.reason)
        if self._senders is not None:
            self._senders.on_disconnected(gone)
        for receiver in self._receivers.values():
            receiver.on_disconnected(gone)
        for link in list(self._links.values()):
            link.on_disconnected(gone)  # those that are being closed
        self._drained.set()
        self._ended.set()
        if before in (BusConnectionState.OPEN, BusConnectionState.BROKEN):
            self._on_lost(self._error.reason)

    # Details

    def _end_reason(self, error: Exception | None, before: BusConnectionState) -> str:
        if before is BusConnectionState.OPENING:
            return unopened_reason(error, self.url)
        return "the broker closed the connection" if error is None else failure_reason(error, self.url)

    def _change(self, trigger: BusConnectionTrigger) -> None:
        self._state = TRANSITIONS.next(self._state, trigger)

    def _on_opened(self, event: ConnectionOpened) -> None:
        self._change(BusConnectionTrigger.OPENED)
        self.broker = event.container
        self._dialect = dialect_of(event.product)
        self._senders = SenderLinks(self.transport, self._links, self._on_link_lost, self._dialect, event.capabilities)
        if not self._opened.done():  # it is when `connect` is being cancelled
            self._opened.set_result(None)

    def _fail(self, error: ConnectError) -> None:
        """The broker has closed the connection, or it cannot go on. The first error counts."""
        self._change(BusConnectionTrigger.FAILED)
        if self._error is None:
            self._error = error
        if not self._opened.done():
            self._opened.set_exception(error)

    def _failure(self, event: ConnectionFailed) -> ConnectError:
        url = str(self.url)
        if event.authentication:
            who = f"user {self._settings.username!r}" if self._settings.username is not None else "anonymous access"
            if self.transport.engine.sasl_mechanism:
                return AuthenticationError(url, f"{who} was refused ({self.transport.engine.sasl_mechanism})")
            offered = " or ".join(self._settings.mechanisms or ())
            return AuthenticationError(url, f"{who} was refused: the broker does not offer SASL {offered}")
        if event.condition == "amqp:connection:framing-error" and self._state is BusConnectionState.OPENING:
            return ConnectError(url, framing_reason(event.description, self.url))
        return ConnectError(url, _reason("connection failed", event))


async def _wait(event: asyncio.Event) -> None:
    """Wait for an event, but no longer than closing may take."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_PATIENCE):
            await event.wait()


def _reason(what: str, event: ConnectionClosed | ConnectionFailed) -> str:
    error = ": ".join(text for text in (event.condition, event.description) if text)
    return f"{what} ({error})" if error else what
