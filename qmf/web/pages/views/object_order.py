"""The objects of a class that pass a condition, in order: found once for all browsers that look at the same.

With 100,000 objects that takes longer than the event loop may stand still, so it is done in slices, and again only
when objects have changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from operator import itemgetter

import attrs

from qmf.console.aio import ObjectId, RemoteObject
from qmf.views.conditions import Test
from qmf.views.fields import NO_VALUE, SortKey, sort_key
from qmf.views.objects import ObjectView, object_view
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.views.page_columns import PageColumn

#: Seconds that the loop is kept at most before others have their turn.
SLICE = 0.01
#: Objects between two looks at the clock.
STEP = 100
#: Objects that are sorted in one go.
PART = 5000
#: The time that ordering took, times this, is the time until it is done again.
REST = 5.0


_Keyed = tuple[tuple[SortKey, object], ObjectId]


@attrs.frozen
class OrderSpec:
    """Which objects, in which order.

    Attributes:
        filter: text of the condition; it and what follows identify the order.
        sort: name of the column.
        descending: the greatest first.
        agent: only objects of this agent; empty for all.
        own: with what agents and consoles create for themselves.
        searched: names of the columns in which words are searched for.
    """

    filter: str
    sort: str
    descending: bool
    agent: str
    own: bool
    searched: tuple[str, ...]


class ObjectOrder:
    """The ids of objects in order, kept up to date when somebody asks."""

    def __init__(
        self,
        objects: LiveObjects,
        spec: OrderSpec,
        column: PageColumn,
        test: Test | None,
        is_own: Callable[[RemoteObject], bool],
    ) -> None:
        """Take the objects, which are not sorted yet.

        Args:
            column: the one that decides the order.
            test: the condition, compiled; None for all objects.
            is_own: whether an object is about what an agent or a console created for itself.
        """
        self._objects = objects
        self._spec = spec
        self._column = column
        self._test = test
        self._is_own = is_own
        self._lock = asyncio.Lock()
        self._version = -1
        self._not_before = 0.0
        self._names: dict[ObjectId, SortKey] = {}
        self.ids: list[ObjectId] = []
        """The objects in order, as of the last `refresh`."""
        self.own_left_out = 0
        """How many objects of agents and consoles were left out."""
        self.used = time.monotonic()
        """When somebody last asked."""

    async def refresh(self) -> bool:
        """Order the objects if they have changed; returns True if that was done."""
        self.used = time.monotonic()
        async with self._lock:
            if self._version == self._objects.version or (self.ids and time.monotonic() < self._not_before):
                return False
            start = time.monotonic()
            version = self._objects.version
            self.ids = [item[1] for item in await self._sort(await self._keys())]
            self._version = version
            self._not_before = time.monotonic() + REST * (time.monotonic() - start)
            return True

    async def _sort(self, keys: list[_Keyed]) -> list[_Keyed]:
        """Sorted in parts first, between which others have their turn: to merge them takes a fraction of the time.

        What has no value comes last in either direction.
        """
        missing = [item for item in keys if item[0][0] == NO_VALUE]
        valued = [item for item in keys if item[0][0] != NO_VALUE] if missing else keys
        found: list[_Keyed] = []
        for at in range(0, len(valued), PART):
            found += sorted(valued[at : at + PART], key=itemgetter(0), reverse=self._spec.descending)
            await asyncio.sleep(0)
        found.sort(key=itemgetter(0), reverse=self._spec.descending)
        return found + sorted(missing, key=itemgetter(0))

    async def _keys(self) -> list[_Keyed]:
        spec = self._spec
        found: list[_Keyed] = []
        own = 0
        until = time.monotonic() + SLICE
        names: dict[ObjectId, SortKey] = {}
        for at, object_id in enumerate(self._objects.ids):
            if at % STEP == 0 and time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE
            obj = self._objects.get(object_id)
            if obj is None or (spec.agent and obj.agent != spec.agent):
                continue
            if not spec.own and self._is_own(obj):
                own += 1
                continue
            view = object_view(obj)
            if self._test is not None and not self._test(view):
                continue
            found.append((self._key(view, object_id, names), object_id))
        self._names = names
        self.own_left_out = own
        return found

    def _key(self, obj: ObjectView, object_id: ObjectId, names: dict[ObjectId, SortKey]) -> tuple[SortKey, object]:
        """The value of the column, then the name: objects that are alike keep their places."""
        name = self._names.get(object_id)
        if name is None:
            name = sort_key(object_id.object_name)
        names[object_id] = name
        column = self._column
        if column.name == "index":
            return name, 0
        if column.rate:
            return sort_key(self._objects.rate(column.rate, object_id)), name
        return sort_key(column.read(obj)), name
