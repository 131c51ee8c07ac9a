"""Queries to agents: for objects, by class or id, and for classes; to several agents at once where needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

import attrs

from qmf.console.aio.agents.registry import Agent, AgentRegistry
from qmf.console.aio.indications import ObjectStore
from qmf.console.aio.objects.class_fields import ClassFields, Values, merge, with_agent
from qmf.console.aio.objects.methods import MethodCalls
from qmf.console.aio.objects.remote_object import (
    Args,
    CallResult,
    RemoteObject,
    make_object,
    remote_objects,
)
from qmf.console.aio.queries.object_query import ObjectQuery, Test, compile_filter, match_all
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.console.aio.schemas.cache import SchemaCache, distinct_keys
from qmf.console.aio.schemas.discovery import SchemaDiscovery
from qmf.errors import NotFoundError, QmfError, RequestTimeout
from qmf.protocol import ROW_FORM, ObjectData, ObjectId, ObjectsResponse, Predicate, QueryRequest, What
from qmf.protocol.objects import class_runs
from qmf.schema import ClassKey, Kind

log = logging.getLogger("qmf.console")

T = TypeVar("T")


@attrs.frozen(repr=False)
class Answers(Sequence[T]):
    """The merged answers of all agents that answered; reads like a list.

    Attributes:
        items: the answers, agent by agent in the order asked.
        failures: the errors of the agents that did not answer, by agent name; empty when all answered.
    """

    items: tuple[T, ...] = ()
    failures: Mapping[str, QmfError] = attrs.field(factory=dict)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __repr__(self) -> str:
        failed = f", no answer from {', '.join(sorted(self.failures))}" if self.failures else ""
        return f"<{list(self.items)!r}{failed}>"


def combined_failure(failures: Mapping[str, QmfError]) -> QmfError:
    """The error to raise when every agent failed: the most informative one, with the others as notes.

    An agent's refusal is more informative than a timeout.
    """
    ranked = sorted(failures.items(), key=lambda item: isinstance(item[1], RequestTimeout))
    (_, first), *others = ranked
    for agent, error in others:
        first.add_note(f"also {agent}: {error}")
    return first


class AgentQueries:
    """Queries of one client; the `ObjectClient` of its remote objects."""

    def __init__(
        self,
        rpc: RpcChannel,
        agents: AgentRegistry,
        schemas: SchemaCache,
        discovery: SchemaDiscovery,
        store: ObjectStore,
        timeout: float,
    ) -> None:
        """Make the queries.

        Args:
            rpc: sends the requests.
            agents: the agents present.
            schemas: the schemas known.
            discovery: lists the classes of agents.
            store: keeps the objects of agents that publish.
            timeout: seconds to wait for each agent when a query does not specify it.
        """
        self._rpc = rpc
        self._agents = agents
        self._schemas = schemas
        self._discovery = discovery
        self._store = store
        self._timeout = timeout
        self._methods = MethodCalls(rpc, agents, timeout)
        self._last_key: ClassKey | None = None
        self._last_fields: ClassFields | None = None

    # -- remote objects

    def make(self, data: ObjectData, agent: Agent) -> RemoteObject:
        """A remote object from what an agent sent."""
        name = agent.info.name
        object_id = with_agent(data.object_id or ObjectId(""), name)
        return make_object(data, object_id, name, self._fields(data.class_key), self)

    def _make_all(self, objects: Sequence[ObjectData], agent: Agent) -> list[RemoteObject]:
        return [
            obj for key, run in class_runs(objects) for obj in remote_objects(run, agent.name, self._fields(key), self)
        ]

    def _fields(self, key: ClassKey | None) -> ClassFields | None:
        """The fields of a class; usually the same as for the object before."""
        if key is not None and key is self._last_key:
            return self._last_fields
        fields = self._schemas.fields(key)
        if fields is not None:
            self._last_key, self._last_fields = key, fields
        return fields

    # -- objects of several agents

    async def objects(self, query: ObjectQuery, timeout: float | None) -> Answers[RemoteObject]:
        """See `Client.objects`."""
        predicate, test = self.compile(query)
        answers = await self._gather(self._asked(query), lambda agent: self.at(agent, query, predicate, timeout))
        return answers if test is match_all else Answers(tuple(filter(test, answers)), answers.failures)

    async def each(self, query: ObjectQuery, timeout: float | None) -> AsyncGenerator[RemoteObject, None]:
        """See `Client.each`."""
        predicate, test = self.compile(query)
        asked = self._asked(query)
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(self.at(agent, query, predicate, timeout)): agent for agent in asked}
        failures: dict[str, QmfError] = {}
        waiting = set(tasks)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    try:
                        found = task.result()
                    except QmfError as error:
                        failures[tasks[task].name] = error
                        continue
                    for obj in filter(test, found):
                        yield obj
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        _check_failures(failures, len(asked))

    def compile(self, query: ObjectQuery) -> tuple[Predicate, Test]:
        """The predicate to send, and the test for each object of an answer; see `compile_filter`."""
        name, package = query.class_name
        keys = self._schemas.resolve(package, name) if name else []
        predicate, test = compile_filter(query.where, [fields for fields in map(self._schemas.fields, keys) if fields])
        version = query.class_key.hash if query.class_key else None
        if version is None:
            return predicate, test
        return predicate, lambda obj: _has_hash(obj, version) and test(obj)

    def _asked(self, query: ObjectQuery) -> list[Agent]:
        self._rpc.check_connected()
        return [self._agents.find(query.only_agent)] if query.only_agent else list(self._agents)

    # -- objects of one agent

    async def at(
        self, agent: Agent, query: ObjectQuery, predicate: Predicate, timeout: float | None = None
    ) -> list[RemoteObject]:
        """Objects of one agent, not tested yet; errors as of `Client.objects`."""
        seconds = self._seconds(timeout)
        name, package = query.class_name
        if query.object_id is not None:
            object_id = with_agent(query.object_id, agent.name)
            request = QueryRequest(what=What.OBJECT, object_id=object_id, row_form=ROW_FORM)
            return await self._query(agent, request, seconds)
        found = []
        for key in await self._class_keys(agent, package, name or "", seconds):
            where = predicate if agent.knows_schema_queries else ()
            request = QueryRequest(what=What.OBJECT, class_key=key, where=where, row_form=ROW_FORM)
            found += await self._query(agent, request, seconds)
        return found

    async def _class_keys(self, agent: Agent, package: str | None, name: str, seconds: float) -> list[ClassKey]:
        """The classes to ask an agent for, in the spelling that it expects.

        libqmf2 needs package and exact case; qpidd needs lower case, and takes an empty package for any (QMF2.md 4.4).
        """
        if agent.knows_schema_queries and (package is None or name != name.lower()):
            await self._list_once(agent, seconds)
            found = self._schemas.resolve(package, name, agent.name)
            return list(dict.fromkeys(ClassKey(key.package, key.name) for key in found if key.kind is Kind.DATA))
        return [ClassKey(package or "", name.lower())]

    async def _query(self, agent: Agent, request: QueryRequest, seconds: float) -> list[RemoteObject]:
        deadline = asyncio.get_running_loop().time() + seconds
        subject = f"object {request.object_id}" if request.object_id else f"objects of {_class_text(request.class_key)}"
        parts = await self._rpc.request(agent, request, ObjectsResponse, what=f"query for {subject}", timeout=seconds)
        keys = distinct_keys(key for part in parts for key, _ in class_runs(part.objects))
        for key in keys:
            self._schemas.saw(key, agent)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.gather(*(self.learn(key) for key in keys))
        except TimeoutError:
            log.warning("no schema for %s within %g s, values stay untyped", subject, seconds)
        found = [obj for part in parts for obj in self._make_all(part.objects, agent)]
        self._store.update_from_query(agent.name, found)
        return found

    # -- classes

    async def learn(self, key: ClassKey) -> None:
        """Fetch a schema, even if it failed before; a failure is logged."""
        if key.hash is not None and self._schemas.known(key) is None:
            try:
                await self._schemas.get(key)
            except QmfError as error:
                log.warning("no schema for %s, its values stay untyped: %s", key, error)

    async def learn_classes(self, agent: Agent, query: ObjectQuery) -> None:
        """Fetch the schemas of the classes that a query names, as far as the agent can list its classes."""
        name, package = query.class_name
        if not self._discovery.can_list(agent):
            return
        await self._list_once(agent, self._timeout)
        keys = self._schemas.resolve(package, name, agent.name) if name else []
        await asyncio.gather(*(self.learn(key) for key in keys if key.kind is Kind.DATA))

    async def list_all_classes(self, timeout: float | None) -> Mapping[str, QmfError]:
        """Have every agent list its classes, unless its list is known and has not changed.

        Returns:
            the errors of the agents that failed, by agent name.
        """
        self._rpc.check_connected()
        # qpidd doesn't announce changes of its list, so it is asked each time.
        asked = [
            agent
            for agent in self._agents
            if self._discovery.can_list(agent) and not (agent.knows_schema_queries and self._discovery.is_listed(agent))
        ]
        return (await self._gather(asked, lambda agent: self.list_classes(agent, timeout))).failures

    async def classes_of(self, agent: Agent, timeout: float | None) -> list[ClassKey]:
        """The classes of one agent: those that it lists, or those seen so far when it can't list them."""
        self._rpc.check_connected()
        return await self.list_classes(agent, timeout) or self._schemas.used_by(agent.name)

    async def list_classes(self, agent: Agent, timeout: float | None = None) -> list[ClassKey]:
        """Have one agent list its classes, and note them."""
        keys = await self._discovery.classes(agent, self._seconds(timeout))
        for key in keys:
            self._schemas.saw(key, agent)
        return keys

    async def _list_once(self, agent: Agent, seconds: float) -> None:
        if not self._discovery.is_listed(agent):
            await self.list_classes(agent, seconds)

    # -- for remote objects, see `ObjectClient`

    async def refresh(self, target: RemoteObject, timeout: float | None) -> ObjectData:
        """The current state of an object; see `RemoteObject.update`."""
        self._rpc.check_connected()
        agent = self._agents.find(target.agent)
        request = QueryRequest(what=What.OBJECT, object_id=target.object_id)
        found = await self._query(agent, request, self._seconds(timeout))
        if not found:
            raise NotFoundError("object", str(target.object_id))
        return merge(target.data, found[0].data, self._schemas.fields(found[0].class_key))

    async def dereference(self, target: ObjectId, timeout: float | None) -> RemoteObject:
        """The object that a reference points to; see `RemoteObject.follow`."""
        found = await self.objects(ObjectQuery(object_id=target), timeout)
        if not found:
            raise NotFoundError("object", str(target))
        return found[0]

    async def call(
        self, target: RemoteObject, method: str, args: Args, kwargs: Values, timeout: float | None
    ) -> CallResult:
        """Call a method of an object; see `RemoteObject.call`."""
        return await self._methods.call(target, method, args, kwargs, timeout)

    def check_call(self, target: RemoteObject, method: str, args: Args, kwargs: Values) -> dict[str, object]:
        """The inputs of a call, checked and ready for the wire; see `RemoteObject.call`."""
        return self._methods.check(target, method, args, kwargs)

    async def assign(self, target: RemoteObject, values: Values, timeout: float | None) -> dict[str, object]:
        """Set properties of an object; see `RemoteObject.set`."""
        return await self._methods.assign(target, values, timeout)

    # -- inside

    def _seconds(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    async def _gather(self, agents: list[Agent], ask: Callable[[Agent], Awaitable[Sequence[T]]]) -> Answers[T]:
        """Ask several agents at once.

        Raises:
            QmfError: all of them failed.
        """
        results = await asyncio.gather(*(ask(agent) for agent in agents), return_exceptions=True)
        failures: dict[str, QmfError] = {}
        found: list[T] = []
        for agent, result in zip(agents, results, strict=True):
            if isinstance(result, QmfError):
                failures[agent.name] = result
            elif isinstance(result, BaseException):
                raise result
            else:
                found += result
        _check_failures(failures, len(agents))
        return Answers(tuple(found), failures)


def _check_failures(failures: Mapping[str, QmfError], asked: int) -> None:
    """Raise when all agents failed; log when some did."""
    if failures and len(failures) == asked:
        raise combined_failure(failures)
    for name, error in failures.items():
        log.warning("agent %s gave no answer: %s", name, error)


def _class_text(key: ClassKey | None) -> str:
    if key is None:
        return "any class"
    return f"{key.package}:{key.name}" if key.package else key.name


def _has_hash(obj: RemoteObject, wanted: object) -> bool:
    return wanted is None or obj.class_key is None or obj.class_key.hash in (None, wanted)
