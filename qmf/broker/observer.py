"""Observers of a broker: notified when clients, links, queues and bindings come and go.

Messages are not reported: they are counted where they pass. Observers see clients and links by the protocols of this
module, so that exchanges and queues, which notify them, need not know the classes of connections and links.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

import attrs

from qmf.broker.nodes.alerts import Crossing
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue


@attrs.frozen
class ClientInfo:
    """What is known of a client.

    Attributes:
        address: its address and port.
        container: its container id, or empty.
        user: the user that it has logged in as, or empty.
        mechanism: SASL mechanism that it used, or empty.
        properties: of its connection, such as `product`.
    """

    address: str
    container: str = ""
    user: str = ""
    mechanism: str = ""
    properties: Mapping[str, object] = attrs.field(factory=dict)


class BrokerClient(Hashable, Protocol):
    """The connection of a client. Compared by identity."""

    @property
    def info(self) -> ClientInfo:
        """What is known of the client."""

    def close(self, condition: str, description: str) -> None:
        """Close the connection with an AMQP error."""


class ClientLink(Hashable, Protocol):
    """A link of a client. Compared by identity."""

    @property
    def name(self) -> str:
        """Name that the client gave it."""

    @property
    def session(self) -> Hashable:
        """Identifies its session among those of the connection."""

    @property
    def queue(self) -> Queue | None:
        """The queue that the client receives from; None when the client sends on this link."""

    @property
    def presettled(self) -> bool:
        """True when every message is settled by its sender, so that there are no outcomes."""

    @property
    def transfers(self) -> int:
        """Messages transferred so far, repeated ones included."""

    def unsettled(self) -> tuple[int, int]:
        """Number and bytes of the messages that the client has received and not settled."""


class BrokerObserver:
    """Notified on the loop's thread, after something was created and before it is removed. This one does nothing.

    The methods must not block or raise. `client` is None for what the broker does for itself.
    """

    def on_connected(self, client: BrokerClient) -> None:
        """A client has connected and logged in."""

    def on_disconnected(self, client: BrokerClient) -> None:
        """A client that had connected is gone; its links were reported before."""

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """An exchange was created. Those that exist from the start are not reported."""

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """An exchange is about to be deleted, with its bindings."""

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        """A queue was created. Those that exist from the start are not reported."""

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:
        """A queue is about to be deleted, with its bindings."""

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """A queue was bound to an exchange."""

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """A binding is about to be removed. Those of a queue or exchange that is deleted are not reported."""

    def on_redirected(self, source: Queue, target: Queue) -> None:
        """New messages of a queue go to another one."""

    def on_redirection_ended(self, source: Queue, target: Queue) -> None:
        """New messages of a queue go to itself again."""

    def on_threshold(self, queue: Queue, crossing: Crossing) -> None:
        """A queue has grown beyond a threshold, or has drained."""

    def on_attached(self, client: BrokerClient, link: ClientLink) -> None:
        """A client has attached a link."""

    def on_detached(self, client: BrokerClient, link: ClientLink) -> None:
        """A link of a client is about to be removed."""


class BrokerObservers(BrokerObserver):
    """Several observers, notified one after the other."""

    def __init__(self, *observers: BrokerObserver) -> None:
        self._observers = observers

    def on_connected(self, client: BrokerClient) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_connected(client)

    def on_disconnected(self, client: BrokerClient) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_disconnected(client)

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_exchange_declared(exchange, client)

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_exchange_deleted(exchange, client)

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_queue_declared(queue, client)

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_queue_deleted(queue, client)

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_bound(exchange, queue, spec, client)

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_unbound(exchange, queue, spec, client)

    def on_redirected(self, source: Queue, target: Queue) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_redirected(source, target)

    def on_redirection_ended(self, source: Queue, target: Queue) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_redirection_ended(source, target)

    def on_threshold(self, queue: Queue, crossing: Crossing) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_threshold(queue, crossing)

    def on_attached(self, client: BrokerClient, link: ClientLink) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_attached(client, link)

    def on_detached(self, client: BrokerClient, link: ClientLink) -> None:
        """See `BrokerObserver`."""
        for observer in self._observers:
            observer.on_detached(client, link)
