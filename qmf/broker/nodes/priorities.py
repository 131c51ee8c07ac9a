"""Queues with priorities: higher ones are delivered first, where fairshare doesn't give the lower ones their turn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.orders import FifoOrder, Order

#: Levels of priority that a queue may have.
MAX_LEVELS = 10


class PriorityOrder(Order):
    """By level, within a level first in, first out.

    AMQP has ten priorities; with fewer levels, the priorities around 4, the usual one, are told apart, and what is
    above or below them shares the highest or the lowest level (AMQP 0-10, rule priority-level-implementation).

    With fairshare, a level gives way to the next lower one after a number of deliveries in a row, and the lowest one to
    the highest.
    """

    def __init__(self, levels: int, fairshare: int = 0, shares: Mapping[int, int] | None = None) -> None:
        """Make the order of an empty queue.

        Args:
            levels: number of levels, 1 to 10.
            fairshare: deliveries in a row from one level while others wait; 0 for any number.
            shares: the same for single levels.
        """
        self._levels = [FifoOrder() for _ in range(levels)]
        self._lowest = 5 - min(5, math.ceil(levels / 2))
        self._shares = [(shares or {}).get(level, fairshare) for level in range(levels)]
        self._fair = any(self._shares)
        self._turn = levels - 1
        self._delivered = 0

    def level(self, priority: int) -> int:
        """The level of a priority."""
        return 0 if priority <= self._lowest else min(priority - self._lowest, len(self._levels) - 1)

    def add(self, entry: Entry) -> None:
        """See `Order`: nothing is replaced."""
        self._level_of(entry).add(entry)

    def restore(self, entry: Entry) -> bool:
        return self._level_of(entry).restore(entry)

    def take(self, entry: Entry) -> None:
        self._level_of(entry).take(entry)

    def on_delivered(self, entry: Entry) -> None:
        level = self.level(entry.message.priority)
        self._delivered = self._delivered + 1 if level == self._turn else 1
        self._turn = level

    def first(self) -> Entry | None:
        for level in self._sequence():
            if (entry := level.first()) is not None:
                return entry
        return None

    def oldest(self) -> Entry | None:
        """See `Order`: that of the lowest level."""
        for level in self._levels:
            if (entry := level.first()) is not None:
                return entry
        return None

    def __iter__(self) -> Iterator[Entry]:
        for level in self._sequence():
            yield from level

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def _level_of(self, entry: Entry) -> FifoOrder:
        return self._levels[self.level(entry.message.priority)]

    def _sequence(self) -> list[FifoOrder]:
        """The levels in the order in which they have their turns."""
        levels = self._levels
        if not self._fair:
            return levels[::-1]
        share = self._shares[self._turn]
        start = self._turn - 1 if share and self._delivered >= share else self._turn
        return [levels[(start - step) % len(levels)] for step in range(len(levels))]
