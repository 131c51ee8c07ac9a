"""Changes of objects as streams: one following of the console for all readers that want the same objects.

A reader first gets the objects that exist (``added``, then one ``complete``), then each change. It can go on where it
was while the feed keeps the records behind it; otherwise, and where it was too slow, it gets a ``reset`` and all
objects again: what it has never differs from what there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence

import attrs

from qmf.console.aio import ChangeKind, FollowedStore, ObjectChange, ObjectId, RemoteObject
from qmf.web.consoles import ObjectFollow, WebConsole
from qmf.web.management.object_writer import JsonObjectWriter
from qmf.web.management.selection import ClassSelection, fields_of
from qmf.web.problems import Problem
from qmf.web.streams.record_log import RecordLog
from qmf.web.streams.serving import SIGN_OF_LIFE, Sendable, StreamNotice

log = logging.getLogger("qmf.web")

#: Seconds for which a feed without readers goes on, so that they can come back.
LINGER = 60.0

#: Feeds at a time.
MAX_FEEDS = 200

#: Objects that are encoded in one go.
_STEP = 200


@attrs.frozen
class FeedKey:
    """What a feed follows.

    Attributes:
        selection: the objects.
        fields: only these values, or None for all.
        interval: seconds between publications.
    """

    selection: ClassSelection
    fields: tuple[str, ...] | None
    interval: float


class ChangeFeed:
    """The changes of some objects.

    Attributes:
        log: a record for each change.
    """

    def __init__(self, key: FeedKey, follow: ObjectFollow, writer: JsonObjectWriter, history: int) -> None:
        self.log = RecordLog(history)
        self._key = key
        self._writer = writer
        self._follow = follow
        self._objects: dict[ObjectId, RemoteObject] = {}
        self._ready = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled, or until the console is closed."""
        try:
            async with self._follow as follow:
                # What exists at first is no change: readers get it from here, and its additions follow unseen.
                self._objects = {obj.object_id: obj for obj in follow}
                known = set(self._objects)
                self._ready.set()
                count = 0
                async for change in follow:
                    self._on_change(change, known)
                    count += 1
                    if count % _STEP == 0:
                        await asyncio.sleep(0)  # others have their turn
        finally:
            self._ready.set()
            self.log.close()

    def _on_change(self, change: ObjectChange[RemoteObject], known: set[ObjectId]) -> None:
        obj = change.object
        if obj.object_id in known:
            known.discard(obj.object_id)
            if change.kind is ChangeKind.ADDED and not change.merged:
                self._objects[obj.object_id] = obj
                return
        if change.kind.gone:
            self._objects.pop(obj.object_id, None)
        else:
            self._objects[obj.object_id] = obj
        self.log.add(change.kind.value, self._json(obj))

    def _json(self, obj: RemoteObject) -> dict[str, object]:
        return self._writer.json(obj, fields_of(obj, self._key.fields))

    async def read(self, last_id: str | None) -> AsyncGenerator[Sequence[Sendable], None]:
        """The records for one reader, which has the record `last_id`, or none."""
        await self._ready.wait()
        position = self.log.position(last_id)
        if position is None or position < self.log.begin:
            if last_id is not None:
                yield [StreamNotice("reset", {})]
            position = self.log.end
            async for part in self._present():
                yield part
        while True:
            batch = self.log.take(position)
            if batch.missed:
                yield [StreamNotice("reset", {})]
                position = self.log.end
                async for part in self._present():
                    yield part
            elif batch.records:
                position += len(batch.records)
                yield batch.records
            elif self.log.closed:
                return
            else:
                await self.log.wait(position, SIGN_OF_LIFE)
                if position == self.log.end:
                    yield []

    async def _present(self) -> AsyncGenerator[Sequence[Sendable], None]:
        """The objects that exist now, as additions; the last notice has the id to go on from."""
        last_id = self.log.last_id
        objects = list(self._objects.values())
        for first in range(0, len(objects), _STEP):
            yield [StreamNotice("added", self._json(obj)) for obj in objects[first : first + _STEP]]
            await asyncio.sleep(0)  # others have their turn
        yield [StreamNotice("complete", {"count": len(objects)}, last_id)]


class ChangeFeeds:
    """All feeds that have readers, or had some a moment ago. Belongs to the event loop."""

    def __init__(self, client: WebConsole, writer: JsonObjectWriter, history: int) -> None:
        def make(key: FeedKey) -> ChangeFeed:
            follow = client.follow(**key.selection.arguments(), interval=key.interval)
            return ChangeFeed(key, follow, writer, history)

        self._feeds = FollowedStore(make, LINGER)

    def __len__(self) -> int:
        return len(self._feeds)

    async def read(self, key: FeedKey, last_id: str | None) -> AsyncGenerator[Sequence[Sendable], None]:
        """The records for one reader; see `ChangeFeed.read`. `check` comes before it."""
        feed, release = self._lease(key)
        try:
            async with contextlib.aclosing(feed.read(last_id)) as records:
                async for part in records:
                    yield part
        finally:
            release()

    def check(self, key: FeedKey) -> None:
        """Refuse a feed that cannot be, before anything is answered.

        Raises:
            Problem: 422, the filter is malformed; 503, too many feeds.
            CallerError: as of `Client.follow`.
        """
        _, release = self._lease(key)
        release()

    async def close(self) -> None:
        """End all feeds."""
        await self._feeds.close()

    def _lease(self, key: FeedKey) -> tuple[ChangeFeed, Callable[[], None]]:
        if self._feeds.get(key) is None and len(self._feeds) >= MAX_FEEDS and not self._feeds.drop_idle():
            raise Problem(503, f"{MAX_FEEDS} different streams of changes are open", headers={"Retry-After": "10"})
        return self._feeds.lease(key)
