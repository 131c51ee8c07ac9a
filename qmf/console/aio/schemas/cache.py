"""The schemas known so far, and who can tell the others.

One entry per `ClassKey`: several versions of a class, told apart by their hash, live side by side. Whoever asks for a
schema that is being fetched already shares that fetch. How a schema is fetched is told by the owner of the cache.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import attrs

from qmf.console.aio.objects.class_view import ClassView
from qmf.console.aio.rpc.errors import AgentLost
from qmf.errors import DisconnectedError, NotFoundError, QmfError
from qmf.protocol import EventData, ObjectData
from qmf.protocol.objects.row_objects import RowObjects
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind

AnySchema = ClassSchema | EventSchema
Fetch = Callable[[ClassKey, tuple[str, ...]], Awaitable[AnySchema]]

#: Seconds for which a schema that could not be had is not asked for again when indications need it.
RETRY_AFTER = 30.0

#: Key objects that are remembered by identity.
MAX_LATELY = 1000

D = TypeVar("D", ObjectData, EventData)


@attrs.define
class _Entry:
    schema: AnySchema | None = None
    view: ClassView | None = None
    agents: dict[str, None] = attrs.field(factory=dict)
    failed_at: float | None = None


class SchemaCache:
    """Schemas by class key."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._entries: dict[ClassKey, _Entry] = {}
        self._lately: dict[int, tuple[ClassKey, _Entry]] = {}
        self._packages: set[str] = set()
        self._running: dict[ClassKey, asyncio.Task[AnySchema]] = {}

    @property
    def packages(self) -> list[str]:
        """Packages seen so far, sorted."""
        return sorted(self._packages)

    def classes(self, package: str | None = None) -> list[ClassKey]:
        """Keys seen so far, of one package or of all, sorted."""
        return sorted(key for key in self._entries if package is None or key.package == package)

    def saw_package(self, package: str) -> bool:
        """Note that a package exists; True when that is news."""
        news = package not in self._packages
        self._packages.add(package)
        return news

    def saw(self, key: ClassKey, agent: str) -> bool:
        """Note that `agent` uses a class; True when the class is news."""
        entry = self._entry(key)
        news = entry is None
        if entry is None:
            entry = self._entries[key] = _Entry()
        entry.agents[agent] = None
        return news

    def forget_agent(self, agent: str) -> None:
        """Don't ask `agent` for schemas any more. What it told stays: the hash names it for good."""
        for entry in self._entries.values():
            entry.agents.pop(agent, None)

    def used_by(self, agent: str) -> list[ClassKey]:
        """Keys of the classes that `agent` uses, as far as seen."""
        return [key for key, entry in self._entries.items() if agent in entry.agents]

    def resolve(self, package: str | None, name: str, agent: str | None = None) -> list[ClassKey]:
        """Keys seen so far for a name as people write it.

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
        """The schema, if it is here already."""
        entry = self._entry(key)
        return entry.schema if entry else None

    def view(self, key: ClassKey | None) -> ClassView | None:
        """The reading view of an object class, if its schema is here already."""
        if key is None:
            return None
        entry = self._entry(key)
        return entry.view if entry else None

    def worth_asking(self, key: ClassKey) -> bool:
        """False when the schema is here, can't be asked for, or was asked for in vain a moment ago."""
        entry = self._entry(key)
        if key.hash is None or (entry is not None and entry.schema is not None):
            return False
        return entry is None or entry.failed_at is None or self._clock() - entry.failed_at > RETRY_AFTER

    def add(self, schema: AnySchema, key: ClassKey) -> None:
        """Keep a schema under the key that it was asked by."""
        entry = self._entries.setdefault(key, _Entry())
        entry.schema = schema
        entry.view = ClassView(schema) if isinstance(schema, ClassSchema) else None
        entry.failed_at = None

    async def get(self, key: ClassKey) -> AnySchema:
        """The schema for a key, fetched if need be.

        Args:
            key: without hash it means the version seen last.

        Raises:
            NotFoundError: nobody present knows it.
            QmfError: those who might know didn't answer.
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
        # Shielded: one asker who gives up must not take the answer from the others.
        return await asyncio.shield(task)

    def _entry(self, key: ClassKey) -> _Entry | None:
        """The entry of a key. Hashing a key is slow, and the reader of messages gives the same object each time."""
        lately = self._lately.get(id(key))
        if lately is not None and lately[0] is key:
            return lately[1]
        entry = self._entries.get(key)
        if entry is not None:
            if len(self._lately) >= MAX_LATELY:
                self._lately.clear()
            self._lately[id(key)] = key, entry
        return entry

    async def close(self) -> None:
        """Give up all fetches."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _complete(self, key: ClassKey) -> ClassKey:
        if key.hash is not None:
            # Texts of keys may leave the kind out, and the hash names the class anyway.
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
        # A connection or agent that went away proves nothing of the schema.
        if isinstance(error, QmfError) and not isinstance(error, DisconnectedError | AgentLost):
            self._entries.setdefault(key, _Entry()).failed_at = self._clock()


def class_runs(items: Sequence[D]) -> list[tuple[ClassKey | None, Sequence[D]]]:
    """Objects or events, in order, by what follows each other of one class: mostly all of a message."""
    if isinstance(items, RowObjects):
        return [(items.class_key, items)] if items else []
    keys = list(map(_class_key, items))
    # In one step where one key object is that of all.
    if keys and keys.count(keys[0]) == len(keys):
        return [(keys[0], items)]
    return [(key, list(run)) for key, run in itertools.groupby(items, key=_class_key)]


_class_key = operator.attrgetter("class_key")


def distinct_keys(keys: Iterable[ClassKey | None]) -> list[ClassKey]:
    """Each key once."""
    return [key for key in dict.fromkeys(keys) if key is not None]


def _names(keys: Iterable[ClassKey]) -> set[str]:
    return {f"{key.package}:{key.name}" for key in keys}
