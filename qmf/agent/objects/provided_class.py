"""A class whose objects a provider makes on demand: its items are named, read and checked here.

The key of an object is the last part of its id, made of index properties (QMF2.md 5.1).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Mapping
from contextlib import aclosing
from typing import Any
from uuid import UUID

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout, FieldLayout
from qmf.agent.layout.references import Referable, resolve
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.providers import Handler, Item, Page, Provider, ProviderQuery
from qmf.errors import CallerError, ConstraintError
from qmf.protocol import Predicate, to_wire
from qmf.protocol.values import ObjectId
from qmf.schema import QmfType, Style

_Convert = Callable[[Any], object]


class ProviderRowReader:
    """Reads the rows of one class."""

    def __init__(self, layout: ClassLayout) -> None:
        self._class_name = layout.schema.name
        self._order = [name for field in layout for name, _ in field.wire]
        self._convert: dict[str, _Convert] = {
            name: convert
            for field in layout
            for (name, base), convert in zip(field.wire, _converters(layout, field), strict=True)
        }
        self._hilos = [
            (field.name, [name for name, _ in field.wire if name != field.name])
            for field in layout.statistics
            if field.type.style is Style.HILO
        ]

    def read(self, row: Mapping[str, object]) -> dict[str, object]:
        """Values for the wire.

        Args:
            row: values by wire name. Missing values and None are absent from the answer, but high and low of a hilo
                statistic equal its value if they are missing.

        Raises:
            CallerError: the class does not have a name.
            ConstraintError: a value does not fit.
        """
        for name in row:
            if name not in self._convert:
                raise CallerError(f"a row of {self._class_name} has a value {name!r}, which the class does not have")
        values: dict[str, object] = {}
        for name in self._order:
            value = row.get(name)
            if value is not None and (converted := self._convert[name](value)) is not None:
                values[name] = converted
        for name, bounds in self._hilos:
            if name in values:
                for bound in bounds:
                    values.setdefault(bound, values[name])
        return values


def _converters(layout: ClassLayout, field: FieldLayout) -> list[_Convert]:
    if not field.direct:
        return [_converter(base, f"{layout.schema.name}.{name}") for name, base in field.wire]
    wrapper = dict(layout.wire[field.group])[field.name]

    def convert(value: object) -> object:
        checked = field.check(value)
        if isinstance(checked, Referable):
            return resolve(checked)
        return checked if wrapper is None or isinstance(checked, ObjectId) else wrapper(checked)

    return [convert]


def _converter(base: QmfType, where: str) -> _Convert:
    return lambda value: to_wire(base, value, where)


def key_of(value: object, where: str) -> str:
    """Check the key of a row.

    Raises:
        ConstraintError: it is not a string.
    """
    if isinstance(value, str):
        return value
    raise ConstraintError(where, "sstr", value, "must be a string")


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
