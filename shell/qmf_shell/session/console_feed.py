"""Follows objects over `qmf.console`: an `ObjectFeed` that is filled on the client's loop and read from any thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from qmf._loop_thread import LoopThread
from qmf.console.aio import ChangeKind, Client, Follow, ObjectChange, RemoteObject
from qmf.errors import CallerError
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.session.backend import ClassName, GoneObject, ObjectChanges


class ConsoleFeed:
    """See `ObjectFeed`. Changes of an object that are not taken are replaced by later ones."""

    def __init__(self, loop: LoopThread, convert: Callable[[RemoteObject], ObjectView], label: str) -> None:
        """
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
        self._follows: list[Follow[RemoteObject]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(
        self, client: Client, names: Sequence[ClassName], where: Sequence[object], interval: float, recheck: float
    ) -> None:
        """Begin; on the loop. Returns at once: the first objects are taken when they have come."""
        predicate = list(where) if where else None
        for package, name in names:
            follow = client.follow(name, package=package, where=predicate, interval=interval, recheck=recheck)
            self._follows.append(follow)
            self._tasks.append(asyncio.create_task(self._collect(follow)))

    async def _collect(self, follow: Follow[RemoteObject]) -> None:
        try:
            async for change in follow:
                self._put(change)
        finally:
            await follow.close()

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
    def failures(self) -> Mapping[str, str]:
        """See `ObjectFeed.failures`."""
        return {agent: str(error) for follow in self._follows for agent, error in follow.failures.items()}

    def take(self) -> ObjectChanges:
        """See `ObjectFeed.take`."""
        with self._lock:
            changed, self._changed = self._changed, {}
            gone, self._gone = self._gone, {}
        return ObjectChanges([self._convert(item) for item in changed.values()], tuple(gone.values()))

    def close(self) -> None:
        """See `ObjectFeed.close`."""
        # The loop of a session that is closed has ended the tasks itself.
        with contextlib.suppress(CallerError):
            self._loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
