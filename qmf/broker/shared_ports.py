"""Listening for all protocols: those with the same port share its socket, and the first byte of a client decides."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import attrs

from qmf.broker.client_info import format_address
from qmf.broker.handshakes import Handshakes
from qmf.broker.listener import Listener
from qmf.broker.options import BrokerArguments
from qmf.bus.feeding import feed
from qmf.errors import CallerError

log = logging.getLogger("qmf.broker")

#: What makes the protocol of a connection.
Accept = Callable[[], asyncio.BaseProtocol]

AMQP, MQTT, STOMP, WEBSOCKET = "AMQP", "MQTT", "STOMP", "WebSocket"
#: How connections begin: the header of AMQP, CONNECT of MQTT, a command of STOMP or ends of lines, a request of HTTP.
_FIRST = {0x41: AMQP, 0x10: MQTT, 0x43: STOMP, 0x53: STOMP, 0x0A: STOMP, 0x0D: STOMP, 0x47: WEBSOCKET}


@attrs.frozen
class Offer:
    """A protocol on a port.

    Attributes:
        listener: of the port.
        protocol: its name.
        accept: makes what takes the bytes of its connections.
    """

    listener: Listener
    protocol: str
    accept: Accept


async def start_listeners(
    offers: Sequence[Offer], tls: ssl.SSLContext | None, open_timeout: float, handshakes: Handshakes
) -> None:
    """Listen for all of them.

    Args:
        offers: what there is; those with the same port, which is not 0, share the socket of the first one.
        tls: of the broker; None for none.
        open_timeout: seconds that a client has to begin.
        handshakes: those in which clients are.

    Raises:
        ListenError: see `Listener.start`.
    """
    ports: dict[object, list[Offer]] = {}
    for offer in offers:
        ports.setdefault(offer.listener.port or offer.listener, []).append(offer)
    for together in ports.values():
        first = together[0]
        if len(together) == 1:
            await first.listener.start(first.accept, handshakes)
            continue
        plain = {offer.protocol: offer.accept for offer in together if not offer.listener.tls}
        secure = {offer.protocol: offer.accept for offer in together if offer.listener.tls}
        await _start_shared(first.listener, plain, secure, tls, open_timeout, handshakes)


async def _start_shared(
    listener: Listener,
    plain: Mapping[str, Accept],
    secure: Mapping[str, Accept],
    tls: ssl.SSLContext | None,
    open_timeout: float,
    handshakes: Handshakes,
) -> None:
    """Listen for several protocols, without TLS, with it, or both."""
    if plain and secure:
        await listener.start(
            lambda: FirstByte(secure, open_timeout),
            handshakes,
            plain=lambda: FirstByte(plain, open_timeout),
            tls=tls,
        )
    else:
        await listener.start(lambda: FirstByte(plain or secure, open_timeout), handshakes)


class FirstByte(asyncio.Protocol):
    """A connection whose protocol its first byte decides; then it is that protocol's."""

    def __init__(self, accept: Mapping[str, Accept], open_timeout: float) -> None:
        """Wait for the first byte.

        Args:
            accept: by the names of the protocols; the first one has connections that begin like none.
            open_timeout: seconds until it must come.
        """
        self._accept = accept
        self._open_timeout = open_timeout
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(self._open_timeout, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._choose(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            log.debug("lost a connection that had sent nothing: %s", exc)
        self._stop_timer()

    def _choose(self, data: bytes) -> None:
        self._stop_timer()
        transport = self._transport
        assert transport is not None
        name = _FIRST.get(data[0], next(iter(self._accept)))
        accept = self._accept.get(name)
        if accept is None:
            address = format_address(transport.get_extra_info("peername"))
            log.warning("dropped a client at %s: this port has no %s", address, name)
            transport.abort()
            return
        protocol = accept()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        feed(protocol, data, transport)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def further_listener(arguments: BrokerArguments, port: int) -> Listener:
    """A further socket of a broker; with TLS, where there is any."""
    return _listener(arguments, port, arguments.ssl_context)


def mqtt_listeners(arguments: BrokerArguments) -> Sequence[Listener]:
    """The sockets of a broker for MQTT.

    Raises:
        CallerError: one is for TLS, which the broker does not have.
    """
    options, tls_context = arguments.mqtt, arguments.ssl_context
    if options.tls_port is not None and tls_context is None:
        raise CallerError("tls_port of MQTT needs ssl_context of the broker")
    places = ((options.port, tls_context if options.tls_port is None else None), (options.tls_port, tls_context))
    return [_listener(arguments, port, tls) for port, tls in places if port is not None]


def _listener(arguments: BrokerArguments, port: int, ssl_context: ssl.SSLContext | None) -> Listener:
    return Listener(
        arguments.host,
        port,
        ssl_context=ssl_context,
        backlog=arguments.backlog,
        open_timeout=arguments.open_timeout,
        listening=None,
    )
