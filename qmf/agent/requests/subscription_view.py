"""The view of one subscriber: the state that was published to it, from which its changes are found.

Of stored objects a view examines those in the list of changed ones; of provided ones, which have no change marks, it
keeps digests of their values. What `changes` finds is valid once it is published: until `commit` the old state stays,
so that a publication that fails is repeated from the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial

import attrs

from qmf.agent.clock import Clock
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, STATISTICS, ClassLayout
from qmf.agent.metrics import AgentMetrics
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import read_raw_values
from qmf.agent.objects.change_log import Changed
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources, expand_selection
from qmf.agent.objects.object_store import object_data
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.publishing.row_writer import Row, RowObjectWriter
from qmf.agent.requests.selections import Matcher, with_selected_values
from qmf.agent.sending.message_batcher import report_unencodable
from qmf.errors import QmfError
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import ClassKey

#: An object in a publication.
Written = Item | Row

#: Digests of the two groups of values of a provided object.
_Digests = tuple[int, int]


class TooManyMatchesError(Exception):
    """More objects match than a subscription may have."""


@attrs.define
class _Publication:
    """What is published to a subscriber beside what was published before.

    Attributes:
        tick: what was noted later has yet to be published.
        entered: names of stored objects that match, and did not, with their classes.
        left: names of stored objects that do not match any longer, or are no longer stored.
        provided: names of all provided objects that match, with their classes and digests.
    """

    tick: int
    entered: dict[str, ClassKey] = attrs.field(factory=dict)
    left: set[str] = attrs.field(factory=set)
    provided: dict[str, tuple[ClassKey, _Digests]] = attrs.field(factory=dict)


class SubscriptionView:
    """The view of one subscriber; belongs to the event loop's thread."""

    def __init__(
        self,
        sources: ObjectSources,
        writer: ObjectWriter | RowObjectWriter,
        selection: ObjectSelection,
        matches: Matcher,
        clock: Clock,
        metrics: AgentMetrics,
        max_matches: int,
    ) -> None:
        self._sources = sources
        self._writer = writer
        self._selection = selection
        self._matches = matches
        self._clock = clock
        self._metrics = metrics
        self._max_matches = max_matches
        self._watch = sources.store.changes.watch()
        self._started = False
        #: What changed since the last publication that succeeded; at first everything.
        self._changed: Changed = {}
        self._inside: dict[str, ClassKey] = {}
        self._provided: dict[str, tuple[ClassKey, _Digests]] = {}
        self._tick = 0
        self._selected: dict[tuple[ClassLayout, int], frozenset[str]] = {}
        self._next = _Publication(0)

    def commit(self) -> None:
        """All changes of the last `changes` were published."""
        self._started = True
        self._tick, self._provided = self._next.tick, self._next.provided
        for name in self._next.left:
            self._inside.pop(name, None)
        self._inside |= self._next.entered
        self._changed = {}

    async def exceeds_limit(self) -> bool:
        """True when more stored objects match than a subscription may have.

        Provided ones are counted as they come: asking their provider twice may take longer than a console waits.
        """
        stored = self._sources.stored_objects(self._selection)
        if len(stored) <= self._max_matches:
            return False
        if not self._selection.where:
            return True
        count = 0
        for number, obj in enumerate(stored, 1):
            count += self._matches(obj._qmf_values())
            if count > self._max_matches:
                return True
            if number % _SCAN == 0:
                await asyncio.sleep(0)
        return False

    async def changes(self) -> AsyncGenerator[Written, None]:
        """New objects with all values, changed groups of values of others, and objects that left or were deleted.

        An object that cannot be encoded is left out, and counted.

        Raises:
            TooManyMatchesError: more objects match than a subscription may have.
            RequestRefused: a provider failed.
        """
        taken, tick = self._watch.take()
        if not self._started:
            self._changed = {id(obj): obj for obj in self._sources.stored_objects(self._selection)}
        self._changed |= taken
        state = self._next = _Publication(tick)
        for number, obj in enumerate(list(self._changed.values()), 1):
            if self._sources.is_selected(obj, self._selection):
                change = self._write_item(object_state.object_id(obj), partial(self._change, obj, state))
                if change is not None:
                    yield change
            if number % _SCAN == 0:
                await asyncio.sleep(0)
        gone = dict(self._provided)
        for provided in self._sources.providers(self._selection):
            async with aclosing(self._sources.provided_objects(provided, self._selection)) as batches:
                async for batch in batches:
                    for data in batch:
                        change = self._write_item(
                            data.object_id, partial(self._provided_change, provided.layout, data, state)
                        )
                        if change is not None:
                            yield change
                        if data.object_id is not None:
                            gone.pop(data.object_id.object_name, None)
        for name, (class_key, _) in gone.items():
            yield self._writer.data(await self._removal_of_provided(name, class_key))

    def _write_item(self, object_id: ObjectId | None, write: Callable[[], Written | None]) -> Written | None:
        try:
            return write()
        except (ValueError, QmfError) as error:
            report_unencodable(self._metrics, object_id, error)
            return None

    def _change(self, obj: ManagedObject, state: _Publication) -> Written | None:
        name = object_state.object_name(obj)
        was_inside = name in self._inside
        if object_state.owner(obj) is not self._sources.store:
            # Another object may have the name already, whose change says that this one is gone.
            if not was_inside or self._sources.store.object_named(name) is not None:
                return None
            state.left.add(name)
            return self._writer.data(self._deletion_of(name, self._inside[name]))
        groups = object_state.groups_changed_since(obj, self._tick) if was_inside else BOTH
        if not groups:
            return None
        layout = object_state.layout(obj)
        if not self._selection.where and not self._selection.select:
            self._enter(name, state, layout)
            if groups == BOTH:
                return self._writer.whole(obj)
            return self._writer.part(obj, groups, read_raw_values(obj, groups))
        values = obj._qmf_values()
        if self._selection.where and not self._matches(values):
            if not was_inside:
                return None
            state.left.add(name)
            return self._left_item(object_data(obj, {}))
        self._enter(name, state, layout)
        return self._selected_item(object_data(obj, values), layout, groups, whole=not was_inside)

    def _enter(self, name: str, state: _Publication, layout: ClassLayout) -> None:
        if name not in self._inside:
            state.entered[name] = layout.key
            self._limit(state)

    def _limit(self, state: _Publication) -> None:
        count = len(self._inside) - len(state.left) + len(state.entered) + len(state.provided)
        if count > self._max_matches:
            raise TooManyMatchesError

    def _provided_change(self, layout: ClassLayout, data: ObjectData, state: _Publication) -> Written | None:
        assert data.object_id is not None
        name = data.object_id.object_name
        _, before = self._provided.get(name, (None, None))
        if self._selection.where and not self._matches(data.values):
            return None if before is None else self._left_item(attrs.evolve(data, values={}))
        digests = _digests(layout, data)
        state.provided[name] = layout.key, digests
        self._limit(state)
        if before is None:
            return self._selected_item(data, layout, BOTH, whole=True)
        groups = (PROPERTIES if before[0] != digests[0] else 0) | (STATISTICS if before[1] != digests[1] else 0)
        return self._selected_item(data, layout, groups, whole=False) if groups else None

    def _left_item(self, data: ObjectData) -> Written:
        return self._writer.data(attrs.evolve(data, left=True))

    def _selected_item(self, data: ObjectData, layout: ClassLayout, groups: int, *, whole: bool) -> Written | None:
        if groups != BOTH:
            names = {name for name, _ in layout.wire[groups]}
            data = attrs.evolve(data, values={name: item for name, item in data.values.items() if name in names})
        data = with_selected_values(data, layout, self._selection)
        return self._writer.values(layout, data, self._names(layout, groups)) if whole or data.values else None

    def _names(self, layout: ClassLayout, groups: int) -> frozenset[str]:
        """The wire names of the selected values of some groups."""
        found = self._selected.get((layout, groups))
        if found is None:
            found = frozenset(name for name, _ in layout.wire[groups])
            if self._selection.select:
                found &= expand_selection(layout, self._selection.select)
            self._selected[layout, groups] = found
        return found

    def _deletion_of(self, name: str, class_key: ClassKey) -> ObjectData:
        object_id, now = self._sources.store.object_id(name), self._clock.time_ns()
        return ObjectData(values={}, object_id=object_id, class_key=class_key, update_ts=now, delete_ts=now)

    async def _removal_of_provided(self, name: str, class_key: ClassKey) -> ObjectData:
        data = self._deletion_of(name, class_key)
        if data.object_id is not None and self._selection.where and await self._is_provided(data.object_id):
            # The provider applied the predicate itself.
            return attrs.evolve(data, left=True, delete_ts=0)
        return data

    async def _is_provided(self, object_id: ObjectId) -> bool:
        for provided in self._sources.providers(ObjectSelection(object_id=object_id)):
            if await self._sources.look_up(provided, object_id) is not None:
                return True
        return False


#: Changed objects examined between two turns of the loop.
_SCAN = 500


def _digests(layout: ClassLayout, data: ObjectData) -> _Digests:
    properties, statistics = (
        hash(repr([data.values.get(name) for name, _ in layout.wire[group]])) for group in (PROPERTIES, STATISTICS)
    )
    return properties, statistics
