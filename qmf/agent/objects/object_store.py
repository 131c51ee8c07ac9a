"""The objects of one agent: their ids, and deletions since the last publication.

Object ids follow qpidd: ``package:class:key``, the class in lower case, the key made of the index properties in schema
order, joined by ``,``; a reference contributes the name in its object id (QMF2.md 5.1). Objects without index
properties get a serial number or the caller's key. All ids have the agent's name and epoch: the objects end with the
agent.

Any thread may call any method. Sends nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from qmf.agent.layout import object_state
from qmf.agent.model.arguments import Event
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.objects.change_log import ChangeLog
from qmf.agent.objects.provided_class import index_key
from qmf.errors import CallerError
from qmf.protocol.values import ObjectData, ObjectId
from qmf.schema import ClassKey, ClassSchema, EventSchema

#: Deletions kept while there is no connection. Each holds a full object, some 2 kB, and deletions matter less than
#: other changes: a machine that starts 10 processes a second fills this in three hours.
MAX_DELETIONS = 100_000


class DuplicateObjectError(CallerError):
    """Another object has the id of an object that is to be added.

    Attributes:
        object_name: the name in the id.
        key: the last part of it.
    """

    def __init__(self, object_name: str, key: str) -> None:
        self.object_name = object_name
        self.key = key
        super().__init__(object_name, key)

    def __str__(self) -> str:
        return f"the agent has an object {self.object_name!r} already; index properties must make a unique key"


class ManagedObjectStore:
    """All objects, schemas and pending deletions of one agent.

    Attributes:
        agent: what holds the store; the objects find it there.
        changes: the objects that changed, for those who publish them.
    """

    def __init__(self, agent_name: str, epoch: int, now: Callable[[], int]) -> None:
        """Make an empty store.

        Args:
            agent_name, epoch: parts of the ids.
            now: gives the time in ns since 1970.
        """
        self.agent: object = None
        self.changes = ChangeLog()
        self._agent_name = agent_name
        self._epoch = epoch
        self._now = now
        self._lock = threading.Lock()
        self._objects: dict[str, ManagedObject] = {}
        self._classes: dict[str, dict[str, ManagedObject]] = {}
        self._serials: dict[ClassKey, itertools.count[int]] = {}
        self._deleted: deque[ObjectData] = deque()
        self._schemas: dict[ClassKey, ClassSchema | EventSchema] = {}
        self._schemas_by_name: dict[str, list[ClassSchema | EventSchema]] = {}
        self._sorted_schemas: list[ClassSchema | EventSchema] | None = None
        self.deletions_dropped = 0
        #: When the last schema was registered, ns since 1970; 0 without any.
        self.schema_updated = 0

    def register(self, schemas: Iterable[ClassSchema | EventSchema]) -> None:
        """Add schemas, so that queries for them are answered."""
        for schema in schemas:
            if schema.key not in self._schemas:
                with self._lock:
                    self._schemas[schema.key] = schema
                    self._schemas_by_name.setdefault(schema.key.name, []).append(schema)
                    self._sorted_schemas = None
                    self.schema_updated = self._now()

    def add(self, obj: ManagedObject, key: str | None, created: int | None = None) -> ObjectId:
        """Add an object.

        Args:
            obj: an object that is in no agent.
            key: its key; None for a key of its index properties, or a serial number.
            created: since when there is what it stands for, ns since 1970; None for now.

        Returns:
            its id.

        Raises:
            DuplicateObjectError: another object has the id.
            CallerError: the object is in an agent already, or its key refers to an object that is in none.
        """
        layout = layout_of(type(obj))
        if layout.key not in self._schemas:
            self.register((layout.schema,))
        with self._lock:
            if object_state.owner(obj) is not None:
                raise CallerError(f"{obj!r} is in an agent already")
            last = self._key(obj) if key is None else key
            name = f"{layout.key.package}:{layout.key.name}:{last}"
            if name in self._objects:
                raise DuplicateObjectError(name, last)
            object_id = self.object_id(name)
            object_state.attach(obj, self, object_id, self._now() if created is None else created, self.changes.note)
            self._objects[name] = obj
            self._classes.setdefault(layout.key.name, {})[name] = obj
        return object_id

    def remove(self, obj: ManagedObject) -> None:
        """Remove an object. Its current values are the last ones that are published.

        Raises:
            CallerError: the object is not in this agent.
        """
        with self._lock:
            if object_state.owner(obj) is not self:
                raise CallerError(f"{obj!r} is not in this agent")
            name = object_state.object_name(obj)
            del self._objects[name]
            del self._classes[object_state.layout(obj).key.name][name]
            object_state.detach(obj)
            self.changes.note(obj)
            self._keep_deletion(object_data(obj, obj._qmf_values(), delete_ts=self._now()))

    def all(self) -> list[ManagedObject]:
        """All objects, in the order in which they were added."""
        with self._lock:
            return list(self._objects.values())

    def of_class(self, package: str, name: str) -> list[ManagedObject]:
        """Objects of a class; an empty `package` matches any, and `name` is case-insensitive (QMF2.md 4.4)."""
        with self._lock:
            found = list(self._classes.get(name.lower(), {}).values())
        return [obj for obj in found if not package or object_state.layout(obj).key.package == package]

    def find(self, object_id: ObjectId) -> ManagedObject | None:
        """The object with an id, or None; see `is_own`."""
        return self._objects.get(object_id.object_name) if self.is_own(object_id) else None

    def object_named(self, object_name: str) -> ManagedObject | None:
        """The object with such a name in its id, or None."""
        return self._objects.get(object_name)

    def is_own(self, object_id: ObjectId) -> bool:
        """Whether an id can be one of this agent: agent name and epoch must match where it has them."""
        return object_id.agent_name in (None, "", self._agent_name) and object_id.agent_epoch in (0, self._epoch)

    def object_id(self, object_name: str) -> ObjectId:
        """The id of an object of this agent, stored or provided, with a name."""
        return ObjectId(object_name, self._agent_name, self._epoch)

    def schemas(self) -> list[ClassSchema | EventSchema]:
        """All schemas, ordered by key."""
        with self._lock:
            if self._sorted_schemas is None:
                self._sorted_schemas = [self._schemas[key] for key in sorted(self._schemas)]
            return list(self._sorted_schemas)

    def schemas_named(self, *names: str) -> list[ClassSchema | EventSchema]:
        """The schemas with one of these names, ordered by key."""
        with self._lock:
            found = [schema for name in dict.fromkeys(names) for schema in self._schemas_by_name.get(name, ())]
        return sorted(found, key=lambda schema: schema.key)

    @property
    def has_deletions(self) -> bool:
        """Whether objects were removed since the last `take_deleted`."""
        return bool(self._deleted)

    def take_deleted(self) -> list[ObjectData]:
        """Deletions since the last call, oldest first."""
        with self._lock:
            deleted, self._deleted = self._deleted, deque()
        return list(deleted)

    def restore_deleted(self, deleted: Iterable[ObjectData]) -> None:
        """Put deletions back before newer ones: they could not be published."""
        with self._lock:
            newer, self._deleted = self._deleted, deque()
            for item in itertools.chain(deleted, newer):
                self._keep_deletion(item)

    def _keep_deletion(self, item: ObjectData) -> None:
        if len(self._deleted) >= MAX_DELETIONS:
            self._deleted.popleft()
            self.deletions_dropped += 1
        self._deleted.append(item)

    def _key(self, obj: ManagedObject) -> str:
        layout = object_state.layout(obj)
        if not layout.index:
            serials = self._serials.setdefault(layout.key, itertools.count(1))
            used = self._classes.get(layout.key.name, {})
            prefix = f"{layout.key.package}:{layout.key.name}:"
            return next(str(n) for n in serials if f"{prefix}{n}" not in used)
        return index_key(obj)


def schema_of(item: type[ManagedObject] | type[Event] | ClassSchema | EventSchema) -> ClassSchema | EventSchema:
    """The schema of a generated class, or the schema itself."""
    return item if isinstance(item, (ClassSchema, EventSchema)) else item._qmf_schema_


def object_data(obj: ManagedObject, values: Mapping[str, object], *, delete_ts: int = 0) -> ObjectData:
    """An object, or the part of it in `values`, for a message."""
    update_ts, create_ts = object_state.times(obj)
    return ObjectData(
        values=values,
        object_id=object_state.object_id(obj),
        class_key=object_state.layout(obj).key,
        update_ts=update_ts,
        create_ts=create_ts,
        delete_ts=delete_ts,
    )
