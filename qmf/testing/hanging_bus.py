"""A bus that can stop receiving, to simulate a program that hangs."""

from __future__ import annotations

from collections.abc import Callable

from qmf.bus import (
    AmqpBus,
    Binding,
    Bus,
    BusWatcher,
    MemoryBus,
    MemoryExchange,
    MessageCallback,
    ReceivedMessage,
    Subscription,
)


class HangingBus(Bus):
    """A bus that drops received messages while a condition is true; messages sent are not affected."""

    def __init__(self, target: MemoryExchange | str, hangs: Callable[[], bool]) -> None:
        """Make a bus that hangs while a condition is true.

        Args:
            target: memory exchange, or a broker's URL.
            hangs: true while received messages are dropped.
        """
        self._bus: Bus = MemoryBus(target) if isinstance(target, MemoryExchange) else AmqpBus(target)
        self._hangs = hangs

    @property
    def url(self) -> str:
        """See `Bus`."""
        return self._bus.url

    @property
    def connected(self) -> bool:
        """See `Bus`."""
        return self._bus.connected

    async def open(self, timeout: float = 10.0) -> None:
        """See `Bus`."""
        await self._bus.open(timeout)

    async def close(self) -> None:
        """See `Bus`."""
        await self._bus.close()

    async def subscribe(self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200) -> Subscription:
        """See `Bus`."""

        def unless_hanging(received: ReceivedMessage) -> None:
            if self._hangs():
                received.settle()
            else:
                on_message(received)

        return await self._bus.subscribe(binding, unless_hanging, prefetch=prefetch)

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`."""
        await self._bus.send(data, confirm=confirm)

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._bus.watch(watcher)
