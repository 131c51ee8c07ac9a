"""The broker: its nodes, what it listens on, and the clients of its protocols."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from qmf._users import Users
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.listener import BACKLOG, OPEN_TIMEOUT, Listener, ListenError
from qmf.broker.logins import Logins
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.nodes.topics import PolicyKind
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Policy
from qmf.broker.operations.principal import BROKER
from qmf.broker.process_control import ProcessControl
from qmf.broker.protocols.amqp.protocol import AMQP_DEFAULTS, AmqpOptions, AmqpProtocol
from qmf.broker.sessions import ClientSessions
from qmf.bus.url import AMQP_PORT

if TYPE_CHECKING:
    from qmf.broker.access.control import FileAccessControl
    from qmf.broker.management.agent import ManagementAgent
    from qmf.broker.store.persistence import Persistence

log = logging.getLogger("qmf.broker")

#: Seconds between removals of messages whose time to live has ended; the default of qpidd's `--queue-purge-interval`.
EXPIRY_INTERVAL = 600.0


class Broker:
    """A small AMQP 1.0 broker with the exchanges that QMF needs. All methods belong to the loop's thread.

    Without `users`, everybody who can reach the port may use it; by default it listens on this machine only.

    Attributes:
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
        idle_timeout: float | None = AMQP_DEFAULTS.idle_timeout,
        open_timeout: float = OPEN_TIMEOUT,
        max_frame: int = AMQP_DEFAULTS.max_frame,
        max_message: int = AMQP_DEFAULTS.max_message,
        max_sessions: int = AMQP_DEFAULTS.max_sessions,
        max_links: int = AMQP_DEFAULTS.max_links,
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
        access: FileAccessControl | None = None,
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
        access: decides by a file of rules instead.
        """
        self.process = process
        self.counters = BrokerCounters()
        self._listener = Listener(
            host, port, ssl_context=ssl_context, backlog=backlog, open_timeout=open_timeout, listening=listening
        )
        self._logins = Logins(None if users is None else Users(users))
        self._amqp_options = AmqpOptions(
            name or f"qmf-broker-{uuid.uuid4()}",
            idle_timeout=idle_timeout,
            open_timeout=open_timeout,
            max_frame=max_frame,
            max_message=max_message,
            max_sessions=max_sessions,
            max_links=max_links,
        )
        self._queues = tuple(queues)
        self._domains = tuple(domains)
        self._limits = limits
        self._total_limits = total_limits
        self._name = name
        self._policy = policy
        self._access = access
        self._interval = management
        self._publishes = publishes
        self._connection_limits = connection_limits or ConnectionLimits()
        self._expiry_interval = expiry_interval
        self._timestamps = timestamps
        self._patterns = {PolicyKind.QUEUE: tuple(queue_patterns), PolicyKind.TOPIC: tuple(topic_patterns)}
        self._data_dir = data_dir
        self._management: ManagementAgent | None = None
        self._persistence: Persistence | None = None
        self._registry: NodeRegistry | None = None
        self._sessions: ClientSessions | None = None
        self._amqp: AmqpProtocol | None = None
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def host(self) -> str:
        """Address or name that it listens on."""
        return self._listener.host

    @property
    def port(self) -> int:
        """TCP port; with port 0 the actual one, once started."""
        return self._listener.port

    @property
    def url(self) -> str:
        """URL that clients connect to."""
        return f"{'amqps' if self._listener.tls else 'amqp'}://{self._listener.authority}"

    @property
    def connections(self) -> int:
        """Number of clients."""
        return 0 if self._sessions is None else len(self._sessions)

    def set_users(self, users: Mapping[str, str]) -> None:
        """Let these users log in from now on, and no others; clients that are connected stay.

        Args:
            users: as when the broker was created.

        Raises:
            UsersError: a hash is malformed; nothing has changed.
        """
        self._logins.users = Users(users)

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
        operations = Operations(self._registry, self._policy)
        if self._access is not None:
            self._registry.observer = self._access
            self._access.apply(operations)
        self._create_nodes(self._registry, operations)
        self._sessions = ClientSessions(operations, self._connection_limits)
        self._registry.on_deleted = self._sessions.on_node_deleted
        self._amqp = AmqpProtocol(operations, self._sessions, self._logins, self._amqp_options)
        self._expiry = loop.call_later(self._expiry_interval, self._expire)
        try:
            await self._listener.start(self._amqp.accept)
        except ListenError:
            await self._close_data_dir()
            raise
        log.info("listening on %s", self.url)
        if self._interval is not None:
            try:
                await self._start_management(operations, self._interval)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Stop listening, stop the broker's own agent, and close all connections.

        Returns when all are gone. A second call does nothing.
        """
        if not self._listener.stop():
            return
        management, self._management = self._management, None
        if management is not None:
            await management.close()
        if self._amqp is not None:
            self._amqp.close()
        if self._expiry is not None:
            self._expiry.cancel()
        if self._sessions is not None:
            await self._sessions.close()
        await self._listener.wait_closed()
        self._logins.close()
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
            self._listener.authority,
            self.port,
            self._listener.backlog,
            self._connection_limits,
            interval,
            self._publishes,
            self._data_dir,
            self._access,
        )
        self._management = ManagementAgent(operations, name=self._name, setup=setup, process=self.process)
        await self._management.start()

    def _expire(self) -> None:
        """Remove the messages whose time to live has ended; one that is the next to be delivered is removed earlier."""
        assert self._registry is not None
        self._registry.expire()
        self._expiry = asyncio.get_running_loop().call_later(self._expiry_interval, self._expire)
