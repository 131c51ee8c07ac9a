"""The first objects of a query with a limit, and how many match in all.

Every object is looked at, but only the values in predicate and order are used of it, and only the first ones are kept:
what an answer costs beyond that is what is sent. Belongs to the event loop's thread.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from operator import itemgetter

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, ClassLayout
from qmf.agent.metrics import AgentMetrics
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import value_reader
from qmf.agent.objects.object_sources import ObjectSelection
from qmf.agent.objects.provided_class import used_names
from qmf.agent.requests.selections import Matcher
from qmf.agent.sending.message_batcher import report_unencodable
from qmf.errors import QmfError
from qmf.protocol import ObjectData, OrderKey, place_of

#: Objects kept beyond the limit before the first ones among them are chosen.
_SPARE = 2000


@attrs.frozen
class ProvidedItem:
    """An object of a provider, with the layout of its class."""

    layout: ClassLayout
    data: ObjectData


_Entry = tuple[tuple[object, ...], int, ManagedObject | ProvidedItem]

#: The values of an object that predicate and order need, or None if they need none.
_Values = Callable[[ManagedObject], dict[str, object]]


class FirstObjects:
    """Chooses among the objects that are added.

    Attributes:
        matched: how many of them match.
    """

    def __init__(
        self,
        limit: int,
        selection: ObjectSelection,
        matches: Matcher,
        metrics: AgentMetrics,
    ) -> None:
        """Begin.

        Args:
            limit: how many are chosen, at most.
            selection: the queried objects and their order; equal ones keep the order in which they are added.
            matches: the predicate of the query.
            metrics: counts objects that cannot be read.
        """
        self.matched = 0
        self._limit = limit
        self._order = selection.order
        self._matches = matches if selection.where else None
        self._metrics = metrics
        self._entries: list[_Entry] = []
        self._names = used_names(selection.where) | {key.name for key in selection.order}
        self._readers: dict[type[ManagedObject], _Values] = {}

    @property
    def reads_values(self) -> bool:
        """True if objects are looked at one by one; else they are only counted."""
        return self._matches is not None or bool(self._order)

    def add(self, objects: Sequence[ManagedObject]) -> None:
        """Look at stored objects."""
        if not self.reads_values:
            room = max(0, self._limit - len(self._entries))
            self._entries += [((), at, obj) for at, obj in enumerate(objects[:room], self.matched)]
            self.matched += len(objects)
            return
        for obj in objects:
            try:
                reader = self._readers.get(type(obj))
                if reader is None:
                    reader = self._readers[type(obj)] = _reader(object_state.layout(obj), self._names)
                self._consider(reader(obj), obj)
            except (ValueError, QmfError) as error:
                report_unencodable(self._metrics, object_state.object_id(obj), error)
        self._choose(_SPARE)

    def add_provided(self, layout: ClassLayout, objects: Sequence[ObjectData]) -> None:
        """Look at objects of a provider."""
        for data in objects:
            name = "" if data.object_id is None else data.object_id.object_name
            self._consider({**data.values, OrderKey.OBJECT_NAME: name}, ProvidedItem(layout, data))
        self._choose(_SPARE)

    def choose(self) -> list[ManagedObject | ProvidedItem]:
        """The first ones, in order."""
        self._choose(0)
        return [item for _, _, item in self._entries]

    def _consider(self, values: dict[str, object], item: ManagedObject | ProvidedItem) -> None:
        if self._matches is not None and not self._matches(values):
            return
        if self._order or len(self._entries) < self._limit:
            self._entries.append((place_of(self._order, values.get), self.matched, item))
        self.matched += 1

    def _choose(self, spare: int) -> None:
        """Keep the first ones only, if there are many more."""
        if len(self._entries) > self._limit + max(spare, self._limit if spare else 0):
            self._entries = heapq.nsmallest(self._limit, self._entries, key=itemgetter(0, 1))
        elif not spare:
            self._entries = sorted(self._entries, key=itemgetter(0, 1))[: self._limit]


def _reader(layout: ClassLayout, names: frozenset[str]) -> _Values:
    """Reads the values of an object by name: those of some names, and the object's own one."""
    positions = [(at, name) for at, (name, _) in enumerate(layout.wire[BOTH]) if name in names]
    named = OrderKey.OBJECT_NAME in names

    def read(obj: ManagedObject) -> dict[str, object]:
        raw = reader(obj) if positions else ()
        values: dict[str, object] = {name: raw[at] for at, name in positions}
        if named:
            values[OrderKey.OBJECT_NAME] = object_state.object_name(obj)
        return values

    reader = value_reader(layout, BOTH)
    return read
