"""A listening socket: hands the bytes of each connection, without those of TLS, to a protocol."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

from qmf.broker.accepting import Acceptor
from qmf.broker.handshakes import Handshakes
from qmf.errors import NetworkError

#: Seconds that a client has from TCP connect until it has logged in, TLS included. qpidd allows 10, too.
OPEN_TIMEOUT = 10.0
#: Connections that may wait at the listening socket until they are accepted.
BACKLOG = 1000
#: Seconds that unfinished TLS handshakes may delay the end.
_TIMEOUT = 2.0


class ListenError(NetworkError):
    """The broker cannot listen.

    Attributes:
        host, port: the address that was asked for.
        reason: the operating system's text.
    """

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(host, port, reason)

    def __str__(self) -> str:
        return f"cannot listen on {self.host} port {self.port}: {self.reason}"


class Listener:
    """A listening socket, TCP or TLS. It can be started again after it was closed.

    Attributes:
        host: address or name that it listens on; empty where there is no socket, and all clients are handed to `serve`.
        port: with port 0 the actual one, once started.
        tls: every connection is TLS.
        backlog: connections that may wait to be accepted.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None,
        backlog: int,
        open_timeout: float,
        listening: socket.socket | None,
    ) -> None:
        """Args as of `Broker`."""
        self.host = host
        self.port = port
        self.tls = ssl_context is not None
        self.backlog = backlog
        self._ssl = ssl_context
        self._open_timeout = open_timeout
        self._socket = listening
        self._acceptor: Acceptor | None = None
        self._accept: Callable[[], asyncio.BaseProtocol] | None = None

    @property
    def authority(self) -> str:
        """Host and port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def start(
        self,
        accept: Callable[[], asyncio.BaseProtocol],
        handshakes: Handshakes,
        *,
        plain: Callable[[], asyncio.BaseProtocol] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen.

        Args:
            accept: makes the protocol of each connection.
            handshakes: those in which clients are.
            plain: of those without TLS, where the others have `tls`; None where all have it, or none, as was said
                before.
            tls: of connections that begin with a handshake, where there is `plain`.

        Raises:
            ListenError: the port is in use, or the host is not an address of this machine.
        """
        self._accept = accept if plain is None else plain
        if not self.host:
            return
        try:
            sockets = await self._listening_sockets()
        except (OSError, UnicodeError, OverflowError, ValueError) as error:
            raise ListenError(self.host, self.port, _reason(error)) from error
        address = sockets[0].getsockname()
        self.port = address[1]
        if self._socket is not None:
            self.host = address[0]
        context = self._ssl if plain is None else tls
        self._acceptor = Acceptor(sockets, accept, context, handshakes, self._open_timeout, plain)

    async def _listening_sockets(self) -> list[socket.socket]:
        if self._socket is not None:
            sockets = [self._socket]
        else:
            # It finds the addresses of a host and binds a socket to each; accepting is done here.
            server = await asyncio.get_running_loop().create_server(
                asyncio.Protocol, self.host, self.port, start_serving=False
            )
            sockets = [socket.socket(fileno=os.dup(bound.fileno())) for bound in server.sockets]
            server.close()
        try:
            for listening in sockets:
                listening.setblocking(False)
                listening.listen(self.backlog)
        except OSError:
            for listening in sockets:
                listening.close()
            raise
        return sockets

    async def serve(self, connected: socket.socket) -> None:
        """Serve a client on a socket that is connected to it; `start` was called before.

        Raises:
            OSError: the client is gone.
        """
        assert self._accept is not None
        await asyncio.get_running_loop().connect_accepted_socket(self._accept, connected)

    def stop(self) -> bool:
        """Accept no more connections; False if it does not listen."""
        accept, self._accept = self._accept, None
        if not self.host:
            return accept is not None
        if self._acceptor is None or not self._acceptor.accepting:
            return False
        self._acceptor.close()
        return True

    async def wait_closed(self) -> None:
        """Wait for the end of the socket; to be called after `stop`, when all clients are gone."""
        acceptor, self._acceptor = self._acceptor, None
        if acceptor is not None:
            await acceptor.wait_closed(_TIMEOUT)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # asyncio adds a sentence of its own to the system's text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
