"""The broker: a listener, its connections, and their common registry of nodes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
import uuid
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from qmf._version import __version__
from qmf.broker.links.connection import Connection
from qmf.broker.links.sasl import SaslEngine
from qmf.broker.nodes.counters import Counters
from qmf.broker.nodes.queues import Limits
from qmf.broker.nodes.registry import NodeRegistry
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.values import MAX_FRAME, MAX_MESSAGE, ConnectionSettings
from qmf.bus.transport import AmqpTransport
from qmf.bus.url import AMQP_PORT
from qmf.errors import NetworkError

if TYPE_CHECKING:
    from qmf.broker.management.agent import ManagementAgent

log = logging.getLogger("qmf.broker")

#: Seconds that a client has from its connection to its AMQP open, SASL and TLS included. qpidd gives 10, too.
OPEN_TIMEOUT = 10.0
#: Seconds of silence after which a client counts as dead; it is asked to show life at twice that rate. Clients that
#: block in their own code send nothing meanwhile, so this is longer than what our own clients ask of a broker.
IDLE_TIMEOUT = 120.0
#: Connections that may wait until they are accepted.
BACKLOG = 100
#: Seconds that clients have to answer when the broker closes.
CLOSE_PATIENCE = 2.0


class ListenError(NetworkError):
    """The broker cannot listen.

    Attributes:
        host, port: where it should have.
        reason: why not, in the words of the system.
    """

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(host, port, reason)

    def __str__(self) -> str:
        return f"cannot listen on {self.host} port {self.port}: {self.reason}"


class Broker:
    """A small AMQP 1.0 broker with the exchanges that QMF needs. All methods belong to the loop's thread.

    Without `users`, anybody who can reach the port may use it; it listens on this machine only unless told otherwise.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = AMQP_PORT,
        *,
        queues: Iterable[str] = (),
        domains: Iterable[str] = (),
        limits: Limits | None = None,
        ssl_context: ssl.SSLContext | None = None,
        users: Mapping[str, str] | None = None,
        name: str | None = None,
        management: float | None = None,
        idle_timeout: float | None = IDLE_TIMEOUT,
        open_timeout: float = OPEN_TIMEOUT,
        max_frame: int = MAX_FRAME,
        max_message: int = MAX_MESSAGE,
    ) -> None:
        """Args:

        host: address or name to listen on.
        port: TCP port; 0 picks a free one.
        queues: names of queues to have from the start.
        domains: QMF domains besides ``default`` whose exchanges to have.
        limits: of each queue.
        ssl_context: of a server; every connection is TLS then.
        users: passwords by user; only these are let in then, with SASL PLAIN. None lets anybody in.
        name: container id; unique by default.
        management: seconds between publications of the broker's own agent, by which consoles see what it holds. None
            for no agent: then nothing of it is loaded.
        idle_timeout: seconds of silence after which a client counts as dead; None for never.
        open_timeout: seconds that a client has for its handshakes.
        max_frame, max_message: largest frame and message that is taken, in bytes.
        """
        self.host = host
        self.counters = Counters()
        self._port = port
        self._queues = tuple(queues)
        self._domains = tuple(domains)
        self._limits = limits
        self._ssl = ssl_context
        self._settings = ConnectionSettings(
            container=name or f"qmf-broker-{uuid.uuid4()}",
            server=True,
            idle_timeout=idle_timeout,
            max_frame=max_frame,
            max_message=max_message,
            mechanisms=("ANONYMOUS",) if users is None else None,
            capabilities=("ANONYMOUS-RELAY",),
            properties={"product": "qmf-broker", "version": __version__},
        )
        self._users = users
        self._name = name
        self._interval = management
        self._management: ManagementAgent | None = None
        self._open_timeout = open_timeout
        self._registry: NodeRegistry | None = None
        self._server: asyncio.Server | None = None
        self._listening = False
        self._connections: set[Connection] = set()

    @property
    def port(self) -> int:
        """TCP port; the one that was picked, once started."""
        return self._port

    @property
    def url(self) -> str:
        """What clients write to connect."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'amqps' if self._ssl is not None else 'amqp'}://{host}:{self.port}"

    @property
    def connections(self) -> int:
        """Number of clients."""
        return len(self._connections)

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: the port is taken, or the host is none of this machine.
            CallerError: the interval of the management is not positive.
        """
        loop = asyncio.get_running_loop()
        self._registry = NodeRegistry(
            queues=self._queues,
            domains=self._domains,
            limits=self._limits,
            counters=self.counters,
            clock=loop.time,
        )
        self._listening = True
        try:
            self._server = await loop.create_server(
                self._accept,
                self.host,
                self._port,
                backlog=BACKLOG,
                ssl=self._ssl,
                ssl_handshake_timeout=self._open_timeout if self._ssl is not None else None,
            )
        except (OSError, UnicodeError, OverflowError) as error:
            raise ListenError(self.host, self._port, _words(error)) from error
        self._port = self._server.sockets[0].getsockname()[1]
        log.info("listening on %s", self.url)
        if self._interval is not None:
            try:
                await self._manage(self._registry, self._interval)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Stop listening, end the management, tell every client, and end when all connections are gone.

        A second call does nothing.
        """
        self._listening = False
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        management, self._management = self._management, None
        if management is not None:
            await management.close()
        connections = list(self._connections)
        for connection in connections:
            connection.close("amqp:connection:forced", "the broker is shutting down")
        if connections:
            ended = [connection.ended for connection in connections]
            await asyncio.wait(ended, timeout=CLOSE_PATIENCE)
            for connection in connections:
                connection.transport.abort()
            await asyncio.wait(ended)
        with contextlib.suppress(TimeoutError):
            # Newer asyncio waits for clients in the middle of a TLS handshake, too; those end by their own time-out.
            await asyncio.wait_for(server.wait_closed(), CLOSE_PATIENCE)
        log.info("closed %s", self.url)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _manage(self, registry: NodeRegistry, interval: float) -> None:
        # Without it, a broker loads neither agent nor models.
        from qmf.broker.management.agent import ManagementAgent

        self._management = ManagementAgent(
            registry, name=self._name, host=self.host, port=self._port, backlog=BACKLOG, interval=interval
        )
        await self._management.start()

    def _accept(self) -> AmqpTransport:
        assert self._registry is not None
        return Connection(
            self._registry,
            self._engine(),
            open_timeout=self._open_timeout,
            on_start=self._started,
            on_end=self._connections.discard,
        ).transport

    def _started(self, connection: Connection) -> None:
        self.counters.connections += 1
        self._connections.add(connection)
        if not self._listening:  # its TLS handshake ended after `close` had looked who is there
            connection.transport.abort()

    def _engine(self) -> Engine:
        return Engine(self._settings) if self._users is None else SaslEngine(self._settings, self._users)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # asyncio puts its own sentence around the system's words
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
