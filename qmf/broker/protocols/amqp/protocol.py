"""AMQP 1.0 for the clients of a broker: what their connections share."""

from __future__ import annotations

import asyncio

from qmf._version import __version__
from qmf.broker.protocols.amqp.connection import ServerConnection
from qmf.broker.protocols.amqp.options import AmqpOptions
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks
from qmf.broker.protocols.amqp.sole_connections import SOLE_CONNECTION, SoleConnections
from qmf.broker.protocols.services import ConnectionServices
from qmf.bus.engine.resumption import LINK_RESUMPTION
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.transport import PendingWrites


class AmqpProtocol:
    """AMQP 1.0 for the clients of one broker."""

    def __init__(self, services: ConnectionServices, options: AmqpOptions, container: str) -> None:
        """Connections have what the protocol keeps for all of them; `container`: container id of the broker."""
        self._services = services
        self._max_links = options.max_links
        self._settings = ConnectionSettings(
            container=container,
            server=True,
            idle_timeout=options.idle_timeout,
            max_frame=options.max_frame,
            max_message=options.max_message,
            max_sessions=options.max_sessions,
            capabilities=("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS", SOLE_CONNECTION, LINK_RESUMPTION),
            properties={"product": "qmf-broker", "version": __version__},
        )
        self._resumable = ResumableLinks(services.operations)
        self._sole = SoleConnections()
        self._pending = PendingWrites()

    def accept(self) -> asyncio.BaseProtocol:
        """What takes the bytes of a new connection; it is a `ClientSession` once it is connected."""
        return ServerConnection(
            self._services, self._settings, self._resumable, self._sole, self._pending, max_links=self._max_links
        ).transport

    def close(self) -> None:
        """Keep no links for clients that may come back."""
        self._resumable.close()
