"""Accepting of connections: a few in each turn of the loop, so that those that are accepted are served first."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from contextvars import ContextVar

from qmf.broker.client_info import format_address
from qmf.broker.handshakes import Handshakes, current_handshake

log = logging.getLogger("qmf.broker")

#: Connections that are accepted in one turn of the loop, so that those that are accepted are served in between.
TURN = 8
#: Seconds for which a client that has sent nothing counts among those that keep others in the backlog.
SILENT = 1.0
#: The type of the first record of TLS.
_HANDSHAKE = 0x16
#: Seconds of no accepting after the process or the machine has no more room for open files, as asyncio waits.
_PAUSE = 1.0
#: Of `poll`: the peer has closed its side; 0 where there is no such event.
_HANGUP = getattr(select, "POLLRDHUP", 0)
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

#: The socket of the connection in whose callbacks this is read, before its handshake of TLS is over.
accepted_socket: ContextVar[socket.socket | None] = ContextVar("qmf_accepted_socket", default=None)


class Acceptor:
    """Accepts the connections of listening sockets and hands each to a protocol. Belongs to the loop's thread.

    A connection is handed over when its client has sent something, which costs a silent one little, and when few
    enough of its address are in their handshakes. When as many as may be in their handshakes have sent nothing yet,
    since they are slow, others stay in the backlog: their time does not run there.

    Attributes:
        accepted: connections since the begin.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        accept: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None,
        handshakes: Handshakes,
        handshake_timeout: float,
        plain: Callable[[], asyncio.BaseProtocol] | None = None,
    ) -> None:
        """Begin to accept.

        Args:
            sockets: that listen; they are closed by `close`.
            accept: makes the protocol of each connection.
            tls: of all connections; None for none.
            handshakes: those in which clients are.
            handshake_timeout: seconds that a handshake of TLS may take, and before it the first byte.
            plain: makes the protocol of those that don't begin with a handshake of TLS; None where all do, or none.
        """
        self._loop = asyncio.get_running_loop()
        self._sockets = list(sockets)
        self._accept = accept
        self._tls = tls
        self._plain = plain
        self._handshakes = handshakes
        self._timeout = handshake_timeout
        self.accepted = 0
        #: Of connections that are about to be handed over, those in handshakes of TLS included; and the sockets of
        #: those that have not got so far.
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], socket.socket] = {}
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        #: Of clients that have sent nothing for a short time; and the sockets that are not accepted from for them.
        self._silent: set[asyncio.Future[None]] = set()
        self._full: set[socket.socket] = set()
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
        self._full.clear()
        for task in self._waiting:
            task.cancel()
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
        if self._is_full:
            self._loop.remove_reader(listening)
            self._full.add(listening)
            return
        for _ in range(TURN):
            try:
                connected, address = listening.accept()
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
            task = self._loop.create_task(self._serve(connected, address))
            self._waiting[task] = connected
            self._tasks.add(task)
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if (connected := self._waiting.pop(task, None)) is not None:
            connected.close()

    async def _serve(self, connected: socket.socket, address: tuple[str, int]) -> None:
        accepted_socket.set(connected)
        try:
            first = await self._first_byte(connected, address)
            handshake = await self._handshakes.begin(address[0])
            if handshake.waited and _is_gone(connected):
                handshake.end()
                raise ConnectionResetError(errno.ECONNRESET, "the client has given up")
        except OSError as error:
            log.debug("lost a connection before its protocol began: %s", error)
            return
        task = asyncio.current_task()
        assert task is not None
        del self._waiting[task]
        current_handshake.set(handshake)
        accept, tls = self._accept, self._tls
        if self._plain is not None and first != _HANDSHAKE:
            accept, tls = self._plain, None
        timeout = None if tls is None else self._timeout
        try:
            await self._loop.connect_accepted_socket(accept, connected, ssl=tls, ssl_handshake_timeout=timeout)
        except (OSError, ssl.SSLError, ssl.CertificateError) as error:
            handshake.end()
            log.debug("lost a connection before its protocol began: %s", error)

    async def _first_byte(self, connected: socket.socket, address: tuple[str, int]) -> int:
        """Look at the first byte, which stays in the socket.

        Raises:
            OSError: the client is gone, or sends nothing.
        """
        try:
            try:
                first = connected.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                async with asyncio.timeout(self._timeout):
                    await self._readable(connected)
                first = connected.recv(1, socket.MSG_PEEK)
            if not first:
                raise ConnectionResetError(errno.ECONNRESET, "the client has sent nothing")
        except TimeoutError:
            what = f"it sent nothing within {self._timeout:g} s"
            self._handshakes.on_silent(format_address(address), what, logging.WARNING)
            raise
        except OSError:
            what = "it disconnected before it had sent anything"
            self._handshakes.on_silent(format_address(address), what, logging.INFO)
            raise
        return first[0]

    async def _readable(self, connected: socket.socket) -> None:
        readable: asyncio.Future[None] = self._loop.create_future()
        self._silent.add(readable)
        timer = self._loop.call_later(SILENT, self._count_no_more, readable)
        self._loop.add_reader(connected, _finish, readable)
        try:
            await readable
        finally:
            self._loop.remove_reader(connected)
            timer.cancel()
            self._count_no_more(readable)

    @property
    def _is_full(self) -> bool:
        return 0 < self._handshakes.limit <= len(self._silent)

    def _count_no_more(self, silent: asyncio.Future[None]) -> None:
        self._silent.discard(silent)
        if self._full and not self._is_full:
            full, self._full = self._full, set()
            for listening in full:
                self._resume(listening)


def _is_gone(connected: socket.socket) -> bool:
    """Whether the client has given up; False where the system cannot tell that before its bytes are read."""
    poll = select.poll()
    poll.register(connected, _HANGUP)
    return any(events & _HANGUP for _, events in poll.poll(0))


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
