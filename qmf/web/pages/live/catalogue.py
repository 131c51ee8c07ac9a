"""The classes of the bus, their schemas, and how many objects of each there are."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from qmf.console.aio import Agent, AnySchema
from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind
from qmf.web.consoles import WebConsole
from qmf.web.pages.live.followed import own_failures

#: Seconds between two counts of all objects, at least; and by how much longer than a count took they are apart.
COUNT_PAUSE = 20.0
COUNT_SHARE = 20.0
#: Agents that are asked for their objects at the same time: thousands at once would keep all pages waiting.
ASKED_AT_ONCE = 20

#: Package and name of a class.
ClassName = tuple[str, str]


@attrs.frozen
class ClassSummary:
    """A class or event class of the bus.

    Attributes:
        package, name: what it is called.
        kind: objects or events.
        versions: its versions, as schemas; those that no agent sent are missing.
        keys: the keys of its versions.
        counts: how many objects of it each agent has; None before they were counted, and for events.
        total: how many objects there are; None if unknown.
    """

    package: str
    name: str
    kind: Kind
    versions: tuple[ClassSchema | EventSchema, ...] = ()
    keys: tuple[ClassKey, ...] = ()
    counts: Mapping[str, int] | None = None
    total: int | None = None

    @property
    def title(self) -> str:
        """Its name as it was written, with capital letters where its schema has them."""
        return self.versions[0].name if self.versions else self.name

    @property
    def desc(self) -> str:
        """Its description, or empty."""
        return next((item.desc for item in self.versions if item.desc), "") or ""


class Catalogue:
    """Knows the classes of all agents, and counts their objects from time to time while somebody looks."""

    def __init__(self, client: WebConsole) -> None:
        self._client = client
        self._counts: dict[ClassName, dict[str, int]] = {}
        self._found: list[Agent] = []
        self._users: dict[ClassName, dict[str, None]] = {}
        self._totals: dict[ClassName, int] = {}
        self._of_agents: Mapping[str, int] = {}
        self._summaries: Sequence[ClassSummary] | None = None
        self._schemas: dict[ClassKey, AnySchema] = {}
        self._counting: asyncio.Lock = asyncio.Lock()
        self._next_count = 0.0
        self.version = 0
        """Another number whenever a class came, or objects were counted."""
        self.counted_at: float | None = None
        """When the objects were counted, in seconds since 1970; None before that."""
        self.failures: Mapping[str, QmfError] = {}
        """The errors of agents that did not answer when classes were last asked for, by agent name."""

    async def refresh(self) -> None:
        """Ask for all classes, and for the schemas that are not known yet."""
        answers = await self._client.classes()
        self.failures = own_failures(answers.failures)
        missing = [key for key in answers if key not in self._schemas]
        found = await asyncio.gather(*map(self._client.schema, missing), return_exceptions=True)
        for key, schema in zip(missing, found, strict=True):
            if isinstance(schema, BaseException):
                if not isinstance(schema, QmfError):
                    raise schema
            else:
                self._schemas[key] = schema
        self.on_changed()

    def add_user(self, key: ClassKey, agent: str) -> None:
        """An agent has a class: it is asked when objects are counted."""
        if _is_data(key):
            self._users.setdefault((key.package, key.name), {})[agent] = None

    def forget(self, agent: str) -> None:
        """An agent is gone."""
        for users in self._users.values():
            users.pop(agent, None)

    def on_agent_found(self, agent: Agent) -> None:
        """An agent was there before anybody listened to what it has."""
        self._found.append(agent)

    async def _ask_found(self) -> None:
        agents, self._found = self._found, []
        for agent in agents:
            with contextlib.suppress(QmfError):
                for key in await self._client.classes(agent=agent):
                    self.add_user(key, agent.name)

    def on_changed(self) -> None:
        """There are other classes than before, or other schemas of them."""
        self._summaries = None
        self.version += 1

    @property
    def is_count_due(self) -> bool:
        """True if the last count is old enough, and none is being made."""
        return time.monotonic() >= self._next_count and not self._counting.locked() and self._client.connected

    async def count(self) -> None:
        """Count the objects of all classes."""
        async with self._counting:
            start = time.monotonic()
            await self._ask_found()
            counts: dict[ClassName, dict[str, int]] = {
                (key.package, key.name): {} for key in self._client.known_classes() if _is_data(key)
            }
            questions = iter([(name, agent) for name in counts for agent in self._users.get(name, ())])
            await asyncio.gather(*(self._count_some(questions, counts) for _ in range(ASKED_AT_ONCE)))
            self._take(counts)
            self.counted_at = time.time()
            took = time.monotonic() - start
            self._next_count = time.monotonic() + max(COUNT_PAUSE, COUNT_SHARE * took)

    async def _count_some(
        self, questions: Iterator[tuple[ClassName, str]], counts: Mapping[ClassName, dict[str, int]]
    ) -> None:
        for (package, name), agent in questions:
            try:
                counts[package, name][agent] = await self._count_of(name, package, agent)
            except QmfError:
                continue  # they are shown without their number; the next count asks again

    async def _count_of(self, name: str, package: str, agent: str) -> int:
        """How many objects of a class an agent has: agents of this project say that with the first one."""
        if self._client.agent(agent).supports_subscriptions:
            found = await self._client.objects(name, package=package, agent=agent, limit=1)
            if found.total is not None:
                return found.total
        return len(await self._client.objects(name, package=package, agent=agent))

    def _take(self, counts: dict[ClassName, dict[str, int]]) -> None:
        self._counts = counts
        self._totals = {name: sum(found.values()) for name, found in counts.items()}
        of_agents: Counter[str] = Counter()
        for found in counts.values():
            of_agents.update(found)
        self._of_agents = of_agents
        self.on_changed()

    def counts(self) -> Mapping[str, int]:
        """How many objects each agent has, as last counted."""
        return self._of_agents

    @property
    def total(self) -> int:
        """How many objects there are, as last counted."""
        return sum(self._totals.values())

    def versions(self, package: str, name: str) -> list[ClassSchema]:
        """The schemas of the versions of a class that are known."""
        found = []
        for key in self._client.known_classes(package):
            if key.name.lower() == name.lower() and _is_data(key):
                schema = self._client.known_schema(key) or self._schemas.get(key)
                if isinstance(schema, ClassSchema):
                    found.append(schema)
        return found

    def classes(self) -> Sequence[ClassSummary]:
        """All classes, then all event classes, by package and name: put together once for each `version`."""
        if self._summaries is None:
            self._summaries = self._summarize()
        return self._summaries

    def _summarize(self) -> list[ClassSummary]:
        grouped: dict[tuple[str, str, str], list[ClassKey]] = {}
        for key in self._client.known_classes():
            grouped.setdefault((key.kind.value, key.package, key.name), []).append(key)
        return [self._summary(*grouped[name]) for name in sorted(grouped)]

    def find(self, package: str, name: str) -> ClassSummary | None:
        """A class, or None."""
        keys = [
            key for key in self._client.known_classes(package) if _is_data(key) and key.name.lower() == name.lower()
        ]
        return self._summary(*keys) if keys else None

    def _summary(self, *keys: ClassKey) -> ClassSummary:
        first = keys[0]
        known = (self._client.known_schema(key) or self._schemas.get(key) for key in keys)
        return ClassSummary(
            first.package,
            first.name,
            first.kind,
            tuple(item for item in known if item is not None),
            keys,
            self._counts.get((first.package, first.name)) if _is_data(first) else None,
            self._totals.get((first.package, first.name)) if _is_data(first) else None,
        )


def _is_data(key: ClassKey) -> bool:
    return key.kind is Kind.DATA
