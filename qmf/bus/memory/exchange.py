"""The exchange that connects memory buses, in the place of a broker."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import Protocol

from qmf.bus.base import Binding, ExchangeKind
from qmf.bus.engine.destination import read_destination
from qmf.bus.topics import TopicTable
from qmf.errors import ConnectError, LinkError

#: The exchanges of QMF (QMF2.md 1) and those that every broker has.
PREDECLARED_EXCHANGES: Mapping[str, ExchangeKind] = {
    "qmf.default.topic": ExchangeKind.TOPIC,
    "qmf.default.direct": ExchangeKind.DIRECT,
    "qpid.management": ExchangeKind.TOPIC,
    "amq.topic": ExchangeKind.TOPIC,
    "amq.direct": ExchangeKind.DIRECT,
}
#: Messages kept for a subscription whose window is full; the oldest is dropped then, as the embedded broker does.
QUEUE_LIMIT = 10_000


class MemoryClient(Hashable, Protocol):
    """A bus that is connected to an exchange. Compared by identity."""

    @property
    def url(self) -> str:
        """See `Bus`."""

    def on_dropped(self, reason: str) -> None:
        """The exchange has ended the connection. Called on any thread."""


class MemoryQueue(Hashable, Protocol):
    """A queue that is bound to an exchange. Compared by identity."""

    binding: Binding

    def enqueue(self, data: bytes) -> None:
        """Add a message. Called on any thread."""


class MemoryExchange:
    """Connects memory buses, in the place of a broker.

    Attributes:
        name: container id that buses report.
        queue_limit: messages kept per subscription.
        received: messages that were sent.
        discarded: of those, messages to a node that does not exist.
        dropped: messages that full subscriptions dropped.
    """

    def __init__(
        self,
        nodes: Mapping[str, ExchangeKind] = PREDECLARED_EXCHANGES,
        *,
        name: str = "memory",
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        """Make an exchange without buses.

        Args:
            nodes: exchanges by name.
            name, queue_limit: as the attributes.
        """
        self.name = name
        self.received = self.discarded = self.dropped = 0
        self.queue_limit = queue_limit
        self._topics: dict[str, TopicTable[MemoryQueue]] = {}
        self._direct: dict[str, dict[str, list[MemoryQueue]]] = {}
        for node, kind in nodes.items():
            if kind is ExchangeKind.TOPIC:
                self._topics[node] = TopicTable()
            else:
                self._direct[node] = {}
        self._buses: dict[MemoryClient, None] = {}
        self._lock = threading.RLock()
        self._refused: dict[str, tuple[str, str]] = {}
        self._running = True

    def stop(self, reason: str = "the exchange was stopped") -> None:
        """End all connections and refuse new ones until `start`."""
        self._running = False
        self.drop(reason)

    def start(self) -> None:
        """Accept connections again."""
        self._running = True

    def drop(self, reason: str = "the connection was dropped") -> None:
        """End all connections."""
        with self._lock:
            buses = list(self._buses)
        for bus in buses:
            bus.on_dropped(reason)

    def refuse(self, node: str, condition: str = "amqp:unauthorized-access", description: str = "refused") -> None:
        """Refuse subscriptions and messages to `node` from now on; an empty condition ends that."""
        if condition:
            self._refused[node] = (condition, description)
        else:
            self._refused.pop(node, None)

    # For buses

    def connect(self, bus: MemoryClient) -> None:
        """Connect a bus.

        Raises:
            ConnectError: the exchange is stopped.
        """
        if not self._running:
            raise ConnectError(bus.url, "the exchange is stopped")
        with self._lock:
            self._buses[bus] = None

    def disconnect(self, bus: MemoryClient) -> None:
        """Disconnect a bus. Does nothing when it is not connected."""
        with self._lock:
            self._buses.pop(bus, None)

    def bind(self, queue: MemoryQueue) -> None:
        """Put the messages that match the binding of a queue on it from now on.

        Raises:
            LinkError: there is no such exchange, or it is refused.
        """
        node, key = queue.binding.exchange, queue.binding.key
        self._require_allowed(node)
        with self._lock:
            if node in self._topics:
                self._topics[node].add(key, queue)
            elif node in self._direct:
                self._direct[node].setdefault(key, []).append(queue)
            else:
                raise LinkError(node, "amqp:not-found", f"no exchange {node!r}")

    def unbind(self, queue: MemoryQueue) -> None:
        """End that. Does nothing when the queue is not bound."""
        node, key = queue.binding.exchange, queue.binding.key
        with self._lock:
            if node in self._topics:
                self._topics[node].remove(key, queue)
            elif queue in (bound := self._direct.get(node, {}).get(key, [])):
                bound.remove(queue)

    def route(self, data: bytes) -> None:
        """Put a message on every queue whose binding matches.

        Raises:
            LinkError: the node is refused.
        """
        to, subject = read_destination(data)
        node, key = to or "", subject or ""
        self._require_allowed(node)
        with self._lock:
            self.received += 1
            if node in self._topics:
                targets = self._topics[node].match(key)
            elif node in self._direct:
                targets = list(self._direct[node].get(key, ()))
            else:
                self.discarded += 1
                return
        for target in targets:
            target.enqueue(data)

    def _require_allowed(self, node: str) -> None:
        if node in self._refused:
            raise LinkError(node, *self._refused[node])
