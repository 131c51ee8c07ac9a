"""Asking agents for objects and classes, several at once, and calling methods: what `Client` and remote objects do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.core import ClientCore
from qmf.console.aio.objects.class_view import ClassView, with_agent
from qmf.console.aio.objects.methods import MethodSignature, property_values, typed_outputs
from qmf.console.aio.objects.remote_object import Args, CallResult, RemoteObject, Values, merge, of_rows, remote
from qmf.console.aio.queries.answers import Answers, one_failure
from qmf.console.aio.queries.filters import Test, Where, anything, prepare
from qmf.console.aio.schemas.cache import class_runs, distinct_keys
from qmf.errors import CallerError, ConstraintError, NotFoundError, QmfError
from qmf.protocol import (
    ROW_FORM,
    MethodRequest,
    MethodResponse,
    ObjectData,
    ObjectId,
    ObjectsResponse,
    Predicate,
    QueryRequest,
    What,
)
from qmf.protocol.objects.row_objects import RowObjects
from qmf.schema import ClassKey, Kind

log = logging.getLogger("qmf.console")

T = TypeVar("T")

#: Name of the method that sets properties, understood by agents of this project. No schema name starts with ``_``.
SET_PROPERTIES = "_set_properties"
#: Methods whose signatures are remembered.
MAX_SIGNATURES = 500


@attrs.frozen
class ObjectQuery:
    """What objects are asked for: the arguments of `Client.objects`."""

    name: str | None = None
    package: str | None = None
    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    agent: str | None = None
    where: Where | None = None

    def __attrs_post_init__(self) -> None:
        if sum(item is not None for item in (self.name, self.class_key, self.object_id)) != 1:
            raise CallerError("objects: give exactly one of name, class_key and object_id")

    @property
    def class_name(self) -> tuple[str | None, str | None]:
        """Name and package of the class, each None where not given."""
        return (self.class_key.name, self.class_key.package) if self.class_key else (self.name, self.package)

    @property
    def only_agent(self) -> str | None:
        """Name of the only agent to ask; None for all."""
        return self.agent or (self.object_id.agent_name if self.object_id else None)

    def __str__(self) -> str:
        if self.object_id is not None:
            return f"object {self.object_id}"
        name, package = self.class_name
        return f"objects of {package}:{name}" if package else f"objects of {name}"


class ObjectQueries:
    """Asks over the parts of one client."""

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._last_key: ClassKey | None = None
        self._last_view: ClassView | None = None
        self._signatures: dict[tuple[int, str], MethodSignature] = {}

    def make(self, data: ObjectData, agent: Agent) -> RemoteObject:
        """A remote object of what an agent sent."""
        name = agent.info.name
        object_id = with_agent(data.object_id or ObjectId(""), name)
        return remote(data, object_id, name, self._view(data.class_key), self)

    def make_all(self, objects: Sequence[ObjectData], agent: Agent) -> list[RemoteObject]:
        """Remote objects of what an agent sent."""
        if isinstance(objects, RowObjects):
            return of_rows(objects, agent.name, self._view(objects.class_key), self)
        return [self.make(data, agent) for data in objects]

    def _view(self, key: ClassKey | None) -> ClassView | None:
        """The view of a class; that of the object made before, mostly."""
        if key is not None and key is self._last_key:
            return self._last_view
        view = self._core.schemas.view(key)
        if view is not None:
            self._last_key, self._last_view = key, view
        return view

    async def objects(self, wanted: ObjectQuery, seconds: float) -> Answers[RemoteObject]:
        """See `Client.objects`."""
        predicate, test = self.prepare(wanted)
        answers = await self._gather(self._asked(wanted), lambda agent: self.at(agent, wanted, predicate, seconds))
        return answers if test is anything else Answers(tuple(filter(test, answers)), answers.failures)

    async def each(self, wanted: ObjectQuery, seconds: float) -> AsyncGenerator[RemoteObject, None]:
        """See `Client.each`."""
        predicate, test = self.prepare(wanted)
        asked = self._asked(wanted)
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(self.at(agent, wanted, predicate, seconds)): agent for agent in asked}
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
        self._tell(failures, len(asked))

    def prepare(self, wanted: ObjectQuery) -> tuple[Predicate, Test]:
        """The predicate to send, and the test for each object that comes back; see `filters.prepare`."""
        name, package = wanted.class_name
        keys = self._core.schemas.resolve(package, name) if name else []
        predicate, test = prepare(wanted.where, [view for view in map(self._core.schemas.view, keys) if view])
        version = wanted.class_key.hash if wanted.class_key else None
        if version is None:
            return predicate, test
        return predicate, lambda obj: _has_hash(obj, version) and test(obj)

    async def at(self, agent: Agent, wanted: ObjectQuery, predicate: Predicate, seconds: float) -> list[RemoteObject]:
        """Objects of one agent, not tested yet; errors as of `Client.objects`."""
        name, package = wanted.class_name
        if wanted.object_id is not None:
            there = with_agent(wanted.object_id, agent.name)
            return await self._query(agent, QueryRequest(what=What.OBJECT, object_id=there, row_form=ROW_FORM), seconds)
        found = []
        for spelled in await self._spelled(agent, package, name or "", seconds):
            found += await self._class_at(agent, spelled, predicate, seconds)
        return found

    async def learn_classes(self, agent: Agent, wanted: ObjectQuery, seconds: float) -> None:
        """Have the schemas of what is wanted here, as far as the agent can list its classes."""
        name, package = wanted.class_name
        if not self._core.explorer.can_list(agent):
            return
        if not self._core.explorer.is_listed(agent):
            await self._take_list(agent, seconds)
        keys = self._core.schemas.resolve(package, name, agent.name) if name else []
        await asyncio.gather(*(self.learn(key) for key in keys if key.kind is Kind.DATA))

    def _asked(self, wanted: ObjectQuery) -> list[Agent]:
        self._require_connection()
        return [self._present(wanted.only_agent)] if wanted.only_agent else list(self._core.agents)

    async def lists(self, seconds: float) -> Mapping[str, QmfError]:
        """Have every agent list its classes, unless it did and told no news; returns who failed."""
        self._require_connection()
        explorer = self._core.explorer
        # qpidd doesn't say when its list changes, so it is asked each time.
        asked = [
            agent
            for agent in self._core.agents
            if explorer.can_list(agent) and not (agent.knows_schema_queries and explorer.is_listed(agent))
        ]
        return (await self._gather(asked, lambda agent: self._take_list(agent, seconds))).failures

    async def classes_of(self, agent: Agent, seconds: float) -> list[ClassKey]:
        """The classes of one agent: those that it lists, or that were seen of it where it can't."""
        self._require_connection()
        return await self._take_list(agent, seconds) or self._core.schemas.used_by(agent.name)

    # -- for remote objects

    async def refresh(self, target: RemoteObject, timeout: float | None) -> ObjectData:
        """The present state of an object; see `RemoteObject.update`."""
        agent = self._present(target.agent)
        request = QueryRequest(what=What.OBJECT, object_id=target.object_id)
        found = await self._query(agent, request, self._seconds(timeout))
        if not found:
            raise NotFoundError("object", str(target.object_id))
        return merge(target.data, found[0].data, self._core.schemas.view(found[0].class_key))

    async def call(
        self, target: RemoteObject, method: str, args: Args, kwargs: Values, timeout: float | None
    ) -> CallResult:
        """Call a method of an object; see `RemoteObject.call`."""
        inputs = self.check_call(target, method, args, kwargs)
        values = await self._invoke(target, method, inputs, timeout)
        signature = self._signature(target, method)
        return CallResult(typed_outputs(signature.method if signature else None, values, target.agent))

    def check_call(self, target: RemoteObject, method: str, args: Args, kwargs: Values) -> dict[str, object]:
        """The inputs of a call, checked and ready for the wire; see `RemoteObject.call`."""
        owner = target.class_key.name if target.class_key else "object"
        signature = self._signature(target, method)
        if signature is not None:
            return signature.bind(owner, args, kwargs)
        if target.schema is not None:
            raise NotFoundError(f"method of {owner}", method, [item.name for item in target.schema.methods])
        if args:
            raise ConstraintError(f"{owner}.{method}", "no schema", args, "must be given arguments by name")
        return dict(kwargs)

    def _signature(self, target: RemoteObject, method: str) -> MethodSignature | None:
        """A method of an object's class; None when there is no schema, or none of that name in it."""
        schema = target.schema
        if schema is None:
            return None
        # The signature keeps its schema alive, so that no other one gets the id.
        known = self._signatures.get((id(schema), method))
        if known is None and (found := schema.method(method)) is not None:
            if len(self._signatures) >= MAX_SIGNATURES:
                self._signatures.clear()
            known = self._signatures[id(schema), method] = MethodSignature(schema, found)
        return known

    async def assign(self, target: RemoteObject, values: Values, timeout: float | None) -> dict[str, object]:
        """Set properties of an object; see `RemoteObject.set`."""
        sent = property_values(target.schema, values) if target.schema else dict(values)
        await self._invoke(target, SET_PROPERTIES, sent, timeout)
        return sent

    async def dereference(self, target: ObjectId, timeout: float | None) -> RemoteObject:
        """The object that a reference names; see `RemoteObject.follow`."""
        found = await self.objects(ObjectQuery(object_id=target), self._seconds(timeout))
        if not found:
            raise NotFoundError("object", str(target))
        return found[0]

    # -- inside

    def _seconds(self, timeout: float | None) -> float:
        return self._core.timeout if timeout is None else timeout

    def _require_connection(self) -> None:
        if not self._core.wire.bus.connected:
            raise self._core.disconnected()

    def _present(self, name: str) -> Agent:
        """An agent; without a connection none is there, which is then what to tell."""
        self._require_connection()
        return self._core.agents.find(name)

    async def _spelled(self, agent: Agent, package: str | None, name: str, seconds: float) -> list[ClassKey]:
        """The classes to ask an agent for, spelled as it spells them.

        libqmf2 wants package and exact case; qpidd has lower case, and any package when none is given (QMF2.md 4.4).
        """
        if agent.knows_schema_queries and (package is None or name != name.lower()):
            if not self._core.explorer.is_listed(agent):
                await self._take_list(agent, seconds)
            found = self._core.schemas.resolve(package, name, agent.name)
            return list(dict.fromkeys(ClassKey(key.package, key.name) for key in found if key.kind is Kind.DATA))
        return [ClassKey(package or "", name.lower())]

    async def _class_at(self, agent: Agent, key: ClassKey, predicate: Predicate, seconds: float) -> list[RemoteObject]:
        where = predicate if agent.knows_schema_queries else ()
        request = QueryRequest(what=What.OBJECT, class_key=key, where=where, row_form=ROW_FORM)
        return await self._query(agent, request, seconds)

    async def _query(self, agent: Agent, request: QueryRequest, seconds: float) -> list[RemoteObject]:
        deadline = asyncio.get_running_loop().time() + seconds
        about = f"object {request.object_id}" if request.object_id else f"objects of {_spoken(request.class_key)}"
        parts = await self._core.questions.ask(
            agent, request, ObjectsResponse, what=f"query for {about}", timeout=seconds
        )
        keys = distinct_keys(key for part in parts for key, _ in class_runs(part.objects))
        for key in keys:
            self._core.saw(key, agent)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.gather(*(self.learn(key) for key in keys))
        except TimeoutError:
            log.warning("no schema for %s within %g s, values stay untyped", about, seconds)
        found = [obj for part in parts for obj in self.make_all(part.objects, agent)]
        if agent.name in self._core.publishing:
            # qpidd may not announce an object that was just queried (QMF2.md 7.1): later updates build on this.
            for obj in found:
                self._core.store.update(obj)
        return found

    async def learn(self, key: ClassKey) -> None:
        """Have a schema here, even if it was asked for in vain before; where that can't be, say so in the log."""
        if key.hash is not None and self._core.schemas.known(key) is None:
            try:
                await self._core.schemas.get(key)
            except QmfError as error:
                log.warning("no schema for %s, its values stay untyped: %s", key, error)

    async def _invoke(
        self, target: RemoteObject, method: str, inputs: Values, timeout: float | None
    ) -> Mapping[str, object]:
        agent = self._present(target.agent)
        owner = target.class_key.name if target.class_key else "object"
        parts = await self._core.questions.ask(
            agent,
            MethodRequest(method=method, object_id=target.object_id, arguments=inputs),
            MethodResponse,
            what=f"method {method} of {owner} {target.object_id}",
            timeout=self._seconds(timeout),
        )
        return parts[-1].arguments

    async def _take_list(self, agent: Agent, seconds: float) -> list[ClassKey]:
        keys = await self._core.explorer.classes(agent, seconds)
        for key in keys:
            self._core.saw(key, agent)
        return keys

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
        self._tell(failures, len(agents))
        return Answers(tuple(found), failures)

    def _tell(self, failures: Mapping[str, QmfError], asked: int) -> None:
        """Raise when all failed; log when some did."""
        if failures and len(failures) == asked:
            raise one_failure(failures)
        for name, error in failures.items():
            log.warning("agent %s gave no answer: %s", name, error)


def _spoken(key: ClassKey | None) -> str:
    if key is None:
        return "any class"
    return f"{key.package}:{key.name}" if key.package else key.name


def _has_hash(obj: RemoteObject, wanted: object) -> bool:
    return wanted is None or obj.class_key is None or obj.class_key.hash in (None, wanted)
