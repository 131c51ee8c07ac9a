"""Providers: objects that are made on demand, so that a class of a million things need not have a million objects.

A handler gets a query and gives pages of objects or of plain rows. The agent checks, filters and selects the items, and
sends them batch by batch as pages arrive; it keeps no more than a page and a message. A handler may apply the query
itself, which makes it faster; it need not.

Provided objects are never published; subscriptions ask their provider at each interval.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from qmf.agent.model.managed_object import ManagedObject
from qmf.protocol import Predicate
from qmf.protocol.values import ObjectId
from qmf.schema import ClassKey

#: A plain row: the key, and the values by wire name (``usersHigh`` and so on included).
Row: TypeAlias = tuple[str, Mapping[str, object]]

#: One object of a provider: a managed object or a row.
Item: TypeAlias = ManagedObject | Row
Page: TypeAlias = Sequence[Item]
Pages: TypeAlias = Iterable[Page] | AsyncIterable[Page]


@attrs.frozen(kw_only=True)
class ProviderQuery:
    """A query for the objects of a provider.

    Attributes:
        class_key: the provided class.
        object_id: the id of the queried object, or None for all.
        key: last part of that id, after ``package:class:``; None for all.
        where: predicate in wire form, empty for all. The agent applies it in any case.
        select: wire names of the values that are needed for the answer or for `where`; empty for all.
    """

    class_key: ClassKey
    object_id: ObjectId | None = None
    key: str | None = None
    where: Predicate = ()
    select: frozenset[str] = frozenset()


@runtime_checkable
class Provider(Protocol):
    """Provides the objects of a class. Methods run on the event loop's thread: they must not block, but may await."""

    def pages(self, query: ProviderQuery) -> Pages:
        """All objects of the query, in pages of any size. Closed early if the console is gone."""

    def find(self, key: str) -> Item | Awaitable[Item | None] | None:
        """The object with a key, or None. Methods can be called on managed objects, not on rows."""


#: A function in place of a provider: single objects are looked up through it, too.
Handler: TypeAlias = Callable[[ProviderQuery], Pages]
