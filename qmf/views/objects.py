"""Objects for people: what every face shows of one, and how it is named; given by what a console or a lake has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol

import attrs

from qmf._compile import fast_constructor
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import ClassKey, ClassSchema
from qmf.views.fields import ObjectField
from qmf.views.names import index_and_title

#: So many values of an object are converted one by one; a reader of more gets all of them converted at once.
SINGLE_READS = 12


@attrs.frozen
class ObjectKey(ObjectId):
    """Identifies an object, also after a restart of its agent.

    Attributes:
        agent_epoch: epoch of the agent when the object was last received; 0 for objects that outlive restarts. Not
            compared.
        broker: the broker that it is on; empty where there is only one.
    """

    agent_name: str = ""
    agent_epoch: int = attrs.field(default=0, eq=False)
    broker: str = ""

    @property
    def object_id(self) -> ObjectId:
        """Its id, as a console has it."""
        return ObjectId(self.object_name, self.agent_name, self.agent_epoch)


@attrs.frozen
class ObjectIdentity:
    """What is needed to name an object.

    Attributes:
        key: its key.
        class_key: its class.
        index: its key properties as text, e.g. ``/`` for the filesystem mounted there.
        title: its property `name`, if that is not part of the index; or empty.
    """

    key: ObjectKey
    class_key: ClassKey
    index: str
    title: str = ""


class ReceivedObject(Protocol):
    """An object as a console receives it, or a lake has it."""

    @property
    def agent(self) -> str: ...
    @property
    def object_id(self) -> ObjectId: ...
    @property
    def class_key(self) -> ClassKey | None: ...
    @property
    def schema(self) -> ClassSchema | None: ...
    @property
    def data(self) -> ObjectData: ...
    @property
    def properties(self) -> Mapping[str, object]: ...
    @property
    def statistics(self) -> Mapping[str, object]: ...
    @property
    def typed_values(self) -> Mapping[str, object]: ...
    def __getitem__(self, name: str) -> object: ...


@attrs.frozen(eq=False, weakref_slot=False)
class ObjectView:
    """An object as it is shown and searched. What costs time is made when it is read.

    Attributes:
        schema: its class.
        values: properties and statistics by wire name; references are `ObjectKey`.
        updated, created, deleted: nanoseconds since 1970; 0 if unknown, and `deleted` also while it exists.
        handle: what it was made of.
        broker: name of the broker that it is on, also where there is only one.
    """

    _identity: ObjectIdentity | Callable[[], ObjectIdentity] = attrs.field(alias="identity")
    schema: ClassSchema
    values: Mapping[str, object]
    updated: int = 0
    created: int = 0
    deleted: int = 0
    handle: object = None
    broker: str = ""

    @property
    def identity(self) -> ObjectIdentity:
        """How it is named."""
        identity = self._identity
        if not isinstance(identity, ObjectIdentity):
            identity = identity()
            object.__setattr__(self, "_identity", identity)
        return identity

    @property
    def received_values(self) -> Mapping[str, object]:
        """The values as they were received, references as the agent sends them: a single one costs less here."""
        return self.values.received if isinstance(self.values, ViewValues) else self.values

    @property
    def names(self) -> Collection[str]:
        """What events call it: its index or name, or its property `name`, where the index has more parts."""
        identity, name = self.identity, self.values.get("name")
        names = {identity.index, identity.title, identity.key.object_name, name if isinstance(name, str) else ""}
        return names - {""}


#: For lists of many objects.
_make_view = fast_constructor(ObjectView)


def object_view(item: ReceivedObject, broker: str = "", name: str = "") -> ObjectView:
    """The view of an object that was received.

    Args:
        broker: the broker in its keys; empty where there is only one.
        name: name of its broker, in any case.
    """
    class_key = item.class_key or ClassKey("", "")
    schema = item.schema or ClassSchema(package=class_key.package, name=class_key.name, hash=class_key.hash)
    values, data = ViewValues(item, broker), item.data

    def identify() -> ObjectIdentity:
        object_id = item.object_id
        key = ObjectKey(object_id.object_name, item.agent, object_id.agent_epoch, broker)
        return ObjectIdentity(key, class_key, *index_and_title(object_id.object_name, schema, values))

    return _make_view(identify, schema, values, data.update_ts, data.create_ts, data.delete_ts, item, name)


def field_value(target: ObjectView, field: ObjectField) -> object:
    """The value of a field of an object, or None."""
    if field.member is not None:
        return target.values.get(field.name)
    match field.name:
        case "index":
            return target.identity.index
        case "agent":
            return target.identity.key.agent_name
        case "broker":
            return target.identity.key.broker or target.broker or None
        case "class":
            return target.identity.class_key.name
        case "created":
            return target.created or None
        case _:
            return target.updated or None


def key_of_reference(value: object, agent: str, broker: str = "") -> object:
    """A reference as an `ObjectKey`, of `agent` if it does not name one; every other value unchanged."""
    if isinstance(value, ObjectId):
        return ObjectKey(value.object_name, value.agent_name or agent, value.agent_epoch, broker)
    return value


class ViewValues(Mapping[str, object]):
    """The values of an object, converted when read: of thousands of objects, mostly a few are needed."""

    __slots__ = ("_all", "_broker", "_item", "_single")

    def __init__(self, item: ReceivedObject, broker: str) -> None:
        self._item = item
        self._broker = broker
        self._all: Mapping[str, object] | None = None
        self._single: dict[str, object] = {}

    def __getitem__(self, name: str) -> object:
        single = self._single
        if self._all is not None or (name not in single and len(single) >= SINGLE_READS):
            return self._whole()[name]
        if name not in single:
            if name not in self._item.data.values:
                raise KeyError(name)
            single[name] = key_of_reference(self._item[name], self._item.agent, self._broker)
        return single[name]

    @property
    def received(self) -> Mapping[str, object]:
        """The values as they were received, not converted."""
        return self._item.data.values

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
            self._all = {name: key_of_reference(value, item.agent, self._broker) for name, value in found.items()}
        return self._all
