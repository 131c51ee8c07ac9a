"""Where answers come from: the objects that the agent has, then those of providers.

Belongs to the event loop's thread. What goes wrong in a provider is logged and becomes a refusal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager

import attrs

from qmf.agent.clock import Clock
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.providers import Handler, Item, ProvidedClass, Provider, ProviderQuery, used_names
from qmf.agent.request_errors import RequestRefused, one_line
from qmf.errors import CallerError
from qmf.protocol import ErrorCode, ObjectData, ObjectId, Predicate
from qmf.schema import ClassKey, Style

_log = logging.getLogger("qmf.agent")

#: Objects examined between two turns of the loop; about 5 ms.
SCAN = 100


@attrs.frozen(kw_only=True)
class ObjectSelection:
    """Which objects, and what of them.

    Attributes:
        class_key: their class; an empty package matches any. Without meaning where there is an id.
        object_id: the one object.
        where: predicate.
        select: names of values; empty for all.
    """

    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    where: Predicate = ()
    select: Sequence[str] = ()


class ObjectSources:
    """The objects of one agent, whoever holds them."""

    def __init__(self, store: ManagedObjectStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self._provided: list[ProvidedClass] = []

    def provide(self, cls: type[ManagedObject], handler: Provider | Handler) -> None:
        """Have a provider answer for a class.

        Raises:
            CallerError: the class has one.
        """
        provided = ProvidedClass(cls, handler)
        if any(other.prefix == provided.prefix for other in self._provided):
            raise CallerError(f"class {provided.layout.schema.name} has a provider already")
        self.store.register((provided.layout.schema,))
        self._provided.append(provided)

    def stored(self, wanted: ObjectSelection) -> list[ManagedObject]:
        """The objects that the agent has: of the class, or with the id; the predicate is not applied."""
        if wanted.object_id is not None:
            found = self.store.find(wanted.object_id)
            return [] if found is None else [found]
        if wanted.class_key is None:
            return []
        return self.store.of_class(wanted.class_key.package, wanted.class_key.name)

    def providers(self, wanted: ObjectSelection) -> list[ProvidedClass]:
        """The providers that could give what is wanted."""
        if wanted.object_id is not None:
            if not self.store.is_ours(wanted.object_id):
                return []
            return [item for item in self._provided if wanted.object_id.object_name.startswith(item.prefix)]
        key = wanted.class_key
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
            RequestRefused: its provider failed, or gives a row, on which nothing can be done.
        """
        wanted = ObjectSelection(object_id=object_id)
        for obj in self.stored(wanted):
            return obj
        for provided in self.providers(wanted):
            item = await self.look_up(provided, object_id)
            if isinstance(item, ManagedObject):
                if object_state.object_id(item) is None:
                    object_state.set_object_id(item, self.store.object_id(object_id.object_name))
                return item
            if item is not None:
                raise RequestRefused(
                    ErrorCode.NOT_IMPLEMENTED, f"{provided.where} gives rows, and rows have no methods"
                )
        return None

    async def look_up(self, provided: ProvidedClass, object_id: ObjectId) -> Item | None:
        """What a provider has under an id.

        Raises:
            RequestRefused: it failed.
        """
        with _failures(provided):
            return await provided.find(object_id)

    async def provided(
        self, provided: ProvidedClass, wanted: ObjectSelection
    ) -> AsyncGenerator[list[ObjectData], None]:
        """What a provider gives, in batches.

        Raises:
            RequestRefused: it failed.
        """
        if wanted.object_id is not None:
            item = await self.look_up(provided, wanted.object_id)
            if item is not None:
                with _failures(provided):
                    data = self._describe(provided, item)
                yield [data] if data.object_id == self.store.object_id(wanted.object_id.object_name) else []
            return
        query = ProviderQuery(class_key=provided.layout.key, where=wanted.where, select=_names(provided.layout, wanted))
        pages = provided.pages(query)
        async with aclosing(pages):
            while True:
                with _failures(provided):
                    page = await anext(pages, None)
                if page is None:
                    return
                for start in range(0, len(page), SCAN):
                    with _failures(provided):
                        batch = [self._describe(provided, item) for item in page[start : start + SCAN]]
                    yield batch
                    await asyncio.sleep(0)

    def _describe(self, provided: ProvidedClass, item: Item) -> ObjectData:
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
    """Wire names for a selection: the name of a min/max/average statistic stands for its four values."""
    names = set(select)
    for field in layout.statistics:
        if field.type.style is Style.MMA and field.name in names:
            names.update(name for name, _ in field.wire)
    return frozenset(names)


def _names(layout: ClassLayout, wanted: ObjectSelection) -> frozenset[str]:
    return expand_selection(layout, wanted.select) | used_names(wanted.where) if wanted.select else frozenset()


@contextmanager
def _failures(provided: ProvidedClass) -> Iterator[None]:
    try:
        yield
    except RequestRefused:
        raise
    except Exception as error:
        _log.error("%s failed", provided.where, exc_info=error)
        raise RequestRefused(ErrorCode.EXCEPTION, f"{provided.where} failed: {one_line(error)}", error) from error
