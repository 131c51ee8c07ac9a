"""`ReadableConsole`: a console that shows of another one what a caller may read."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Self, Unpack

import attrs

from qmf._closable import AsyncClosable
from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentsFound,
    AgentUpdated,
    Answers,
    AnySchema,
    BrokerIdentified,
    BusConnected,
    BusDisconnected,
    ClassSeen,
    ClassUsed,
    EventRaised,
    FollowMode,
    HeartbeatSeen,
    Listener,
    Missed,
    Notification,
    ObjectChange,
    ObjectId,
    RemoteObject,
    StillFindingAgents,
    Where,
)
from qmf.console.aio.agent_search import ALL_AGENTS
from qmf.console.aio.objects.object_query import ListQueryArguments, QueryArguments
from qmf.errors import NotFoundError, QmfError
from qmf.schema import ClassKey, Kind
from qmf.views.references import references
from qmf.web.access.read_rights import ReadRights
from qmf.web.consoles import ObjectFollow, WebConsole


class ReadableFollow(AsyncIterator[ObjectChange[RemoteObject]], AsyncClosable):
    """Objects that may be read, and their changes; see `qmf.console.aio.Follow`."""

    def __init__(self, follow: ObjectFollow, console: ReadableConsole, compared: Collection[str]) -> None:
        self._follow = follow
        self._console = console
        self._readable = functools.partial(console.readable, compared=compared)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[RemoteObject]:
        found = map(self._readable, self._follow)
        return (obj for obj in found if obj is not None)

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        found = self._follow.get(object_id)
        return None if found is None else self._readable(found)

    @property
    def sources(self) -> Mapping[str, FollowMode]:
        return {name: mode for name, mode in self._follow.sources.items() if self._console.sees_agent(name)}

    @property
    def answered(self) -> bool:
        return self._follow.answered

    @property
    def failures(self) -> Mapping[str, QmfError]:
        return self._console.readable_failures(self._follow.failures)

    async def close(self) -> None:
        await self._follow.close()

    async def __aenter__(self) -> Self:
        await self._follow.__aenter__()
        return self

    async def __anext__(self) -> ObjectChange[RemoteObject]:
        while True:
            change = await self._follow.__anext__()
            obj = self._readable(change.object)
            if obj is not None:
                # How many changes were dropped is known of all objects together only.
                return attrs.evolve(change, object=obj, dropped=0)


#: Name of the agent of the connected broker.
_BROKER = "broker"


class ReadableConsole:
    """Shows of a console what may be read; what may not be read is as if it were not there.

    An agent is there if something of it may be read. Values that refer to objects which may not be read are absent.
    """

    def __init__(self, console: WebConsole, rights: ReadRights) -> None:
        self._console = console
        self._rights = rights
        #: Agents of which something was seen; others may become known to have a class that may be read.
        self._seen: set[str] = set()

    # -- what is known

    @property
    def url(self) -> str:
        return self._console.url

    @property
    def connected(self) -> bool:
        return self._console.connected

    @property
    def agents(self) -> list[Agent]:
        return [agent for agent in self._console.agents if self.sees_agent(agent.name)]

    @property
    def broker(self) -> Agent | None:
        found = self._console.broker
        return found if found is not None and self.sees_agent(found.name) else None

    @property
    def finding_agents(self) -> StillFindingAgents | None:
        """See `WebConsole`; with the number of agents of which something may be read."""
        found = self._console.finding_agents
        return None if found is None else StillFindingAgents(len(self.agents), None)

    def known_classes(self, package: str | None = None, *, agent: str | None = None) -> list[ClassKey]:
        found = self._console.known_classes(package, agent=agent)
        return [key for key in found if self._sees_class(key, agent)]

    def known_schema(self, class_key: ClassKey) -> AnySchema | None:
        return self._console.known_schema(class_key) if self._sees_class(class_key) else None

    def agent(self, name: str) -> Agent:
        found = self.broker if name == _BROKER else next((item for item in self.agents if item.name == name), None)
        if found is None:
            raise NotFoundError("agent", name, [item.name for item in self.agents])
        return found

    def sees_agent(self, name: str) -> bool:
        """Whether something of an agent may be read."""
        if name not in self._seen and self._rights.sees_agent(name, self._console.known_classes(agent=name)):
            self._seen.add(name)
        return name in self._seen

    # -- requests

    async def packages(self, timeout: float | None = None) -> Answers[str]:
        found = await self.classes(timeout=timeout)
        return Answers(tuple(sorted({key.package for key in found})), found.failures)

    async def classes(
        self, package: str | None = None, timeout: float | None = None, *, agent: str | Agent | None = None
    ) -> Answers[ClassKey]:
        only = self._asked_agent(agent)
        found = await self._console.classes(package, timeout, agent=only)
        keys = (key for key in found if self._sees_class(key, None if only is None else only.name))
        return Answers(tuple(keys), self.readable_failures(found.failures))

    async def schema(self, class_key: ClassKey) -> AnySchema:
        known = self.known_classes(class_key.package)
        if not any((key.name, key.kind) == (class_key.name, class_key.kind) for key in known):
            raise NotFoundError("class" if class_key.kind is Kind.DATA else "event class", str(class_key))
        return await self._console.schema(class_key)

    async def objects(
        self, name: str | None = None, *, timeout: float | None = None, **selection: Unpack[ListQueryArguments]
    ) -> Answers[RemoteObject]:
        """See `WebConsole`. Only classes that may be read are asked for, so that errors name nothing of others.

        Agents don't know what may be read: all objects are asked for, whatever the limit, and those that may be read
        are counted.
        """
        where, class_key = selection.get("where"), selection.get("class_key")
        only = self._asked_agent(selection.get("agent"))
        if (object_id := selection.get("object_id")) is not None:
            if object_id.agent_name is not None and only is None:
                only = self.agent(object_id.agent_name)
            return self._readable_of(await self._console.objects(object_id=object_id, agent=only, timeout=timeout), ())
        if class_key is not None:
            wanted: Iterable[ClassKey] = [class_key] if self._sees_class(class_key) else []
        else:
            wanted = await self._classes_named(name or "", selection.get("package"))
        answers = await asyncio.gather(*(self._ask(key, only, where, timeout) for key in wanted))
        failures = {agent: error for found in answers for agent, error in found.failures.items()}
        return self._readable_of(
            Answers(tuple(obj for found in answers for obj in found), failures), _named_values(where)
        )

    def follow(
        self, name: str | None = None, *, interval: float = 5.0, **selection: Unpack[QueryArguments]
    ) -> ReadableFollow:
        follow = self._console.follow(name, interval=interval, **selection)
        return ReadableFollow(follow, self, _named_values(selection.get("where")))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """See `WebConsole`. An agent is added when the first of its classes is known that may be read."""
        shown = {agent.name for agent in self.agents}

        def on_notification(item: Notification) -> None:
            for each in self._notifications(item, shown):
                listener(each)

        return self._console.listen(on_notification)

    # -- what is shown

    def readable(self, obj: RemoteObject, compared: Collection[str] = ()) -> RemoteObject | None:
        """An object as it may be read: without references to what may not; None if it may not be read.

        Args:
            compared: values by which it was selected; if one of them is withheld, so is the object.
        """
        if not self._rights.sees_object(obj.class_key, obj.object_id, obj.agent):
            return None
        hidden = [name for name, target in _references(obj) if not self._rights.sees_reference(target, obj.agent)]
        if not hidden:
            return obj
        return None if any(name in compared for name in hidden) else obj.without(hidden)

    def sees_reference(self, target: ObjectId, agent: str) -> bool:
        return self._rights.sees_reference(target, agent)

    def sees_event(
        self, package: str, name: str, agent: str, object_id: ObjectId | None, texts: Iterable[object]
    ) -> bool:
        return self._rights.sees_event(package, name, agent, object_id, texts)

    def readable_failures(self, failures: Mapping[str, QmfError]) -> Mapping[str, QmfError]:
        """The failures of agents that may be seen."""
        found = {name: error for name, error in failures.items() if name != ALL_AGENTS and self.sees_agent(name)}
        search = self.finding_agents
        return {ALL_AGENTS: search, **found} if search is not None and ALL_AGENTS in failures else found

    def _readable_of(self, answers: Answers[RemoteObject], compared: Collection[str]) -> Answers[RemoteObject]:
        found = (self.readable(obj, compared) for obj in answers)
        return Answers(tuple(obj for obj in found if obj is not None), self.readable_failures(answers.failures))

    async def _ask(
        self, key: ClassKey, agent: Agent | None, where: Where | None, timeout: float | None
    ) -> Answers[RemoteObject]:
        try:
            return await self._console.objects(class_key=key, agent=agent, where=where, timeout=timeout)
        except QmfError as error:
            asked = getattr(error, "agent", None)
            if isinstance(asked, str) and not self.sees_agent(asked):
                return Answers()  # of an agent that is not there for this reader
            raise

    def _asked_agent(self, agent: str | Agent | None) -> Agent | None:
        return None if agent is None else self.agent(agent.name if isinstance(agent, Agent) else agent)

    def _sees_class(self, key: ClassKey, agent: str | None = None) -> bool:
        if agent is not None or not self._rights.by_agent:
            return self._rights.sees_class(key, agent)
        return any(
            self._rights.sees_class(key, item.name)
            for item in self._console.agents
            if key in self._console.known_classes(key.package, agent=item.name)
        )

    async def _classes_named(self, name: str, package: str | None) -> Sequence[ClassKey]:
        """The classes of this name that may be read, without their versions."""

        def matching() -> Sequence[ClassKey]:
            keys = self.known_classes(package)
            found = [key for key in keys if key.kind is Kind.DATA and key.name.lower() == name.lower()]
            return list(dict.fromkeys(ClassKey(key.package, key.name) for key in found))

        return matching() or (await self.classes(package), matching())[1]

    def _notifications(self, item: Notification, shown: set[str]) -> Iterable[Notification]:
        """What a listener, who knows some agents, learns of a notification."""
        match item:
            case BusConnected() | BusDisconnected():
                return [item]
            case AgentsFound():
                return [AgentsFound(len(self.agents))]
            case ClassSeen(class_key=key, agent=agent) | ClassUsed(class_key=key, agent=agent):
                if not self._rights.sees_class(key, agent.name):
                    return []
                return [*self._addition(agent, shown), item]
            case EventRaised(event=event):
                raised = event.class_key
                package, name = ("", "") if raised is None else (raised.package, raised.name)
                texts = list(event.arguments.values())
                return [item] if self.sees_event(package, name, event.agent.name, event.object_id, texts) else []
            case AgentAdded(agent=agent):
                return self._addition(agent, shown)
            case AgentRemoved(agent=agent):
                self._seen.discard(agent.name)
                if agent.name not in shown:
                    return []
                shown.discard(agent.name)
                return [item]
            case (
                AgentUpdated(agent=agent)
                | AgentRestarted(agent=agent)
                | HeartbeatSeen(agent=agent)
                | Missed(agent=agent)
                | BrokerIdentified(agent=agent)
            ):
                return [item] if agent.name in shown else []
        return []

    def _addition(self, agent: Agent, shown: set[str]) -> Sequence[Notification]:
        if agent.name in shown or not self.sees_agent(agent.name):
            return []
        shown.add(agent.name)
        return [AgentAdded(agent)]


def _references(obj: RemoteObject) -> Iterable[tuple[str, ObjectId]]:
    if obj.schema is not None:
        return references(obj.schema, obj.typed_values)
    found = ((name, _as_id(value)) for name, value in obj.properties.items())
    return [(name, target) for name, target in found if target is not None]


def _as_id(value: object) -> ObjectId | None:
    """A reference in an object without schema."""
    if isinstance(value, ObjectId):
        return value
    name = value.get("_object_name") if isinstance(value, Mapping) else None
    if not isinstance(name, str):
        return None
    agent = value.get("_agent_name") if isinstance(value, Mapping) else None
    return ObjectId(name, agent if isinstance(agent, str) else None)


def _named_values(where: object) -> frozenset[str]:
    """Every text in a filter, among them the names of the values that it compares."""
    if isinstance(where, str):
        return frozenset({where})
    if isinstance(where, Mapping):
        return frozenset(where)
    if isinstance(where, Sequence) and not isinstance(where, bytes):
        return frozenset(text for item in where for text in _named_values(item))
    return frozenset()
