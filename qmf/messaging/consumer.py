"""Consumers of the synchronous form."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic

from qmf.messaging.aio.consuming.consumer_core import ConsumerCore, HandlingOptions
from qmf.messaging.aio.consuming.policy import Failure, Retry
from qmf.messaging.content_types import ContentType
from qmf.messaging.message import Message
from qmf.messaging.synchronous import Connection
from qmf.messaging.typing import ContentT


class Consumer(Generic[ContentT]):
    """Calls a handler for each message of an address; see `qmf.messaging.aio.Consumer`.

    Handlers that are functions run on threads of their own, coroutine functions on the loop of the connection, which
    they must not block.
    """

    def __init__(
        self,
        connection: Connection,
        source: str,
        handler: Callable[[Message[ContentT]], Awaitable[object] | object],
        *,
        content: ContentType[ContentT] | type[ContentT] | None = None,
        concurrency: int = 1,
        capacity: int | None = None,
        retry: Retry | None = None,
        dead_letters: str | None = None,
        grace: float | None = None,
        max_held: int = 500,
        max_deliveries: int | None = None,
        on_failure: Callable[[Failure], object] | None = None,
    ) -> None:
        """See `qmf.messaging.aio.Consumer`."""
        options = HandlingOptions(
            content, concurrency, capacity, retry or Retry(), dead_letters, grace, max_held, max_deliveries, on_failure
        )
        self._loop = connection._loop
        self._core = ConsumerCore(connection._core, source, handler, options)

    def run(self, signals: bool = True) -> None:
        """Consume until `stop`, a signal, or a failure; see `qmf.messaging.aio.Consumer.run`."""
        on_main = threading.current_thread() is threading.main_thread()
        with self._stopped_by_signals() if signals and on_main else contextlib.nullcontext():
            self._loop.run(self._core.run())

    def stop(self) -> None:
        """Fetch no more messages; `run` ends when the handlers have. Any thread may call it."""
        self._loop.call_soon(self._core.stop)

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
