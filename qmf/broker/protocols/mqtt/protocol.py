"""MQTT for the clients of a broker: what their connections share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from qmf.broker.logins import Logins
from qmf.broker.nodes.observed_clients import LastingSession
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.mqtt.connection import MqttConnection
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.sessions import MqttSessions
from qmf.broker.sessions import ClientSessions


class MqttProtocol:
    """MQTT for the clients of one broker."""

    def __init__(
        self,
        operations: Operations,
        clients: ClientSessions,
        logins: Logins,
        options: MqttOptions,
        *,
        open_timeout: float,
        certificate: Callable[[], bytes] | None,
    ) -> None:
        """Find the sessions of an earlier run; connections have what the protocol keeps for all of them.

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
        self._sessions = MqttSessions(operations, options.sys_interval)
        self._sessions.system.start()
        self._closing = False

    def accept(self) -> asyncio.BaseProtocol:
        """What takes the bytes of a new connection; it is a `ClientSession` once it is connected."""
        return MqttConnection(
            self._options,
            self._operations,
            self._clients,
            self._sessions,
            self._logins,
            open_timeout=self._open_timeout,
            certificate=self._certificate,
            shutting_down=lambda: self._closing,
        )

    @property
    def observed_sessions(self) -> Sequence[LastingSession]:
        """All sessions, as observers see them."""
        return self._sessions.observed

    def close(self) -> None:
        """The broker ends: clients learn that, and no session ends by its time any more."""
        self._closing = True
        self._sessions.system.stop()

    def stop(self) -> None:
        """All clients are gone."""
        self._sessions.shut_down()
