"""Delivery of notifications: to listeners, called on the event loop, and through bounded streams.

A listener that raises is logged and stays; the other listeners and the client are not affected. A reader that is too
slow loses notifications by the policy that it chose, and gets their number.
"""

from __future__ import annotations

import asyncio
import collections
import enum
import logging
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from qmf.console.aio.notifications import Dropped, Notification

log = logging.getLogger("qmf.console")

Listener = Callable[[Notification], None]


class Overflow(enum.Enum):
    """Which notifications a full stream drops."""

    DROP_OLDEST = "drop oldest"  #: the reader sees the latest state, with a gap before it
    DROP_NEWEST = "drop newest"  #: the reader sees an unbroken beginning, then a gap


class NotificationStream(AsyncIterator[Notification]):
    """A bounded queue of notifications, read with ``async for``; ends when it or its client is closed.

    In place of notifications that were dropped, the reader gets a `Dropped`.
    """

    def __init__(
        self,
        kinds: tuple[type[Notification], ...],
        size: int,
        overflow: Overflow,
        unlisten: Callable[[NotificationStream], None],
    ) -> None:
        self._kinds = kinds
        self._size = size
        self._overflow = overflow
        self._unlisten = unlisten
        self._items: collections.deque[Notification] = collections.deque()
        self._gap = 0
        self._dropped = 0
        self._closed = False
        self._wake = asyncio.Event()

    @property
    def dropped(self) -> int:
        """Notifications dropped since the stream was opened."""
        return self._dropped

    def close(self) -> None:
        """End the stream; queued notifications can still be read. A second call does nothing."""
        self._closed = True
        self._wake.set()
        self._unlisten(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __anext__(self) -> Notification:
        while True:
            if self._gap and (self._overflow is Overflow.DROP_OLDEST or not self._items):
                gap, self._gap = self._gap, 0
                return Dropped(gap)
            if self._items:
                return self._items.popleft()
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def put(self, item: Notification) -> None:
        """Queue a notification, or drop one by the policy."""
        if self._closed or not isinstance(item, self._kinds):
            return
        if len(self._items) >= self._size or (self._gap and self._overflow is Overflow.DROP_NEWEST):
            # With DROP_NEWEST, later items join a gap at the end until the reader has got its `Dropped`.
            self._gap += 1
            self._dropped += 1
            if self._overflow is Overflow.DROP_NEWEST:
                return
            self._items.popleft()
        self._items.append(item)
        self._wake.set()


class NotificationPublisher:
    """All listeners and streams of one client."""

    def __init__(self) -> None:
        # A tuple, replaced as a whole, so that listeners may be added and removed while it is iterated.
        self._listeners: tuple[Listener, ...] = ()
        self._streams: list[NotificationStream] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notification; the returned function removes it."""
        self._listeners += (listener,)

        def stop() -> None:
            if listener in self._listeners:
                kept = list(self._listeners)
                kept.remove(listener)
                self._listeners = tuple(kept)

        return stop

    def stream(self, kinds: tuple[type[Notification], ...], size: int, overflow: Overflow) -> NotificationStream:
        """A new stream of the given kinds of notifications."""
        stream = NotificationStream(kinds, size, overflow, self._forget)
        self._streams.append(stream)
        return stream

    def publish(self, item: Notification) -> None:
        """Deliver a notification to all listeners and streams."""
        for listener in self._listeners:
            try:
                listener(item)
            except Exception:
                log.exception("listener %r failed on %s", listener, type(item).__name__)
        for stream in self._streams:
            stream.put(item)

    def close(self) -> None:
        """End all streams."""
        for stream in list(self._streams):
            stream.close()

    def _forget(self, stream: NotificationStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
