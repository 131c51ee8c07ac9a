"""Subscriptions of memory buses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from qmf.bus.base import Binding, MessageCallback, ReceivedMessage, Subscription
from qmf.bus.memory.exchange import MemoryExchange
from qmf.bus.receiving import call_receiver


class MemorySubscription(Subscription):
    """A binding on a memory bus, with its queue."""

    def __init__(
        self,
        exchange: MemoryExchange,
        binding: Binding,
        on_message: MessageCallback,
        prefetch: int,
        on_close: Callable[[MemorySubscription], None],
    ) -> None:
        """Make a subscription with an empty queue.

        Args:
            exchange: counts the messages that the queue drops.
            binding, on_message, prefetch: as of `Bus.subscribe`.
            on_close: called by `close`.
        """
        self.binding = binding
        self._exchange = exchange
        self._on_close = on_close
        self._on_message = on_message
        self._window = max(1, prefetch)
        self._unsettled = 0
        self._queue: deque[bytes] = deque()
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._connection_number = 0

    def enqueue(self, data: bytes) -> None:
        """See `MemoryQueue`."""
        exchange = self._exchange
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
        self._on_close(self)
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
            call_receiver(self._on_message, received, self.binding)

    def _on_settled(self, number: int) -> None:
        if number == self._connection_number:
            self._unsettled -= 1
            if self._queue:
                self._schedule()
