"""The options of a broker: the keyword arguments of `Broker`, checked once and then passed on as one value.

What belongs to one protocol is an object of its own, made in the room of that protocol, with one field here: `amqp` for
AMQP 1.0, `mqtt` for MQTT, `stomp` for STOMP. So is what belongs to one further part of the broker.
"""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.listener import BACKLOG, OPEN_TIMEOUT
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.operations.policy import Policy
from qmf.broker.process_control import ProcessControl
from qmf.broker.protocols.amqp.options import AmqpOptions
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.broker.relay.options import RelayOptions
from qmf.bus.url import AMQP_PORT
from qmf.errors import CallerError
from qmf.sasl.gssapi import KerberosService
from qmf.sasl.server import SERVER_MECHANISMS, Tokens
from qmf.users.users import Users

if TYPE_CHECKING:
    from qmf.broker.access.control import FileAccessControl
    from qmf.broker.audit import BrokerAudit

#: Seconds between removals of messages whose time to live has ended; the default of qpidd's `--queue-purge-interval`.
EXPIRY_INTERVAL = 600.0

_AMQP_OPTIONS = AmqpOptions()
_MQTT_OPTIONS = MqttOptions()
_STOMP_OPTIONS = StompOptions()
_RELAY_OPTIONS = RelayOptions()
_CONNECTION_LIMITS = ConnectionLimits()


def _to_strings(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise CallerError(f"queues, domains and patterns of a broker are lists of strings, not the string {value!r}")
    return tuple(value)


def _to_users(value: Mapping[str, str] | Users | None) -> Users | None:
    return value if value is None or isinstance(value, Users) else Users(value)


def _to_mechanisms(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.upper() for name in value)
    if wrong := [name for name in names if name not in SERVER_MECHANISMS]:
        raise CallerError(f"SASL mechanism {wrong[0]!r} is not one of {', '.join(SERVER_MECHANISMS)}")
    return names


def _to_connection_limits(value: ConnectionLimits | None) -> ConnectionLimits:
    return value or _CONNECTION_LIMITS


def _seconds(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 < value < math.inf:
        raise CallerError(f"{attribute.name} of a broker must be a positive number of seconds, not {value!r}")


def _interval(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise CallerError(f"the interval of a broker's management must be a positive number of seconds, not {value!r}")


def _backlog(_: object, __: object, value: int) -> None:
    if value < 1:
        raise CallerError(f"the backlog of a broker must be at least one connection, not {value!r}")


@attrs.frozen(kw_only=True)
class BrokerOptions:
    """The keyword arguments of `Broker`. CallerError if one is invalid.

    Attributes:
        queues: names of queues that exist from the start.
        domains: QMF domains besides ``default`` whose exchanges exist.
        limits: of queues that ask for none; None for those of qpidd, and smaller ones for queues of subscriptions.
        total_limits: of all queues and open transactions together, but for queues that flow to disk; None for none.
        queue_patterns, topic_patterns: regular expressions: addresses that match one create a queue, or an exchange,
            when they are used.
        timestamps: messages that come get the time as an annotation; consoles may change it.
        expiry_interval: seconds between removals of messages whose time to live has ended.
        data_dir: folder for durable queues, exchanges and messages, which are there again at the next start;
            created where it is missing. None for a broker that keeps nothing.
        ssl_context: of a server; every connection must be TLS then.
        tls_port: TCP port for TLS, 0 for any free one, beside the other port, which is without TLS then. None: with
            `ssl_context`, there is TLS alone.
        ws_port: TCP port for WebSocket, over which there is AMQP, and MQTT and STOMP where they have ports; 0 for any
            free one. With `ssl_context` it is for TLS. None for none.
        ws_origins: of pages that browsers may connect from, such as ``https://mq.example``.
        server_certificate: returns the certificate of `ssl_context` as DER, to which SCRAM binds logins; None for no
            such mechanisms.
        backlog: connections that may wait to be accepted.
        open_timeout: seconds that a client has for its handshakes.
        listening: a socket to use instead of `host` and `port`; the broker closes it.
        connection_limits: numbers of clients at the same time; None for no limits.
        users: passwords by user, plain or as in a file that `qmf-users` keeps. Without users, tokens, certificates and
            `kerberos`, everybody is let in.
        tokens: whoever vouches for users by access tokens; None for nobody.
        certificates: clients may log in by a certificate that `ssl_context` has verified.
        kerberos: the service for which clients may have tickets of Kerberos to log in with; None for none.
        mechanisms: names of the SASL mechanisms that may be used; None for all that are possible, but with no password
            that others could read.
        policy: decides who may do what; None lets everybody who could log in do everything.
        access: decides by a file of rules instead.
        audit: writes the audit log; None for none.
        name: container id; unique by default.
        amqp: what AMQP 1.0 allows to clients.
        mqtt: on which ports there is MQTT, and what it allows to clients; on none by default.
        stomp: on which port there is STOMP, and what it allows to clients; on none by default.
        relay: whether messages to ``name@domain`` are relayed, and what is allowed then; they are not by default.
        management: seconds between publications of the broker's own agent, which shows its queues, clients and so on to
            consoles. None for no agent: its modules are not loaded then.
        publishes: the broker's own agent publishes changes; otherwise consoles have to query.
        process: what consoles may change in the process of the broker; None for nothing.
    """

    # Nodes and what is kept of them.
    queues: tuple[str, ...] = attrs.field(default=(), converter=_to_strings)
    domains: tuple[str, ...] = attrs.field(default=(), converter=_to_strings)
    limits: QueueLimits | None = None
    total_limits: QueueLimits | None = None
    queue_patterns: tuple[str, ...] = attrs.field(default=(), converter=_to_strings)
    topic_patterns: tuple[str, ...] = attrs.field(default=(), converter=_to_strings)
    timestamps: bool = False
    expiry_interval: float = attrs.field(default=EXPIRY_INTERVAL, validator=_seconds)
    data_dir: Path | None = None
    # Connections, of whatever protocol.
    ssl_context: ssl.SSLContext | None = None
    tls_port: int | None = None
    ws_port: int | None = None
    ws_origins: tuple[str, ...] = attrs.field(default=(), converter=_to_strings)
    server_certificate: Callable[[], bytes] | None = None
    backlog: int = attrs.field(default=BACKLOG, validator=_backlog)
    open_timeout: float = attrs.field(default=OPEN_TIMEOUT, validator=_seconds)
    listening: socket.socket | None = None
    connection_limits: ConnectionLimits = attrs.field(default=None, converter=_to_connection_limits)
    # Who may connect, and do what.
    users: Users | None = attrs.field(default=None, converter=_to_users)
    tokens: Tokens | None = None
    certificates: bool = False
    kerberos: KerberosService | None = None
    mechanisms: tuple[str, ...] | None = attrs.field(default=None, converter=_to_mechanisms)
    policy: Policy | None = None
    access: FileAccessControl | None = None
    audit: BrokerAudit | None = None
    # Protocols.
    name: str | None = None
    amqp: AmqpOptions = _AMQP_OPTIONS
    mqtt: MqttOptions = _MQTT_OPTIONS
    stomp: StompOptions = _STOMP_OPTIONS
    # Other brokers.
    relay: RelayOptions = _RELAY_OPTIONS
    # The broker's own agent.
    management: float | None = attrs.field(default=None, validator=_interval)
    publishes: bool = True
    process: ProcessControl | None = None


@attrs.frozen
class BrokerArguments(BrokerOptions):
    """All arguments of `Broker`.

    Attributes:
        host: address or name to listen on; empty for no socket: clients come by `Broker.serve`.
        port: TCP port; 0 for any free one. Ports of other protocols with the same number share its socket, and the
            first byte of a client decides.
    """

    host: str = "127.0.0.1"
    port: int = AMQP_PORT
