"""The connection of a client of MQTT, as the client's side in the broker sees it."""

from __future__ import annotations

from typing import Protocol

from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.machine import ConnectionMachine
from qmf.broker.protocols.mqtt.observed_session import SessionHolder


class WillRefused(Exception):
    """The will of a client is refused.

    Attributes:
        code: for the client.
    """

    def __init__(self, code: ReasonCode, reason: str) -> None:
        self.code = code
        super().__init__(reason)


class ConnectedClient(SessionHolder, Protocol):
    """The connection of a client, as this module sees it."""

    machine: ConnectionMachine

    @property
    def has_room(self) -> bool:
        """More may be written."""

    def write(self, data: bytes) -> None:
        """Write bytes in this turn of the loop."""

    def on_answered(self) -> None:
        """A publication was answered."""
