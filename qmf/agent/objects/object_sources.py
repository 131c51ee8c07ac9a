"""The sources of an agent's objects: its store, then the providers.

Belongs to the event loop's thread. An error of a provider is logged and raised as `RequestRefused`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager

import attrs

from qmf.agent.clock import Clock
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.objects.provided_class import ProvidedClass, used_names
from qmf.agent.providers import Handler, Item, Provider, ProviderQuery
from qmf.agent.request_errors import RequestRefused, one_line
from qmf.errors import CallerError
from qmf.protocol import ErrorCode, ObjectData, ObjectId, OrderKey, Predicate
from qmf.schema import ClassKey, Style

_log = logging.getLogger("qmf.agent")

#: Objects examined between two turns of the loop; about 5 ms.
SCAN = 100


@attrs.frozen(kw_only=True)
class ObjectSelection:
    """A selection of objects, and of their values.

    Attributes:
        class_key: class of the objects; an empty package matches any. Unused if there is an object id.
        object_id: the id of a single object.
        where: predicate.
        text: they contain it; empty for any.
        select: names of values; empty for all.
        order: what the objects are ordered by, if the first ones are wanted.
    """

    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    where: Predicate = ()
    text: str = ""
    select: Sequence[str] = ()
    order: Sequence[OrderKey] = ()


class ObjectSources:
    """All objects of one agent, stored and provided."""

    def __init__(self, store: ManagedObjectStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self._provided: list[ProvidedClass] = []
        #: What adds missing objects, by the names of their classes on the wire.
        self._fills: dict[str, Callable[[], object]] = {}

    def fill(self, cls: type[ManagedObject], fill: Callable[[], object]) -> None:
        """See `Agent.fill`."""
        key = layout_of(cls).key
        self.store.register((cls._qmf_schema_,))
        self._fills[key.name] = fill

    def provide(self, cls: type[ManagedObject], handler: Provider | Handler) -> None:
        """Add the provider of a class.

        Raises:
            CallerError: the class has a provider already.
        """
        provided = ProvidedClass(cls, handler)
        if any(other.prefix == provided.prefix for other in self._provided):
            raise CallerError(f"class {provided.layout.schema.name} has a provider already")
        self.store.register((provided.layout.schema,))
        self._provided.append(provided)

    def stored_objects(self, selection: ObjectSelection) -> list[ManagedObject]:
        """The stored objects of the class, or with the id; the predicate is not applied."""
        if selection.object_id is not None:
            found = self.store.find(selection.object_id)
            fill = self._fills.get(_class_name(selection.object_id))
            if found is None and fill is not None and self.store.is_own(selection.object_id):
                fill()
                found = self.store.find(selection.object_id)
            return [] if found is None else [found]
        if selection.class_key is None:
            return []
        if (fill := self._fills.get(selection.class_key.name.lower())) is not None:
            fill()
        return self.store.of_class(selection.class_key.package, selection.class_key.name)

    def is_selected(self, obj: ManagedObject, selection: ObjectSelection) -> bool:
        """Whether an object that is or was stored has the class or the id; the predicate is not applied."""
        if selection.object_id is not None:
            name = selection.object_id.object_name
            return object_state.object_name(obj) == name and self.store.is_own(selection.object_id)
        wanted, own = selection.class_key, object_state.layout(obj).key
        return wanted is not None and own.name == wanted.name.lower() and wanted.package in ("", own.package)

    def providers(self, selection: ObjectSelection) -> list[ProvidedClass]:
        """The providers that may have objects of the selection."""
        if selection.object_id is not None:
            if not self.store.is_own(selection.object_id):
                return []
            return [item for item in self._provided if selection.object_id.object_name.startswith(item.prefix)]
        key = selection.class_key
        return [
            item
            for item in self._provided
            if key is not None
            and item.layout.key.name == key.name.lower()
            and key.package in ("", item.layout.key.package)
        ]

    async def find(self, object_id: ObjectId) -> ManagedObject | None:
        """The object with an id, or None.

        Raises:
            RequestRefused: its provider failed, or gives a row, which has no methods.
        """
        selection = ObjectSelection(object_id=object_id)
        for obj in self.stored_objects(selection):
            return obj
        for provided in self.providers(selection):
            item = await self.look_up(provided, object_id)
            if isinstance(item, ManagedObject):
                if object_state.object_id(item) is None:
                    object_state.set_object_id(item, self.store.object_id(object_id.object_name))
                return item
            if item is not None:
                raise RequestRefused(ErrorCode.NOT_IMPLEMENTED, f"{provided.where} gives rows, which have no methods")
        return None

    async def look_up(self, provided: ProvidedClass, object_id: ObjectId) -> Item | None:
        """The item of a provider with an id, or None.

        Raises:
            RequestRefused: the provider failed.
        """
        with _failures(provided):
            return await provided.find(object_id)

    async def provided_objects(
        self, provided: ProvidedClass, selection: ObjectSelection
    ) -> AsyncGenerator[list[ObjectData], None]:
        """The objects of a provider, in batches.

        Raises:
            RequestRefused: the provider failed.
        """
        if selection.object_id is not None:
            item = await self.look_up(provided, selection.object_id)
            if item is not None:
                with _failures(provided):
                    data = self._object_data(provided, item)
                yield [data] if data.object_id == self.store.object_id(selection.object_id.object_name) else []
            return
        query = ProviderQuery(
            class_key=provided.layout.key, where=selection.where, select=_names(provided.layout, selection)
        )
        pages = provided.pages(query)
        async with aclosing(pages):
            while True:
                with _failures(provided):
                    page = await anext(pages, None)
                if page is None:
                    return
                for start in range(0, len(page), SCAN):
                    with _failures(provided):
                        batch = [self._object_data(provided, item) for item in page[start : start + SCAN]]
                    yield batch
                    await asyncio.sleep(0)

    def _object_data(self, provided: ProvidedClass, item: Item) -> ObjectData:
        object_id = self.store.object_id(provided.name(item))
        created = 0
        if isinstance(item, ManagedObject):
            object_state.set_object_id(item, object_id)
            _, created = object_state.times(item)
        return ObjectData(
            values=provided.values(item),
            object_id=object_id,
            class_key=provided.layout.key,
            update_ts=self._clock.time_ns(),
            create_ts=created,
        )


def expand_selection(layout: ClassLayout, select: Sequence[str]) -> frozenset[str]:
    """The wire names of selected names: that of a min/max/average statistic stands for its four values."""
    names = set(select)
    for field in layout.statistics:
        if field.type.style is Style.MMA and field.name in names:
            names.update(name for name, _ in field.wire)
    return frozenset(names)


def _names(layout: ClassLayout, selection: ObjectSelection) -> frozenset[str]:
    if not selection.select or selection.text:
        return frozenset()
    order = {key.name for key in selection.order}
    return expand_selection(layout, selection.select) | used_names(selection.where) | order


def _class_name(object_id: ObjectId) -> str:
    """The name of the class in an id: ``package:class:key``."""
    return object_id.object_name.partition(":")[2].partition(":")[0]


@contextmanager
def _failures(provided: ProvidedClass) -> Iterator[None]:
    try:
        yield
    except RequestRefused:
        raise
    except Exception as error:
        _log.error("%s failed", provided.where, exc_info=error)
        raise RequestRefused(ErrorCode.EXCEPTION, f"{provided.where} failed: {one_line(error)}", error) from error
