"""WebSocket (RFC 6455) between a transport of asyncio and the protocol that speaks over it, for both sides.

The library websockets (extra `websocket`) reads and writes the frames, without I/O; here it is put between two ends of
asyncio. What passes is a stream of bytes in binary messages, as the binding of AMQP to WebSocket has it, and that of
MQTT: where a message begins has no meaning.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from qmf._extras import install_hint
from qmf.bus.feeding import feed
from qmf.bus.url import BusUrl
from qmf.errors import CallerError

log = logging.getLogger("qmf.bus")

#: The subprotocol of AMQP.
AMQP = "amqp"
#: Those of STOMP, whose clients may send text.
STOMP_SUBPROTOCOLS = ("v12.stomp", "v11.stomp", "v10.stomp")
#: Bytes of the largest message of a peer; one may hold many frames of AMQP.
_MAX_MESSAGE = 64 * 1024 * 1024
#: And of ours: Artemis, for one, takes no more than 64 KiB.
_MESSAGE = 32 * 1024
#: Seconds that the peer has to answer the end of the connection.
_CLOSE_TIME = 2.0
#: Status of RFC 6455: a message of a kind that cannot be taken, and the normal end.
_WRONG_KIND, _NORMAL = 1003, 1000


class WebSocketMissing(CallerError):
    """The library is missing."""

    def __str__(self) -> str:
        return f"WebSocket needs the library websockets: {install_hint('websocket')}"


class WebSocketRefused(OSError):
    """The peer is no server of WebSocket, or refuses the connection."""


def check_library() -> None:
    """Find out whether the library is there.

    Raises:
        WebSocketMissing: it is not.
    """
    _library("protocol")


def server_layer(
    accept: Mapping[str, Callable[[], asyncio.BaseProtocol]], origins: Sequence[str], open_timeout: float
) -> WebSocketLayer:
    """The layer of a connection that a listener has accepted.

    Args:
        accept: makes what speaks over it, by subprotocol.
        origins: of pages that may connect, such as ``https://mq.example``. Programs that are no browsers name none, and
            need not be here.
        open_timeout: seconds until the client must have asked for WebSocket.
    """
    machine = _library("server").ServerProtocol(
        origins=[None, *origins], subprotocols=list(accept), max_size=_MAX_MESSAGE
    )
    return WebSocketLayer(machine, lambda name: accept[name](), open_timeout)


def client_layer(url: BusUrl, make_protocol: Callable[[], asyncio.BaseProtocol], open_timeout: float) -> WebSocketLayer:
    """The layer of a connection that a client makes for AMQP.

    Args:
        url: of the server, with a path.
        make_protocol: makes what speaks over it.
        open_timeout: seconds until the server must have agreed.

    Raises:
        WebSocketRefused: the library is missing.
    """
    try:
        check_library()
    except WebSocketMissing as error:
        raise WebSocketRefused(str(error)) from None
    machine = _library("client").ClientProtocol(
        _library("uri").parse_uri(str(url)), subprotocols=[AMQP], max_size=_MAX_MESSAGE
    )
    return WebSocketLayer(machine, lambda _: make_protocol(), open_timeout)


class WebSocketLayer(asyncio.Protocol):
    """One connection: what the transport has is read by the library, and what it contains by the protocol above.

    Attributes:
        opened: done when both ends have agreed on WebSocket; with `WebSocketRefused` if they do not.
    """

    def __init__(self, machine: Any, make_protocol: Callable[[str], asyncio.BaseProtocol], open_timeout: float) -> None:
        """Make the layer of a connection; see `server_layer` and `client_layer`.

        Args:
            machine: of the library, for one of the sides.
            make_protocol: makes what speaks over it, from the subprotocol.
            open_timeout: seconds for the handshake.
        """
        self._machine = machine
        self._make_protocol = make_protocol
        self._open_timeout = open_timeout
        self._loop = asyncio.get_running_loop()
        self._client = hasattr(machine, "connect")
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self._frames = _library("frames")
        self._transport: asyncio.Transport | None = None
        self._upper: _UpperTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._first_bytes = True

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        # Transports of other loops than asyncio's have its methods without being derived from its class.
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(self._open_timeout, self.abort)
        if self._client:
            self._machine.send_request(self._machine.connect())
            self._write_out()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._upper is None and not self._client and not self._may_be_request(data):
            log.info("dropped a client of WebSocket: what it has sent is no request of HTTP")
            self.abort()
            return
        self._machine.receive_data(data)
        for event in self._machine.events_received():
            self._on_event(event)
        self._write_out()
        if self._upper is None and self._machine.close_expected():
            self._refuse(str(self._machine.handshake_exc or "the connection was closed"))
        elif self._upper is not None and self._machine.close_expected():
            self._end()

    def _may_be_request(self, data: bytes) -> bool:
        """False if the first bytes are those of another protocol, which may have no end of a line to wait for."""
        first, self._first_bytes = self._first_bytes, False
        return not first or all(0x20 <= byte < 0x7F or byte in b"\r\n" for byte in data[:8])

    def eof_received(self) -> bool:
        """See asyncio: the transport is closed."""
        self._machine.receive_eof()
        return False

    def pause_writing(self) -> None:
        """See asyncio."""
        if self._upper is not None:
            self._upper.protocol.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio."""
        if self._upper is not None:
            self._upper.protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop_timer()
        self._transport = None
        if not self.opened.done():
            reason = self._machine.handshake_exc or exc or "the connection was closed"
            self._fail(WebSocketRefused(f"no WebSocket: {reason}"))
        upper, self._upper = self._upper, None
        if upper is not None:
            upper.protocol.connection_lost(exc)

    def abort(self) -> None:
        """Close the transport at once."""
        if self._transport is not None:
            self._transport.abort()

    # For the transport above

    def send(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes to the peer."""
        if self._transport is not None and not self._transport.is_closing():
            view = memoryview(data)
            for begin in range(0, len(view), _MESSAGE):
                self._machine.send_binary(view[begin : begin + _MESSAGE])
            self._write_out()

    def close(self) -> None:
        """End the connection in good order: say so, and wait a little for the answer."""
        if self._transport is None or self._machine.close_expected():
            return
        if self._machine.state is _library("protocol").State.OPEN:
            self._machine.send_close(_NORMAL)
            self._write_out()
        self._end()

    # Details

    def _on_event(self, event: Any) -> None:
        http = _library("http11")
        if isinstance(event, http.Request):
            self._machine.send_response(self._machine.accept(event))
            if self._machine.handshake_exc is None:
                self._open()
        elif isinstance(event, http.Response):
            if self._machine.handshake_exc is None:
                self._open()
        elif isinstance(event, self._frames.Frame):
            self._on_frame(event)

    def _on_frame(self, frame: Any) -> None:
        opcode = self._frames.Opcode
        if frame.opcode is opcode.TEXT and self._machine.subprotocol not in STOMP_SUBPROTOCOLS:
            self._machine.fail(_WRONG_KIND, "messages are binary")
        elif frame.opcode in (opcode.BINARY, opcode.TEXT, opcode.CONT) and self._upper is not None:
            self._upper.receive(frame.data)

    def _open(self) -> None:
        """Both ends have agreed: the protocol above is connected."""
        self._stop_timer()
        assert self._transport is not None
        self._write_out()
        protocol = self._make_protocol(self._machine.subprotocol)
        self._upper = _UpperTransport(self, self._transport, protocol)
        self.opened.set_result(None)
        protocol.connection_made(self._upper)

    def _write_out(self) -> None:
        transport = self._transport
        for data in self._machine.data_to_send():
            if transport is None or transport.is_closing():
                continue
            if data:
                transport.write(data)
            elif transport.can_write_eof():
                transport.write_eof()
            else:
                transport.close()  # TLS has no half of an end

    def _refuse(self, reason: str) -> None:
        self._fail(WebSocketRefused(f"no WebSocket: {reason}"))
        self._end()

    def _fail(self, error: WebSocketRefused) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()  # a server has nobody who asks for it

    def _end(self) -> None:
        """The peer is to end the transport; it has a little time for that."""
        if self._timer is None and self._transport is not None:
            self._timer = self._loop.call_later(_CLOSE_TIME, self.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _UpperTransport(asyncio.Transport):
    """What the protocol above has as its transport.

    Attributes:
        protocol: it.
    """

    def __init__(self, layer: WebSocketLayer, lower: asyncio.Transport, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self._layer = layer
        self._lower = lower
        self._closing = False

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Hand bytes to the protocol."""
        feed(self.protocol, data, self._lower)

    # asyncio.Transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See asyncio."""
        if data and not self._closing:
            self._layer.send(data)

    def close(self) -> None:
        """See asyncio."""
        if not self._closing:
            self._closing = True
            self._layer.close()

    def abort(self) -> None:
        """See asyncio."""
        self._closing = True
        self._lower.abort()

    def is_closing(self) -> bool:
        """See asyncio."""
        return self._closing or self._lower.is_closing()

    def can_write_eof(self) -> bool:
        """See asyncio."""
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio: of the transport below."""
        return self._lower.get_extra_info(name, default)

    def is_reading(self) -> bool:
        """See asyncio."""
        return self._lower.is_reading()

    def pause_reading(self) -> None:
        """See asyncio."""
        self._lower.pause_reading()

    def resume_reading(self) -> None:
        """See asyncio."""
        self._lower.resume_reading()

    def get_write_buffer_size(self) -> int:
        """See asyncio."""
        return self._lower.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See asyncio."""
        self._lower.set_write_buffer_limits(high, low)


def _library(module: str) -> Any:
    try:
        return importlib.import_module(f"websockets.{module}")
    except ImportError:
        raise WebSocketMissing from None
