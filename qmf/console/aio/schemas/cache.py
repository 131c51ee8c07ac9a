"""The schema cache: the classes seen so far, the agents that use them, and their schemas.

One entry per `ClassKey`: several versions of a class, distinguished by their hash, exist side by side. Several requests
for a schema that is not known share one fetch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.notifications import ClassSeen, Notification, PackageSeen
from qmf.console.aio.objects.class_fields import ClassFields
from qmf.console.aio.rpc.requests import AgentLost
from qmf.errors import DisconnectedError, NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind

log = logging.getLogger("qmf.console")

AnySchema = ClassSchema | EventSchema
Fetch = Callable[[ClassKey, tuple[str, ...]], Awaitable[AnySchema]]

#: Seconds after a failed fetch in which indications don't request the schema again.
RETRY_AFTER = 30.0

#: Key objects that are remembered by identity.
MAX_RECENT = 1000


@attrs.define
class _Entry:
    schema: AnySchema | None = None
    fields: ClassFields | None = None
    agents: dict[str, None] = attrs.field(factory=dict)
    failed_at: float | None = None


class SchemaCache:
    """Schemas by class key."""

    def __init__(
        self, fetch: Fetch, publish: Callable[[Notification], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Make an empty cache.

        Args:
            fetch: asks the agents with these names for a schema.
            publish: called with a notification for each package and class that is new.
            clock: the time in seconds.
        """
        self._fetch = fetch
        self._publish = publish
        self._clock = clock
        self._entries: dict[ClassKey, _Entry] = {}
        self._recent: dict[int, tuple[ClassKey, _Entry]] = {}
        self._packages: set[str] = set()
        self._running: dict[ClassKey, asyncio.Task[AnySchema]] = {}

    @property
    def packages(self) -> list[str]:
        """Packages seen so far, sorted."""
        return sorted(self._packages)

    def classes(self, package: str | None = None) -> list[ClassKey]:
        """Keys seen so far, of one package or of all, sorted."""
        return sorted(key for key in self._entries if package is None or key.package == package)

    def saw(self, key: ClassKey, agent: Agent) -> None:
        """Note that `agent` uses a class; a package or class that is new is published."""
        if key.package not in self._packages:
            self._packages.add(key.package)
            self._publish(PackageSeen(key.package))
        entry = self._entry(key)
        if entry is not None:
            entry.agents[agent.name] = None
        else:
            self._entries[key] = _Entry(agents={agent.name: None})
            self._publish(ClassSeen(key, agent))

    def saw_all(self, keys: Iterable[ClassKey | None], agent: Agent) -> list[ClassKey]:
        """`saw` for each key; returns each key once."""
        distinct = [key for key in dict.fromkeys(keys) if key is not None]
        for key in distinct:
            self.saw(key, agent)
        return distinct

    def forget_agent(self, agent: str) -> None:
        """Don't ask `agent` for schemas any more. Its schemas are kept: their hashes identify them for good."""
        for entry in self._entries.values():
            entry.agents.pop(agent, None)

    def used_by(self, agent: str) -> list[ClassKey]:
        """Keys of the classes seen so far that `agent` uses."""
        return [key for key, entry in self._entries.items() if agent in entry.agents]

    def resolve(self, package: str | None, name: str, agent: str | None = None) -> list[ClassKey]:
        """Keys seen so far for a name.

        Args:
            package: its package, or None for any.
            name: its name in any case.
            agent: only classes that this agent uses, or None.
        """
        return [
            key
            for key, entry in self._entries.items()
            if key.name.lower() == name.lower()
            and (not package or key.package == package)
            and (agent is None or agent in entry.agents)
        ]

    def known(self, key: ClassKey) -> AnySchema | None:
        """The schema, if it is in the cache."""
        entry = self._entry(key)
        return entry.schema if entry else None

    def fields(self, key: ClassKey | None) -> ClassFields | None:
        """The fields of an object class, if its schema is in the cache."""
        if key is None:
            return None
        entry = self._entry(key)
        return entry.fields if entry else None

    def worth_asking(self, key: ClassKey) -> bool:
        """False when the schema is in the cache, can't be requested, or its last fetch failed a moment ago."""
        entry = self._entry(key)
        if key.hash is None or (entry is not None and entry.schema is not None):
            return False
        return entry is None or entry.failed_at is None or self._clock() - entry.failed_at > RETRY_AFTER

    def add(self, schema: AnySchema, key: ClassKey) -> None:
        """Keep a schema under the key that was requested."""
        entry = self._entries.setdefault(key, _Entry())
        entry.schema = schema
        entry.fields = ClassFields(schema) if isinstance(schema, ClassSchema) else None
        entry.failed_at = None

    async def get(self, key: ClassKey) -> AnySchema:
        """The schema for a key, fetched when it is not in the cache.

        Args:
            key: the class or event; without hash, the version seen last.

        Raises:
            NotFoundError: no agent present has it.
            QmfError: an agent that may have it did not answer.
        """
        key = self._complete(key)
        schema = self.known(key)
        if schema is not None:
            return schema
        task = self._running.get(key)
        if task is None:
            entry = self._entries.get(key)
            task = asyncio.get_running_loop().create_task(self._load(key, tuple(entry.agents) if entry else ()))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # Shielded: a caller that is cancelled must not cancel the fetch for the others.
        return await asyncio.shield(task)

    async def learn(self, key: ClassKey) -> None:
        """Fetch a schema unless it is in the cache, even if the last fetch failed; a failure is logged."""
        if key.hash is None or self.known(key) is not None:
            return
        try:
            await self.get(key)
        except QmfError as error:
            level = logging.INFO if isinstance(error, DisconnectedError) else logging.WARNING
            log.log(level, "no schema for %s, its values stay untyped: %s", key, error)

    def _entry(self, key: ClassKey) -> _Entry | None:
        """The entry of a key. Hashing a key is slow, and decoding messages yields the same key object each time."""
        recent = self._recent.get(id(key))
        if recent is not None and recent[0] is key:
            return recent[1]
        entry = self._entries.get(key)
        if entry is not None:
            if len(self._recent) >= MAX_RECENT:
                self._recent.clear()
            self._recent[id(key)] = key, entry
        return entry

    async def close(self) -> None:
        """Cancel all fetches."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _complete(self, key: ClassKey) -> ClassKey:
        if key.hash is not None:
            # Keys that users write may lack the kind; the hash identifies the class anyway.
            twin = attrs.evolve(key, kind=Kind.EVENT if key.kind is Kind.DATA else Kind.DATA)
            return twin if twin in self._entries and key not in self._entries else key
        candidates = [known for known in self.resolve(key.package, key.name) if known.kind is key.kind and known.hash]
        if not candidates:
            raise NotFoundError("class", f"{key.package}:{key.name}", _names(self._entries))
        return candidates[-1]

    async def _load(self, key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        schema = await self._fetch(key, agents)
        if isinstance(schema, ClassSchema) is not (key.kind is Kind.DATA):
            raise NotFoundError("class" if key.kind is Kind.DATA else "event class", str(key))
        self.add(schema, key)
        return schema

    def _finished(self, key: ClassKey, task: asyncio.Task[AnySchema]) -> None:
        del self._running[key]
        error = None if task.cancelled() else task.exception()
        # The loss of a connection or an agent is no failure of the schema.
        if isinstance(error, QmfError) and not isinstance(error, DisconnectedError | AgentLost):
            self._entries.setdefault(key, _Entry()).failed_at = self._clock()


def _names(keys: Iterable[ClassKey]) -> set[str]:
    return {f"{key.package}:{key.name}" for key in keys}
