"""The object store: objects as last published, where the partial updates of agents are merged (QMF2.md 4.7, 5.1)."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.objects.values import is_another
from qmf.protocol import ObjectId


class ObjectStore:
    """The latest state of each published object, by agent, object name and epoch."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[ObjectId, RemoteObject]] = {}
        self._publishers: set[str] = set()

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The object with this id, agent name included."""
        return self._objects.get(object_id.agent_name or "", {}).get(object_id)

    def has_publisher(self, agent: str) -> bool:
        """True when the agent publishes objects; most agents of libqmf2 don't."""
        return agent in self._publishers

    def add_publisher(self, agent: str) -> None:
        """Note that an agent publishes objects."""
        self._publishers.add(agent)

    def update(self, newer: RemoteObject) -> RemoteObject:
        """Merge an update over what is known of the object; a deleted object leaves the store.

        Returns:
            the object with everything known of it.
        """
        data, object_id = newer.data, newer.object_id
        objects = self._objects.setdefault(object_id.agent_name or "", {})
        known = objects.get(object_id)
        if known is not None and 0 < data.update_ts < known.data.update_ts and not data.delete_ts:
            return newer  # the answer to a query; an indication arrived while its schema was fetched
        # An id may be used again after a deletion that was not received; the creation time tells the two objects apart.
        same = known is not None and not is_another(known.data, data)
        newer = known.merged(data) if known is not None and same else newer.detached()
        if newer.data.delete_ts:
            objects.pop(object_id, None)
        else:
            objects[object_id] = newer
        return newer

    def update_from_query(self, agent: str, found: Iterable[RemoteObject]) -> None:
        """Keep the objects that a query returned, if their agent publishes objects.

        qpidd may not publish an object that was just queried (QMF2.md 7.1): later updates are merged over this state.
        """
        if agent in self._publishers:
            for obj in found:
                self.update(obj)

    def agent_removed(self, agent: str) -> None:
        """Forget an agent and all its objects."""
        self._objects.pop(agent, None)
        self._publishers.discard(agent)

    def agent_restarted(self, agent: str) -> None:
        """Forget the objects of an agent that don't outlive its restart."""
        objects = self._objects.pop(agent, {})
        self._objects[agent] = {oid: obj for oid, obj in objects.items() if not oid.agent_epoch}
