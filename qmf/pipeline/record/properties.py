"""What is known of recorded objects: their last properties, and the requests for what agents don't publish.

Agents publish changes only. So each agent is asked for the objects of each class that it uses when it is found, as
after a lost connection; and again when an object of the class had no row for an hour, so that the state of an object
that never changes is in each hour of the lake. Until an agent has answered, statistics and changes of the same objects
may arrive: what was published is newer than the answer, what was not published comes from the answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

import attrs

from qmf.console.aio import Agent, Client, RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassKey, Kind

log = logging.getLogger("qmf.pipeline")

#: Requests that wait for answers at the same time: a bus may have hundreds of agents with tens of classes each.
CONCURRENT_REQUESTS = 16

#: Seconds after which an object without a row is asked for again.
REFRESH = 3600.0

#: Looks for such objects in that time.
_LOOKS = 60

Properties = Mapping[str, object]


@attrs.define
class _Recorded:
    """The rows of an object: its class, the time of the last one, and whether one had statistics."""

    key: ClassKey
    time_ns: int
    measured: bool = False


class KnownProperties:
    """The last known properties of each object. Belongs to the event loop."""

    def __init__(
        self,
        client: Client,
        on_learned: Callable[[RemoteObject, Properties, bool], None],
        clock: Callable[[], int] = time.time_ns,
        *,
        refresh: float = REFRESH,
    ) -> None:
        """Know nothing yet; objects without a row for `refresh` seconds are asked for again.

        `on_learned` is called with an object and its properties when an answer had something that no row has, or of
        which the last row is old; and whether the statistics of the answer are as new.
        """
        self._client = client
        self._on_learned = on_learned
        self._clock = clock
        self._refresh_ns = round(refresh * 10**9)
        self._looked_ns = clock()
        self._recorded: dict[str, dict[str, _Recorded]] = defaultdict(dict)
        #: By agent and object.
        self._known: dict[str, dict[str, Properties]] = defaultdict(dict)
        #: Objects that were deleted while a request to their agent waited: the answer may still have them.
        self._deleted: dict[str, set[str]] = defaultdict(set)
        self._used: dict[str, dict[ClassKey, Agent]] = defaultdict(dict)
        self._requests: dict[asyncio.Task[None], str] = {}
        self._closed = False
        self._slots = asyncio.Semaphore(CONCURRENT_REQUESTS)

    def of(self, agent: str, name: str) -> Properties:
        """The properties known of an object; empty where none are."""
        return self._known[agent].get(name, {})

    def update(self, agent: str, name: str, properties: Properties) -> None:
        self._known[agent][name] = dict(properties)
        self._deleted[agent].discard(name)

    def on_row_recorded(self, agent: str, name: str, key: ClassKey, *, measured: bool) -> None:
        """A row of an object was made; `measured` if it has statistics."""
        known = self._recorded[agent].get(name)
        if known is None:
            self._recorded[agent][name] = _Recorded(key, self._clock(), measured)
        else:
            known.time_ns = self._clock()
            known.measured |= measured

    def delete(self, agent: str, name: str) -> None:
        self._known[agent].pop(name, None)
        self._recorded[agent].pop(name, None)
        if agent in self._requests.values():
            self._deleted[agent].add(name)

    def request(self, key: ClassKey, agent: Agent) -> None:
        """An agent uses a class: ask it for its objects."""
        if key.kind is Kind.DATA and not self._closed:
            self._used[agent.name][key] = agent
            task = asyncio.get_running_loop().create_task(self._learn(key, agent))
            self._requests[task] = agent.name
            task.add_done_callback(self._on_request_done)

    def refresh(self) -> None:
        """Ask for the objects that had no row for so long. To be called often; mostly it does nothing."""
        now = self._clock()
        if abs(now - self._looked_ns) < self._refresh_ns // _LOOKS:
            return
        self._looked_ns = now
        for agent, objects in self._recorded.items():
            for key in {item.key for item in objects.values() if self._is_old(item)}:
                if (found := self._used[agent].get(key)) is not None:
                    self.request(key, found)

    def _is_old(self, row: _Recorded | None) -> bool:
        """True for objects without a row for so long, or before another look and its answer."""
        return row is None or row.time_ns <= self._clock() - self._refresh_ns * (_LOOKS - 2) // _LOOKS

    def agent_restarted(self, agent: Agent) -> None:
        """An agent was restarted: its objects are others, of the same classes."""
        used = self._used.pop(agent.name, {})
        self.forget(agent.name)
        for key in used:
            self.request(key, agent)

    def forget(self, agent: str) -> None:
        for table in (self._known, self._deleted, self._used, self._recorded):
            table.pop(agent, None)
        for task, name in self._requests.items():
            if name == agent:
                task.cancel()

    def close(self) -> None:
        """Cancel requests that are not answered yet, and make no more."""
        self._closed = True
        for task in self._requests:
            task.cancel()

    def _on_request_done(self, task: asyncio.Task[None]) -> None:
        agent = self._requests.pop(task)
        if agent not in self._requests.values():
            self._deleted.pop(agent, None)

    async def _learn(self, key: ClassKey, agent: Agent) -> None:
        try:
            async with self._slots:
                answers = await self._client.objects(class_key=key, agent=agent)
        except QmfError as error:
            log.warning("the objects of %s of agent %s are not known until they change: %s", key, agent.name, error)
            return
        for obj in answers:
            name = obj.object_id.object_name
            known = self.of(agent.name, name)
            properties = {**obj.properties, **known}
            if obj.is_deleted or name in self._deleted[agent.name]:
                continue
            row = self._recorded[agent.name].get(name)
            # Statistics that were published since are newer than the answer.
            is_old = self._is_old(row)
            measured = bool(obj.statistics) and (is_old or not (row and row.measured))
            if not measured and not is_old and known and known.keys() >= properties.keys():
                continue
            self._known[agent.name][name] = properties
            self._on_learned(obj, properties, measured)
