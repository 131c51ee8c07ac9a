"""One connection of a client to a broker, from the TCP handshake to the last frame. Never reconnects: see `amqp.py`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable

from qmf.bus.base import LinkLost
from qmf.bus.client.dialect import dialect_of
from qmf.bus.client.failures import failure_reason
from qmf.bus.client.sender_links import SenderLinks
from qmf.bus.client.subscription import AmqpSubscription
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    CreditChanged,
    Delivery,
    EngineEvent,
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

#: Seconds that closing may take for each of: confirmations still due, the broker's own close frame.
CLOSE_PATIENCE = 2.0
#: A receiving link that the broker detaches is opened again at once so many times; then only every `REST` seconds,
#: until a message arrives or it was there for `STEADY` seconds.
REOPENINGS = 5
REST = 5.0
STEADY = 60.0


class ClientConnection:
    """A connection; connect once, close once."""

    def __init__(
        self,
        url: BusUrl,
        settings: ConnectionSettings,
        *,
        on_lost: Callable[[str], None],
        on_link_lost: Callable[[LinkLost], None],
    ) -> None:
        """Args:

        on_lost: called with the reason when the connection ends after `connect` succeeded and before `close`.
        on_link_lost: called when the broker detached a link.
        """
        self.url = url
        #: Container id of the broker, once connected.
        self.broker = ""
        self.transport = AmqpTransport(Engine(settings), self)
        #: How this broker wants to be spoken to, once connected.
        self.dialect = dialect_of("")
        self.sender_links = SenderLinks(self.transport, on_link_lost)
        self._settings = settings
        self._on_lost = on_lost
        self._on_link_lost = on_link_lost
        self._subscriptions: dict[Link, AmqpSubscription] = {}
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._attempt: asyncio.Task[None] | None = None
        self._made = False
        self._closes: dict[Link, asyncio.Future[None]] = {}
        #: Subscriptions without link, until they get another.
        self._resting: dict[AmqpSubscription, asyncio.TimerHandle] = {}
        self._error: ConnectError | None = None
        self._closing = False
        self._drained: asyncio.Future[None] | None = None

    @property
    def alive(self) -> bool:
        """True while the connection can be used."""
        return self._opened.done() and not self._ended.done() and self._error is None and not self._closing

    @property
    def reason(self) -> str:
        """Why the connection ended, or empty."""
        return self._error.reason if self._error is not None else ""

    async def connect(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        """Connect and shake hands.

        Raises:
            ConnectError, AuthenticationError: as in `Bus.open`. The transport is closed then.
        """
        attempt = self._attempt = asyncio.get_running_loop().create_task(self._handshake(tls, timeout))
        try:
            await asyncio.wait({attempt}, timeout=timeout)
        finally:
            late = not attempt.done()
            attempt.cancel()
            (failure,) = await asyncio.gather(attempt, return_exceptions=True)
            if failure is not None:
                await self._discard()
        if failure is None:
            return
        if isinstance(failure, ConnectError):
            raise failure
        if isinstance(failure, OSError | UnicodeError):
            raise ConnectError(str(self.url), failure_reason(failure, self.url)) from failure
        if not isinstance(failure, asyncio.CancelledError):
            raise failure
        if not late:
            raise ConnectError(str(self.url), "closed while connecting")
        stage = "connected, but no answer in AMQP" if self._made else "no connection"
        raise ConnectError(str(self.url), f"{stage} within {timeout:g} s")

    async def _handshake(self, tls: ssl.SSLContext | None, timeout: float) -> None:
        await asyncio.get_running_loop().create_connection(
            lambda: self.transport,
            self.url.host,
            self.url.port,
            ssl=tls,
            server_hostname=self.url.host if tls is not None else None,
            # Of the two time-outs, ours shall be the one that strikes: its words are better.
            ssl_handshake_timeout=timeout + 1 if tls is not None else None,
        )
        await self._opened

    async def subscribe(self, subscription: AmqpSubscription) -> None:
        """Put a subscription in place and wait for the broker's answer.

        Raises:
            LinkError: the broker refused.
            DisconnectedError: the connection ended.
        """
        answer = self.attach(subscription)
        try:
            await answer
        except asyncio.CancelledError:
            self._drop(subscription)
            raise

    def attach(self, subscription: AmqpSubscription) -> asyncio.Future[None]:
        """Like `subscribe`, without waiting; the result says how it ended."""
        answer = subscription.answer = asyncio.get_running_loop().create_future()
        if self._ended.done():
            answer.set_exception(DisconnectedError(str(self.url), self.reason))
            return answer
        subscription.attach(self.transport, self.dialect)
        assert subscription.link is not None
        self._subscriptions[subscription.link] = subscription
        return answer

    async def unsubscribe(self, subscription: AmqpSubscription) -> None:
        """End a subscription's link and wait until the broker confirmed that, or is gone."""
        if (timer := self._resting.pop(subscription, None)) is not None:
            timer.cancel()
        link = subscription.link
        if link is None or self._subscriptions.get(link) is not subscription:
            return
        closed = self._closes[link] = asyncio.get_running_loop().create_future()
        self._drop(subscription)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await closed

    def retry(self, subscription: AmqpSubscription, why: LinkError) -> None:
        """Attach a subscription that the broker refused, or took away too often, after a rest."""
        if not self._closing:
            loop = asyncio.get_running_loop()
            self._resting[subscription] = loop.call_later(REST, self._reopen, subscription, why)

    def _reopen(self, subscription: AmqpSubscription, why: LinkError) -> None:
        self._resting.pop(subscription, None)
        self.attach(subscription).add_done_callback(lambda answer: self._on_reopened(subscription, answer, why))

    def _drop(self, subscription: AmqpSubscription) -> None:
        link = subscription.link
        subscription.forget_link()
        if subscription.answer is not None:
            subscription.answer.cancel()
        if link is not None and self._subscriptions.pop(link, None) is not None and not self._ended.done():
            self.transport.engine.detach(link)
            self.transport.flush_soon()

    async def close(self) -> None:
        """Wait for confirmations still due, say goodbye, close the transport. Never raises for a lost peer."""
        if self._attempt is not None and not self._attempt.done():
            self._attempt.cancel()
            return  # `connect` cleans up
        try:
            if self.alive:
                await self._say_goodbye()
        except asyncio.CancelledError:
            self.transport.abort()
            raise
        await self._discard()

    async def _say_goodbye(self) -> None:
        if self.sender_links.busy:
            self._drained = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_PATIENCE):
                    await self._drained
        self._closing = True
        if not self._ended.done():
            self.transport.engine.close()
            self.transport.flush_soon()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_PATIENCE):
                    await asyncio.shield(self._ended)

    async def _discard(self) -> None:
        """Leave no transport behind, whatever state the handshake is in."""
        self._closing = True
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # somebody else told the caller what went wrong
        if self.transport.connected:
            self.transport.abort()
            await asyncio.shield(self._ended)
        else:
            self.transport.engine.free()

    # Owner of the transport

    def on_connected(self) -> None:
        """See `TransportOwner`."""
        self._made = True

    def on_writable(self) -> None:
        """See `TransportOwner`."""
        self.sender_links.pump()
        if self._drained is not None and not self._drained.done() and not self.sender_links.busy:
            self._drained.set_result(None)

    def on_event(self, event: EngineEvent) -> None:
        """See `TransportOwner`."""
        match event:
            case Delivery():
                subscription = self._subscriptions.get(event.link)
                if subscription is not None:
                    subscription.arrived(event)
            case OutcomeReceived():
                if (sender := self.sender_links.find(event.link)) is not None:
                    sender.settled(event)
            case CreditChanged():
                if (sender := self.sender_links.find(event.link)) is not None:
                    sender.pump()
                self.transport.engine.answer_drain(event.link)
            case ConnectionOpened():
                self.broker = event.container
                self.dialect = dialect_of(event.product)
                self.sender_links.speak(self.dialect, event.capabilities)
                if not self._opened.done():
                    self._opened.set_result(None)
            case LinkAttached():
                self._on_attached(event)
            case LinkDetached():
                self._on_detached(event)
            case LinkRequested():
                self.transport.engine.refuse_link(event.link, "amqp:not-allowed", "this peer only opens links itself")
            case ConnectionClosed():
                self._note(ConnectError(str(self.url), _reason("the broker closed the connection", event)))
            case ConnectionFailed():
                self._note(self._failure(event))

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        if self._error is None:
            reason = "the broker closed the connection" if error is None else failure_reason(error, self.url)
            self._note(ConnectError(str(self.url), reason))
        assert self._error is not None
        gone = DisconnectedError(str(self.url), self._error.reason)
        self.sender_links.fail(gone)
        for subscription in self._subscriptions.values():
            subscription.forget_link()
            if subscription.answer is not None and not subscription.answer.done():
                subscription.answer.set_exception(gone)
        self._subscriptions.clear()
        for timer in self._resting.values():
            timer.cancel()
        self._resting.clear()
        for closed in (*self._closes.values(), self._drained):
            if closed is not None and not closed.done():
                closed.set_result(None)
        self._ended.set_result(None)
        if not self._closing:
            self._closing = True
            self._on_lost(self._error.reason)

    # Details

    def _note(self, error: ConnectError) -> None:
        if self._error is None:
            self._error = error
        if not self._opened.done():
            self._closing = True  # `connect` tells the caller, so that `on_lost` need not
            self._opened.set_exception(error)

    def _failure(self, event: ConnectionFailed) -> ConnectError:
        url = str(self.url)
        if event.authentication:
            who = f"user {self._settings.username!r}" if self._settings.username is not None else "anonymous access"
            if self.transport.engine.sasl_mechanism:
                return AuthenticationError(url, f"{who} was refused ({self.transport.engine.sasl_mechanism})")
            offered = " or ".join(self._settings.mechanisms or ())
            return AuthenticationError(url, f"{who} was refused: the broker does not offer SASL {offered}")
        if event.condition == "amqp:connection:framing-error" and not self._opened.done():
            return ConnectError(url, f"the peer does not speak AMQP 1.0: {event.description}")
        return ConnectError(url, _reason("connection failed", event))

    def _on_attached(self, event: LinkAttached) -> None:
        if (sender := self.sender_links.find(event.link)) is not None:
            sender.attached()
        elif (subscription := self._subscriptions.get(event.link)) is not None:
            subscription.attached = True
            subscription.since = asyncio.get_running_loop().time()
            if subscription.answer is not None and not subscription.answer.done():
                subscription.answer.set_result(None)

    def _on_detached(self, event: LinkDetached) -> None:
        if (closed := self._closes.pop(event.link, None)) is not None and not closed.done():
            closed.set_result(None)
        if (sender := self.sender_links.find(event.link)) is not None:
            sender.detached(event)
        elif (subscription := self._subscriptions.pop(event.link, None)) is not None:
            self._on_subscription_lost(subscription, event)

    def _on_subscription_lost(self, subscription: AmqpSubscription, event: LinkDetached) -> None:
        address = subscription.binding.exchange
        error = LinkError(address, event.condition or "amqp:link:detach-forced", event.description)
        was_attached = subscription.attached
        subscription.forget_link()
        if not was_attached and subscription.answer is not None and not subscription.answer.done():
            subscription.answer.set_exception(error)
            return
        if asyncio.get_running_loop().time() - subscription.since > STEADY:
            subscription.reopenings = 0
        if subscription.reopenings < REOPENINGS and not self._closing:
            subscription.reopenings += 1
            self._reopen(subscription, error)
        else:
            self._on_link_lost(LinkLost(address, error.condition, error.description, reopened=False))
            self.retry(subscription, error)

    def _on_reopened(self, subscription: AmqpSubscription, answer: asyncio.Future[None], why: LinkError) -> None:
        if answer.cancelled() or isinstance(answer.exception(), DisconnectedError):
            return
        reopened = answer.exception() is None
        self._on_link_lost(LinkLost(why.address, why.condition, why.description, reopened=reopened))
        if not reopened:
            self.retry(subscription, why)


def _reason(what: str, event: ConnectionClosed | ConnectionFailed) -> str:
    words = ": ".join(text for text in (event.condition, event.description) if text)
    return f"{what} ({words})" if words else what
