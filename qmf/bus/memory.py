"""A bus without a network, for tests: `MemoryBus`, connected to others by a `MemoryExchange`.

It passes the same conformance tests as `AmqpBus`, and fails on request: `MemoryExchange.stop`, `drop` and `refuse`.
Buses on one exchange may belong to different loops in different threads; messages are handed over to the loop of the
receiver.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from qmf.bus.backoff import Backoff
from qmf.bus.base import (
    Binding,
    Bus,
    BusEvent,
    BusWatcher,
    Connected,
    Disconnected,
    ExchangeKind,
    LinkLost,
    MessageCallback,
    OutcomeCallback,
    ReceivedMessage,
    Subscription,
)
from qmf.bus.bus_state import BusState, BusTrigger, next_state
from qmf.bus.engine.destination import read_destination
from qmf.bus.topics import TopicTable
from qmf.bus.watchers import BusWatchers
from qmf.errors import ConnectError, DisconnectedError, LinkError

log = logging.getLogger("qmf.bus")

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
        """Args:

        nodes: exchanges by name.
        name, queue_limit: as the attributes.
        """
        self.name = name
        self.received = self.discarded = self.dropped = 0
        self.queue_limit = queue_limit
        self._topics: dict[str, TopicTable[MemorySubscription]] = {}
        self._direct: dict[str, dict[str, list[MemorySubscription]]] = {}
        for node, kind in nodes.items():
            if kind is ExchangeKind.TOPIC:
                self._topics[node] = TopicTable()
            else:
                self._direct[node] = {}
        self._buses: dict[MemoryBus, None] = {}
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

    def enter(self, bus: MemoryBus) -> None:
        """A bus connects."""
        if not self._running:
            raise ConnectError(bus.url, "the exchange is stopped")
        with self._lock:
            self._buses[bus] = None

    def leave(self, bus: MemoryBus) -> None:
        """A bus disconnects."""
        with self._lock:
            self._buses.pop(bus, None)

    def bind(self, subscription: MemorySubscription) -> None:
        """Bind a subscription."""
        node, key = subscription.binding.exchange, subscription.binding.key
        self._check(node)
        with self._lock:
            if node in self._topics:
                self._topics[node].add(key, subscription)
            elif node in self._direct:
                self._direct[node].setdefault(key, []).append(subscription)
            else:
                raise LinkError(node, "amqp:not-found", f"no exchange {node!r}")

    def unbind(self, subscription: MemorySubscription) -> None:
        """Unbind a subscription."""
        node, key = subscription.binding.exchange, subscription.binding.key
        with self._lock:
            if node in self._topics:
                self._topics[node].remove(key, subscription)
            elif subscription in (bound := self._direct.get(node, {}).get(key, [])):
                bound.remove(subscription)

    def route(self, data: bytes) -> None:
        """Hand a message to every subscription whose binding matches."""
        to, subject = read_destination(data)
        node, key = to or "", subject or ""
        self._check(node)
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

    def _check(self, node: str) -> None:
        if node in self._refused:
            raise LinkError(node, *self._refused[node])


class MemorySubscription(Subscription):
    """A binding on a memory bus."""

    def __init__(self, bus: MemoryBus, binding: Binding, on_message: MessageCallback, prefetch: int) -> None:
        self.binding = binding
        self._bus = bus
        self._on_message = on_message
        self._window = max(1, prefetch)
        self._unsettled = 0
        self._queue: deque[bytes] = deque()
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._connection_number = 0

    def enqueue(self, data: bytes) -> None:
        """Queue a message; any thread may call."""
        exchange = self._bus.exchange
        if len(self._queue) >= exchange.queue_limit:
            self._queue.popleft()
            exchange.dropped += 1
        self._queue.append(data)
        self._schedule()

    def clear(self) -> None:
        """Forget what was queued, as a broker does when the connection ends."""
        self._connection_number += 1
        self._unsettled = 0
        self._queue.clear()

    async def close(self) -> None:
        """See `Subscription`."""
        self._bus.unsubscribe(self)
        self.clear()

    def _schedule(self) -> None:
        if not self._scheduled and not self._loop.is_closed():
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._scheduled = False
        number = self._connection_number
        while self._queue and self._unsettled < self._window and number == self._connection_number:
            self._unsettled += 1
            received = ReceivedMessage(self._queue.popleft(), lambda: self._on_settled(number))
            try:
                self._on_message(received)
            except Exception:
                log.exception("the receiver of %s %r failed; message dropped", self.binding.exchange, self.binding.key)
                received.settle()

    def _on_settled(self, number: int) -> None:
        if number == self._connection_number:
            self._unsettled -= 1
            if self._queue:
                self._schedule()


class MemoryBus(Bus):
    """A bus on a `MemoryExchange`."""

    def __init__(self, exchange: MemoryExchange, *, reconnect: bool = True, backoff: Backoff | None = None) -> None:
        """Args:

        exchange: that connects this bus with others.
        reconnect: False to stay disconnected after a loss.
        backoff: waits between attempts to reconnect.
        """
        self.exchange = exchange
        self._reconnect = reconnect
        self._backoff = backoff or Backoff()
        self._state = BusState.NEW
        self._reason = "not opened yet"
        self._watchers = BusWatchers()
        self._subscriptions: list[MemorySubscription] = []
        self._reconnecting: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        """See `Bus`."""
        return f"memory://{self.exchange.name}"

    @property
    def connected(self) -> bool:
        """See `Bus`."""
        return self._state is BusState.CONNECTED

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._watchers.add(watcher)

    async def open(self, timeout: float = 10.0) -> None:
        """See `Bus`."""
        self._state = next_state(self._state, BusTrigger.CONNECT)
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                await asyncio.sleep(0)  # like a real bus, never at once
            self.exchange.enter(self)
        except BaseException:
            if self._state is BusState.CONNECTING:
                self._state = next_state(self._state, BusTrigger.FAILED)
            raise
        if self._state is not BusState.CONNECTING:
            self.exchange.leave(self)
            raise ConnectError(self.url, "closed while connecting")
        self._on_connected(again=False)

    async def close(self) -> None:
        """See `Bus`."""
        if self._state is BusState.CLOSED:
            return
        self._state = next_state(self._state, BusTrigger.CLOSE)
        self._reason = "closed"
        task, self._reconnecting = self._reconnecting, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._disconnect()
        self._subscriptions.clear()

    async def subscribe(
        self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200
    ) -> MemorySubscription:
        """See `Bus`."""
        self._require_connection()
        subscription = MemorySubscription(self, binding, on_message, prefetch)
        self.exchange.bind(subscription)
        self._subscriptions.append(subscription)
        await asyncio.sleep(0)
        return subscription

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`."""
        self._require_connection()
        try:
            self.exchange.route(data)
        except LinkError as error:
            if confirm:
                raise LinkError("", error.condition, error.description) from error
            self._notify(LinkLost("", error.condition, error.description, reopened=True))
        await asyncio.sleep(0)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus`."""
        self._require_connection()
        failure: LinkError | None = None
        try:
            self.exchange.route(data)
        except LinkError as error:
            failure = LinkError("", error.condition, error.description)
        asyncio.get_running_loop().call_soon(on_outcome, failure)
        return True

    # For exchange and subscriptions

    def unsubscribe(self, subscription: MemorySubscription) -> None:
        """End a subscription. A second call does nothing."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self.exchange.unbind(subscription)

    def on_dropped(self, reason: str) -> None:
        """The exchange ends the connection; any thread may call."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_lost, reason)

    # Details

    def _require_connection(self) -> None:
        if self._state is not BusState.CONNECTED:
            raise DisconnectedError(self.url, self._reason)

    def _notify(self, event: BusEvent) -> None:
        self._watchers.notify(event)

    def _on_connected(self, *, again: bool) -> None:
        self._state = next_state(self._state, BusTrigger.CONNECTED)
        self._notify(Connected(again, self.exchange.name))

    def _disconnect(self) -> None:
        self.exchange.leave(self)
        for subscription in self._subscriptions:
            self.exchange.unbind(subscription)
            subscription.clear()

    def _on_lost(self, reason: str) -> None:
        if self._state is not BusState.CONNECTED:
            return
        self._state = next_state(self._state, BusTrigger.LOST)
        self._reason = reason
        self._disconnect()
        if not self._reconnect:
            self._notify(Disconnected(reason, None))
            return
        delays = self._backoff.delays()
        wait = next(delays)
        self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect_after(wait, delays))
        self._notify(Disconnected(reason, wait))

    async def _reconnect_after(self, wait: float, delays: Iterator[float]) -> None:
        while True:
            await asyncio.sleep(wait)
            self._state = next_state(self._state, BusTrigger.CONNECT)
            try:
                self.exchange.enter(self)
            except ConnectError as error:
                self._state = next_state(self._state, BusTrigger.LOST)
                self._reason = error.reason
                wait = next(delays)
                continue
            break
        for subscription in list(self._subscriptions):
            try:
                self.exchange.bind(subscription)
            except LinkError as error:
                self._notify(LinkLost(error.address, error.condition, error.description, reopened=False))
        self._reconnecting = None
        self._on_connected(again=True)
