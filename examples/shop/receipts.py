"""The receipts: stored by the shop itself, and sent only when a console queries them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from qmf.agent import ManagedObject, ProviderQuery
from qmf.agent.providers import Row

#: Receipts in a page: the most that the agent has in memory at a time.
PAGE = 500


@attrs.frozen
class Payment:
    """A payment of a customer, in cents, with its time in nanoseconds since 1970."""

    till: ManagedObject
    amount: int
    time: int


class Ledger:
    """All receipts, by number from 1; the provider of class `Receipt`."""

    def __init__(self) -> None:
        self.payments: list[Payment] = []

    def add(self, till: ManagedObject, amount: int, time: int) -> int:
        """Add a receipt; returns its number."""
        self.payments.append(Payment(till, amount, time))
        return len(self.payments)

    def pages(self, query: ProviderQuery) -> Iterator[Sequence[Row]]:
        """All receipts, page by page. The agent selects those that match the query."""
        for first in range(0, len(self.payments), PAGE):
            last = min(first + PAGE, len(self.payments))
            yield [self._row(number, query.select) for number in range(first + 1, last + 1)]

    def find(self, key: str) -> Row | None:
        """One receipt by its key, which is its number."""
        number = int(key) if key.isdecimal() else 0
        return self._row(number) if 0 < number <= len(self.payments) else None

    def _row(self, number: int, wanted: frozenset[str] = frozenset()) -> Row:
        """The key and the values of a receipt; only the values in `wanted`, or all if that is empty."""
        payment = self.payments[number - 1]
        values = {"number": number, "tillRef": payment.till, "amount": payment.amount, "time": payment.time}
        return str(number), {name: value for name, value in values.items() if not wanted or name in wanted}
