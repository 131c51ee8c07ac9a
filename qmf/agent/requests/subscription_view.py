"""The view of one subscriber: the state that was published to it, from which its changes are found.

Of stored objects a view remembers when it examined them last; of provided ones, which have no change marks, digests of
their values. `changes` makes a new state, which is valid once all changes are published; until `commit` the old one
stays, so that a publication that fails is repeated from the start.
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
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources
from qmf.agent.objects.object_store import object_data
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.requests.selections import Matcher, with_selected_values
from qmf.agent.sending.message_batcher import report_unencodable
from qmf.errors import QmfError
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import ClassKey

#: Digests of the two groups of values of a provided object.
_Digests = tuple[int, int]


class TooManyMatchesError(Exception):
    """More objects match than a subscription may have."""


@attrs.define
class _ViewState:
    """The state that was published to a subscriber.

    Attributes:
        inside: names of stored objects that match, with the tick of their last examination.
        outside: those that do not match.
        provided: names of provided objects that match, with digests.
        classes: class of each object inside or provided.
    """

    inside: dict[str, int] = attrs.field(factory=dict)
    outside: dict[str, int] = attrs.field(factory=dict)
    provided: dict[str, _Digests] = attrs.field(factory=dict)
    classes: dict[str, ClassKey] = attrs.field(factory=dict)


class SubscriptionView:
    """The view of one subscriber; belongs to the event loop's thread."""

    def __init__(
        self,
        sources: ObjectSources,
        writer: ObjectWriter,
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
        self._published = _ViewState()
        self._next = _ViewState()

    def commit(self) -> None:
        """All changes of the last `changes` were published."""
        self._published = self._next

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

    async def changes(self) -> AsyncGenerator[Item, None]:
        """New objects with all values, changed groups of values of others, and objects that left or were deleted.

        An object that cannot be encoded is left out, and counted.

        Raises:
            TooManyMatchesError: more objects match than a subscription may have.
            RequestRefused: a provider failed.
        """
        state = self._next = _ViewState()
        gone = {**self._published.inside, **self._published.provided}
        for number, obj in enumerate(self._sources.stored_objects(self._selection), 1):
            if object_state.owner(obj) is self._sources.store:
                change = self._write_item(object_state.object_id(obj), partial(self._change, obj, state))
                if change is not None:
                    yield change
                gone.pop(object_state.object_name(obj), None)
            if number % _SCAN == 0:
                await asyncio.sleep(0)
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
        for name in gone:
            yield self._writer.data(await self._removal(name))

    def _write_item(self, object_id: ObjectId | None, write: Callable[[], Item | None]) -> Item | None:
        try:
            return write()
        except (ValueError, QmfError) as error:
            report_unencodable(self._metrics, object_id, error)
            return None

    def _change(self, obj: ManagedObject, state: _ViewState) -> Item | None:
        name = object_state.object_name(obj)
        was_inside = name in self._published.inside
        seen = self._published.inside.get(name, self._published.outside.get(name, -1))
        tick = self._sources.store.tick()
        object_state.note_changes(obj, tick)
        groups = object_state.groups_changed_since(obj, seen)
        if not groups:
            self._record(name, tick, state, object_state.layout(obj), inside=was_inside)
            return None
        layout = object_state.layout(obj)
        if not self._selection.where and not self._selection.select:
            self._record(name, tick, state, layout, inside=True)
            if groups == BOTH or not was_inside:
                return self._writer.whole(obj)
            return self._writer.part(obj, groups, read_raw_values(obj, groups))
        values = obj._qmf_values()
        inside = not self._selection.where or self._matches(values)
        self._record(name, tick, state, layout, inside=inside)
        if not inside:
            return self._left_item(object_data(obj, {})) if was_inside else None
        return self._selected_item(
            object_data(obj, values), layout, groups if was_inside else BOTH, whole=not was_inside
        )

    def _record(self, name: str, tick: int, state: _ViewState, layout: ClassLayout, *, inside: bool) -> None:
        if not inside:
            state.outside[name] = tick
            return
        state.inside[name] = tick
        self._record_class(name, state, layout)

    def _record_class(self, name: str, state: _ViewState, layout: ClassLayout) -> None:
        state.classes[name] = layout.key
        if len(state.classes) > self._max_matches:
            raise TooManyMatchesError

    def _provided_change(self, layout: ClassLayout, data: ObjectData, state: _ViewState) -> Item | None:
        assert data.object_id is not None
        name = data.object_id.object_name
        before = self._published.provided.get(name)
        if self._selection.where and not self._matches(data.values):
            return None if before is None else self._left_item(attrs.evolve(data, values={}))
        digests = _digests(layout, data)
        state.provided[name] = digests
        self._record_class(name, state, layout)
        if before is None:
            return self._selected_item(data, layout, BOTH, whole=True)
        groups = (PROPERTIES if before[0] != digests[0] else 0) | (STATISTICS if before[1] != digests[1] else 0)
        return self._selected_item(data, layout, groups, whole=False) if groups else None

    def _left_item(self, data: ObjectData) -> Item:
        return self._writer.data(attrs.evolve(data, left=True))

    def _selected_item(self, data: ObjectData, layout: ClassLayout, groups: int, *, whole: bool) -> Item | None:
        if groups != BOTH:
            names = {name for name, _ in layout.wire[groups]}
            data = attrs.evolve(data, values={name: item for name, item in data.values.items() if name in names})
        data = with_selected_values(data, layout, self._selection)
        return self._writer.data(data) if whole or data.values else None

    async def _removal(self, name: str) -> ObjectData:
        """The change of an object that is no longer among the candidates."""
        object_id = self._sources.store.object_id(name)
        now = self._clock.time_ns()
        data = ObjectData(values={}, object_id=object_id, class_key=self._published.classes.get(name), update_ts=now)
        if name in self._published.provided and self._selection.where and await self._is_provided(object_id):
            # The provider applied the predicate itself.
            return attrs.evolve(data, left=True)
        return attrs.evolve(data, delete_ts=now)

    async def _is_provided(self, object_id: ObjectId) -> bool:
        for provided in self._sources.providers(ObjectSelection(object_id=object_id)):
            if await self._sources.look_up(provided, object_id) is not None:
                return True
        return False


#: Stored objects examined between two turns of the loop: most have not changed and take a microsecond.
_SCAN = 500


def _digests(layout: ClassLayout, data: ObjectData) -> _Digests:
    properties, statistics = (
        hash(repr([data.values.get(name) for name, _ in layout.wire[group]])) for group in (PROPERTIES, STATISTICS)
    )
    return properties, statistics
