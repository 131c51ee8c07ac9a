"""The order of objects in a list: by values that a client chose, then by agent and name."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import attrs

from qmf.console.aio import ObjectId, OrderKey, RemoteObject
from qmf.schema import ClassSchema
from qmf.views.fields import fields_of

Key = tuple[Any, ...]


@attrs.frozen
class ObjectOrdering:
    """An order of objects.

    Attributes:
        fields: names of values, each with whether the greatest comes first; what is equal is ordered by agent and name.
    """

    fields: tuple[tuple[str, bool], ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> ObjectOrdering:
        """From a list with commas: names, with a minus in front if the greatest comes first."""
        items = [item.strip() for item in (text or "").split(",")]
        found = {item.removeprefix("-"): item.startswith("-") for item in items if item.strip("-")}
        return cls(tuple(found.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values."""
        return tuple(name for name, _ in self.fields)

    def place(self, obj: RemoteObject) -> list[object]:
        """What tells where an object is in the order, as JSON has it: its values, agent and name."""
        values = (obj[name] if name in obj.data.values else None for name, _ in self.fields)
        plain = (value if isinstance(value, (int, float, str)) else _text(value) for value in values)
        return [*plain, obj.agent, obj.object_id.object_name]

    def key(self, place: Sequence[object]) -> Key:
        """What places are compared by."""
        values = zip(place, self._keys, strict=False)
        return (*(key.place(value) for value, key in values), *map(str, place[len(self.fields) :]))

    @property
    def _keys(self) -> tuple[OrderKey, ...]:
        return tuple(OrderKey(name, down) for name, down in self.fields)

    def of_agents(self, schemas: Sequence[ClassSchema]) -> tuple[OrderKey, ...] | None:
        """The same order within an agent; None if agents may have another one.

        Args:
            schemas: the versions of the class that are known.
        """
        known = fields_of(*schemas)
        for name in self.names:
            field = known.get(name)
            plain = field is not None and (field.type.is_string or field.type.is_integer)
            if not plain and (field is None or field.type.name not in ("float", "double", "bool")):
                return None
        return (*self._keys, OrderKey(OrderKey.OBJECT_NAME))

    def key_of(self, obj: RemoteObject) -> Key:
        """What objects are compared by."""
        if not self.fields:
            return obj.agent, obj.object_id.object_name
        return self.key(self.place(obj))

    def first(self, objects: Sequence[RemoteObject], count: int) -> Sequence[RemoteObject]:
        """The first so many objects, in order: without ordering the rest."""
        if count >= len(objects):
            return sorted(objects, key=self.key_of)
        return heapq.nsmallest(count, objects, key=self.key_of)


def _text(value: object) -> str | None:
    if value is None:
        return None
    return value.object_name if isinstance(value, ObjectId) else str(value)
