"""The list of an agent's objects that changed, for each of those who publish them.

An object notes itself when one of its change marks is set, when it is added and when it is removed. So whoever
publishes changes looks at these objects only, and an agent whose objects don't change has nothing to do, however many
there are. Values may be set in any thread; the rest belongs to the event loop's thread.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from weakref import WeakSet

from qmf.agent.layout import object_state
from qmf.agent.model.managed_object import ManagedObject

#: Objects by `id`, since programs may give theirs another equality.
Changed = dict[int, ManagedObject]


class ChangeWatch:
    """The objects that changed since one reader last took them.

    Attributes:
        objects: they, each once, in the order of their first change; also those that were removed.
    """

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        self.objects: Changed = {}

    def take(self) -> tuple[Changed, int]:
        """The objects that changed since the last call, and a tick: what changes from now on has a later one.

        An object that changes again later is in the result of a later call.
        """
        tick = self._log.distribute()
        taken, self.objects = self.objects, {}
        return taken, tick


class ChangeLog:
    """Collects the objects of a store that changed, and distributes them.

    Attributes:
        note: called with an object that changed, in any thread.
    """

    def __init__(self) -> None:
        self._noted: deque[ManagedObject | None] = deque()
        self.note: Callable[[ManagedObject], None] = self._noted.append
        self._ticks = itertools.count(1)
        #: Objects with a reference to one without an id: they change when that is added, which sets no mark.
        self._unresolved: Changed = {}
        self._watches: WeakSet[ChangeWatch] = WeakSet()

    def tick(self) -> int:
        """A number that is larger each time, for `object_state.note_changes`."""
        return next(self._ticks)

    def watch(self) -> ChangeWatch:
        """What changes from now on, for one reader, as long as that keeps it."""
        self.distribute()
        watch = ChangeWatch(self)
        self._watches.add(watch)
        return watch

    def distribute(self) -> int:
        """Give the objects that were noted to all readers.

        Returns:
            the tick of their changes.
        """
        tick = self.tick()
        changed: Changed = {}
        while self._noted:
            # None comes of an object that another thread changed while it was removed.
            if (obj := self._noted.popleft()) is not None:
                object_state.note_changes(obj, tick)
                changed[id(obj)] = obj
                if object_state.is_unresolved(obj):
                    self._unresolved[id(obj)] = obj
        self._resolve(changed, tick)
        for watch in self._watches:
            watch.objects.update(changed)
        return tick

    def _resolve(self, changed: Changed, tick: int) -> None:
        """Add the objects whose references have an id now to those that changed."""
        for key, obj in list(self._unresolved.items()):
            if object_state.owner(obj) is None:
                del self._unresolved[key]
                continue
            object_state.note_changes(obj, tick)
            if not object_state.is_unresolved(obj):
                del self._unresolved[key]
                changed[key] = obj
