"""The order of objects in the answer to a query (docs/protocol.md): ours, between our own agents and consoles.

Numbers come before texts, and what an object lacks comes last, in both directions. NaN counts as lacking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs

from qmf._natural_order import natural_key
from qmf.errors import ProtocolError
from qmf.protocol.fields import sequence

#: Ranks of values.
_NUMBER, _TEXT, _NOTHING = 0, 1, 2

_DESCENDING, _NATURAL, _ANY_CASE = "desc", "natural", "any case"

#: The place of an object in an order; compared with those of the same order only.
Place = tuple[Any, ...]


@attrs.frozen
class OrderKey:
    """What objects are ordered by.

    Attributes:
        OBJECT_NAME: stands for the name of the object where others name a value.
        name: wire name of a value, or `OBJECT_NAME`.
        descending: the greatest comes first.
        natural: runs of digits in texts are compared as numbers; else texts are compared by code points.
        any_case: upper and lower case of texts are the same.
    """

    OBJECT_NAME: ClassVar[str] = "_object_name"

    name: str
    descending: bool = False
    natural: bool = False
    any_case: bool = False

    def place(self, value: object) -> tuple[int, Any]:
        """What values are compared by."""
        if isinstance(value, (int, float)) and value == value:  # NaN is not equal to itself
            return _NUMBER, -value if self.descending else value
        if isinstance(value, str):
            text = value.lower() if self.any_case else value
            key = natural_key(text) if self.natural else text
            return _TEXT, _Reversed(key) if self.descending else key
        return _NOTHING, 0


class _Reversed:
    """What comes first where others come last."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.key == other.key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)

    def __hash__(self) -> int:
        return hash(self.key)


def place_of(order: Sequence[OrderKey], value_of: Callable[[str], object]) -> Place:
    """The place of an object whose values by name `value_of` gives."""
    return tuple([key.place(value_of(key.name)) for key in order])


def order_to_list(order: Sequence[OrderKey]) -> list[list[str]]:
    """An order as a query has it: a list for each key, of its name and what is said about it."""
    return [[key.name, *_words(key)] for key in order]


def _words(key: OrderKey) -> list[str]:
    said = ((key.descending, _DESCENDING), (key.natural, _NATURAL), (key.any_case, _ANY_CASE))
    return [word for is_said, word in said if is_said]


def order_from_list(items: Sequence[object]) -> tuple[OrderKey, ...]:
    """The order of a query; words that are not known are skipped.

    Raises:
        ProtocolError: a key is no list of texts, or empty.
    """
    found = []
    for item in items:
        name, *words = sequence(item, "_order") or (None,)
        if not isinstance(name, str) or not all(isinstance(word, str) for word in words):
            raise ProtocolError("_order has a key that is not a name and words")
        found.append(OrderKey(name, _DESCENDING in words, _NATURAL in words, _ANY_CASE in words))
    return tuple(found)
