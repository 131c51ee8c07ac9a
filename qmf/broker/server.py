"""The broker: its nodes, what it listens on, and the clients of its protocols."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from qmf._arguments import arguments_of
from qmf._closable import AsyncClosable
from qmf.broker.federation.federation import BrokerFederation
from qmf.broker.handshakes import COUNTED, Handshakes
from qmf.broker.listener import Listener
from qmf.broker.logins import Logins
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.observer import BrokerObserver, BrokerObservers
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueSettings
from qmf.broker.nodes.topics import PolicyKind
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import ForwardingOperations
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.options import BrokerArguments, BrokerOptions
from qmf.broker.protocols.amqp.protocol import AmqpProtocol
from qmf.broker.protocols.services import ConnectionServices
from qmf.broker.queue_links.links import BrokerQueueLinks
from qmf.broker.sessions import ClientSessions
from qmf.broker.shared_ports import (
    AMQP,
    MQTT,
    STOMP,
    WEBSOCKET,
    Accept,
    Offer,
    further_listener,
    mqtt_listeners,
    start_listeners,
)
from qmf.errors import CallerError
from qmf.users.users import Users

if TYPE_CHECKING:
    from qmf.broker.protocols.mqtt.protocol import MqttProtocol
    from qmf.broker.relay.relays import BrokerRelays
    from qmf.broker.store.persistence import Persistence

log = logging.getLogger("qmf.broker")


class Broker(AsyncClosable):
    """A small AMQP 1.0 broker with the exchanges that QMF needs. All methods belong to the loop's thread.

    Without `users`, everybody who can reach the port may use it; by default it listens on this machine only.

    Attributes:
        counters: totals; read them, but don't write.
        process: what consoles may change in the process of the broker, or None.
    """

    @arguments_of(BrokerArguments)
    def __init__(self, arguments: BrokerArguments) -> None:
        """Make a broker, which listens once it is started.

        The keyword arguments are described in `BrokerOptions`.

        Args:
            host: address or name to listen on; empty for no socket: clients come by `serve`.
            port: TCP port; 0 for any free one.

        Raises:
            CallerError: an argument is invalid.
            UsersError: the hash of a password is malformed.
        """
        self.process = arguments.process
        self.counters = BrokerCounters()
        self._options: BrokerOptions = arguments
        beside = arguments.tls_port is not None
        if beside and arguments.ssl_context is None:
            raise CallerError("tls_port of a broker needs ssl_context")
        self._listener = Listener(
            arguments.host,
            arguments.port,
            ssl_context=None if beside else arguments.ssl_context,
            backlog=arguments.backlog,
            open_timeout=arguments.open_timeout,
            listening=arguments.listening,
        )
        #: For TLS, beside the other one.
        self._tls_listener: Listener | None = None
        if arguments.tls_port is not None:
            self._tls_listener = further_listener(arguments, arguments.tls_port)
        self._mqtt_listeners = mqtt_listeners(arguments)
        stomp_port = arguments.stomp.port
        self._stomp_listener = None if stomp_port is None else further_listener(arguments, stomp_port)
        self._ws_listener = None if arguments.ws_port is None else further_listener(arguments, arguments.ws_port)
        further = (self._tls_listener, *self._mqtt_listeners, self._stomp_listener, self._ws_listener)
        self._listeners = [self._listener, *filter(None, further)]
        self._logins = Logins(
            arguments.users,
            arguments.tokens,
            certificates=arguments.certificates,
            kerberos=arguments.kerberos,
            mechanisms=arguments.mechanisms,
        )
        #: Of the broker and its machine; with a data folder that which is stored there.
        self._id = uuid.uuid4()
        self._registry: NodeRegistry | None = None
        self._sessions: ClientSessions | None = None
        self._mqtt: MqttProtocol | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._forwarding: ForwardingOperations | None = None
        #: Closes what was started, the last part first.
        self._started = AsyncExitStack()

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
    def tls_url(self) -> str | None:
        """URL of the port for TLS that is beside the other one; None if there is none."""
        return None if self._tls_listener is None else f"amqps://{self._tls_listener.authority}"

    @property
    def mqtt_urls(self) -> Sequence[str]:
        """URLs of the ports of MQTT, the one without TLS first; once started, with the actual ports."""
        return [f"{'mqtts' if each.tls else 'mqtt'}://{each.authority}" for each in self._mqtt_listeners]

    @property
    def stomp_url(self) -> str | None:
        """URL of the port for STOMP; None if there is none."""
        listener = self._stomp_listener
        return None if listener is None else f"{'stomp+ssl' if listener.tls else 'stomp'}://{listener.authority}"

    @property
    def ws_url(self) -> str | None:
        """URL of the port for WebSocket; None if there is none."""
        listener = self._ws_listener
        return None if listener is None else f"{'wss' if listener.tls else 'ws'}://{listener.authority}"

    @property
    def urls(self) -> Sequence[str]:
        """URLs of all ports; once started, with the actual ports."""
        return [
            found
            for found in (self.url, self.tls_url, *self.mqtt_urls, self.stomp_url, self.ws_url)
            if found is not None
        ]

    @property
    def connections(self) -> int:
        """Number of clients."""
        return 0 if self._sessions is None else len(self._sessions)

    def set_users(self, users: Mapping[str, str]) -> None:
        """Let these users log in from now on, and no others.

        The connections of clients are closed that have logged in by the password of a user who is gone; one whose
        password is another one stays.

        Args:
            users: as when the broker was created.

        Raises:
            UsersError: a hash is malformed; nothing has changed.
        """
        self._logins.set_users(Users(users))
        if self._sessions is not None:
            self._sessions.on_users_changed(self._logins.refusal)

    @property
    def _container(self) -> str:
        """Container id, by which other brokers know this one."""
        return self._options.name or str(self._id)

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: the port is in use, or the host is not an address of this machine.
            NotStored: the data folder is in use by another process, cannot be written to, or is damaged.
            TopicError: a pattern is no regular expression.
            OperationRefused: the policy refuses the broker itself what its options ask for.
        """
        try:
            await self._start()
        except BaseException:
            await self._started.aclose()
            raise

    async def _start(self) -> None:
        loop, options, started = asyncio.get_running_loop(), self._options, self._started
        if options.audit is not None:
            started.callback(options.audit.close)
        registry = self._registry = NodeRegistry(
            domains=options.domains,
            limits=options.limits,
            total_limits=options.total_limits,
            counters=self.counters,
            clock=loop.time,
            call_later=loop.call_later,
        )
        self._registry.timestamps = options.timestamps
        persistence = None if options.data_dir is None else self._open_data_dir(options.data_dir, registry)
        started.callback(registry.close)
        started.callback(self._logins.close)
        operations = Operations(registry, options.policy)
        self._forwarding = operations.forwarding
        connecting = self._make_connecting(operations)
        queue_links = operations.forwarding.queue_links = BrokerQueueLinks(operations)
        self._add_observers(registry, operations)
        self._create_nodes(registry, operations)
        if persistence is not None:
            _restore_forwarders(persistence, operations.forwarding)
        sessions = self._sessions = ClientSessions(operations, options.connection_limits)
        registry.on_deleted = self._on_node_deleted
        operations.on_policy_changed = self._on_policy_changed
        services = ConnectionServices(
            operations, sessions, self._logins, options.open_timeout, options.server_certificate
        )
        amqp = AmqpProtocol(services, options.amqp, self._container)
        started.push_async_callback(self._stop_listening)
        started.push_async_callback(self._end_clients, sessions, amqp)
        self._expiry = loop.call_later(options.expiry_interval, self._expire)
        await self._start_listening(services, amqp)
        log.info("listening on %s", " and ".join(self.urls))
        started.callback(queue_links.close)
        if options.management is not None:
            await self._start_management(operations, options.management)
        for each in connecting:
            started.push_async_callback(each.close)
            each.start()

    async def _start_listening(self, services: ConnectionServices, amqp: AmqpProtocol) -> None:
        options, stomp = self._options, None
        offers = [Offer(self._listener, AMQP, amqp.accept)]
        if self._tls_listener is not None:
            offers.append(Offer(self._tls_listener, AMQP, amqp.accept))
        # Both are imported here, so that a broker without them does not load them.
        if options.mqtt.enabled:
            from qmf.broker.protocols.mqtt.protocol import MqttProtocol

            mqtt = self._mqtt = MqttProtocol(services, options.mqtt)
            offers += [Offer(listener, MQTT, mqtt.accept) for listener in self._mqtt_listeners]
        if self._stomp_listener is not None:
            from qmf.broker.protocols.stomp.connection import StompConnection

            stomp = partial(StompConnection, services, options.stomp)
            offers.append(Offer(self._stomp_listener, STOMP, stomp))
        if self._ws_listener is not None:
            offers.append(Offer(self._ws_listener, WEBSOCKET, self._accept_websocket(amqp, stomp)))
        limit = options.connection_limits.handshakes
        handshakes = Handshakes(limit, options.open_timeout * COUNTED, self.counters)
        await start_listeners(offers, options.ssl_context, options.open_timeout, handshakes)

    def _accept_websocket(self, amqp: AmqpProtocol, stomp: Accept | None) -> Accept:
        from qmf.bus.websocket import STOMP_SUBPROTOCOLS, check_library, server_layer

        check_library()
        options, accept = self._options, {"amqp": amqp.accept}
        if self._mqtt is not None:
            accept["mqtt"] = self._mqtt.accept
        if stomp is not None:
            accept |= dict.fromkeys(STOMP_SUBPROTOCOLS, stomp)
        return lambda: server_layer(accept, options.ws_origins, options.open_timeout)

    def _make_connecting(self, operations: Operations) -> Sequence[BrokerFederation | BrokerRelays]:
        """What connects to other brokers, once it is started."""
        options, forwarding = self._options.relay, operations.forwarding
        federation = forwarding.federation = BrokerFederation(operations, self._container)
        operations.registry.agents = options.agents
        if not options.enabled:
            return (federation,)
        # Imported here, so that a broker that does not relay does not load it.
        from qmf.broker.relay.relays import BrokerRelays

        relays = forwarding.relays = BrokerRelays(operations, federation, options)
        return federation, relays

    def _add_observers(self, registry: NodeRegistry, operations: Operations) -> None:
        """Have what decides who may, and what records it, know what happens."""
        observers: list[BrokerObserver] = []
        if (access := self._options.access) is not None:
            observers.append(access)
            access.apply(operations)
        if (audit := self._options.audit) is not None:
            observers.append(audit)
            operations.on_refused = audit.on_refused
        if observers:
            registry.observer = BrokerObservers(registry.observer, *observers)

    async def serve(self, connected: socket.socket) -> None:
        """Serve a client on a socket that is connected to it.

        Raises:
            OSError: the client is gone.
        """
        await self._listener.serve(connected)

    async def close(self) -> None:
        """Stop listening, stop the broker's own agent, and close all connections.

        Returns when all are gone. A second call does nothing.
        """
        if not self._listener.stop():
            return
        for listener in self._listeners:
            listener.stop()
        await self._started.aclose()
        log.info("closed %s", self.url)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def _end_clients(self, sessions: ClientSessions, amqp: AmqpProtocol) -> None:
        amqp.close()
        if self._mqtt is not None:
            self._mqtt.close()
        if self._expiry is not None:
            self._expiry.cancel()
        await sessions.close()
        if self._mqtt is not None:
            self._mqtt.stop()

    async def _stop_listening(self) -> None:
        for listener in self._listeners:
            listener.stop()
            await listener.wait_closed()

    def _create_nodes(self, registry: NodeRegistry, operations: Operations) -> None:
        """Create the queues and policies of the options, but for durable ones that are there since an earlier start."""
        for name in self._options.queues:
            if registry.queue(name) is None:
                operations.create(BROKER, name, NodeDeclaration(queue=QueueSettings(limits=registry.limits)))
        patterns = {PolicyKind.QUEUE: self._options.queue_patterns, PolicyKind.TOPIC: self._options.topic_patterns}
        for kind, expressions in patterns.items():
            for pattern in expressions:
                if all(item.pattern != pattern for item in registry.topics.policies):
                    operations.create_policy(BROKER, kind, pattern, {})

    def _open_data_dir(self, path: Path, registry: NodeRegistry) -> Persistence:
        # Imported here, so that a broker that stores nothing does not load it.
        from qmf.broker.store.persistence import Persistence
        from qmf.broker.store.system_id import stored_id

        persistence = Persistence(path, registry)
        self._started.push_async_callback(persistence.close)
        self._id = stored_id(path)
        return persistence

    async def _start_management(self, operations: Operations, interval: float) -> None:
        # Imported here, so that a broker without management loads neither agent nor models.
        from qmf.broker.management.agent import ManagementAgent
        from qmf.broker.management.setup import BrokerSetup

        setup = BrokerSetup(
            self._id,
            self._container,
            self._listener.authority,
            self.port,
            self._listener.backlog,
            self._options.connection_limits,
            interval,
            self._options.publishes,
            self._options.data_dir,
            self._options.access,
            self._options.server_certificate,
            any(item is not None for item in (self._options.access, self._options.users, self._options.tokens)),
            None if self._mqtt is None else self._mqtt.sessions,
        )
        management = ManagementAgent(operations, name=self._options.name, setup=setup, process=self.process)
        self._started.push_async_callback(management.close)
        await management.start()

    def _on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node was deleted: links that clients have there end, and what forwards its messages."""
        assert self._sessions is not None
        assert self._forwarding is not None
        self._sessions.on_node_deleted(node)
        self._forwarding.on_node_deleted(node)

    def _on_policy_changed(self) -> None:
        """Other rules apply: what lacks a right now ends."""
        assert self._sessions is not None
        assert self._forwarding is not None
        self._sessions.on_policy_changed()
        self._forwarding.on_policy_changed()

    def _expire(self) -> None:
        """Remove the messages whose time to live has ended; one that is the next to be delivered is removed earlier."""
        assert self._registry is not None
        self._registry.expire()
        self._expiry = asyncio.get_running_loop().call_later(self._options.expiry_interval, self._expire)


def _restore_forwarders(persistence: Persistence, forwarding: ForwardingOperations) -> None:
    from qmf.broker.store.errors import StoreDamaged

    types = forwarding.types
    for each in persistence.forwarders:
        kind, name = each.kind.value, each.name
        if kind not in types:
            log.warning("%s %s: not used, since this broker was started without relaying", kind, name)
            continue
        try:
            types[kind].restore(name, each.fields)
        except ForwardingError as error:
            raise StoreDamaged(persistence.path, f"{kind} {name!r} cannot be restored: {error}") from error
