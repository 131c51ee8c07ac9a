"""A `Source` over `qmf.console`: the asynchronous client on a background loop, behind blocking calls.

Calls wait on the caller's thread; Ctrl-C there cancels the question on the loop. What the client tells by itself
(agents, events, objects that end, the connection) arrives on the loop's thread and is handed on at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import attrs

from qmf.console.aio import (
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentUpdated,
    BusConnected,
    BusDisconnected,
    ClassSeen,
    Client,
    EventRaised,
    HeartbeatSeen,
    Notification,
    ObjectUpdated,
    RemoteEvent,
    RemoteObject,
)
from qmf.console.identity import ObjectId
from qmf.console.loopthread import LoopThread
from qmf.errors import NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Method
from qmf_shell.session.source import Agent, ClassName, Event, Found, Health, Known, Object, ObjectKey


@runtime_checkable
class CoreId(Protocol):
    """An object id as the asynchronous client gives it."""

    @property
    def object_name(self) -> str:
        """Name within the agent."""

    @property
    def agent_name(self) -> str | None:
        """The agent, where known."""

    @property
    def agent_epoch(self) -> int:
        """Start of the agent, or 0."""


#: Seconds to wait at most for the first agents after connecting.
SETTLE = 1.5


@attrs.frozen
class Watcher:
    """Whom to tell what the bus says by itself. All are called on the loop's thread and must not block.

    Attributes:
        event: an event was received.
        gone: an object was destroyed, at a time in nanoseconds since 1970.
        changed: agents, classes or the connection are not what they were.
    """

    event: Callable[[Event], None]
    gone: Callable[[ObjectKey, int], None]
    changed: Callable[[], None]


class Live:
    """The bus as commands see it; see `Source`. Any thread may call, but the loop's own."""

    def __init__(self, url: str, *, timeout: float, watcher: Watcher, objects: bool) -> None:
        """
        Args:
            url: of the broker.
            timeout: seconds to wait for the connection, and for every answer.
            watcher: whom to tell news.
            objects: receive all objects that agents publish, to learn which end.
        """
        self._url = url
        self._timeout = timeout
        self._watcher = watcher
        self._objects = objects
        self._loop = LoopThread("qmf-shell")
        self._client: Client | None = None
        self._agents: tuple[Agent, ...] = ()
        self._health = Health(url, connected=False)

    def __enter__(self) -> Self:
        """Connect and wait for the first agents, a short while.

        Raises:
            ConnectError: no connection; names the URL and the reason.
            UrlError: the URL is none.
        """
        try:
            self._client = self._loop.run(self._open())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            self._loop.run(client.close())
        self._loop.stop()

    async def _open(self) -> Client:
        settle = min(SETTLE, self._timeout)
        client = Client(self._url, timeout=self._timeout, data=self._objects, discover=self._objects, settle=settle)
        client.listen(self._notified)
        self._health = Health(client.url, connected=False)
        self._client = client
        await client.open(self._timeout)
        self._health = Health(client.url)
        return client

    # -- what is known without asking

    @property
    def health(self) -> Health:
        """See `Source.health`."""
        return self._health

    def agents(self) -> Sequence[Agent]:
        """See `Source.agents`."""
        return self._agents

    # -- questions

    def classes(self) -> Found[ClassKey]:
        """See `Source.classes`."""
        answers = self._loop.run(self._open_client().classes())
        return Found(answers.items, _reasons(answers.failures))

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        """See `Source.schema`."""
        return self._loop.run(self._open_client().schema(key))

    def objects(self, names: Sequence[ClassName]) -> Found[Object]:
        """See `Source.objects`."""
        return self._loop.run(self._ask(names))

    def get(self, known: Known) -> Object | None:
        """See `Source.get`."""
        return self._loop.run(self._get(known))

    def call(self, target: Object, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """See `Source.call`."""
        handle = target.handle
        assert isinstance(handle, RemoteObject)
        sent: dict[str, Any] = {name: _to_core(value) for name, value in arguments.items()}
        outputs = self._loop.run(handle.call(method.name, **sent))
        return {name: _from_core(value, handle.agent) for name, value in outputs.items()}

    def _open_client(self) -> Client:
        assert self._client is not None, "used outside of its with block"
        return self._client

    async def _ask(self, names: Sequence[ClassName]) -> Found[Object]:
        client = self._open_client()
        answers = await asyncio.gather(*(client.objects(name, package=package) for package, name in names))
        found = {item.known.key: item for answer in answers for item in map(to_object, answer)}
        failures = {agent: error for answer in answers for agent, error in answer.failures.items()}
        return Found([item for item in found.values() if not item.deleted], _reasons(failures))

    async def _get(self, known: Known) -> Object | None:
        client = self._open_client()
        key = known.key
        try:
            found = await client.objects(object_id=ObjectId.create(key.agent, key.name, key.epoch).core)
            if not found and key.epoch:
                # The agent was started again: the object may be there as part of its new life.
                found = await client.objects(known.class_key.name, package=known.class_key.package, agent=key.agent)
        except NotFoundError:
            return None  # its agent is gone
        objects = [item for item in map(to_object, found) if item.known.key == key and not item.deleted]
        return objects[0] if objects else None

    # -- news

    def _notified(self, news: Notification) -> None:
        match news:
            case EventRaised(event):
                self._watcher.event(to_event(event))
            case ObjectUpdated(object=item):
                if item.is_deleted:
                    key = ObjectKey(item.agent, item.object_id.object_name)
                    self._watcher.gone(key, item.timestamps.delete)
            case BusConnected():
                self._health = Health(self._health.url)
                self._watcher.changed()
            case BusDisconnected(reason=reason):
                self._health = Health(self._health.url, connected=False, reason=reason)
                self._watcher.changed()
            case HeartbeatSeen() | AgentUpdated():
                self._take_agents()
            case AgentAdded() | AgentRemoved() | AgentRestarted():
                self._take_agents()
                self._watcher.changed()
            case ClassSeen():
                self._watcher.changed()

    def _take_agents(self) -> None:
        if self._client is not None:
            agents = [
                Agent(
                    item.name,
                    item.vendor,
                    item.product,
                    item.instance,
                    item.epoch,
                    item.info.heartbeat_interval,
                    self._health.url,
                )
                for item in self._client.agents
            ]
            self._agents = tuple(sorted(agents, key=lambda item: item.name))


def to_object(item: RemoteObject) -> Object:
    """A remote object as commands see it."""
    class_key = item.class_key or ClassKey("", "")
    schema = item.schema or ClassSchema(package=class_key.package, name=class_key.name, hash=class_key.hash)
    values: dict[str, object] = {}
    for name, value in {**item.data.values, **item.properties, **item.statistics}.items():
        values[name] = _from_core(value, item.agent)
    object_id = item.object_id
    key = ObjectKey(item.agent, object_id.object_name, object_id.agent_epoch)
    times = item.timestamps
    known = Known(key, class_key, index_text(object_id.object_name, schema, values), title_text(schema, values))
    return Object(known, schema, values, times.update, times.create, times.delete, item)


def index_text(name: str, schema: ClassSchema, values: Mapping[str, object]) -> str:
    """An object's key text: its name without package and class, or its index properties where the name is arbitrary."""
    package, _, rest = name.partition(":")
    class_name, colon, key = rest.partition(":")
    if colon and package == schema.package and class_name.lower() == schema.name.lower() and key:
        return key
    parts = [values.get(item.name) for item in schema.properties if item.index]
    texts = [part.name if isinstance(part, ObjectKey) else str(part) for part in parts if part is not None]
    return ",".join(texts) or name


def title_text(schema: ClassSchema, values: Mapping[str, object]) -> str:
    """The property `name` of an object, unless it is part of its key."""
    item = schema.property("name")
    value = values.get("name")
    return value if item is not None and not item.index and isinstance(value, str) else ""


def to_event(event: RemoteEvent) -> Event:
    """A remote event as commands see it."""
    name = f"{event.class_key.package}:{event.class_key.name}" if event.class_key else "event"
    values = {name: _from_core(value, event.agent.name) for name, value in event.arguments.items()}
    return Event(name, event.timestamp, event.severity, values, event.agent.name, event.schema)


def _from_core(value: object, agent: str) -> object:
    if isinstance(value, CoreId):
        return ObjectKey(value.agent_name or agent, value.object_name, value.agent_epoch)
    return value


def _to_core(value: object) -> object:
    return ObjectId.create(value.agent, value.name, value.epoch).core if isinstance(value, ObjectKey) else value


def _reasons(failures: Mapping[str, QmfError]) -> Mapping[str, str]:
    return {agent: str(error) for agent, error in failures.items()}
