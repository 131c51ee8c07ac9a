"""Objects as last heard of: where the partial updates of data indications come together (QMF2.md 4.7, 5.1)."""

from __future__ import annotations

from qmf.console.aio.objects import RemoteObject
from qmf.protocol import ObjectId


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
        if known is not None and 0 < newer.timestamps.update < known.timestamps.update and not newer.is_deleted:
            return newer  # the answer to a query, overtaken by an indication while its schema was fetched
        # An id may be used again after a deletion that we missed: the creation time tells the two objects apart.
        if known is not None and not is_another(known, newer):
            newer = known.merged(newer.data)
        if newer.is_deleted:
            self._objects.pop(newer.object_id, None)
        else:
            self._objects[newer.object_id] = newer
        return newer

    def drop_agent(self, agent: str, *, transient_only: bool = False) -> None:
        """Forget the objects of an agent; with `transient_only` those that don't outlive its restart."""
        gone = [
            oid for oid, obj in self._objects.items() if obj.agent == agent and (oid.agent_epoch or not transient_only)
        ]
        for oid in gone:
            del self._objects[oid]


def is_another(known: RemoteObject, newer: RemoteObject) -> bool:
    """True when two states under one id are of two objects, made one after the other."""
    old, new = known.timestamps.create, newer.timestamps.create
    return bool(old and new and old != new)
