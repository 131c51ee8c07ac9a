"""Following objects: one iterator of changes, and the picture of all of them, whatever the agents offer.

`Follow` is what a program holds; `Follower` does the work and doesn't know of it. So a program that just drops its
`Follow`, as by leaving an ``async for`` early, ends the work, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Generic, Self, TypeVar

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.core import ClientCore
from qmf.console.aio.following.agent_follower import AgentFollower, FollowMode, FollowSpec
from qmf.console.aio.following.followed_objects import ChangeKind, FollowedObjects, ObjectChange
from qmf.console.aio.notifications import (
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentUpdated,
    Missed,
    Notification,
    ObjectUpdated,
)
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.queries.object_queries import ObjectQueries
from qmf.errors import CallerError, QmfError
from qmf.protocol import ObjectId

log = logging.getLogger("qmf.console")

T = TypeVar("T")


class Follower:
    """Keeps one picture up to date, with one source for each agent."""

    def __init__(self, hub: ClientCore, queries: ObjectQueries, orders: FollowSpec, size: int) -> None:
        self.news = asyncio.Event()
        self.picture = FollowedObjects(size, self.news.set)
        self.closed = False
        self.sources: dict[str, AgentFollower] = {}
        self._hub = hub
        self._queries = queries
        self._orders = orders
        self._unlisten: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin with the agents present."""
        self._hub.closing[self] = self.close
        self._unlisten = self._hub.publisher.listen(self._notified)
        for agent in self._hub.agents:
            self._consider(agent)

    async def first(self) -> None:
        """Wait until each agent present has answered or failed, which takes as long as its questions may."""
        await asyncio.gather(*(source.first.wait() for source in list(self.sources.values())))

    async def close(self) -> None:
        """End; agents are told. What waits can still be read."""
        if not self.closed:
            self.closed = True
            self._hub.closing.pop(self, None)
            self._unlisten()
            self.news.set()
            sources, self.sources = self.sources, {}
            await asyncio.gather(*(source.end() for source in sources.values()), return_exceptions=True)

    def abandon(self) -> None:
        """End in the background; on the loop's thread."""
        if not self.closed:
            self._hub.spawn(self.close())

    def _notified(self, news: Notification) -> None:
        match news:
            case AgentAdded(agent=agent) | AgentUpdated(agent=agent):
                self._consider(agent)
            case AgentRestarted(agent=agent) if agent.name in self.sources:
                self.sources[agent.name].restarted(agent)
            case AgentRemoved(agent=agent) if agent.name in self.sources:
                self.sources.pop(agent.name).end(ChangeKind.LOST)
            case ObjectUpdated(object=obj) if obj.agent in self.sources:
                self.sources[obj.agent].indicated(obj)
            case Missed(agent=agent) if agent.name in self.sources:
                self.sources[agent.name].missed()

    def _consider(self, agent: Agent) -> None:
        if self._orders.wanted.only_agent not in (None, agent.name) and not (
            agent.is_broker and self._orders.wanted.only_agent == "broker"
        ):
            return
        source = self.sources.get(agent.name)
        if source is not None:
            source.changed(agent)
        elif agent.is_announced:
            # Of an agent that was only mentioned we don't know yet how to ask it.
            self.sources[agent.name] = AgentFollower(self._hub, self._queries, self._orders, self.picture, agent)


class Follow(AsyncIterator[ObjectChange[T]], Generic[T]):
    """Objects and their changes, as `Client.follow` returns it: an iterator that never ends by itself.

    Use it as ``async with client.follow("queue") as queues``, which waits until the agents present have answered, or
    at once in ``async for``. The first changes tell of the objects there are. It ends when its block, its loop or the
    client ends; agents are told then. Use it in one task.
    """

    def __init__(self, follower: Follower, wrap: Callable[[RemoteObject], T]) -> None:
        self._follower = follower
        self._wrap = wrap
        self._started = False

    def __len__(self) -> int:
        return len(self._follower.picture)

    def __iter__(self) -> Iterator[T]:
        """The objects as they are now."""
        return iter(self.objects)

    @property
    def objects(self) -> list[T]:
        """The objects as they are now, changes not read yet included."""
        return [self._wrap(obj) for obj in self._follower.picture]

    def get(self, object_id: ObjectId) -> T | None:
        """The object with this id as it is now, if it is followed."""
        found = self._follower.picture.get(object_id)
        return None if found is None else self._wrap(found)

    @property
    def sources(self) -> Mapping[str, FollowMode]:
        """How each agent is followed now, by its name."""
        return {name: item.source for name, item in self._follower.sources.items()}

    @property
    def failures(self) -> Mapping[str, QmfError]:
        """Why agents could not be asked the last time, by name; they are asked again."""
        return {name: item.failure for name, item in self._follower.sources.items() if item.failure is not None}

    @property
    def merged(self) -> int:
        """Changes that were told only as part of later ones, because they were not read in time."""
        return self._follower.picture.merged

    @property
    def dropped(self) -> int:
        """News of objects that are gone that were never told, because too many of them were not read in time."""
        return self._follower.picture.dropped

    async def close(self) -> None:
        """End: agents are told, and what waits can still be read. A second call does nothing."""
        await self._follower.close()

    async def __aenter__(self) -> Self:
        try:
            self._start()
            await self._follower.first()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __anext__(self) -> ObjectChange[T]:
        self._start()
        follower = self._follower
        while (change := follower.picture.take()) is None:
            if follower.closed:
                raise StopAsyncIteration
            follower.news.clear()
            await follower.news.wait()
        return _wrapped(change, self._wrap)

    def _start(self) -> None:
        if self._started:
            return
        if self._follower.closed:
            raise CallerError("this follow was closed; make another one")
        self._started = True
        self._follower.start()
        loop = asyncio.get_running_loop()
        weakref.finalize(self, _abandon, loop, self._follower).atexit = False


def _wrapped(change: ObjectChange[RemoteObject], wrap: Callable[[RemoteObject], T]) -> ObjectChange[T]:
    fields = attrs.asdict(change, recurse=False)
    return ObjectChange(**{**fields, "object": wrap(change.object)})


def _abandon(loop: asyncio.AbstractEventLoop, follower: Follower) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and everything ended with it
        loop.call_soon_threadsafe(follower.abandon)
