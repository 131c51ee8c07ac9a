"""The connection of a client of MQTT, as its session and the client's side in the broker see it."""

from __future__ import annotations

from typing import Protocol

from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.protocols.mqtt.codec.values import ReasonCode
from qmf.broker.protocols.mqtt.machine import ConnectionMachine


class WillRefused(Exception):
    """The will of a client is refused."""

    def __init__(self, code: ReasonCode, reason: str) -> None:
        self.code = code
        super().__init__(reason)


class ConnectedClient(ClientSession, Protocol):
    """The connection of a client that was let in, or is about to be."""

    machine: ConnectionMachine

    @property
    def has_room(self) -> bool:
        """More may be written."""

    def write(self, data: bytes) -> None:
        """Write bytes in this turn of the loop."""

    def on_answered(self) -> None:
        """A publication was answered."""

    def end(self, code: ReasonCode, reason: str) -> None:
        """Close it; its session is given up at once."""
