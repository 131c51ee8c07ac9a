"""What one subscriber has been told: from it follows what is news.

Of the agent's own objects a view remembers when it looked last, of provided ones, which bear no marks, a digest of what
it told. A look makes news and the state that will hold once the news has arrived; until `commit` the old one counts, so
a publication that breaks off is made again from scratch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import attrs

from qmf.agent.clock import Clock
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, STATISTICS, ClassLayout
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources
from qmf.agent.objects.object_store import object_data
from qmf.agent.requests.query_answer import Matcher
from qmf.agent.requests.query_handler import with_selected_values
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import ClassKey

#: Digests of the two groups of values of a provided object.
_Digests = tuple[int, int]


class TooManyMatchesError(Exception):
    """More objects match than a view may hold."""


@attrs.define
class _State:
    """What a subscriber knows.

    Attributes:
        inside: names of own objects that match, with the tick of the last look.
        outside: those that don't.
        provided: names of provided objects that match, with digests.
        classes: class of each object inside or provided.
    """

    inside: dict[str, int] = attrs.field(factory=dict)
    outside: dict[str, int] = attrs.field(factory=dict)
    provided: dict[str, _Digests] = attrs.field(factory=dict)
    classes: dict[str, ClassKey] = attrs.field(factory=dict)


class SubscriptionView:
    """The view of one subscriber; belongs to the event loop's thread."""

    def __init__(self, sources: ObjectSources, wanted: ObjectSelection, fits: Matcher, clock: Clock, most: int) -> None:
        self._sources = sources
        self._wanted = wanted
        self._fits = fits
        self._clock = clock
        self._most = most
        self._told = _State()
        self._next = _State()

    def commit(self) -> None:
        """All news of the last look has arrived."""
        self._told = self._next

    async def look(self) -> AsyncGenerator[ObjectData, None]:
        """The news: new objects whole, changed groups of values of others, those that left or are gone.

        Raises:
            TooManyMatchesError: more objects match than a view may hold.
            RequestRefused: a provider failed.
        """
        state = self._next = _State()
        gone = {**self._told.inside, **self._told.provided}
        for number, obj in enumerate(self._sources.stored(self._wanted), 1):
            if object_state.owner(obj) is self._sources.store:
                news = self._look_at(obj, state)
                if news is not None:
                    yield news
                gone.pop(object_state.object_name(obj), None)
            if number % _SCAN == 0:
                await asyncio.sleep(0)
        for provided in self._sources.providers(self._wanted):
            async with aclosing(self._sources.provided(provided, self._wanted)) as batches:
                async for batch in batches:
                    for data in batch:
                        news = self._look_at_provided(provided.layout, data, state)
                        if news is not None:
                            yield news
                        if data.object_id is not None:
                            gone.pop(data.object_id.object_name, None)
        for name in gone:
            yield await self._farewell(name)

    def _look_at(self, obj: ManagedObject, state: _State) -> ObjectData | None:
        name = object_state.object_name(obj)
        was_inside = name in self._told.inside
        seen = self._told.inside.get(name, self._told.outside.get(name, -1))
        tick = self._sources.store.tick()
        object_state.note_changes(obj, tick)
        groups = object_state.changed_since(obj, seen)
        if not groups:
            self._keep(name, tick, state, object_state.layout(obj), inside=was_inside)
            return None
        values = obj._qmf_values()
        inside = not self._wanted.where or self._fits(values)
        self._keep(name, tick, state, object_state.layout(obj), inside=inside)
        if not inside:
            return attrs.evolve(object_data(obj, {}), left=True) if was_inside else None
        data = object_data(obj, values)
        return self._news(data, object_state.layout(obj), groups if was_inside else BOTH, whole=not was_inside)

    def _keep(self, name: str, tick: int, state: _State, layout: ClassLayout, *, inside: bool) -> None:
        if not inside:
            state.outside[name] = tick
            return
        state.inside[name] = tick
        self._remember(name, state, layout)

    def _remember(self, name: str, state: _State, layout: ClassLayout) -> None:
        state.classes[name] = layout.key
        if len(state.classes) > self._most:
            raise TooManyMatchesError

    def _look_at_provided(self, layout: ClassLayout, data: ObjectData, state: _State) -> ObjectData | None:
        assert data.object_id is not None
        name = data.object_id.object_name
        before = self._told.provided.get(name)
        if self._wanted.where and not self._fits(data.values):
            return None if before is None else attrs.evolve(data, values={}, left=True)
        digests = _digests(layout, data)
        state.provided[name] = digests
        self._remember(name, state, layout)
        if before is None:
            return self._news(data, layout, BOTH, whole=True)
        groups = (PROPERTIES if before[0] != digests[0] else 0) | (STATISTICS if before[1] != digests[1] else 0)
        return self._news(data, layout, groups, whole=False) if groups else None

    def _news(self, data: ObjectData, layout: ClassLayout, groups: int, *, whole: bool) -> ObjectData | None:
        if groups != BOTH:
            names = {name for name, _ in layout.wire[groups]}
            data = attrs.evolve(data, values={name: item for name, item in data.values.items() if name in names})
        data = with_selected_values(data, layout, self._wanted)
        return data if whole or data.values else None

    async def _farewell(self, name: str) -> ObjectData:
        """What to say of an object that is not among the candidates any more."""
        object_id = self._sources.store.object_id(name)
        now = self._clock.time_ns()
        data = ObjectData(values={}, object_id=object_id, class_key=self._told.classes.get(name), update_ts=now)
        if name in self._told.provided and self._wanted.where and await self._is_provided(object_id):
            # The provider applied the predicate itself.
            return attrs.evolve(data, left=True)
        return attrs.evolve(data, delete_ts=now)

    async def _is_provided(self, object_id: ObjectId) -> bool:
        for provided in self._sources.providers(ObjectSelection(object_id=object_id)):
            if await self._sources.look_up(provided, object_id) is not None:
                return True
        return False


#: Own objects looked at between two turns of the loop: most have not changed, and are done in a microsecond.
_SCAN = 500


def _digests(layout: ClassLayout, data: ObjectData) -> _Digests:
    properties, statistics = (
        hash(repr([data.values.get(name) for name, _ in layout.wire[group]])) for group in (PROPERTIES, STATISTICS)
    )
    return properties, statistics
