"""What the console says, as the values that commands see: from `qmf.console.aio` to `session.source`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from qmf.console.aio import Agent as CoreAgent
from qmf.console.aio import ObjectId, RemoteEvent, RemoteObject
from qmf.schema import ClassKey, ClassSchema
from qmf_shell.session.source import Agent, Event, Known, Object, ObjectKey


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


def to_object(item: RemoteObject, broker: str = "") -> Object:
    """A remote object as commands see it; `broker` goes into its keys."""
    class_key = item.class_key or ClassKey("", "")
    schema = item.schema or ClassSchema(package=class_key.package, name=class_key.name, hash=class_key.hash)
    values: dict[str, object] = {}
    for name, value in {**item.data.values, **item.properties, **item.statistics}.items():
        values[name] = from_core(value, item.agent, broker)
    object_id = item.object_id
    key = ObjectKey(item.agent, object_id.object_name, object_id.agent_epoch, broker)
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


def to_event(event: RemoteEvent, url: str = "", broker: str = "") -> Event:
    """A remote event as commands see it; `url` is the broker's that it came by, `broker` goes into references."""
    name = f"{event.class_key.package}:{event.class_key.name}" if event.class_key else "event"
    values = {name: from_core(value, event.agent.name, broker) for name, value in event.arguments.items()}
    return Event(name, event.timestamp, event.severity, values, event.agent.name, event.schema, url)


def to_agent(item: CoreAgent, url: str, seen: int = 0) -> Agent:
    """An agent as commands see it; `seen` is when it was last heard of."""
    interval = item.info.heartbeat_interval
    return Agent(item.name, item.vendor, item.product, item.instance, item.epoch, interval, url, seen)


def from_core(value: object, agent: str, broker: str = "") -> object:
    """A value: references become `ObjectKey`, of `agent` where they don't say whose."""
    if isinstance(value, CoreId):
        return ObjectKey(value.agent_name or agent, value.object_name, value.agent_epoch, broker)
    return value


def to_core(value: object) -> object:
    """The opposite of `from_core`."""
    return core_id(value) if isinstance(value, ObjectKey) else value


def core_id(key: ObjectKey) -> ObjectId:
    """An object's id on the wire."""
    return ObjectId(key.name, key.agent, key.epoch)
