"""Who uses an `AmqpTransport`, and is notified of what happens on it."""

from __future__ import annotations

from typing import Protocol

from qmf.bus.engine.events import EngineEvent, EventBatch


class TransportOwner(Protocol):
    """The user of a transport. Called on the loop's thread; must not block.

    `on_connected` is called first and `on_disconnected` last, each once. Neither is called when connecting fails.
    """

    def on_connected(self) -> None:
        """The transport is connected; with TLS, its handshake has ended."""

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """Something happened on the connection. What this call sends is written after all events of a read."""

    def on_writable(self) -> None:
        """Links for which `can_send` was False may have room now. Called after each write."""

    def on_disconnected(self, error: Exception | None) -> None:
        """The transport is closed: by us or by the peer (None), or because of an error. The engine is freed."""


class NoOwner:
    """Stands for the owner of a transport that is closed."""

    def on_connected(self) -> None:
        """See `TransportOwner`."""

    def on_event(self, event: EngineEvent | EventBatch) -> None:
        """See `TransportOwner`."""

    def on_writable(self) -> None:
        """See `TransportOwner`."""

    def on_disconnected(self, error: Exception | None) -> None:
        """See `TransportOwner`."""


#: Replaces the owner of a transport that is closed.
NO_OWNER: TransportOwner = NoOwner()
