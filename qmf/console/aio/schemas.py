"""Classes and schemas: a cache of those known, and discovery, which asks agents for them.

The cache has one entry per `ClassKey`: several versions of a class, distinguished by their hash, exist side by side.
Several requests for a schema that is not known share one fetch.

Agents with capability 1 answer QMFv2 schema queries. qpidd doesn't: its packages and classes are listed by QMFv1 `P`
and `Q`, and its schemas come by `S` with the hash that objects carry. Other agents of capability 0 answer `S`, but have
no list; their classes are known once one of their objects or events was received (QMF2.md 5.3, 8).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.console.aio.agents import Agent, AgentRegistry
from qmf.console.aio.notifications import ClassSeen, ClassUsed, Notification, PackageSeen
from qmf.console.aio.objects.class_fields import ClassFields
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.console.aio.rpc.requests import AgentLost
from qmf.errors import DisconnectedError, NotFoundError, PeerError, QmfError, RemoteError
from qmf.protocol import (
    BrokerRequest,
    BrokerResponse,
    ClassesRequest,
    ClassResponse,
    ObjectsResponse,
    PackageResponse,
    PackagesRequest,
    QueryRequest,
    SchemaIdsResponse,
    SchemaRequest,
    SchemaResponse,
    SchemasResponse,
    What,
)
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
        self._by_name: dict[str, list[ClassKey]] = {}
        self._by_agent: dict[str, dict[ClassKey, None]] = {}
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
        """Note that `agent` uses a class; what is new of it is published: the package, the class, its use."""
        if key.package not in self._packages:
            self._packages.add(key.package)
            self._publish(PackageSeen(key.package))
        entry = self._entry(key)
        is_new = entry is None
        if entry is None:
            entry = self._new_entry(key)
        elif agent.name in entry.agents:
            return
        entry.agents[agent.name] = None
        self._by_agent.setdefault(agent.name, {})[key] = None
        if is_new:
            self._publish(ClassSeen(key, agent))
        self._publish(ClassUsed(key, agent))

    def saw_all(self, keys: Iterable[ClassKey | None], agent: Agent) -> list[ClassKey]:
        """`saw` for each key; returns each key once."""
        distinct = [key for key in dict.fromkeys(keys) if key is not None]
        for key in distinct:
            self.saw(key, agent)
        return distinct

    def forget_agent(self, agent: str) -> None:
        """Don't ask `agent` for schemas any more. Its schemas are kept: their hashes identify them for good."""
        for key in self._by_agent.pop(agent, ()):
            self._entries[key].agents.pop(agent, None)

    def keys_used_by(self, agent: str) -> list[ClassKey]:
        """Keys of the classes seen so far that `agent` uses."""
        return list(self._by_agent.get(agent, ()))

    def resolve(self, package: str | None, name: str, agent: str | None = None) -> list[ClassKey]:
        """Keys seen so far for a name.

        Args:
            package: its package, or None for any.
            name: its name in any case.
            agent: only classes that this agent uses, or None.
        """
        return [
            key
            for key in self._by_name.get(name.lower(), ())
            if (not package or key.package == package) and (agent is None or agent in self._entries[key].agents)
        ]

    def cached_schema(self, key: ClassKey) -> AnySchema | None:
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
        entry = self._entries.get(key) or self._new_entry(key)
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
        schema = self.cached_schema(key)
        if schema is not None:
            return schema
        task = self._running.get(key)
        if task is None:
            entry = self._entries.get(key)
            task = asyncio.get_running_loop().create_task(self._load(key, tuple(entry.agents) if entry else ()))
            self._running[key] = task
            task.add_done_callback(lambda done: self._on_fetched(key, done))
        # Shielded: a caller that is cancelled must not cancel the fetch for the others.
        return await asyncio.shield(task)

    async def learn(self, key: ClassKey) -> None:
        """Fetch a schema unless it is in the cache, even if the last fetch failed; a failure is logged."""
        if key.hash is None or self.cached_schema(key) is not None:
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

    def _new_entry(self, key: ClassKey) -> _Entry:
        entry = self._entries[key] = _Entry()
        self._by_name.setdefault(key.name.lower(), []).append(key)
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
            raise NotFoundError(
                "class", f"{key.package}:{key.name}", {f"{one.package}:{one.name}" for one in self._entries}
            )
        return candidates[-1]

    async def _load(self, key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        schema = await self._fetch(key, agents)
        if isinstance(schema, ClassSchema) is not (key.kind is Kind.DATA):
            raise NotFoundError("class" if key.kind is Kind.DATA else "event class", str(key))
        self.add(schema, key)
        return schema

    def _on_fetched(self, key: ClassKey, task: asyncio.Task[AnySchema]) -> None:
        del self._running[key]
        error = None if task.cancelled() else task.exception()
        # The loss of a connection or an agent is no failure of the schema.
        if isinstance(error, QmfError) and not isinstance(error, DisconnectedError | AgentLost):
            entry = self._entries.get(key) or self._new_entry(key)
            entry.failed_at = self._clock()


class SchemaDiscovery:
    """Has agents list their classes, and fetches schemas for the cache."""

    def __init__(
        self, rpc: RpcChannel, agents: AgentRegistry, publish: Callable[[Notification], None], timeout: float
    ) -> None:
        """Make a discovery with an empty cache.

        Args:
            agents: the agents present.
            publish: called with a notification for each package and class that is new.
            timeout: seconds to wait for an answer when a call does not specify it.
        """
        self.cache = SchemaCache(self._fetch, publish)
        """The classes and schemas known."""
        self._rpc = rpc
        self._agents = agents
        self._timeout = timeout
        self._listed: dict[str, tuple[int, int]] = {}
        self._listing: set[str] = set()
        self._tasks = BackgroundTasks()

    def can_list(self, agent: Agent) -> bool:
        """True when the agent answers requests for the list of its classes."""
        return agent.knows_schema_queries or (agent.is_broker and agent.is_qpidd)

    def is_listed(self, agent: Agent) -> bool:
        """True when the agent's list was received, and it has not announced a change of its schemas since."""
        return self._listed.get(agent.name) == _version(agent)

    def forget(self, agent: str) -> None:
        """The agent is gone or has restarted: its list is no longer valid."""
        self._listed.pop(agent, None)

    async def close(self) -> None:
        """Cancel all requests."""
        await self._tasks.cancel()
        await self.cache.close()

    # -- classes

    async def list_classes(self, agent: Agent, timeout: float | None = None) -> list[ClassKey]:
        """The keys of all classes and events of an agent, noted in the cache; empty for one that has no list.

        Raises:
            RequestTimeout, NetworkError, AgentLost, RemoteError, ProtocolError: no usable answer.
        """
        version = _version(agent)
        seconds = self._timeout if timeout is None else timeout
        if agent.knows_schema_queries:
            keys = await self._classes_v2(agent, seconds)
        elif self.can_list(agent):
            keys = await self._classes_v1(agent, seconds)
        else:
            return []
        self._listed[agent.name] = version
        return self.cache.saw_all(keys, agent)

    async def list_once(self, agent: Agent, timeout: float | None = None) -> None:
        """Have an agent list its classes, unless its list is known."""
        if not self.is_listed(agent):
            await self.list_classes(agent, timeout)

    def discover(self, agent: Agent) -> None:
        """Have an agent list its classes in the background, unless its list is known or on its way."""
        if self.can_list(agent) and not self.is_listed(agent) and agent.name not in self._listing:
            self._listing.add(agent.name)
            self._tasks.spawn(self._discover(agent))

    async def learn_classes(self, agent: Agent, package: str | None, name: str | None) -> None:
        """Fetch the schemas of an agent's classes of a name, as far as the agent can list its classes."""
        if self.can_list(agent):
            await self.list_once(agent)
            keys = self.cache.resolve(package, name, agent.name) if name else []
            await asyncio.gather(*(self.cache.learn(key) for key in keys if key.kind is Kind.DATA))

    async def _discover(self, agent: Agent) -> None:
        try:
            await self.list_classes(agent)
        except QmfError as error:
            log.info("agent %s did not list its classes, asking again at its next heartbeat: %s", agent, error)
        finally:
            self._listing.discard(agent.name)

    async def _classes_v2(self, agent: Agent, timeout: float) -> list[ClassKey]:
        parts = await self._rpc.request(
            agent, QueryRequest(what=What.SCHEMA_ID), SchemaIdsResponse, what="query for classes", timeout=timeout
        )
        return [key for part in parts for key in part.keys]

    async def _classes_v1(self, agent: Agent, timeout: float) -> list[ClassKey]:
        packages = await self._rpc.request_v1(
            agent, PackagesRequest, PackageResponse, what="query for packages", timeout=timeout
        )
        keys = []
        for package in [frame.package for frame in packages]:
            found = await self._rpc.request_v1(
                agent,
                functools.partial(ClassesRequest, package),
                ClassResponse,
                what=f"query for classes of {package}",
                timeout=timeout,
            )
            keys += [frame.key for frame in found]
        return keys

    # -- schemas, and the broker's id

    async def broker_id(self, agent: Agent) -> UUID | None:
        """The id of the broker that an agent is part of; None for other agents.

        With qpidd it is the same as the tag by which federated brokers know it, which is all that others have.
        """
        what = "query for broker id"
        if not agent.is_broker:
            return None
        if agent.is_qpidd:
            frames = await self._rpc.request_v1(agent, BrokerRequest, BrokerResponse, what=what, timeout=self._timeout)
            return frames[0].broker_id if frames else None
        request = QueryRequest(what=What.OBJECT, class_key=ClassKey("org.apache.qpid.broker", "vhost"))
        parts = await self._rpc.request(agent, request, ObjectsResponse, what=what, timeout=self._timeout)
        for tag in (obj.values.get("federationTag") for part in parts for obj in part.objects):
            with contextlib.suppress(ValueError):
                return UUID(str(tag))
        return None

    async def _fetch(self, key: ClassKey, names: tuple[str, ...]) -> AnySchema:
        """Fetch a schema.

        Args:
            key: the class or event; its hash must be known.
            names: names of the agents that use it, in the order in which they are asked. Without any, all agents that
                can list their classes are asked.

        Raises:
            NotFoundError: none of the agents has it.
            QmfError: none of the agents has it, and one of them did not answer.
        """
        users = [agent for agent in (self._agents.get(name) for name in names) if agent is not None]
        asked = users or [agent for agent in self._agents if self.can_list(agent)]
        failure: QmfError | None = None
        for agent in asked:
            try:
                return await self._schema_from(key, agent)
            except QmfError as error:
                log.debug("no schema of %s from %s: %s", key, agent.name, error)
                if not isinstance(error, NotFoundError):
                    failure = error
        raise failure or NotFoundError("schema", str(key))

    async def _schema_from(self, key: ClassKey, agent: Agent) -> AnySchema:
        # An agent that is known by its name only most probably has capability 1, as nearly all have.
        if agent.knows_schema_queries or not (agent.is_announced or agent.is_qpidd):
            try:
                return await self._schema_v2(key, agent)
            except AgentLost:
                raise
            except PeerError as error:
                log.debug("%s refused a v2 schema query, trying v1: %s", agent.name, error)
        return await self._schema_v1(key, agent)

    async def _schema_v2(self, key: ClassKey, agent: Agent) -> AnySchema:
        parts = await self._rpc.request(
            agent,
            QueryRequest(what=What.SCHEMA, class_key=key),
            SchemasResponse,
            what=f"query for schema of {key}",
            timeout=self._timeout,
        )
        for part in parts:
            for schema in part.schemas:
                return schema
        raise NotFoundError("schema", str(key))

    async def _schema_v1(self, key: ClassKey, agent: Agent) -> AnySchema:
        try:
            frames = await self._rpc.request_v1(
                agent,
                functools.partial(SchemaRequest, key),
                SchemaResponse,
                what=f"request for schema of {key}",
                timeout=self._timeout,
            )
        except RemoteError as error:
            raise NotFoundError("schema", str(key)) from error  # QMFv1 refuses for no other reason
        for frame in frames:
            return frame.schema
        raise NotFoundError("schema", str(key))


def _version(agent: Agent) -> tuple[int, int]:
    return agent.epoch, agent.info.schema_updated
