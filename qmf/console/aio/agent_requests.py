"""Requests to agents: for objects, by class or id; for their classes; and those that remote objects make.

Queries go to several agents at once where needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from qmf.console.aio.agent_search import ALL_AGENTS
from qmf.console.aio.agent_tracker import AgentTracker
from qmf.console.aio.agents import Agent
from qmf.console.aio.answers import Answers, check_failures, log_failures
from qmf.console.aio.first_objects import AgentAnswer, first_objects
from qmf.console.aio.indications import ObjectStore
from qmf.console.aio.objects.class_fields import ClassFields, Values, merge
from qmf.console.aio.objects.object_query import (
    ObjectQuery,
    Test,
    agents_decide,
    check_names,
    compile_filter,
    match_all,
)
from qmf.console.aio.objects.remote_object import RemoteObject, class_name_of, remote_objects
from qmf.console.aio.objects.values import with_agent
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.console.aio.schemas import SchemaDiscovery
from qmf.errors import NotFoundError, QmfError
from qmf.protocol import (
    ROW_FORM,
    ObjectData,
    ObjectId,
    ObjectsResponse,
    Predicate,
    QueryRequest,
    TextSearch,
    What,
)
from qmf.protocol.objects import class_runs
from qmf.schema import ClassKey, Kind

log = logging.getLogger("qmf.console")

T = TypeVar("T")


class AgentRequests:
    """The requests of one client to agents; the `ObjectClient` of its remote objects."""

    def __init__(
        self,
        rpc: RpcChannel,
        tracker: AgentTracker,
        discovery: SchemaDiscovery,
        store: ObjectStore,
        timeout: float,
    ) -> None:
        """Make the requests.

        Args:
            tracker: knows the agents present, and whether more are being found.
            discovery: knows classes and schemas, and asks agents for them.
            store: keeps the objects of agents that publish.
            timeout: seconds to wait for each agent when a request does not specify it.
        """
        self._rpc = rpc
        self._tracker = tracker
        self._agents = tracker.agents
        self._schemas = discovery.cache
        self._discovery = discovery
        self._store = store
        self._timeout = timeout

    def make(self, objects: Sequence[ObjectData], agent: Agent) -> list[RemoteObject]:
        """Remote objects from what an agent sent."""
        return [
            obj
            for key, run in class_runs(objects)
            for obj in remote_objects(run, agent.name, self._schemas.fields(key), self)
        ]

    # -- objects of several agents

    async def objects(self, query: ObjectQuery, timeout: float | None) -> Answers[RemoteObject]:
        """See `Client.objects`."""
        predicate, test = self.compile(query)
        asked = await self._agents_to_ask(query)
        if query.limit is not None:
            return await self._first_objects(query, asked, predicate, test, timeout)
        answers = await self._gather(
            asked, lambda agent: self.query(agent, query, predicate, timeout), others=query.only_agent is None
        )
        await self._check_names(query, asked, found=bool(answers))
        return answers if test is match_all else Answers(tuple(filter(test, answers)), answers.failures)

    async def _first_objects(
        self, query: ObjectQuery, agents: Sequence[Agent], predicate: Predicate, test: Test, timeout: float | None
    ) -> Answers[RemoteObject]:
        """At most as many objects as the query's limit."""
        decided = agents_decide(query, predicate, self._known_fields(query))
        limit = query.limit or 0 if decided else 0

        def ask(agent: Agent) -> Awaitable[AgentAnswer]:
            return self._ask_agent(agent, query, predicate, timeout, limit)

        name, package = query.class_name
        asked = [agent for agent in agents if query.only_agent or self._may_have(agent, package, name)]
        unfinished = self._search_failure() if query.only_agent is None else {}
        answers = await first_objects(query, asked, ask, match_all if decided else test)
        await self._check_names(query, asked, found=bool(answers))
        failures = {**answers.failures, **unfinished}
        log_failures(failures)
        return Answers(answers.items, failures, answers.total)

    def _may_have(self, agent: Agent, package: str | None, name: str | None) -> bool:
        """False if the agent has listed its classes, and not this one."""
        if not name or not agent.knows_schema_queries or not self._discovery.is_listed(agent):
            return True
        return bool(self._schemas.resolve(package, name, agent.name))

    async def _check_names(self, query: ObjectQuery, asked: Sequence[Agent], *, found: bool) -> None:
        """Refuse a filter with unknown names whose class was not known before the query.

        Without an object found, the agents may never have told their classes: only then they are asked for them.

        Raises:
            NotFoundError: as of `check_names`.
        """
        if not query.where or query.object_id is not None:
            return
        if not found and not self._known_fields(query):
            name, package = query.class_name
            learned = (self._discovery.learn_classes(agent, package, name) for agent in asked)
            await asyncio.gather(*learned, return_exceptions=True)
        check_names(query.where, self._known_fields(query))

    def _known_fields(self, query: ObjectQuery) -> list[ClassFields]:
        """The fields of the query's classes, as far as they are known."""
        name, package = query.class_name
        keys = self._schemas.resolve(package, name) if name else []
        return [item for item in map(self._schemas.fields, keys) if item]

    async def each(self, query: ObjectQuery, timeout: float | None) -> AsyncGenerator[RemoteObject, None]:
        """See `Client.each`."""
        predicate, test = self.compile(query)
        asked = await self._agents_to_ask(query)
        unfinished = self._search_failure() if query.only_agent is None else {}
        loop = asyncio.get_running_loop()
        # A queue and not `asyncio.wait`, which looks at all that wait for each one that is done.
        done: asyncio.Queue[asyncio.Task[list[RemoteObject]]] = asyncio.Queue()
        tasks = {loop.create_task(self.query(agent, query, predicate, timeout)): agent for agent in asked}
        failures: dict[str, QmfError] = {}
        found_any = False
        try:
            for task in tasks:
                task.add_done_callback(done.put_nowait)
            for _ in tasks:
                task = await done.get()
                try:
                    found = task.result()
                except QmfError as error:
                    failures[tasks[task].name] = error
                    continue
                found_any = found_any or bool(found)
                for obj in filter(test, found):
                    yield obj
        finally:
            waiting = [task for task in tasks if not task.done()]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        await self._check_names(query, asked, found=found_any)
        check_failures(failures, len(asked))
        log_failures({**unfinished, **failures})

    def compile(self, query: ObjectQuery) -> tuple[Predicate, Test]:
        """The predicate to send, and the test for each object of an answer; see `compile_filter`."""
        predicate, test = compile_filter(query.where, self._known_fields(query))
        version = query.class_key.hash if query.class_key else None
        if version is None:
            return predicate, test
        return predicate, lambda obj: _has_hash(obj, version) and test(obj)

    async def _agents_to_ask(self, query: ObjectQuery) -> list[Agent]:
        self._rpc.check_connected()
        return [await self.find_agent(query.only_agent)] if query.only_agent else list(self._agents)

    async def find_agent(self, name: str) -> Agent:
        """The agent with this name; while agents are being found, it may still appear.

        Raises:
            NotFoundError: not present.
        """
        if self._agents.get(name) is None:
            await self._tracker.wait_for_search()
        return self._agents.find(name)

    # -- objects of one agent

    async def query(
        self, agent: Agent, query: ObjectQuery, predicate: Predicate, timeout: float | None = None
    ) -> list[RemoteObject]:
        """Objects of one agent, not tested yet; errors as of `Client.objects`."""
        return list((await self._ask_agent(agent, query, predicate, timeout, 0)).objects)

    async def _ask_agent(
        self, agent: Agent, query: ObjectQuery, predicate: Predicate, timeout: float | None, limit: int
    ) -> AgentAnswer:
        """The first objects of one agent, not tested yet; all of them if the limit is 0."""
        seconds = self._seconds(timeout)
        name, package = query.class_name
        select = query.sent_select
        if query.object_id is not None:
            object_id = with_agent(query.object_id, agent.name)
            request = QueryRequest(what=What.OBJECT, object_id=object_id, select=select, row_form=ROW_FORM)
            return await self._ask(agent, request, seconds)
        found: list[RemoteObject] = []
        matched: int | None = 0
        for key in await self._class_keys(agent, package, name or "", seconds):
            request = QueryRequest(
                what=What.OBJECT,
                class_key=key,
                where=predicate if agent.knows_schema_queries else (),
                text=query.text,
                select=select,
                row_form=ROW_FORM,
                limit=limit,
                order=query.order,
            )
            answer = await self._ask(agent, request, seconds)
            if query.text:
                answer = _containing(answer, query.text)
            found += answer.objects
            matched = None if matched is None or answer.matched is None else matched + answer.matched
        return AgentAnswer(found, matched)

    async def _class_keys(self, agent: Agent, package: str | None, name: str, seconds: float) -> list[ClassKey]:
        """The classes to ask an agent for, in the spelling that it expects.

        libqmf2 needs package and exact case; qpidd needs lower case, and takes an empty package for any (QMF2.md 4.4).
        """
        if agent.knows_schema_queries and (package is None or name != name.lower()):
            await self._discovery.list_once(agent, seconds)
            found = self._schemas.resolve(package, name, agent.name)
            return list(dict.fromkeys(ClassKey(key.package, key.name) for key in found if key.kind is Kind.DATA))
        return [ClassKey(package or "", name.lower())]

    async def _ask(self, agent: Agent, request: QueryRequest, seconds: float) -> AgentAnswer:
        deadline = asyncio.get_running_loop().time() + seconds
        subject = f"object {request.object_id}" if request.object_id else f"objects of {_class_text(request.class_key)}"
        # What is to be in order is known with the last part only; and of what others than ours send, most may be
        # without the text.
        enough = 0 if request.order or request.text else request.limit
        what = f"query for {subject}"
        parts = await self._rpc.request(agent, request, ObjectsResponse, what=what, timeout=seconds, enough=enough)
        keys = self._schemas.saw_all((key for part in parts for key, _ in class_runs(part.objects)), agent)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.gather(*(self._schemas.learn(key) for key in keys))
        except TimeoutError:
            log.warning("no schema for %s within %g s, values stay untyped", subject, seconds)
        found = [obj for part in parts for obj in self.make(part.objects, agent)]
        if not request.select:
            self._store.update_from_query(agent.name, found)
        matched = parts[-1].matched if parts else 0
        if matched is None and (not enough or len(found) < enough):
            matched = len(found)  # an agent that knows no limit
        return AgentAnswer(found, matched)

    async def binding_count(self, broker: Agent, exchange: str) -> int | None:
        """How many bindings an exchange of the connected broker has, as its agent says; errors as of `objects`."""
        object_id = ObjectId(f"org.apache.qpid.broker:exchange:{exchange}", broker.name)
        request = QueryRequest(what=What.OBJECT, object_id=object_id)
        what = f"query for exchange {exchange}"
        parts = await self._rpc.request(broker, request, ObjectsResponse, what=what, timeout=self._timeout)
        counts = (obj.values.get("bindingCount") for part in parts for obj in part.objects)
        return next((count for count in counts if isinstance(count, int)), None)

    # -- classes

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
        answers = await self._gather(asked, lambda agent: self._discovery.list_classes(agent, timeout), others=True)
        return answers.failures

    async def classes_of(self, agent: Agent, timeout: float | None) -> list[ClassKey]:
        """The classes of one agent: those that it lists, or those seen so far when it can't list them."""
        self._rpc.check_connected()
        return await self._discovery.list_classes(agent, timeout) or self._schemas.keys_used_by(agent.name)

    # -- for remote objects, see `ObjectClient`

    async def refresh(self, target: RemoteObject, timeout: float | None) -> ObjectData:
        """The current state of an object; see `RemoteObject.update`."""
        request = QueryRequest(what=What.OBJECT, object_id=target.object_id)
        found = (await self._ask(self._agent_of(target), request, self._seconds(timeout))).objects
        if not found:
            raise NotFoundError("object", str(target.object_id))
        return merge(target.data, found[0].data, self._schemas.fields(found[0].class_key))

    async def dereference(self, target: ObjectId, timeout: float | None) -> RemoteObject:
        """The object that a reference points to; see `RemoteObject.follow`."""
        found = await self.objects(ObjectQuery(object_id=target), timeout)
        if not found:
            raise NotFoundError("object", str(target))
        return found[0]

    def invoke(
        self,
        target: RemoteObject,
        method: str,
        inputs: Values,
        timeout: float | None,
        on_behalf_of: str | None = None,
    ) -> Awaitable[Values]:
        """Call a method of an object with checked inputs; returns the outputs as sent."""
        return self._rpc.call(
            self._agent_of(target),
            method,
            target.object_id,
            inputs,
            on_behalf_of,
            words=lambda: f"method {method} of {class_name_of(target)} {target.object_id}",
            timeout=self._timeout if timeout is None else timeout,
        )

    def _agent_of(self, target: RemoteObject) -> Agent:
        self._rpc.check_connected()
        return self._agents.find(target.agent)

    # -- inside

    def _seconds(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _search_failure(self) -> dict[str, QmfError]:
        """The failure of a request to all agents while some are not known yet."""
        error = self._tracker.unfinished
        return {} if error is None else {ALL_AGENTS: error}

    async def _gather(
        self, agents: list[Agent], ask: Callable[[Agent], Awaitable[Sequence[T]]], *, others: bool
    ) -> Answers[T]:
        """Ask several agents at once; with `others`, all that there are is meant.

        Raises:
            QmfError: all of them failed.
        """
        unfinished = self._search_failure() if others else {}
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
        check_failures(failures, len(agents))
        # Another agent may have been found meanwhile, which was not asked.
        failures |= unfinished or (self._search_failure() if others else {})
        log_failures(failures)
        return Answers(tuple(found), failures)


def _containing(answer: AgentAnswer, text: str) -> AgentAnswer:
    """What an agent answered without objects that lack a text: those are there if it does not search."""
    search = TextSearch(text)
    found = [obj for obj in answer.objects if search.is_in(obj.data)]
    return AgentAnswer(found, None if answer.matched is None else answer.matched - len(answer.objects) + len(found))


def _class_text(key: ClassKey | None) -> str:
    if key is None:
        return "any class"
    return f"{key.package}:{key.name}" if key.package else key.name


def _has_hash(obj: RemoteObject, wanted: object) -> bool:
    return wanted is None or obj.class_key is None or obj.class_key.hash in (None, wanted)
