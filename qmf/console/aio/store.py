"""Objects as last heard of: where the partial updates of data indications come together (QMF2.md 4.7, 5.1)."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.console.aio.objects import RemoteObject
from qmf.protocol import ObjectId
from qmf.schema import ClassKey


class ObjectStore:
    """The latest state of each object, by agent, object name and epoch."""

    def __init__(self) -> None:
        self._objects: dict[ObjectId, RemoteObject] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The object with this id, agent name included."""
        return self._objects.get(object_id)

    def update(self, newer: RemoteObject) -> RemoteObject:
        """Lay an update over what is known of the object; a deleted object leaves the store.

        Returns:
            the object with everything known of it.
        """
        known = self._objects.get(newer.object_id)
        # An id may be used again after a deletion that we missed: the creation time tells the two objects apart.
        if known is not None and not _another(known, newer):
            newer = known.merged(newer.data)
        if newer.is_deleted:
            self._objects.pop(newer.object_id, None)
        else:
            self._objects[newer.object_id] = newer
        return newer

    def keep_only(self, agent: str, key: ClassKey, present: Iterable[RemoteObject]) -> None:
        """An agent listed all its objects of a class: forget the others."""
        ids = {obj.object_id for obj in present}
        gone = [
            oid
            for oid, obj in self._objects.items()
            if obj.agent == agent and oid not in ids and obj.class_key is not None and _same_class(obj.class_key, key)
        ]
        for oid in gone:
            del self._objects[oid]

    def drop_agent(self, agent: str, *, transient_only: bool = False) -> None:
        """Forget the objects of an agent; with `transient_only` those that don't outlive its restart."""
        gone = [
            oid for oid, obj in self._objects.items() if obj.agent == agent and (oid.agent_epoch or not transient_only)
        ]
        for oid in gone:
            del self._objects[oid]


def _another(known: RemoteObject, newer: RemoteObject) -> bool:
    old, new = known.timestamps.create, newer.timestamps.create
    return bool(old and new and old != new)


def _same_class(one: ClassKey, other: ClassKey) -> bool:
    return one.name == other.name and other.package in ("", one.package)
