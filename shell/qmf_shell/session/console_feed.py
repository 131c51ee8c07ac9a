"""Follows objects over `qmf.console`: an `ObjectFeed` that is filled on the client's loop and read from any thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from qmf._loop_thread import LoopThread
from qmf.console.aio import ChangeKind, Client, Follow, FollowedStore, ObjectChange, RemoteObject
from qmf.errors import CallerError
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.session.backend import GoneObject, ObjectChanges, ObjectFeed

#: Seconds for which objects are followed when their last feed is closed: who comes back has them at once.
KEPT = 10.0
#: So many changes are taken in one go, before others have their turn.
BATCH = 500


@attrs.frozen
class FollowRequest:
    """Which objects are followed, and how.

    Attributes:
        package, name: their class.
        where: a predicate for the agents; empty for all objects.
        interval, recheck: see `Backend.follow`.
    """

    package: str
    name: str
    where: Sequence[object] = attrs.field(eq=repr)
    interval: float
    recheck: float


class SharedFollow:
    """Objects that are followed for all feeds that want the same.

    Attributes:
        follow: has the objects as they are now.
        listeners: get each change, on the loop.
    """

    def __init__(self, client: Client, request: FollowRequest) -> None:
        self.listeners: list[Callable[[ObjectChange[RemoteObject]], None]] = []
        self._read_all = True
        self.follow: Follow[RemoteObject] = client.follow(
            request.name,
            package=request.package,
            where=list(request.where) or None,
            interval=request.interval,
            recheck=request.recheck,
        )

    @property
    def complete(self) -> bool:
        """True once all agents present have answered, or failed to, and the listeners have all objects."""
        return self.follow.answered and not self.follow.waiting and self._read_all

    async def run(self) -> None:
        """Follow until cancelled, or until the client is closed."""
        taken = 0
        try:
            async for change in self.follow:
                for listener in tuple(self.listeners):
                    listener(change)
                self._read_all = not self.follow.waiting
                taken += 1
                if taken % BATCH == 0:
                    await asyncio.sleep(0)
        finally:
            await self.follow.close()


class ConsoleFeed(ObjectFeed):
    """See `ObjectFeed`. Changes of an object that are not taken are replaced by later ones."""

    def __init__(self, loop: LoopThread, convert: Callable[[RemoteObject], ObjectView], label: str) -> None:
        """Make a feed, which has no change yet.

        Args:
            loop: the client's loop.
            convert: makes a record; called by `take`.
            label: the broker in the keys of objects.
        """
        self._loop = loop
        self._convert = convert
        self._label = label
        self._lock = threading.Lock()
        self._changed: dict[tuple[str, str], RemoteObject] = {}
        self._gone: dict[tuple[str, str], GoneObject] = {}
        self._leases: list[tuple[SharedFollow, Callable[[], None]]] = []

    async def start(
        self, followed: FollowedStore[FollowRequest, SharedFollow], requests: Iterable[FollowRequest]
    ) -> None:
        """Begin; on the loop. Returns at once: what is not followed yet is taken when it has come."""
        for request in requests:
            shared, release = followed.lease(request)
            self._leases.append((shared, release))
            with self._lock:
                self._changed.update(((item.agent, item.object_id.object_name), item) for item in shared.follow)
            shared.listeners.append(self._put)

    def _put(self, change: ObjectChange[RemoteObject]) -> None:
        item = change.object
        object_id = item.object_id
        name = item.agent, object_id.object_name
        with self._lock:
            if not change.kind.gone:
                self._changed[name] = item
                return
            self._changed.pop(name, None)
            key = ObjectKey(object_id.object_name, item.agent, object_id.agent_epoch, self._label)
            at = (item.timestamps.delete if change.kind is ChangeKind.DELETED else 0) or time.time_ns()
            self._gone[name] = GoneObject(key, change.kind, at)

    @property
    def complete(self) -> bool:
        return all(shared.complete for shared, _ in self._leases)

    @property
    def failures(self) -> Mapping[str, str]:
        return {agent: str(error) for shared, _ in self._leases for agent, error in shared.follow.failures.items()}

    def take(self) -> ObjectChanges:
        with self._lock:
            changed, self._changed = self._changed, {}
            gone, self._gone = self._gone, {}
        return ObjectChanges([self._convert(item) for item in changed.values()], tuple(gone.values()))

    def close(self) -> None:
        # The loop of a session that is closed has ended all of it.
        with contextlib.suppress(CallerError):
            self._loop.call_soon(self._release)

    def _release(self) -> None:
        for shared, release in self._leases:
            shared.listeners.remove(self._put)
            release()
        self._leases = []
