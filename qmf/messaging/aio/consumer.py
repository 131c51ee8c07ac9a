"""Consumers for asyncio."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Generic

from qmf._event_loop import on_end_signals
from qmf.messaging.aio.connection import Connection
from qmf.messaging.aio.consuming.consumer_core import ConsumerCore, HandlingOptions
from qmf.messaging.aio.consuming.policy import Failure, Retry
from qmf.messaging.content_types import ContentType
from qmf.messaging.message import Message
from qmf.messaging.typing import ContentT


class Consumer(Generic[ContentT]):
    """Calls a handler for each message of an address, and settles the message by what the handler does.

    A message is accepted when the handler returns. If it raises, the message is tried again after a delay. After the
    last attempt, for `RejectMessage`, and when its content cannot be decoded, it goes to the dead letters. A message is
    settled when its handler is done, or the broker has the copy of it: none is lost, and some are handled twice when a
    connection or a process ends in between.
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
        """Make a consumer, which `run` starts.

        Args:
            connection: opened by `run` unless it is open.
            source: the address.
            handler: a coroutine function, or a function, which is called on a thread of its own.
            content: what is received, see `Session.receiver`.
            concurrency: messages that are handled at the same time.
            capacity: messages that the broker may send ahead; None for as many as `concurrency`.
            retry: None for `Retry()`.
            dead_letters: the address, which is created if it has no options, of messages that are given up; None to
                reject them, so that the broker decides.
            grace: seconds that handlers have when the consumer is stopped; None for no limit. Then they are cancelled,
                and their messages return to the queue. A function on a thread goes on.
            max_held: messages that are kept for another attempt where the broker cannot delay them. At the limit, no
                more messages are fetched.
            max_deliveries: a message that the broker has delivered so often, without a final outcome, is given up
                without its handler: one that ended the process each time. None for no limit. Brokers count whenever a
                connection is lost, also for what they had only sent ahead.
            on_failure: called, on the loop, with each failure; they are logged as well.

        Raises:
            MalformedAddress, InvalidOption: an address is none, or the source would be browsed.
            ContentError: there is no content type for the class of the content.
            ValueError: a number is out of its range.
        """
        options = HandlingOptions(
            content, concurrency, capacity, retry or Retry(), dead_letters, grace, max_held, max_deliveries, on_failure
        )
        self._core = ConsumerCore(connection._core, source, handler, options)

    async def run(self, signals: bool = True) -> None:
        """Consume until `stop`, a signal, or a failure. All handlers have ended then.

        Args:
            signals: SIGTERM and SIGINT (Ctrl-C) stop it, the second one at once; on the main thread only.

        Raises:
            MessagingError: the receiver, its session or its connection failed.
        """
        stops = signals and threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGTERM")
        with on_end_signals(self._core.stop) if stops else contextlib.nullcontext():
            await self._core.run()

    def stop(self) -> None:
        """Fetch no more messages; `run` ends when the handlers have, or at once at the second call."""
        self._core.stop()
