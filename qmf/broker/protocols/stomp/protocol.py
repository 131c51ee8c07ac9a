"""STOMP for the clients of a broker: what their connections share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from qmf.broker.logins import Logins
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.stomp.connection import StompConnection
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.broker.sessions import ClientSessions


class StompProtocol:
    """STOMP for the clients of one broker."""

    def __init__(
        self,
        operations: Operations,
        clients: ClientSessions,
        logins: Logins,
        options: StompOptions,
        *,
        open_timeout: float,
        certificate: Callable[[], bytes] | None,
    ) -> None:
        """Connections have what the protocol keeps for all of them.

        Args:
            operations, clients, logins: of the broker.
            options: see there.
            open_timeout: seconds that a client has for its login.
            certificate: returns the broker's certificate as DER; None if it is not known.
        """
        self._operations = operations
        self._clients = clients
        self._logins = logins
        self._options = options
        self._open_timeout = open_timeout
        self._certificate = certificate

    def accept(self) -> asyncio.BaseProtocol:
        """What takes the bytes of a new connection; it is a `ClientSession` once it is connected."""
        return StompConnection(
            self._options,
            self._operations,
            self._clients,
            self._logins,
            open_timeout=self._open_timeout,
            certificate=self._certificate,
        )
