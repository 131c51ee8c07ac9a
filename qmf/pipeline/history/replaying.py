"""Replays a recording on a bus: its agents appear with their names, and publish what they did in that order and pace.

Times in messages are those of the recording, so that rules and roll-ups see the same. Heartbeats are sent by the clock
on the wall: consoles notice by theirs which agents are silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

import attrs

from qmf.bus import Binding, Bus, ReceivedMessage, Subscription
from qmf.errors import NetworkError
from qmf.pipeline.history.reader import LakeReader
from qmf.pipeline.history.replay_agent import ReplayAgent
from qmf.pipeline.history.replay_rows import ReplayedAgent, ReplayedEvent, ReplayedObject, ReplayRow
from qmf.protocol import topic_exchange
from qmf.schema import Kind

#: Seconds between heartbeats of replayed agents, and between reports of the progress.
_HEARTBEAT = 2.0
#: Rows that are read before the loop turns to other work.
_TURN = 200


@attrs.frozen
class ReplayProgress:
    """How far a replay is.

    Attributes:
        at: time in the recording.
        objects, events: how many publications of objects, and how many events, so far.
        agents: how many agents are present.
    """

    at: int
    objects: int
    events: int
    agents: int


class Replay:
    """One replay of one period on one bus."""

    def __init__(
        self,
        reader: LakeReader,
        bus: Bus,
        first: int,
        last: int,
        *,
        speed: float = 1.0,
        domain: str = "default",
        on_progress: Callable[[ReplayProgress], None] = lambda _: None,
    ) -> None:
        """Prepare a replay; nothing is read yet.

        Args:
            reader: of the lake.
            bus: open already; nothing else on it has the names of these agents.
            first, last: the period.
            speed: seconds of the recording per second.
            domain: QMF domain.
            on_progress: called from time to time on the loop.
        """
        self._reader = reader
        self._bus = bus
        self._first = first
        self._last = last
        self._speed = speed
        self._domain = domain
        self._on_progress = on_progress
        self.asked = asyncio.Event()
        """Set when a console has asked for agents."""
        self._asking: Subscription | None = None
        self._agents: dict[str, ReplayAgent] = {}
        self._objects = self._events = 0
        self._began = 0.0
        self._at = first

    @property
    def progress(self) -> ReplayProgress:
        """How far it is."""
        return ReplayProgress(self._at, self._objects, self._events, len(self._agents))

    async def prepare(self) -> None:
        """Make the agents and objects that existed at the beginning; they answer queries from then on.

        Raises:
            NetworkError: the bus failed.
            LakeError: the lake cannot be read.
        """
        self._asking = await self._bus.subscribe(Binding(topic_exchange(self._domain), "console.#"), self._on_message)
        present = self._reader.presences(self._first)
        for agent in present.agents.values():
            await self._appear(agent.agent, agent.epoch, agent.interval)
        for key in self._reader.classes():
            if key.kind is Kind.DATA:
                for item in self._reader.state(key, self._first, present).objects:
                    self._agents[item.agent].hold(item)
        await self._beat()

    async def run(self) -> None:
        """Publish everything; cancelling it ends the replay. Errors are those of `prepare`."""
        self._began = time.monotonic()
        beating = asyncio.get_running_loop().create_task(self._beat_always())
        try:
            await self._publish(self._reader.replay(self._first, self._last))
            await self._wait_until(self._last)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            self._on_progress(self.progress)

    async def close(self) -> None:
        """End all agents, which say goodbye. A second call does nothing."""
        if self._asking is not None:
            await self._asking.close()
            self._asking = None
        for agent in self._agents.values():
            with contextlib.suppress(NetworkError):
                await agent.heartbeat(self._at, goodbye=True)
            await agent.close()
        self._agents.clear()

    # -- inside

    def _on_message(self, received: ReceivedMessage) -> None:
        received.settle()
        self.asked.set()

    async def _publish(self, rows: Iterator[ReplayRow]) -> None:
        waiting: list[ReplayedObject] = []
        for number, row in enumerate(rows):
            time_ns = row.order[0]
            if waiting and not (
                isinstance(row, ReplayedObject) and _together(waiting[-1], row) and time_ns <= self._now()
            ):
                await self._publish_objects(waiting)
                waiting = []
            await self._wait_until(time_ns)
            self._at = time_ns
            if isinstance(row, ReplayedObject):
                waiting.append(row)
            elif isinstance(row, ReplayedEvent):
                await self._raise(row)
            else:
                await self._change(row)
            if number % _TURN == 0:
                await asyncio.sleep(0)
        if waiting:
            await self._publish_objects(waiting)

    def _now(self) -> int:
        """The time in the recording that is now."""
        return self._first + round((time.monotonic() - self._began) * self._speed * 1e9)

    async def _wait_until(self, time_ns: int) -> None:
        while (left := (time_ns - self._now()) / 1e9 / self._speed) > 0:
            self._at = max(self._at, min(self._now(), time_ns))
            await asyncio.sleep(left)

    async def _publish_objects(self, items: Sequence[ReplayedObject]) -> None:
        agent = await self._agent(items[0].agent)
        await agent.publish(items)
        self._objects += len(items)

    async def _raise(self, item: ReplayedEvent) -> None:
        agent = await self._agent(item.agent)
        await agent.raise_event(item)
        self._events += 1

    async def _change(self, item: ReplayedAgent) -> None:
        agent = self._agents.get(item.agent)
        if not item.present:
            if agent is not None:
                del self._agents[item.agent]
                if item.goodbye:
                    await agent.heartbeat(item.order[0], goodbye=True)
                await agent.close()
            return
        if agent is None:
            agent = await self._appear(item.agent, item.epoch, item.interval)
        elif agent.info.epoch != item.epoch:
            agent.restart(item.epoch, item.interval)
        await agent.heartbeat(item.order[0])

    async def _agent(self, name: str) -> ReplayAgent:
        """The agent of a row; one that was not found yet appears now."""
        found = self._agents.get(name)
        if found is None:
            found = await self._appear(name, 0, 0.0)
            await found.heartbeat(self._at)
        return found

    async def _appear(self, name: str, epoch: int, interval: float) -> ReplayAgent:
        schemas = [self._reader.schema(key) for key in self._reader.classes()]
        agent = ReplayAgent(self._bus, self._domain, name, epoch, interval, schemas)
        await agent.open()
        self._agents[name] = agent
        return agent

    async def _beat_always(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            await self._beat()
            self._on_progress(self.progress)

    async def _beat(self) -> None:
        for agent in list(self._agents.values()):
            await agent.heartbeat(self._at)


def _together(one: ReplayedObject, other: ReplayedObject) -> bool:
    return one.agent == other.agent and one.key == other.key
