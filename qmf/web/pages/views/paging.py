"""Pages of what would be too much for a browser at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class PageOf(Generic[T]):
    """A page: its items, its number from 1, and how many pages there are."""

    items: Sequence[T]
    number: int
    pages: int


def page_of(items: Sequence[T], number: int, size: int) -> PageOf[T]:
    """Page `number` of `size` items each; the last one if there are fewer."""
    pages = max(1, -(-len(items) // size))
    number = min(max(1, number), pages)
    return PageOf(items[(number - 1) * size : number * size], number, pages)
