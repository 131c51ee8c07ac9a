"""The bus on a `MemoryExchange`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from qmf.bus.backoff import Backoff
from qmf.bus.base import (
    Binding,
    Bus,
    BusWatcher,
    Connected,
    Disconnected,
    LinkLost,
    MessageCallback,
    OutcomeCallback,
)
from qmf.bus.connection_state import TRANSITIONS, ConnectionState, ConnectionTrigger
from qmf.bus.memory.exchange import MemoryExchange
from qmf.bus.memory.subscription import MemorySubscription
from qmf.bus.watchers import BusWatchers
from qmf.errors import ConnectError, DisconnectedError, LinkError


class MemoryBus(Bus):
    """A bus on a `MemoryExchange`."""

    def __init__(self, exchange: MemoryExchange, *, reconnect: bool = True, backoff: Backoff | None = None) -> None:
        """Make a bus that is connected once it is opened.

        Args:
            exchange: that connects this bus with others.
            reconnect: False to stay disconnected after a loss.
            backoff: waits between attempts to reconnect.
        """
        self.exchange = exchange
        self._reconnect = reconnect
        self._backoff = backoff or Backoff()
        self._state = ConnectionState.NEW
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
        return self._state is ConnectionState.CONNECTED

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._watchers.add(watcher)

    async def open(self, timeout: float = 10.0) -> None:
        """See `Bus`."""
        self._state = TRANSITIONS.next(self._state, ConnectionTrigger.CONNECT)
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                await asyncio.sleep(0)  # like a real bus, never at once
            self.exchange.connect(self)
        except BaseException:
            if self._state is ConnectionState.CONNECTING:
                self._state = TRANSITIONS.next(self._state, ConnectionTrigger.FAILED)
            raise
        if self._state is not ConnectionState.CONNECTING:
            self.exchange.disconnect(self)
            raise ConnectError(self.url, "closed while connecting")
        self._on_connected(again=False)

    async def close(self) -> None:
        """See `Bus`."""
        if self._state is ConnectionState.CLOSED:
            return
        self._state = TRANSITIONS.next(self._state, ConnectionTrigger.CLOSE)
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
        subscription = MemorySubscription(self.exchange, binding, on_message, prefetch, self._unsubscribe)
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
            self._watchers.notify(LinkLost("", error.condition, error.description, reopened=True))
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

    # For the exchange

    def on_dropped(self, reason: str) -> None:
        """See `MemoryClient`."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_lost, reason)

    # Details

    def _require_connection(self) -> None:
        if self._state is not ConnectionState.CONNECTED:
            raise DisconnectedError(self.url, self._reason)

    def _unsubscribe(self, subscription: MemorySubscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self.exchange.unbind(subscription)

    def _on_connected(self, *, again: bool) -> None:
        self._state = TRANSITIONS.next(self._state, ConnectionTrigger.CONNECTED)
        self._watchers.notify(Connected(again, self.exchange.name))

    def _disconnect(self) -> None:
        self.exchange.disconnect(self)
        for subscription in self._subscriptions:
            self.exchange.unbind(subscription)
            subscription.clear()

    def _on_lost(self, reason: str) -> None:
        if self._state is not ConnectionState.CONNECTED:
            return
        trigger = ConnectionTrigger.LOST if self._reconnect else ConnectionTrigger.DETACH
        self._state = TRANSITIONS.next(self._state, trigger)
        self._reason = reason
        self._disconnect()
        if not self._reconnect:
            self._watchers.notify(Disconnected(reason, None))
            return
        delays = self._backoff.delays()
        wait = next(delays)
        self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect_after(wait, delays))
        self._watchers.notify(Disconnected(reason, wait))

    async def _reconnect_after(self, wait: float, delays: Iterator[float]) -> None:
        while True:
            await asyncio.sleep(wait)
            try:
                self.exchange.connect(self)
            except ConnectError as error:
                self._reason = error.reason
                wait = next(delays)
                continue
            break
        for subscription in list(self._subscriptions):
            try:
                self.exchange.bind(subscription)
            except LinkError as error:
                self._watchers.notify(LinkLost(error.address, error.condition, error.description, reopened=False))
        self._reconnecting = None
        self._on_connected(again=True)
