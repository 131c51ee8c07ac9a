"""Objects as last heard of: where the partial updates of data indications come together (QMF2.md 4.7, 5.1)."""

from __future__ import annotations

from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.protocol import ObjectId


class ObjectStore:
    """The latest state of each object, by agent, object name and epoch."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[ObjectId, RemoteObject]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The object with this id, agent name included."""
        return self._objects.get(object_id.agent_name or "", {}).get(object_id)

    def update(self, newer: RemoteObject) -> RemoteObject:
        """Lay an update over what is known of the object; a deleted object leaves the store.

        Returns:
            the object with everything known of it.
        """
        data, object_id = newer.data, newer.object_id
        objects = self._objects.setdefault(object_id.agent_name or "", {})
        known = objects.get(object_id)
        if known is not None and 0 < data.update_ts < known.data.update_ts and not data.delete_ts:
            return newer  # the answer to a query, overtaken by an indication while its schema was fetched
        # An id may be used again after a deletion that we missed: the creation time tells the two objects apart.
        same = known is not None and not is_another(known, newer)
        newer = known.merged(data) if known is not None and same else newer.detached()
        if newer.data.delete_ts:
            objects.pop(object_id, None)
        else:
            objects[object_id] = newer
        return newer

    def drop_agent(self, agent: str, *, transient_only: bool = False) -> None:
        """Forget the objects of an agent; with `transient_only` those that don't outlive its restart."""
        objects = self._objects.pop(agent, {})
        if transient_only:
            self._objects[agent] = {oid: obj for oid, obj in objects.items() if not oid.agent_epoch}


def is_another(known: RemoteObject, newer: RemoteObject) -> bool:
    """True when two states under one id are of two objects, made one after the other."""
    old, new = known.data.create_ts, newer.data.create_ts
    return bool(old and new and old != new)
