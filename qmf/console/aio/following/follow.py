"""Following objects: an iterator of changes over a consistent set of objects, whatever the agents offer.

`Follow` is what a program holds; `Follower` does the work and has no reference to it. So a program that drops its
`Follow`, as by leaving an ``async for`` early, ends the work, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Generic, Self, TypeVar

from qmf._closable import AsyncClosable
from qmf.console.aio.agent_search import ALL_AGENTS
from qmf.console.aio.agents import Agent
from qmf.console.aio.following.agent_follower import AgentFollower, FollowMode, FollowServices, FollowSpec
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
from qmf.errors import CallerError, QmfError
from qmf.protocol import ObjectId

log = logging.getLogger("qmf.console")

T = TypeVar("T")


class Follower:
    """Keeps followed objects up to date, with one `AgentFollower` per agent."""

    def __init__(self, services: FollowServices, spec: FollowSpec, size: int, running: set[Follower]) -> None:
        """Make a follower; it is in `running` from its start to its end."""
        self.changed = asyncio.Event()
        """Set when a change waits, or the follower ended."""
        self.objects = FollowedObjects(size, self.changed.set)
        self.closed = False
        self.agents: dict[str, AgentFollower] = {}
        self._services = services
        self._spec = spec
        self._running = running
        self._unlisten: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin with the agents present."""
        self._running.add(self)
        self._unlisten = self._services.publisher.listen(self._on_notification)
        for agent in self._services.tracker.agents:
            self._consider(agent)

    @property
    def unfinished(self) -> QmfError | None:
        """Says that more agents are being found; None when all are known, or the only one that is followed is."""
        known = self._spec.query.only_agent is not None and self.agents
        return None if known else self._services.tracker.unfinished

    async def first_attempts(self) -> None:
        """Wait until the agents are found and each has answered or failed, which takes as long as its requests may."""
        if self.unfinished is not None:
            await self._services.tracker.wait_for_search()
        await asyncio.gather(*(follower.tried.wait() for follower in list(self.agents.values())))

    async def close(self) -> None:
        """End, and end the subscriptions at the agents. Waiting changes can still be read."""
        if not self.closed:
            self.closed = True
            self._running.discard(self)
            self._unlisten()
            self.changed.set()
            agents, self.agents = self.agents, {}
            await asyncio.gather(*(follower.end() for follower in agents.values()), return_exceptions=True)

    def abandon(self) -> None:
        """End in the background; called on the loop's thread."""
        if not self.closed:
            self._services.tasks.spawn(self.close())

    def _on_notification(self, item: Notification) -> None:
        match item:
            case AgentAdded(agent=agent) | AgentUpdated(agent=agent):
                self._consider(agent)
            case AgentRestarted(agent=agent) if agent.name in self.agents:
                self.agents[agent.name].agent_restarted(agent)
            case AgentRemoved(agent=agent) if agent.name in self.agents:
                self.agents.pop(agent.name).end(ChangeKind.LOST)
            case ObjectUpdated(object=obj) if obj.agent in self.agents:
                self.agents[obj.agent].on_indication(obj)
            case Missed(agent=agent) if agent.name in self.agents:
                self.agents[agent.name].messages_missed()

    def _consider(self, agent: Agent) -> None:
        if not self._spec.query.is_for(agent):
            return
        follower = self.agents.get(agent.name)
        if follower is not None:
            follower.agent_updated(agent)
        elif agent.is_announced:
            # How to ask an agent is not known before it has announced itself.
            self.agents[agent.name] = AgentFollower(self._services, self._spec, self.objects, agent)


class Follow(AsyncIterator[ObjectChange[T]], AsyncClosable, Generic[T]):
    """Objects and their changes, as `Client.follow` returns it: an iterator that does not end by itself.

    Use it as ``async with client.follow("queue") as queues``, which waits until the agents present have answered, or
    directly in ``async for``. The first changes are the objects that exist. It ends with its block, its loop or the
    client; subscriptions at agents are ended then. Use it in one task.
    """

    def __init__(self, follower: Follower, wrap: Callable[[RemoteObject], T]) -> None:
        self._follower = follower
        self._wrap = wrap
        self._started = False

    def __len__(self) -> int:
        return len(self._follower.objects)

    def __iter__(self) -> Iterator[T]:
        """The objects as they are now."""
        return iter(self.objects)

    @property
    def objects(self) -> list[T]:
        """The objects as they are now, including changes that were not read yet."""
        return [self._wrap(obj) for obj in self._follower.objects]

    def get(self, object_id: ObjectId) -> T | None:
        """The object with this id as it is now; None when it is not followed."""
        found = self._follower.objects.get(object_id)
        return None if found is None else self._wrap(found)

    @property
    def sources(self) -> Mapping[str, FollowMode]:
        """How each agent is followed now, by agent name."""
        return {name: item.mode for name, item in self._follower.agents.items()}

    @property
    def answered(self) -> bool:
        """True once the agents are found and each has answered, or failed to: then the objects are complete."""
        return (
            self._started
            and self._follower.unfinished is None
            and all(item.tried.is_set() for item in self._follower.agents.values())
        )

    @property
    def waiting(self) -> int:
        """How many changes were not read yet."""
        return self._follower.objects.waiting

    @property
    def failures(self) -> Mapping[str, QmfError]:
        """The errors of agents whose last request failed, by agent name; the requests are repeated.

        Under the name ``*`` a `StillFindingAgents` while more agents are being found.
        """
        failed = {name: item.failure for name, item in self._follower.agents.items() if item.failure is not None}
        unfinished = self._follower.unfinished
        return failed if unfinished is None else {ALL_AGENTS: unfinished, **failed}

    @property
    def merged(self) -> int:
        """How many changes were merged into later ones, because they were not read in time."""
        return self._follower.objects.merged

    @property
    def dropped(self) -> int:
        """How many changes of objects that are gone were dropped, because too many were not read in time."""
        return self._follower.objects.dropped

    async def close(self) -> None:
        """End this follow and its subscriptions. Waiting changes can still be read. A second call does nothing."""
        await self._follower.close()

    async def __aenter__(self) -> Self:
        try:
            self._start()
            await self._follower.first_attempts()
        except BaseException:
            await self.close()
            raise
        return self

    async def __anext__(self) -> ObjectChange[T]:
        self._start()
        follower = self._follower
        while (change := follower.objects.take()) is None:
            if follower.closed:
                raise StopAsyncIteration
            follower.changed.clear()
            await follower.changed.wait()
        return _wrap_change(change, self._wrap)

    def _start(self) -> None:
        if self._started:
            return
        if self._follower.closed:
            raise CallerError("this follow was closed; make another one")
        self._started = True
        self._follower.start()
        loop = asyncio.get_running_loop()
        weakref.finalize(self, _abandon, loop, self._follower).atexit = False


def _wrap_change(change: ObjectChange[RemoteObject], wrap: Callable[[RemoteObject], T]) -> ObjectChange[T]:
    return ObjectChange(
        kind=change.kind,
        object=wrap(change.object),
        properties=change.properties,
        statistics=change.statistics,
        merged=change.merged,
        dropped=change.dropped,
    )


def _abandon(loop: asyncio.AbstractEventLoop, follower: Follower) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and everything ended with it
        loop.call_soon_threadsafe(follower.abandon)
