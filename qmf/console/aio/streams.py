"""Handing notifications to whoever listens: callbacks on the loop, and bounded iterators.

A listener that raises is logged and stays; it never harms the others or the client. A reader that is too slow loses
notifications by the policy that it chose, and is told how many.
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
    """What a full feed does with one notification more."""

    DROP_OLDEST = "drop oldest"  #: the reader sees the latest state, with a gap before it
    DROP_NEWEST = "drop newest"  #: the reader sees an unbroken beginning, then a gap


class NotificationStream(AsyncIterator[Notification]):
    """A bounded queue of notifications, read with ``async for``; ends when it or its client is closed.

    Where notifications were dropped, the reader finds a `Dropped` in their place.
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
        """Notifications dropped since the feed was opened."""
        return self._dropped

    def close(self) -> None:
        """End the feed: what is queued can still be read. A second call does nothing."""
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
        """Queue one notification, or drop one by the policy."""
        if self._closed or not isinstance(item, self._kinds):
            return
        if len(self._items) >= self._size or (self._gap and self._overflow is Overflow.DROP_NEWEST):
            # While a gap at the end is untold, later items would stand before it: they join it.
            self._gap += 1
            self._dropped += 1
            if self._overflow is Overflow.DROP_NEWEST:
                return
            self._items.popleft()
        self._items.append(item)
        self._wake.set()


class NotificationPublisher:
    """All listeners and feeds of one client."""

    def __init__(self) -> None:
        # A tuple, replaced as a whole: a listener that comes or goes while others are called disturbs nobody.
        self._listeners: tuple[Listener, ...] = ()
        self._feeds: list[NotificationStream] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notification; the returned function stops it."""
        self._listeners += (listener,)

        def stop() -> None:
            if listener in self._listeners:
                kept = list(self._listeners)
                kept.remove(listener)
                self._listeners = tuple(kept)

        return stop

    def feed(self, kinds: tuple[type[Notification], ...], size: int, overflow: Overflow) -> NotificationStream:
        """A new feed of the given kinds."""
        feed = NotificationStream(kinds, size, overflow, self._forget)
        self._feeds.append(feed)
        return feed

    def publish(self, item: Notification) -> None:
        """Tell everybody."""
        for listener in self._listeners:
            try:
                listener(item)
            except Exception:
                log.exception("listener %r failed on %s", listener, type(item).__name__)
        for feed in self._feeds:
            feed.put(item)

    def close(self) -> None:
        """End all feeds."""
        for feed in list(self._feeds):
            feed.close()

    def _forget(self, feed: NotificationStream) -> None:
        if feed in self._feeds:
            self._feeds.remove(feed)
