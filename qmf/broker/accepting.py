"""Accepting of connections: a few in each turn of the loop, so that those that are accepted are served first."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextvars import ContextVar

log = logging.getLogger("qmf.broker")

#: Connections that are accepted in one turn of the loop. When thousands come at once, as many of them are in their
#: handshakes at a time as a few turns accept, and each is through it soon; accepted all at once, each would be
#: through it when all are, and most would have given up by then. Clients that connect and send nothing keep nobody
#: waiting: their turns take no time.
TURN = 8
#: The type of the first record of TLS.
_HANDSHAKE = 0x16
#: Seconds of no accepting after the process or the machine has no more room for open files, as asyncio waits.
_PAUSE = 1.0
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

#: The socket of the connection in whose callbacks this is read, before its handshake of TLS is over.
accepted_socket: ContextVar[socket.socket | None] = ContextVar("qmf_accepted_socket", default=None)


class Acceptor:
    """Accepts the connections of listening sockets and hands each to a protocol. Belongs to the loop's thread.

    Attributes:
        accepted: connections since the begin.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        accept: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None,
        handshake_timeout: float,
        plain: Callable[[], asyncio.BaseProtocol] | None = None,
    ) -> None:
        """Begin to accept.

        Args:
            sockets: that listen; they are closed by `close`.
            accept: makes the protocol of each connection.
            tls: of all connections; None for none.
            handshake_timeout: seconds that a handshake of TLS may take, and before it the first byte.
            plain: makes the protocol of those that don't begin with a handshake of TLS; None where all do, or none.
        """
        self._loop = asyncio.get_running_loop()
        self._sockets = list(sockets)
        self._accept = accept
        self._tls = tls
        self._plain = plain
        self._timeout = handshake_timeout
        #: Of connections whose first byte has not come.
        self._silent: set[asyncio.Future[None]] = set()
        self.accepted = 0
        #: Connections that are about to be handed over, those in handshakes of TLS included.
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in self._sockets:
            self._resume(listening)

    @property
    def accepting(self) -> bool:
        """It was not closed."""
        return bool(self._sockets)

    def close(self) -> None:
        """Accept no more; connections that were handed over stay."""
        sockets, self._sockets = self._sockets, []
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        for first_byte in self._silent:
            first_byte.cancel()
        for listening in sockets:
            self._loop.remove_reader(listening)
            listening.close()

    async def wait_closed(self, timeout: float) -> None:
        """Wait for unfinished handshakes of TLS, at most so many seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    def _resume(self, listening: socket.socket) -> None:
        self._pauses.pop(listening, None)
        self._loop.add_reader(listening, self._accept_some, listening)

    def _accept_some(self, listening: socket.socket) -> None:
        for _ in range(TURN):
            try:
                connected, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                log.error("no connection can be accepted: %s; trying again in %g s", os.strerror(error.errno), _PAUSE)
                self._loop.remove_reader(listening)
                self._pauses[listening] = self._loop.call_later(_PAUSE, self._resume, listening)
                return
            connected.setblocking(False)
            self.accepted += 1
            task = self._loop.create_task(self._serve(connected))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connected: socket.socket) -> None:
        accepted_socket.set(connected)
        accept, tls = self._accept, self._tls
        try:
            if self._plain is not None and not await self._begins_with_tls(connected):
                accept, tls = self._plain, None
            timeout = None if tls is None else self._timeout
            await self._loop.connect_accepted_socket(accept, connected, ssl=tls, ssl_handshake_timeout=timeout)
        except (OSError, ssl.SSLError, ssl.CertificateError) as error:
            log.debug("lost a connection before its protocol began: %s", error)

    async def _begins_with_tls(self, connected: socket.socket) -> bool:
        """Look at the first byte, which stays in the socket. Closes it where there is none.

        Raises:
            OSError: the client is gone, or sends nothing.
        """
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    await self._readable(connected)
                    try:
                        first = connected.recv(1, socket.MSG_PEEK)
                    except BlockingIOError:
                        continue
                    if not first:
                        raise ConnectionResetError(errno.ECONNRESET, "the client has sent nothing")
                    return first[0] == _HANDSHAKE
        except (OSError, asyncio.CancelledError):
            connected.close()
            raise

    async def _readable(self, connected: socket.socket) -> None:
        readable: asyncio.Future[None] = self._loop.create_future()
        self._silent.add(readable)
        self._loop.add_reader(connected, _finish, readable)
        try:
            await readable
        finally:
            self._silent.discard(readable)
            self._loop.remove_reader(connected)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
