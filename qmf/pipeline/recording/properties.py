"""The properties of recorded objects: the last known ones, and the requests for those that were never published.

Agents don't repeat what they published before the recorder came. So each agent is asked once for the objects of each
class that it uses. Until it has answered, statistics and changes of the same objects may arrive: what was published is
newer than the answer, what was not published comes from the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping

from qmf.console.aio import Agent, Client, RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassKey, Kind

log = logging.getLogger("qmf.pipeline")

#: Requests that wait for answers at the same time: a bus may have hundreds of agents with tens of classes each.
CONCURRENT_REQUESTS = 16

Properties = Mapping[str, object]


class KnownProperties:
    """The last known properties of each object. Belongs to the event loop."""

    def __init__(self, client: Client, on_learned: Callable[[RemoteObject, Properties], None]) -> None:
        """Know nothing yet.

        Args:
            client: to ask.
            on_learned: called with an object and its properties when an answer had properties that were not known.
        """
        self._client = client
        self._on_learned = on_learned
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
        """An agent published properties of an object."""
        self._known[agent][name] = dict(properties)
        self._deleted[agent].discard(name)

    def delete(self, agent: str, name: str) -> None:
        """An object was deleted."""
        self._known[agent].pop(name, None)
        if agent in self._requests.values():
            self._deleted[agent].add(name)

    def request(self, key: ClassKey, agent: Agent) -> None:
        """An agent uses a class: ask it for its objects."""
        if key.kind is Kind.DATA and not self._closed:
            self._used[agent.name][key] = agent
            task = asyncio.get_running_loop().create_task(self._learn(key, agent))
            self._requests[task] = agent.name
            task.add_done_callback(self._finished)

    def agent_restarted(self, agent: Agent) -> None:
        """An agent was restarted: its objects are others, of the same classes."""
        used = self._used.pop(agent.name, {})
        self.forget(agent.name)
        for key in used:
            self.request(key, agent)

    def forget(self, agent: str) -> None:
        """An agent is gone."""
        for table in (self._known, self._deleted, self._used):
            table.pop(agent, None)
        for task, name in self._requests.items():
            if name == agent:
                task.cancel()

    def close(self) -> None:
        """Cancel requests that are not answered yet, and make no more."""
        self._closed = True
        for task in self._requests:
            task.cancel()

    def _finished(self, task: asyncio.Task[None]) -> None:
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
            if obj.is_deleted or name in self._deleted[agent.name] or (known and known.keys() >= properties.keys()):
                continue
            self._known[agent.name][name] = properties
            self._on_learned(obj, properties)
