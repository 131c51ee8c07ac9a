"""What the opens of both sides say, and how a server refuses a connection. Part of `engine.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import proton

from qmf.bus.engine.events import ConnectionOpened
from qmf.bus.engine.properties import text_keys
from qmf.bus.engine.values import ConnectionSettings

#: Property of an open after which its side closes the connection with the reason.
ESTABLISHMENT_FAILED = "amqp:connection-establishment-failed"

#: First bytes of TLS, plain and after AMQP's own header for it. proton would start a handshake without a certificate.
_TLS_HANDSHAKE = b"\x16"
_TLS_HEADER = b"AMQP\x02"


class FirstBytes:
    """Looks at the first bytes of the peer: proton would take those of TLS.

    Attributes:
        missing: bytes that are still to be looked at.
    """

    def __init__(self) -> None:
        self._bytes = b""
        self.missing = len(_TLS_HEADER)

    def are_of_tls(self, data: bytes | memoryview) -> bool:
        """Look at what has come next; returns whether the peer uses TLS."""
        self._bytes += data[: self.missing]
        self.missing = len(_TLS_HEADER) - len(self._bytes)
        return self._bytes.startswith((_TLS_HANDSHAKE, _TLS_HEADER))


@attrs.frozen
class ConnectionRefusal:
    """Why a connection is closed.

    Attributes:
        name, description: of the error.
        info: more of it, by name; values that are text are sent as symbols.
    """

    name: str
    description: str
    info: Mapping[str, object] = attrs.field(factory=dict)

    def condition(self) -> proton.Condition:
        """The same for proton."""
        info: dict[Any, Any] = {
            proton.symbol(key): proton.symbol(value) if isinstance(value, str) else value
            for key, value in self.info.items()
        }
        return proton.Condition(self.name, self.description, info or None)


def configure(connection: proton.Connection, transport: proton.Transport, settings: ConnectionSettings) -> None:
    """Set what the open of our side says."""
    connection.container = settings.container
    if settings.hostname is not None:
        connection.hostname = settings.hostname
    if settings.capabilities:
        connection.offered_capabilities = [proton.symbol(name) for name in settings.capabilities]
    if settings.properties:
        connection.properties = {proton.symbol(name): value for name, value in settings.properties.items()}
    if settings.idle_timeout is not None:
        transport.idle_timeout = settings.idle_timeout
    transport.max_frame_size = settings.max_frame


def read_open(connection: proton.Connection) -> ConnectionOpened:
    """What the peer's open says."""
    return ConnectionOpened(
        connection.remote_container or "",
        _names(connection.remote_offered_capabilities),
        text_keys(connection.remote_properties),
        _names(connection.remote_desired_capabilities),
    )


def _names(capabilities: Any) -> frozenset[str]:
    """A field with one symbol, an array of them, or none."""
    if capabilities is None:
        return frozenset()
    if isinstance(capabilities, str):
        return frozenset([str(capabilities)])
    return frozenset(str(name) for name in getattr(capabilities, "elements", capabilities))
