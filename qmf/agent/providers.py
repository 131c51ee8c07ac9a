"""Providers: objects that are made when somebody asks, so that a class of a million things costs no million objects.

A handler gets a query and gives pages of objects or of plain rows. The agent checks, filters and selects what comes,
and sends it part by part as pages arrive; it keeps no more than a page and a message. What a handler narrows down
itself is a matter of speed only.

ProvidedClass objects are never published by themselves; subscriptions ask their provider at each interval.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.objects.object_keys import index_key
from qmf.agent.objects.rows import RowReader, key_of
from qmf.errors import CallerError
from qmf.protocol import Predicate
from qmf.protocol.values import ObjectId
from qmf.schema import ClassKey

#: One thing: a managed object, or its key and its values by wire name (``usersHigh`` and so on included).
Row: TypeAlias = tuple[str, Mapping[str, object]]
Item: TypeAlias = ManagedObject | Row
Page: TypeAlias = Sequence[Item]
Pages: TypeAlias = Iterable[Page] | AsyncIterable[Page]


@attrs.frozen(kw_only=True)
class ProviderQuery:
    """What is asked of a provider.

    Attributes:
        class_key: the class that it provides.
        object_id: the one object that is asked for, or None for all.
        key: last part of its id, after ``package:class:``; None for all.
        where: predicate in wire form, empty for all. The agent applies it in any case.
        select: wire names of the values that are used, for the answer or by `where`; empty for all.
    """

    class_key: ClassKey
    object_id: ObjectId | None = None
    key: str | None = None
    where: Predicate = ()
    select: frozenset[str] = frozenset()


@runtime_checkable
class Provider(Protocol):
    """What answers for a class. Methods are called on the event loop's thread: they must not block, but may await."""

    def pages(self, query: ProviderQuery) -> Pages:
        """Everything that fits, in pages of any size. Closed early when the console is gone."""

    def find(self, key: str) -> Item | Awaitable[Item | None] | None:
        """One thing by its key, or None. Methods can be called on it if it is an object."""


#: A function that can take the place of a provider: single things are looked up through it, too.
Handler: TypeAlias = Callable[[ProviderQuery], Pages]


class ProvidedClass:
    """A provider, and how to read what it gives.

    Attributes:
        layout: of the class provided.
        prefix: what the names of its objects begin with.
    """

    def __init__(self, cls: type[ManagedObject], handler: Provider | Handler) -> None:
        self.layout: ClassLayout = layout_of(cls)
        self.prefix = f"{self.layout.key.package}:{self.layout.key.name}:"
        self._handler = handler
        self._reader = RowReader(self.layout)

    @property
    def where(self) -> str:
        """What it is, for logs and refusals."""
        return f"the provider of {self.layout.schema.name}"

    async def pages(self, query: ProviderQuery) -> AsyncGenerator[Page, None]:
        """The pages that the handler gives; closes it when left early."""
        pages = self._handler.pages(query) if isinstance(self._handler, Provider) else self._handler(query)
        if isinstance(pages, AsyncIterable):
            later = aiter(pages)
            try:
                async for page in later:
                    yield page
            finally:
                if isinstance(later, AsyncGenerator):
                    await later.aclose()
        else:
            rest = iter(pages)
            try:
                for page in rest:
                    yield page
            finally:
                if isinstance(rest, Generator):
                    rest.close()

    async def find(self, object_id: ObjectId) -> Item | None:
        """One thing by its id, or None."""
        key = object_id.object_name.removeprefix(self.prefix)
        if isinstance(self._handler, Provider):
            found = self._handler.find(key)
            return await found if inspect.isawaitable(found) else found
        query = ProviderQuery(class_key=self.layout.key, object_id=object_id, key=key)
        async with aclosing(self.pages(query)) as pages:
            async for page in pages:
                for item in page:
                    if self.name(item) == object_id.object_name:
                        return item
        return None

    def name(self, item: Item) -> str:
        """The object name of an item.

        Raises:
            CallerError: an object of another class, or one whose key is not known.
            ConstraintError: the key of a row is no text.
        """
        if isinstance(item, ManagedObject):
            if object_state.layout(item) is not self.layout:
                raise CallerError(f"{item!r} is no {self.layout.schema.name}")
            if object_state.object_id(item) is None:
                return self.prefix + index_key(item)
            return object_state.object_name(item)
        return self.prefix + key_of(item[0], f"key of {self.layout.schema.name}")

    def values(self, item: Item) -> dict[str, object]:
        """The values of an item for the wire.

        Raises:
            CallerError: a row with a name that the class has not.
            ConstraintError: a row with a value that does not fit.
        """
        return item._qmf_values() if isinstance(item, ManagedObject) else self._reader.read(item[1])


def used_names(where: Predicate) -> frozenset[str]:
    """The names of values that a predicate uses."""
    found: set[str] = set()
    _collect(where, found)
    return frozenset(found)


def _collect(node: object, found: set[str]) -> None:
    if isinstance(node, (list, tuple)) and node and node[0] != "quote":
        for operand in node[1:]:
            if isinstance(operand, str):
                found.add(operand)
            else:
                _collect(operand, found)
