"""Followed objects: their current states, and the changes that their reader has not read yet.

Changes of an object that wait for a slow reader are merged into one, so the number of waiting changes is bounded by the
number of objects. Only changes of objects that are gone could grow without limit; the oldest of these are dropped, and
the reader gets their number. The states themselves are always current. Knows no agents' messages, no time, no asyncio.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

from qmf.console.aio.objects.class_fields import is_another
from qmf.console.aio.objects.object_query import Test
from qmf.console.aio.objects.remote_object import RemoteObject, changed_groups
from qmf.protocol import ObjectId

T = TypeVar("T")


class ChangeKind(enum.Enum):
    """What happened to a followed object."""

    ADDED = "added"  #: it exists, or matches the filter, from now on
    CHANGED = "changed"  #: it has other values
    LEFT = "left"  #: it no longer matches the filter; if the agent reports only matching objects, it may be deleted
    DELETED = "deleted"  #: its agent deleted it
    LOST = "lost"  #: its agent is gone, so that its state is unknown

    @property
    def gone(self) -> bool:
        """True when the object is no longer followed."""
        return self not in (ChangeKind.ADDED, ChangeKind.CHANGED)


@attrs.frozen(kw_only=True)
class ObjectChange(Generic[T]):
    """A change of one followed object.

    Attributes:
        kind: what happened.
        object: the object with everything known of it now; if it is gone, as last known.
        properties, statistics: which of its values changed; both for objects that were added.
        merged: how many earlier changes are part of this one, because the reader had not read them.
        dropped: how many changes of objects that are gone were dropped since the previous change, because the reader
            had not read them.
    """

    kind: ChangeKind
    object: T
    properties: bool = False
    statistics: bool = False
    merged: int = 0
    dropped: int = 0


@attrs.define
class _Waiting:
    kind: ChangeKind
    object: RemoteObject
    properties: bool
    statistics: bool
    merged: int = 0


#: Object id, and whether the change is that the object is gone: that change may wait together with the changes of
#: another object that has the same id now.
_WaitingKey = tuple[ObjectId, bool]


class FollowedObjects:
    """The followed objects of all agents by id, and their changes that wait for the reader."""

    def __init__(self, size: int, on_change: Callable[[], None]) -> None:
        """Make an empty collection.

        Args:
            size: how many changes of objects that are gone may wait.
            on_change: called when a change waits.
        """
        self._objects: dict[ObjectId, RemoteObject] = {}
        # Ordered ones, since what was added first is taken first: a plain dict looks for it past all that was taken.
        self._waiting: OrderedDict[_WaitingKey, _Waiting] = OrderedDict()
        self._size = size
        self._gone: OrderedDict[ObjectId, None] = OrderedDict()
        self._dropped_unread = 0
        self._on_change = on_change
        self.merged = 0
        """How many changes were merged into later ones so far."""
        self.dropped = 0
        """How many changes of objects that are gone were dropped so far."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[RemoteObject]:
        return iter(list(self._objects.values()))

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._objects

    @property
    def waiting(self) -> int:
        """How many changes wait for the reader."""
        return len(self._waiting)

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The followed object with this id, or None."""
        return self._objects.get(object_id)

    def put(self, obj: RemoteObject, *, properties: bool, statistics: bool) -> None:
        """Add or update an object; an update without changed values is not reported."""
        known = obj.object_id in self._objects
        self._objects[obj.object_id] = obj
        if not known:
            self._add(_Waiting(ChangeKind.ADDED, obj, True, True))
        elif properties or statistics:
            self._add(_Waiting(ChangeKind.CHANGED, obj, properties, statistics))

    def remove(self, obj: RemoteObject, kind: ChangeKind) -> None:
        """Remove an object; one that was never added was created and deleted between two publications."""
        self._objects.pop(obj.object_id, None)
        self._add(_Waiting(kind, obj, False, False))

    def take(self) -> ObjectChange[RemoteObject] | None:
        """Remove and return the change that has waited longest; None when none waits."""
        if not self._waiting:
            return None
        key, item = self._waiting.popitem(last=False)
        if key[1]:
            del self._gone[key[0]]
        dropped, self._dropped_unread = self._dropped_unread, 0
        return ObjectChange(
            kind=item.kind,
            object=item.object,
            properties=item.properties,
            statistics=item.statistics,
            merged=item.merged,
            dropped=dropped,
        )

    def _add(self, new: _Waiting) -> None:
        oid = new.object.object_id
        alive = self._waiting.get((oid, False))
        if new.kind.gone:
            if alive is not None:
                del self._waiting[oid, False]
                self._merge(alive, new)
            gone = self._waiting.get((oid, True))
            if gone is not None:
                self._merge(gone, new)
                gone.kind, gone.object, gone.merged = new.kind, new.object, new.merged
            else:
                self._waiting[oid, True] = new
                self._gone[oid] = None
                if len(self._gone) > self._size:
                    self._drop(next(iter(self._gone)))
        elif alive is None:
            self._waiting[oid, False] = new
        else:
            self._merge(alive, new)
            alive.object, alive.merged = new.object, new.merged
            alive.properties |= new.properties
            alive.statistics |= new.statistics
        self._on_change()

    def _merge(self, earlier: _Waiting, later: _Waiting) -> None:
        later.merged += earlier.merged + 1
        self.merged += 1

    def _drop(self, oid: ObjectId) -> None:
        del self._waiting[oid, True]
        del self._gone[oid]
        self._dropped_unread += 1
        self.dropped += 1


class AgentObjects:
    """The objects of one agent as last known, whether they match the filter or not; those that match are followed."""

    def __init__(self, test: Test, followed: FollowedObjects) -> None:
        """Make an empty collection; objects that pass `test` are put into `followed`."""
        self._test = test
        self._followed = followed
        self._known: dict[ObjectId, RemoteObject] = {}
        self._removed: dict[ObjectId, RemoteObject] | None = None

    def __iter__(self) -> Iterator[RemoteObject]:
        return iter(list(self._known.values()))

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The object with this id as last known, or None."""
        return self._known.get(object_id)

    def ids(self) -> set[ObjectId]:
        """The ids of all objects."""
        return set(self._known)

    def start_query(self) -> set[ObjectId]:
        """Note which objects are removed from now on, until `end_query`.

        Returns:
            the ids of all objects.
        """
        self._removed = {}
        return self.ids()

    def end_query(self, found: Iterable[RemoteObject]) -> list[RemoteObject]:
        """The objects of an answer without those that were removed since `start_query`."""
        removed, self._removed = self._removed or {}, None
        return [
            obj for obj in found if obj.object_id not in removed or is_another(removed[obj.object_id].data, obj.data)
        ]

    def compare(
        self, found: Sequence[RemoteObject], before: set[ObjectId], *, filtered: bool, part: int = 0
    ) -> Iterator[None]:
        """Take the objects of a complete answer; those known before the request and not in the answer are gone.

        Args:
            found: the objects.
            before: the ids of those that were known.
            filtered: the answer holds matching objects only: the others may still exist.
            part: how many are taken in one step; 0 for all.

        Yields:
            between two steps, for a turn of others, who must not change the objects of this agent.
        """
        present = set()
        size = part or max(1, len(found))
        for start in range(0, len(found), size):
            if start:
                yield
            for obj in found[start : start + size]:
                present.add(obj.object_id)
                self.update(obj)
        kind = ChangeKind.LEFT if filtered else ChangeKind.DELETED
        for oid in before - present:
            if oid in self._known:
                self.remove(self._known[oid], kind)

    def update(self, newer: RemoteObject) -> None:
        """Merge what an agent sent of an object over what is known of it."""
        object_id, data = newer.object_id, newer.data
        known = self._known.get(object_id)
        if data.delete_ts:
            if known is not None or self._test(newer):
                self.remove(newer if known is None else known.with_update(data), ChangeKind.DELETED)
            return
        if known is not None and is_another(known.data, data):
            self.remove(known, ChangeKind.DELETED)
            known = None
        if known is not None:
            if 0 < data.update_ts < known.data.update_ts:
                return
            newer = known.with_update(data)
        else:
            newer = newer.without_message()
        self._known[object_id] = newer
        if self._test(newer):
            properties, statistics = changed_groups(known, newer)
            self._followed.put(newer, properties=properties, statistics=statistics)
        elif object_id in self._followed:
            self._followed.remove(newer, ChangeKind.LEFT)

    def remove(self, obj: RemoteObject, kind: ChangeKind) -> None:
        """Remove an object."""
        self._known.pop(obj.object_id, None)
        if self._removed is not None:
            self._removed[obj.object_id] = obj
        # An object that was created and deleted between two publications is reported once.
        if obj.object_id in self._followed or (kind is ChangeKind.DELETED and self._test(obj)):
            self._followed.remove(obj, kind)
