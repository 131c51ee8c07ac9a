"""The order of objects in a list: by values that a client chose, then by agent and name."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import attrs

from qmf.console.aio import ObjectId, RemoteObject

#: Ranks of values: numbers come before texts, and what an object lacks at the end, in both directions.
_NUMBER, _TEXT, _NOTHING = 0, 1, 2

Key = tuple[Any, ...]


class _Descending:
    """A text that comes first where others come last."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.text == other.text

    def __lt__(self, other: _Descending) -> bool:
        return other.text < self.text

    def __hash__(self) -> int:
        return hash(self.text)


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
        values = zip(place, self.fields, strict=False)
        return (*(_comparable(value, down) for value, (_, down) in values), *map(str, place[len(self.fields) :]))

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


def _comparable(value: object, down: bool) -> tuple[int, Any]:
    if isinstance(value, (int, float)) and value == value:  # NaN is not equal to itself
        return _NUMBER, -value if down else value
    if isinstance(value, str):
        return _TEXT, _Descending(value) if down else value
    return _NOTHING, 0
