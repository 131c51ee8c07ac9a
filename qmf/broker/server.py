"""The broker: a listening socket, its connections, and their common registry of nodes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from qmf._users import Users
from qmf._version import __version__
from qmf.broker.connection_limits import MAX_LINKS, MAX_SESSIONS, ConnectionCounts, ConnectionLimits
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.nodes.topics import PolicyKind
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Policy
from qmf.broker.operations.principal import BROKER
from qmf.broker.process_control import ProcessControl
from qmf.broker.protocols.amqp.connection import ServerConnection
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks
from qmf.broker.protocols.amqp.sasl import SaslEngine
from qmf.broker.protocols.amqp.sole_connections import SOLE_CONNECTION, SoleConnections
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.resumption import LINK_RESUMPTION
from qmf.bus.engine.values import MAX_FRAME, MAX_MESSAGE, ConnectionSettings
from qmf.bus.transport import AmqpTransport, PendingWrites
from qmf.bus.url import AMQP_PORT
from qmf.errors import NetworkError

if TYPE_CHECKING:
    from qmf.broker.management.agent import ManagementAgent
    from qmf.broker.store.persistence import Persistence

log = logging.getLogger("qmf.broker")

#: Seconds that a client has from TCP connect to AMQP open, SASL and TLS included. qpidd allows 10, too.
OPEN_TIMEOUT = 10.0
#: Seconds without a frame after which a client counts as dead; it is asked for heartbeats at twice that rate. Clients
#: that block in their own code send none meanwhile, so this is longer than what `AmqpBus` asks of a broker.
IDLE_TIMEOUT = 120.0
#: Connections that may wait at the listening socket until they are accepted.
BACKLOG = 100
#: Seconds between removals of messages whose time to live has ended; the default of qpidd's `--queue-purge-interval`.
EXPIRY_INTERVAL = 600.0
#: Passwords whose hashes are computed at the same time; each takes 16 MB and a processor.
_CHECKS = 2
#: Seconds that clients have to answer the broker's close.
CLOSE_PATIENCE = 2.0


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


class Broker:
    """A small AMQP 1.0 broker with the exchanges that QMF needs. All methods belong to the loop's thread.

    Without `users`, everybody who can reach the port may use it; by default it listens on this machine only.

    Attributes:
        host: address or name that it listens on.
        counters: totals; read them, but don't write.
        process: what consoles may change in the process of the broker, or None.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = AMQP_PORT,
        *,
        queues: Iterable[str] = (),
        domains: Iterable[str] = (),
        limits: QueueLimits | None = None,
        ssl_context: ssl.SSLContext | None = None,
        users: Mapping[str, str] | None = None,
        name: str | None = None,
        management: float | None = None,
        data_dir: Path | None = None,
        idle_timeout: float | None = IDLE_TIMEOUT,
        open_timeout: float = OPEN_TIMEOUT,
        max_frame: int = MAX_FRAME,
        max_message: int = MAX_MESSAGE,
        max_sessions: int = MAX_SESSIONS,
        max_links: int = MAX_LINKS,
        total_limits: QueueLimits | None = None,
        publishes: bool = True,
        backlog: int = BACKLOG,
        connection_limits: ConnectionLimits | None = None,
        expiry_interval: float = EXPIRY_INTERVAL,
        listening: socket.socket | None = None,
        timestamps: bool = False,
        queue_patterns: Iterable[str] = (),
        topic_patterns: Iterable[str] = (),
        process: ProcessControl | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Args:

        host: address or name to listen on.
        port: TCP port; 0 for any free one.
        queues: names of queues that exist from the start.
        domains: QMF domains besides ``default`` whose exchanges exist.
        limits: of queues that ask for none; None for those of qpidd, and smaller ones for queues of subscriptions.
        ssl_context: of a server; every connection must be TLS then.
        users: passwords by user, plain or as `qmf-broker --hash-password` prints them; only these may log in then, with
            SASL PLAIN. None lets everybody in.
        name: container id; unique by default.
        management: seconds between publications of the broker's own agent, which shows its queues, clients and so on to
            consoles. None for no agent: its modules are not loaded then.
        data_dir: folder for durable queues, exchanges and messages, which are there again at the next start;
            created where it is missing. None for a broker that keeps nothing.
        idle_timeout: seconds without a frame after which a client counts as dead; None for never.
        open_timeout: seconds that a client has for its handshakes.
        max_frame, max_message: largest frame and message that are accepted, in bytes.
        max_sessions, max_links: that one connection may have.
        total_limits: of all queues and open transactions together, but for queues that flow to disk; None for none.
        publishes: the broker's own agent publishes changes; otherwise consoles have to query.
        backlog: connections that may wait to be accepted.
        connection_limits: numbers of clients at the same time; None for no limits.
        expiry_interval: seconds between removals of messages whose time to live has ended.
        queue_patterns, topic_patterns: regular expressions: addresses that match one create a queue, or an exchange,
            when they are used.
        timestamps: messages that come get the time as an annotation; consoles may change it.
        listening: a socket to use instead of `host` and `port`; the broker closes it.
        process: what consoles may change in the process of the broker; None for nothing.
        policy: decides who may do what; None lets everybody who could log in do everything.
        """
        self.host = host
        self.process = process
        self.counters = BrokerCounters()
        self._port = port
        self._queues = tuple(queues)
        self._domains = tuple(domains)
        self._limits = limits
        self._total_limits = total_limits
        self._max_links = max_links
        self._ssl = ssl_context
        self._settings = ConnectionSettings(
            container=name or f"qmf-broker-{uuid.uuid4()}",
            server=True,
            idle_timeout=idle_timeout,
            max_frame=max_frame,
            max_message=max_message,
            max_sessions=max_sessions,
            mechanisms=None,  # of `SaslEngine`
            capabilities=("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS", SOLE_CONNECTION, LINK_RESUMPTION),
            properties={"product": "qmf-broker", "version": __version__},
        )
        self._users = None if users is None else Users(users)
        self._checks: ThreadPoolExecutor | None = None
        self._name = name
        self._policy = policy
        self._interval = management
        self._publishes = publishes
        self._backlog = backlog
        self._connection_limits = connection_limits or ConnectionLimits()
        self._connection_counts = ConnectionCounts(self._connection_limits)
        self._sole_connections = SoleConnections()
        self._pending_writes = PendingWrites()
        self._expiry_interval = expiry_interval
        self._socket = listening
        self._timestamps = timestamps
        self._patterns = {PolicyKind.QUEUE: tuple(queue_patterns), PolicyKind.TOPIC: tuple(topic_patterns)}
        self._management: ManagementAgent | None = None
        self._open_timeout = open_timeout
        self._data_dir = data_dir
        self._persistence: Persistence | None = None
        self._registry: NodeRegistry | None = None
        self._operations: Operations | None = None
        self._resumable: ResumableLinks | None = None
        self._server: asyncio.Server | None = None
        self._listening = False
        self._expiry: asyncio.TimerHandle | None = None
        self._connections: set[ServerConnection] = set()

    @property
    def port(self) -> int:
        """TCP port; with port 0 the actual one, once started."""
        return self._port

    @property
    def url(self) -> str:
        """URL that clients connect to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'amqps' if self._ssl is not None else 'amqp'}://{host}:{self.port}"

    @property
    def connections(self) -> int:
        """Number of clients."""
        return len(self._connections)

    def set_users(self, users: Mapping[str, str]) -> None:
        """Let these users log in from now on, and no others; clients that are connected stay.

        Args:
            users: as when the broker was created.

        Raises:
            UsersError: a hash is malformed; nothing has changed.
        """
        self._users = Users(users)

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: the port is in use, or the host is not an address of this machine.
            NotStored: the data folder is in use by another process, cannot be written to, or is damaged.
            CallerError: the interval of the management is not positive.
            TopicError: a pattern is no regular expression.
            OperationRefused: the policy refuses the broker itself what its options ask for.
        """
        loop = asyncio.get_running_loop()
        self._registry = NodeRegistry(
            domains=self._domains,
            limits=self._limits,
            total_limits=self._total_limits,
            counters=self.counters,
            clock=loop.time,
            call_later=loop.call_later,
        )
        self._registry.timestamps = self._timestamps
        if self._data_dir is not None:
            self._open_data_dir(self._data_dir, self._registry)
        self._operations = Operations(self._registry, self._policy)
        self._create_nodes(self._registry, self._operations)
        self._registry.on_deleted = self._on_node_deleted
        self._resumable = ResumableLinks(self._operations)
        self._listening = True
        self._expiry = loop.call_later(self._expiry_interval, self._expire)
        try:
            place: dict[str, Any] = (
                {"host": self.host, "port": self._port} if self._socket is None else {"sock": self._socket}
            )
            self._server = await loop.create_server(
                self._accept,
                **place,
                backlog=self._backlog,
                ssl=self._ssl,
                ssl_handshake_timeout=self._open_timeout if self._ssl is not None else None,
            )
        except (OSError, UnicodeError, OverflowError, ValueError) as error:
            await self._close_data_dir()
            raise ListenError(self.host, self._port, _reason(error)) from error
        address = self._server.sockets[0].getsockname()
        self._port = address[1]
        if self._socket is not None:
            self.host = address[0]
        log.info("listening on %s", self.url)
        if self._interval is not None:
            try:
                await self._start_management(self._operations, self._interval)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Stop listening, stop the broker's own agent, and close all connections.

        Returns when all are gone. A second call does nothing.
        """
        self._listening = False
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        management, self._management = self._management, None
        if management is not None:
            await management.close()
        if self._resumable is not None:
            self._resumable.close()
        if self._expiry is not None:
            self._expiry.cancel()
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
            # Newer asyncio waits for unfinished TLS handshakes, too; those end by their own time-out.
            await asyncio.wait_for(server.wait_closed(), CLOSE_PATIENCE)
        checks, self._checks = self._checks, None
        if checks is not None:
            checks.shutdown(cancel_futures=True)
        if self._registry is not None:
            self._registry.close()
        await self._close_data_dir()
        log.info("closed %s", self.url)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _create_nodes(self, registry: NodeRegistry, operations: Operations) -> None:
        """Create the queues and policies of the options, but for durable ones that are there since an earlier start."""
        for name in self._queues:
            if registry.find(name) is None:
                operations.create(BROKER, name, NodeDeclaration(queue=QueueSettings(limits=registry.limits)))
        for kind, patterns in self._patterns.items():
            for pattern in patterns:
                if all(item.pattern != pattern for item in registry.topics.policies):
                    operations.create_policy(BROKER, kind, pattern, {})

    def _open_data_dir(self, path: Path, registry: NodeRegistry) -> None:
        # Imported here, so that a broker that stores nothing does not load it.
        from qmf.broker.store.persistence import Persistence

        self._persistence = Persistence(path, registry)

    async def _close_data_dir(self) -> None:
        persistence, self._persistence = self._persistence, None
        if persistence is not None:
            await persistence.close()

    async def _start_management(self, operations: Operations, interval: float) -> None:
        # Imported here, so that a broker without management loads neither agent nor models.
        from qmf.broker.management.agent import ManagementAgent
        from qmf.broker.management.setup import BrokerSetup

        setup = BrokerSetup(
            self._port, self._backlog, self._connection_limits.total, interval, self._publishes, self._data_dir
        )
        self._management = ManagementAgent(
            operations, name=self._name, host=self.host, setup=setup, process=self.process
        )
        await self._management.start()

    def _accept(self) -> AmqpTransport:
        assert self._operations is not None
        assert self._resumable is not None
        return ServerConnection(
            self._operations,
            self._resumable,
            self._engine(),
            open_timeout=self._open_timeout,
            max_links=self._max_links,
            counts=self._connection_counts,
            sole=self._sole_connections,
            pending=self._pending_writes,
            on_start=self._on_connection_start,
            on_end=self._connections.discard,
        ).transport

    def _expire(self) -> None:
        """Remove the messages whose time to live has ended; one that is the next to be delivered is removed earlier."""
        assert self._registry is not None
        self._registry.expire()
        self._expiry = asyncio.get_running_loop().call_later(self._expiry_interval, self._expire)

    def _on_node_deleted(self, node: Queue | Exchange) -> None:
        for connection in list(self._connections):
            connection.on_node_deleted(node)

    def _on_connection_start(self, connection: ServerConnection) -> None:
        self.counters.connections += 1
        self._connections.add(connection)
        if not self._listening:  # its TLS handshake ended after `close` had looked for connections
            connection.transport.abort()

    def _engine(self) -> Engine:
        return SaslEngine(self._settings, self._users, self._check_elsewhere)

    def _check_elsewhere(self, check: Callable[[], bool], checked: Callable[[bool], None]) -> None:
        """Compute the hash of a password on a thread: it takes some hundredths of a second, in which others go on."""
        if self._checks is None:
            self._checks = ThreadPoolExecutor(_CHECKS, thread_name_prefix="qmf-broker-users")
        found = asyncio.get_running_loop().run_in_executor(self._checks, check)

        def done(future: asyncio.Future[bool]) -> None:
            if not future.cancelled():
                checked(future.result())

        found.add_done_callback(done)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # asyncio adds a sentence of its own to the system's text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
