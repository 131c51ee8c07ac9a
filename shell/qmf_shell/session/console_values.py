"""Converts values of `qmf.console.aio` to those of `session.backend`, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from qmf.console.aio import Agent as CoreAgent
from qmf.console.aio import ObjectId, RemoteEvent, RemoteObject
from qmf.schema import ClassKey, ClassSchema
from qmf.views.events import EventView, event_view
from qmf.views.names import index_text, title_text
from qmf_shell.session.backend import AgentRecord, ObjectIdentity, ObjectKey, ObjectRecord

#: So many values of an object are converted one by one; a reader of more gets all of them converted at once.
SINGLE_READS = 3


class RemoteValues(Mapping[str, object]):
    """The values of a remote object, converted when read: of thousands of objects, mostly a few are needed."""

    __slots__ = ("_all", "_broker", "_item", "_reads")

    def __init__(self, item: RemoteObject, broker: str) -> None:
        self._item = item
        self._broker = broker
        self._all: Mapping[str, object] | None = None
        self._reads = 0

    def __getitem__(self, name: str) -> object:
        if self._all is None and self._reads < SINGLE_READS:
            if name not in self._item.data.values:
                raise KeyError(name)
            self._reads += 1
            return from_core(self._item[name], self._item.agent, self._broker)
        return self._whole()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._item.data.values

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._item.data.values)

    def _whole(self) -> Mapping[str, object]:
        if self._all is None:
            item = self._item
            found = {**item.data.values, **item.properties, **item.statistics}
            self._all = {name: from_core(value, item.agent, self._broker) for name, value in found.items()}
        return self._all


def to_object(item: RemoteObject, broker: str = "", name: str = "") -> ObjectRecord:
    """Convert an object.

    Args:
        item: the object.
        broker: the broker in its keys; empty in a session with one broker.
        name: name of its broker, in any session.
    """
    class_key = item.class_key or ClassKey("", "")
    schema = item.schema or ClassSchema(package=class_key.package, name=class_key.name, hash=class_key.hash)
    values = RemoteValues(item, broker)
    object_id = item.object_id
    key = ObjectKey(object_id.object_name, item.agent, object_id.agent_epoch, broker)
    times = item.timestamps
    index, title = index_text(object_id.object_name, schema, values), title_text(schema, values)
    # Some schemas do not tell which properties make the index.
    identity = ObjectIdentity(key, class_key, index, "" if title in (index, *index.split(",")) else title)
    return ObjectRecord(identity, schema, values, times.update, times.create, times.delete, item, name)


def to_event(event: RemoteEvent, url: str = "", broker: str = "") -> EventView:
    """Convert an event; `url` is that of its broker, `broker` the broker in the keys of references."""
    view = event_view(event)
    values = {name: from_core(value, view.agent, broker) for name, value in view.values.items()}
    return attrs.evolve(view, values=values, broker=url)


def to_agent(item: CoreAgent, url: str, seen: int = 0) -> AgentRecord:
    """Convert an agent; `seen` is when its last heartbeat was received, in nanoseconds since 1970."""
    interval = item.info.heartbeat_interval
    return AgentRecord(item.name, item.vendor, item.product, item.instance, item.epoch, interval, url, seen)


def from_core(value: object, agent: str, broker: str = "") -> object:
    """Convert a value: a reference becomes an `ObjectKey`, of `agent` if it does not name one."""
    if isinstance(value, ObjectId):
        return ObjectKey(value.object_name, value.agent_name or agent, value.agent_epoch, broker)
    return value


def to_core(value: object) -> object:
    """Convert a value back: the opposite of `from_core`."""
    return core_id(value) if isinstance(value, ObjectKey) else value


def core_id(key: ObjectKey) -> ObjectId:
    """The object id of a key."""
    return ObjectId(key.object_name, key.agent_name, key.agent_epoch)
