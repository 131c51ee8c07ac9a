"""The first objects of a query with a limit, and how many match in all.

Every object is looked at, but only the values in predicate and order are read: those of the first key at first, those
of the others where objects are equal in that and may be among the first ones. No more than these are kept, since
garbage collection costs more than all the rest where much is. Belongs to the event loop's thread.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.metrics import AgentMetrics
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.model.value_readers import make_reader_of
from qmf.agent.objects.object_sources import ObjectSelection
from qmf.agent.objects.provided_class import used_names
from qmf.agent.requests.selections import Matcher, ObjectSearch
from qmf.agent.sending.message_batcher import report_unencodable
from qmf.errors import QmfError
from qmf.protocol import ObjectData, OrderKey, place_of
from qmf.protocol.ordering import Place

#: Objects that are kept beyond the limit before the first ones among them are chosen.
_SPARE = 2000


@attrs.frozen
class ProvidedItem:
    """An object of a provider, with the layout of its class."""

    layout: ClassLayout
    data: ObjectData


#: The values of an object that predicate and order need, by name.
_Values = Callable[[ManagedObject], dict[str, object]]

_Item = ManagedObject | ProvidedItem
#: Place by the first key, number in the order of addition, object.
_Entry = tuple[Any, int, _Item]
_FIRST = itemgetter(0, 1)


class FirstObjects:
    """Chooses among the objects that are added.

    Attributes:
        matched: how many of them match.
    """

    def __init__(self, limit: int, selection: ObjectSelection, matches: Matcher, metrics: AgentMetrics) -> None:
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
        self._search = ObjectSearch(selection.text) if selection.text else None
        self._metrics = metrics
        #: Those that may be among the first ones; and the place of the last of these so far, if there are enough: by
        #: the first key, and by the others.
        self._entries: list[_Entry] = []
        self._last: tuple[Any, Place] | None = None
        self._first = used_names(selection.where) | {key.name for key in selection.order[:1]}
        self._others = {key.name for key in selection.order[1:]}
        self._single: dict[type[ManagedObject], Callable[[ManagedObject], object]] = {}
        self._readers: dict[tuple[type[ManagedObject], bool], _Values] = {}

    @property
    def reads_values(self) -> bool:
        """True if objects are looked at one by one; else they are only counted."""
        return self._matches is not None or self._search is not None or bool(self._order)

    def add(self, objects: Sequence[ManagedObject]) -> None:
        """Look at stored objects."""
        if self._search is not None:
            objects = self._containing(objects, self._search)
        if self._matches is None:
            self._add_all(objects)
            return
        for obj in objects:
            try:
                values = self._values(obj, first=True)
                if self._matches(values):
                    self._add_all([obj], [values.get(key.name) for key in self._order[:1]])
            except (ValueError, QmfError) as error:
                report_unencodable(self._metrics, object_state.object_id(obj), error)

    def _containing(self, objects: Sequence[ManagedObject], search: ObjectSearch) -> Sequence[ManagedObject]:
        found = []
        for obj in objects:
            try:
                if search.is_in(obj):
                    found.append(obj)
            except (ValueError, QmfError) as error:
                report_unencodable(self._metrics, object_state.object_id(obj), error)
        return found

    def add_provided(self, layout: ClassLayout, objects: Sequence[ObjectData]) -> None:
        """Look at objects of a provider."""
        search = self._search
        for data in objects if search is None else filter(search.is_in_provided, objects):
            item = ProvidedItem(layout, data)
            values = _values_of(item)
            if self._matches is None or self._matches(values):
                self._add_all([item], [values.get(key.name) for key in self._order[:1]])

    def choose(self) -> list[_Item]:
        """The first ones, in order."""
        if len(self._entries) > self._limit:
            self._drop_last()
        self._entries.sort(key=lambda entry: (entry[0], self._others_place(entry[2]), entry[1]))
        return [item for _, _, item in self._entries]

    def _add_all(self, items: Sequence[_Item], values: Sequence[object] | None = None) -> None:
        """Add objects that match; `values` are what the first key compares, if they were read."""
        number = self.matched
        if not self._order:
            self.matched += len(items)
            room = max(0, self._limit - len(self._entries))
            self._entries += [((), at, item) for at, item in enumerate(items[:room], number)]
            return
        places = list(map(self._order[0].place, self._first_values(items) if values is None else values))
        self.matched += len(items)
        last = self._last
        for at, place in enumerate(places):
            if last is None or place < last[0] or (place == last[0] and self._others_place(items[at]) < last[1]):
                self._entries.append((place, number + at, items[at]))
        if len(self._entries) > self._limit + _SPARE:
            self._drop_last()

    def _drop_last(self) -> None:
        """Keep as many of the first ones as are wanted."""
        first = heapq.nsmallest(self._limit, self._entries, key=_FIRST)[-1][0]
        before = [entry for entry in self._entries if entry[0] < first]
        equal = [(self._others_place(entry[2]), entry) for entry in self._entries if entry[0] == first]
        kept = heapq.nsmallest(self._limit - len(before), equal, key=lambda pair: (pair[0], pair[1][1]))
        self._entries = before + [entry for _, entry in kept]
        self._last = first, kept[-1][0]

    def _others_place(self, item: _Item) -> Place:
        """The place of an object by the keys after the first one."""
        others = self._order[1:]
        if not others:
            return ()
        if len(others) == 1 and others[0].name == OrderKey.OBJECT_NAME and not isinstance(item, ProvidedItem):
            return (others[0].place(object_state.object_name(item)),)
        values = _values_of(item) if isinstance(item, ProvidedItem) else self._values(item, first=False)
        return place_of(others, values.get)

    def _first_values(self, items: Sequence[Any]) -> Sequence[object]:
        """What the first key compares of stored objects, in the quickest way."""
        name = self._order[0].name
        if name == OrderKey.OBJECT_NAME:
            return list(map(object_state.object_name, items))
        values: list[object] = []
        for kind, of_kind in itertools.groupby(items, type):
            reader = self._single.get(kind)
            if reader is None:
                reader = self._single[kind] = _single_reader(layout_of(kind), name)
            values += map(reader, of_kind)
        return values

    def _values(self, obj: ManagedObject, *, first: bool) -> dict[str, object]:
        """What the predicate and the first key, or else the other keys, need."""
        reader = self._readers.get((type(obj), first))
        if reader is None:
            names = self._first if first else self._others
            reader = self._readers[type(obj), first] = _reader(object_state.layout(obj), names)
        return reader(obj)


def _values_of(item: ProvidedItem) -> dict[str, object]:
    object_id = item.data.object_id
    return {**item.data.values, OrderKey.OBJECT_NAME: "" if object_id is None else object_id.object_name}


def _single_reader(layout: ClassLayout, name: str) -> Callable[[ManagedObject], object]:
    """Reads one value of an object; None if the class does not have it."""
    names, read = make_reader_of(layout, (name,))
    if name not in names:
        return lambda _: None
    at = names.index(name)
    return lambda obj: read(obj)[at]


def _reader(layout: ClassLayout, names: Collection[str]) -> _Values:
    """Reads the values of an object by name: those of some names, and the object's own one."""
    read_names, read = make_reader_of(layout, names)
    if OrderKey.OBJECT_NAME not in names:
        return lambda obj: dict(zip(read_names, read(obj), strict=True))
    if not read_names:
        return lambda obj: {OrderKey.OBJECT_NAME: object_state.object_name(obj)}
    return lambda obj: {
        **dict(zip(read_names, read(obj), strict=True)),
        OrderKey.OBJECT_NAME: object_state.object_name(obj),
    }
