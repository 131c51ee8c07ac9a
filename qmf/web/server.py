"""Runs an application in uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs
import uvicorn
from fastapi import FastAPI
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

from qmf._event_loop import on_end_signals
from qmf.connecting.tls import load_own_certificate
from qmf.errors import QmfError
from qmf.web.connections import OpenConnections, limited_protocol
from qmf.web.options import Network, WebLimits, WebOptions

#: Connections that wait to be accepted.
_BACKLOG = 2048

#: Seconds in which open streams may end by themselves when the server ends.
_GRACE = 2


class ServeError(QmfError):
    """The server cannot listen; the message names the address and the reason."""


@attrs.frozen(kw_only=True)
class ServerTls:
    """Certificate and private key of the server, in PEM; `key` is None if `cert` holds it."""

    cert: Path
    key: Path | None = None

    def check(self) -> None:
        """Try the files.

        Raises:
            TlsError: a file cannot be read or used.
        """
        load_own_certificate(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), self.cert, self.key)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; with port 0 on any free one.

    Raises:
        ServeError: the address cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServeError(f"cannot listen on {host}: {error.strerror or error}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise ServeError(f"cannot listen on {host}:{port}: {reason}; --port 0 takes any free port") from error
    listening.setblocking(False)
    return listening


def url_of(listening: socket.socket, *, tls: bool) -> str:
    """The URL of a server on that socket, for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http{'s' if tls else ''}://{f'[{name}]' if ':' in name else name}:{port}/"


class WebServer:
    """Serves an application on the running loop, from entering the block to its end."""

    def __init__(
        self,
        app: FastAPI,
        listening: socket.socket,
        *,
        tls: ServerTls | None = None,
        limits: WebLimits | None = None,
        trusted_proxies: Sequence[Network] = (),
    ) -> None:
        """Prepare a server, which starts when the block is entered.

        Args:
            app: the application.
            listening: from `listen`; it is closed at the end.
            tls: certificate and key, or None for plain HTTP.
            limits: of connections, and the time for a header.
            trusted_proxies: who may say by ``X-Forwarded-For`` and ``X-Forwarded-Proto`` for whom it asks.
        """
        self._app = app
        self._listening = listening
        self._stack = contextlib.AsyncExitStack()
        self.url = url_of(listening, tls=tls is not None)
        limits = limits or WebLimits()
        self.connections = OpenConnections(limits, trusted_proxies)
        known: Any = app  # uvicorn has types of its own for the same
        if trusted_proxies:
            known = ProxyHeadersMiddleware(known, [str(item) for item in trusted_proxies])
        self._server = _Server(
            uvicorn.Config(
                self.connections.watch(known),
                http=limited_protocol(AutoHTTPProtocol, self.connections),
                ws=limited_protocol(AutoWebSocketsProtocol, self.connections),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # ours: uvicorn believes every program of this machine
                backlog=_BACKLOG,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_GRACE,
                ws_max_size=1024 * 1024,
                ws_per_message_deflate=False,
                lifespan="off",  # ours, so that its errors are raised here
                ssl_certfile=None if tls is None else tls.cert,
                ssl_keyfile=None if tls is None else tls.key,
            ),
            limits.header_time,
        )

    async def __aenter__(self) -> Self:
        """Open the application and serve.

        Raises:
            QmfError: the application could not start, e.g. `ConnectError`.
        """
        try:
            self._stack.enter_context(contextlib.closing(self._listening))
            self._server.config.load()  # NiceGUI looks for the server of its application when it starts
            await self._stack.enter_async_context(self._app.router.lifespan_context(self._app))
            serving = asyncio.create_task(self._server.serve(sockets=[self._listening]))
            self._stack.push_async_callback(self._end, serving)
            await asyncio.wait(
                {serving, asyncio.create_task(self._server.ready.wait())}, return_when=asyncio.FIRST_COMPLETED
            )
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _end(self, serving: asyncio.Task[None]) -> None:
        self._server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """Tells when it serves, and leaves the signals to `on_end_signals`."""

    def __init__(self, config: uvicorn.Config, handshake_time: float) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._handshake_time = handshake_time

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`; TLS has to be agreed upon in time, too, which is not an option there."""
        loop, config = asyncio.get_running_loop(), self.config
        handshake_time = None if config.ssl is None else self._handshake_time

        def protocol() -> asyncio.Protocol:
            return config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=self.server_state, app_state=self.lifespan.state, _loop=loop
            )

        self.servers = [
            await loop.create_server(
                protocol, sock=item, ssl=config.ssl, backlog=config.backlog, ssl_handshake_timeout=handshake_time
            )
            for item in sockets or ()
        ]
        self.started = True
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    app: FastAPI,
    listening: socket.socket,
    options: WebOptions,
    *,
    tls: ServerTls | None,
    on_ready: Callable[[], None],
) -> None:
    """Serve until SIGINT or SIGTERM, then let open requests end.

    Args:
        app, listening, tls: as of `WebServer`.
        options: of the application.
        on_ready: called when clients can connect.

    Raises:
        QmfError: as of `WebServer`.
    """
    stop = asyncio.Event()
    server = WebServer(app, listening, tls=tls, limits=options.limits, trusted_proxies=options.trusted_proxies)
    with on_end_signals(stop.set):
        async with server:
            on_ready()
            await stop.wait()
