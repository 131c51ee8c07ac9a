"""AMQP 1.0 for the clients of a broker: what it allows them, and what their connections share."""

from __future__ import annotations

import asyncio

import attrs

from qmf._version import __version__
from qmf.broker.listener import OPEN_TIMEOUT
from qmf.broker.logins import Logins
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.amqp.connection import ServerConnection
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks
from qmf.broker.protocols.amqp.sasl import SaslServer
from qmf.broker.protocols.amqp.sole_connections import SOLE_CONNECTION, SoleConnections
from qmf.broker.sessions import ClientSessions
from qmf.bus.engine.resumption import LINK_RESUMPTION
from qmf.bus.engine.values import MAX_FRAME, MAX_MESSAGE, ConnectionSettings
from qmf.bus.transport import PendingWrites


@attrs.frozen
class AmqpOptions:
    """What AMQP allows to clients.

    Attributes:
        container: container id of the broker.
        idle_timeout: seconds without a frame after which a client counts as dead, None for never; it is asked for
            heartbeats at twice that rate. Clients that block in their own code send none meanwhile, so this is longer
            than what `AmqpBus` asks of a broker.
        open_timeout: seconds that a client has for its handshakes.
        max_frame, max_message: largest frame and message that are accepted, in bytes.
        max_sessions, max_links: that one connection may have. Consoles and agents have one session and fewer than ten
            links.
    """

    container: str = ""
    idle_timeout: float | None = 120.0
    open_timeout: float = OPEN_TIMEOUT
    max_frame: int = MAX_FRAME
    max_message: int = MAX_MESSAGE
    max_sessions: int = 1_000
    max_links: int = 1_000


#: The options that a broker has by default.
AMQP_DEFAULTS = AmqpOptions()


class AmqpProtocol:
    """AMQP 1.0 for the clients of one broker."""

    def __init__(self, operations: Operations, sessions: ClientSessions, logins: Logins, options: AmqpOptions) -> None:
        """Args:

        operations, sessions, logins: of the broker.
        options: see there.
        """
        self._operations = operations
        self._sessions = sessions
        self._logins = logins
        self._options = options
        self._settings = ConnectionSettings(
            container=options.container,
            server=True,
            idle_timeout=options.idle_timeout,
            max_frame=options.max_frame,
            max_message=options.max_message,
            max_sessions=options.max_sessions,
            mechanisms=None,  # those of `SaslServer`
            capabilities=("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS", SOLE_CONNECTION, LINK_RESUMPTION),
            properties={"product": "qmf-broker", "version": __version__},
        )
        self._resumable = ResumableLinks(operations)
        self._sole = SoleConnections()
        self._pending = PendingWrites()

    def accept(self) -> asyncio.BaseProtocol:
        """What takes the bytes of a new connection; it is a `ClientSession` once it is connected."""
        return ServerConnection(
            self._settings,
            SaslServer(self._logins.users, self._logins.check_elsewhere),
            self._operations,
            self._sessions,
            self._resumable,
            self._sole,
            self._pending,
            open_timeout=self._options.open_timeout,
            max_links=self._options.max_links,
        ).transport

    def close(self) -> None:
        """Keep no links for clients that may come back."""
        self._resumable.close()
