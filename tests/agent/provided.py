"""A provider of shelves, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent.warehouse import PACKAGE, Shelf, ShelfMoveResult

from qmf.agent import Agent, ObjectId, ProviderQuery
from qmf.agent.providers import Item
from qmf.schema import ClassKey

SITES = ClassKey(PACKAGE, "site")
SHELVES = ClassKey(PACKAGE, "shelf")


class Warehouse:
    """A provider of shelves that are in no agent: 1 to `count`, `size` to a page."""

    def __init__(self, count: int, size: int = 10) -> None:
        self.count = count
        self.size = size
        self.queries: list[ProviderQuery] = []
        self.looked_up: list[str] = []
        self.pages_made = 0
        self.closed = 0
        self.moved = 0

    async def pages(self, query: ProviderQuery) -> AsyncIterator[Sequence[Item]]:
        self.queries.append(query)
        try:
            for first in range(1, self.count + 1, self.size):
                await asyncio.sleep(0)
                self.pages_made += 1
                yield [self.shelf(number) for number in range(first, min(first + self.size, self.count + 1))]
        finally:
            self.closed += 1

    async def find(self, key: str) -> Shelf | None:
        self.looked_up.append(key)
        await asyncio.sleep(0)
        number = int(key.strip(","))
        return self.shelf(number) if number <= self.count else None

    def shelf(self, number: int) -> Shelf:
        warehouse = self

        class Mine(Shelf):
            def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
                warehouse.moved += items
                return ShelfMoveResult(moved=self.number, note=from_)

            def _qmf_set_property(self, name: str, value: Any) -> None:
                warehouse.moved = value

        shelf = Mine(number=number, label="even" if number % 2 == 0 else None)
        shelf.users.set(number)
        return shelf


def oid(agent: Agent, key: str, name: str = "shelf") -> ObjectId:
    return ObjectId(f"{PACKAGE}:{name}:{key}", agent.name, agent.epoch)
