"""Clients that ask for it, as JMS clients do, have one connection with their container id.

Source: AMQP extension "Enforcing Connection Uniqueness". Connections are known by user and container id here, so that
nobody closes, or prevents, those of others.
"""

from __future__ import annotations

from typing import Protocol

from qmf.bus.engine.events import ConnectionOpened
from qmf.bus.engine.opening import ConnectionRefusal

#: Capability of a connection.
SOLE_CONNECTION = "sole-connection-for-container"
#: Property with what is to be done with an existing connection, and the value for closing it. Otherwise the new one is
#: refused.
_POLICY, _CLOSE_EXISTING = "sole-connection-enforcement-policy", 1

#: User and container id.
_Key = tuple[str, str]


class UserConnection(Protocol):
    """A connection of a client."""

    def close_for(self, refusal: ConnectionRefusal) -> None:
        """Close the connection."""


class SoleConnections:
    """The connections of a broker, by user and container id."""

    def __init__(self) -> None:
        #: Whether each one asked to be the only one.
        self._connections: dict[_Key, dict[UserConnection, bool]] = {}

    def add(self, connection: UserConnection, user: str, opened: ConnectionOpened) -> ConnectionRefusal | None:
        """A client opens a connection.

        Args:
            connection: to be removed when it ends.
            user: who has it.
            opened: what the client says.

        Returns:
            why the connection is refused, and not known here; None if it is not.
        """
        key = user, opened.container
        others = self._connections.get(key, {})
        sole = SOLE_CONNECTION in opened.desired
        if (sole and others) or any(others.values()):
            if not sole or opened.properties.get(_POLICY) != _CLOSE_EXISTING:
                reason = f"container {opened.container!r} has a connection, and may have one only"
                return ConnectionRefusal("amqp:invalid-field", reason, {"invalid-field": "container-id"})
            for other in list(others):
                reason = f"container {opened.container!r} has made another connection, and may have one only"
                other.close_for(
                    ConnectionRefusal("amqp:resource-locked", reason, {"sole-connection-enforcement": True})
                )
            others = {}
        self._connections[key] = {**others, connection: sole}
        return None

    def remove(self, connection: UserConnection, user: str, container: str) -> None:
        """A connection has ended. A second call does nothing."""
        key = user, container
        if (known := self._connections.get(key)) is not None:
            known.pop(connection, None)
            if not known:
                del self._connections[key]
