"""MQTT for the clients of a broker: what their connections share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from qmf.broker.nodes.observed_clients import LastingSession
from qmf.broker.protocols.mqtt.connection import MqttConnection
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.sessions import MqttSessions
from qmf.broker.protocols.services import ConnectionServices


class MqttProtocol:
    """MQTT for the clients of one broker."""

    def __init__(self, services: ConnectionServices, options: MqttOptions) -> None:
        """Find the sessions of an earlier run; connections have what the protocol keeps for all of them."""
        self._services = services
        self._options = options
        self._sessions = MqttSessions(services.operations, options.sys_interval)
        self._sessions.system.start()
        self._closing = False

    def accept(self) -> asyncio.BaseProtocol:
        """What takes the bytes of a new connection; it is a `ClientSession` once it is connected."""
        return MqttConnection(self._services, self._options, self._sessions, lambda: self._closing)

    @property
    def sessions(self) -> Sequence[LastingSession]:
        """All sessions, as observers see them."""
        return list(self._sessions)

    def close(self) -> None:
        """The broker ends: clients learn that, and no session ends by its time any more."""
        self._closing = True
        self._sessions.system.stop()

    def stop(self) -> None:
        """All clients are gone."""
        self._sessions.shut_down()
