"""The objects that somebody follows, as they are now, and what of it the follower has not been told yet.

Changes of an object that wait for a slow reader become one, so what waits is bounded by the objects there are. Only
news of objects that are gone could grow without end; of these the oldest are dropped, counted, and told as missing.
The picture itself is always right. Knows no agents, no time and no asyncio.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import attrs

from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.protocol import ObjectId

T = TypeVar("T")


class ChangeKind(enum.Enum):
    """What happened to an object that is followed."""

    ADDED = "added"  #: it is there, or matches, from now on
    CHANGED = "changed"  #: it has other values
    LEFT = "left"  #: it doesn't match any more; where an agent only tells what matches, it may be deleted, too
    DELETED = "deleted"  #: it is gone at its agent
    LOST = "lost"  #: its agent is gone, so that nothing is known of it any more

    @property
    def gone(self) -> bool:
        """True when the object is not in the picture any more."""
        return self not in (ChangeKind.ADDED, ChangeKind.CHANGED)


@attrs.frozen(kw_only=True)
class ObjectChange(Generic[T]):
    """News of one object.

    Attributes:
        kind: what happened.
        object: with all that is known of it now; of an object that is gone, as last known.
        properties, statistics: which of its values changed; both for objects that are added.
        merged: how many earlier changes are in this one, because the reader did not take them in time.
        dropped: how many news of objects that are gone were dropped since the change told before, because the reader
            did not take them in time.
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


#: Of one object, news that it is gone may wait together with news that another has its id now.
_Slot = tuple[ObjectId, bool]


class FollowedObjects:
    """Objects by id, and the news of them that wait."""

    def __init__(self, size: int, wake: Callable[[], None]) -> None:
        """Make an empty picture.

        Args:
            size: news of objects that are gone that may wait.
            wake: called when there are news.
        """
        self._objects: dict[ObjectId, RemoteObject] = {}
        self._waiting: dict[_Slot, _Waiting] = {}
        self._size = size
        self._gone: dict[ObjectId, None] = {}
        self._untold = 0
        self._wake = wake
        self.merged = 0
        """Changes that were told only as part of later ones, so far."""
        self.dropped = 0
        """News of objects that are gone that were never told, so far."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[RemoteObject]:
        return iter(list(self._objects.values()))

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._objects

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The object with this id, if it is in the picture."""
        return self._objects.get(object_id)

    def put(self, obj: RemoteObject, *, properties: bool, statistics: bool) -> None:
        """An object is there, or changed; where nothing of it changed, nobody is told."""
        known = obj.object_id in self._objects
        self._objects[obj.object_id] = obj
        if not known:
            self._tell(_Waiting(ChangeKind.ADDED, obj, True, True))
        elif properties or statistics:
            self._tell(_Waiting(ChangeKind.CHANGED, obj, properties, statistics))

    def remove(self, obj: RemoteObject, kind: ChangeKind) -> None:
        """An object is gone; one that was never in the picture came and went between two looks."""
        self._objects.pop(obj.object_id, None)
        self._tell(_Waiting(kind, obj, False, False))

    def take(self) -> ObjectChange[RemoteObject] | None:
        """The news that wait for longest."""
        if not self._waiting:
            return None
        slot = next(iter(self._waiting))
        item = self._waiting.pop(slot)
        if slot[1]:
            del self._gone[slot[0]]
        dropped, self._untold = self._untold, 0
        return ObjectChange(
            kind=item.kind,
            object=item.object,
            properties=item.properties,
            statistics=item.statistics,
            merged=item.merged,
            dropped=dropped,
        )

    def _tell(self, new: _Waiting) -> None:
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
        self._wake()

    def _merge(self, earlier: _Waiting, later: _Waiting) -> None:
        later.merged += earlier.merged + 1
        self.merged += 1

    def _drop(self, oid: ObjectId) -> None:
        del self._waiting[oid, True]
        del self._gone[oid]
        self._untold += 1
        self.dropped += 1
