"""Who wants to know what comes and goes in a broker. Messages are not told: they are counted where they pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from qmf.broker.links.connection import Connection
    from qmf.broker.links.links import IncomingLink, OutgoingLink
    from qmf.broker.nodes.exchanges import BindingSpec, Exchange
    from qmf.broker.nodes.queues import Queue


@attrs.frozen
class ClientInfo:
    """Who a client is, as far as it said.

    Attributes:
        address: its address and port.
        container: its container id, or empty.
        user: whom it has logged in as, or empty.
        mechanism: SASL mechanism by which it has, or empty.
        properties: what else it says of itself.
    """

    address: str
    container: str = ""
    user: str = ""
    mechanism: str = ""
    properties: Mapping[str, object] = attrs.field(factory=dict)


class BrokerObserver:
    """Told on the loop's thread, after it came and before it goes; must not block or raise. This one does nothing.

    `client` is None for what the broker does for itself.
    """

    def connected(self, client: Connection) -> None:
        """A client has connected and logged in."""

    def disconnected(self, client: Connection) -> None:
        """A client that had connected is gone, after all its links."""

    def declared(self, queue: Queue, client: Connection | None) -> None:
        """There is a queue that was not there from the start."""

    def deleted(self, queue: Queue, client: Connection | None) -> None:
        """A queue is about to go, with its bindings."""

    def bound(self, exchange: Exchange, queue: Queue, match: BindingSpec, client: Connection | None) -> None:
        """A queue gets messages from an exchange."""

    def attached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """A client has a link."""

    def detached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """A link of a client is about to go."""


class BrokerObservers(BrokerObserver):
    """Several observers, told in their order."""

    def __init__(self, *observers: BrokerObserver) -> None:
        self._observers = observers

    def connected(self, client: Connection) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.connected(client)

    def disconnected(self, client: Connection) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.disconnected(client)

    def declared(self, queue: Queue, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.declared(queue, client)

    def deleted(self, queue: Queue, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.deleted(queue, client)

    def bound(self, exchange: Exchange, queue: Queue, match: BindingSpec, client: Connection | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.bound(exchange, queue, match, client)

    def attached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.attached(client, end)

    def detached(self, client: Connection, end: OutgoingLink | IncomingLink) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.detached(client, end)
