"""The receipts: kept by the shop in its own way, and made visible only when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from qmf.agent import ManagedObject, ProviderQuery
from qmf.agent.providers import Row

#: Receipts in a page. The agent holds no more of them than that at a time.
PAGE = 500


@attrs.frozen
class Payment:
    """What a customer paid, in cents, and when, in nanoseconds since 1970."""

    till: ManagedObject
    amount: int
    time: int


class Ledger:
    """All receipts, by number from 1; the provider of class `Receipt`."""

    def __init__(self) -> None:
        self.payments: list[Payment] = []

    def add(self, till: ManagedObject, amount: int, time: int) -> int:
        """Write a receipt; returns its number."""
        self.payments.append(Payment(till, amount, time))
        return len(self.payments)

    def pages(self, query: ProviderQuery) -> Iterator[Sequence[Row]]:
        """All receipts, page by page. The agent picks what fits the query."""
        for first in range(0, len(self.payments), PAGE):
            last = min(first + PAGE, len(self.payments))
            yield [self._row(number, query.select) for number in range(first + 1, last + 1)]

    def find(self, key: str) -> Row | None:
        """One receipt by its key, which is its number."""
        number = int(key) if key.isdecimal() else 0
        return self._row(number) if 0 < number <= len(self.payments) else None

    def _row(self, number: int, wanted: frozenset[str] = frozenset()) -> Row:
        """A receipt as key and values; those that are wanted, or all."""
        payment = self.payments[number - 1]
        values = {"number": number, "tillRef": payment.till, "amount": payment.amount, "time": payment.time}
        return str(number), {name: value for name, value in values.items() if not wanted or name in wanted}
