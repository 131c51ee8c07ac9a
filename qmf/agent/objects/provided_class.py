"""A class whose objects a provider makes on demand: its items are named, read and checked here.

The key of an object is the last part of its id, made of index properties (QMF2.md 5.1).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Generator
from contextlib import aclosing
from uuid import UUID

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout, FieldLayout
from qmf.agent.layout.references import resolve
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.objects.provider_rows import ProviderRowReader, key_of
from qmf.agent.providers import Handler, Item, Page, Provider, ProviderQuery
from qmf.errors import CallerError
from qmf.protocol import Predicate
from qmf.protocol.values import ObjectId


def index_key(obj: ManagedObject) -> str:
    """The index properties in schema order, joined by ``,``; a reference contributes the name of its object.

    Raises:
        CallerError: the class has no index properties, or a reference is to an object that is in no agent.
    """
    layout = object_state.layout(obj)
    if not layout.index:
        raise CallerError(f"objects of {layout.schema.name} have no index properties that could make a key")
    return ",".join(_key_part(field, object_state.value(obj, field)) for field in layout.index)


def _key_part(field: FieldLayout, value: object) -> str:
    if value is None:
        return ""
    if field.type.name == "objId":
        target = resolve(value)  # type: ignore[arg-type]  # the field's check accepts nothing else
        if target is None:
            raise CallerError(f"{field.where} is part of the key: add the object that it refers to first")
        return target.object_name
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value) if isinstance(value, (str, int, float, UUID)) else repr(value)


class ProvidedClass:
    """A class with a provider: reads the names and values of its items.

    Attributes:
        layout: of the class.
        prefix: first part of the names of its objects.
    """

    def __init__(self, cls: type[ManagedObject], handler: Provider | Handler) -> None:
        self.layout: ClassLayout = layout_of(cls)
        self.prefix = f"{self.layout.key.package}:{self.layout.key.name}:"
        self._handler = handler
        self._reader = ProviderRowReader(self.layout)

    @property
    def where(self) -> str:
        """Its name in logs and errors."""
        return f"the provider of {self.layout.schema.name}"

    async def pages(self, query: ProviderQuery) -> AsyncGenerator[Page, None]:
        """The pages of the handler, which is closed if the iteration ends early."""
        pages = self._handler.pages(query) if isinstance(self._handler, Provider) else self._handler(query)
        if isinstance(pages, AsyncIterable):
            iterator = aiter(pages)
            try:
                async for page in iterator:
                    yield page
            finally:
                if isinstance(iterator, AsyncGenerator):
                    await iterator.aclose()
        else:
            rest = iter(pages)
            try:
                for page in rest:
                    yield page
            finally:
                if isinstance(rest, Generator):
                    rest.close()

    async def find(self, object_id: ObjectId) -> Item | None:
        """The item with an id, or None."""
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
            CallerError: an object of another class, or without a key.
            ConstraintError: the key of a row is not a string.
        """
        if isinstance(item, ManagedObject):
            if object_state.layout(item) is not self.layout:
                raise CallerError(f"{item!r} is not a {self.layout.schema.name}")
            if object_state.object_id(item) is None:
                return self.prefix + index_key(item)
            return object_state.object_name(item)
        return self.prefix + key_of(item[0], f"key of {self.layout.schema.name}")

    def values(self, item: Item) -> dict[str, object]:
        """The values of an item for the wire.

        Raises:
            CallerError: a row has a name that the class does not have.
            ConstraintError: a row has a value that does not fit.
        """
        return item._qmf_values() if isinstance(item, ManagedObject) else self._reader.read(item[1])


def used_names(where: Predicate) -> frozenset[str]:
    """The names of values in a predicate."""
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
