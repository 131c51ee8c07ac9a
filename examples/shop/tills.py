"""The tills: what happens when a customer pays, and the methods that consoles call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from qmf.agent import Event, MethodError

from .models.shop.agent import DrawerFull, Shop, Till, TillClosed, TillCloseResult, TillOpened, TillRefundResult
from .receipts import Ledger

#: Error codes for programs; those of applications begin at 65536.
IS_OPEN, IS_CLOSED, NO_SUCH_RECEIPT, NOT_ENOUGH = range(65_536, 65_540)

#: Cash limit of a new till's drawer, in cents.
LIMIT = 100_000


class ShopTill(Till):
    """A till with its behaviour.

    Attributes:
        counting: seconds that counting the drawer takes.
    """

    counting = 0.2

    def __init__(self, shop: Shop, number: int, ledger: Ledger, raise_event: Callable[[Event], None]) -> None:
        """
        Args:
            shop: the shop that it belongs to.
            number: its number.
            ledger: stores receipts.
            raise_event: raises an event.
        """
        super().__init__(shopRef=shop, number=number, drawerLimit=LIMIT)
        self._shop = shop
        self._ledger = ledger
        self._raise_event = raise_event

    def pay(self, amount: int, waited: int) -> int:
        """Record a payment.

        Args:
            amount: in cents.
            waited: nanoseconds that serving the customer took.

        Returns:
            number of the receipt.
        """
        was_full = self.drawer > self.drawerLimit
        self.drawer += amount
        self.takings.inc(amount)
        self.receipts.inc()
        self.serving.sample(waited)
        if self.drawer > self.drawerLimit and not was_full:
            self._raise_event(DrawerFull(till=self.number, drawer=self.drawer))
        return self._ledger.add(self, amount, time.time_ns())

    # -- methods that consoles call

    def open(self, cashier: str) -> None:
        """See `Till.open`."""
        if self.cashier is not None:
            raise MethodError(f"{self.cashier} sits at till {self.number}", code=IS_OPEN)
        self.cashier = cashier
        self._shop.openTills += 1
        self._raise_event(TillOpened(till=self.number, cashier=cashier))

    async def close(self) -> TillCloseResult:
        """See `Till.close`. While the drawer is counted, other calls are handled."""
        if self.cashier is None:
            raise MethodError(f"till {self.number} is closed already", code=IS_CLOSED)
        cashier, self.cashier = self.cashier, None
        self._shop.openTills -= 1
        await asyncio.sleep(self.counting)
        counted, self.drawer = self.drawer, 0
        self._raise_event(TillClosed(till=self.number, cashier=cashier, drawer=counted))
        return TillCloseResult(counted=counted)

    def refund(self, receipt: int, amount: int) -> TillRefundResult:
        """See `Till.refund`."""
        if not 0 < receipt <= len(self._ledger.payments):
            raise MethodError(f"there is no receipt {receipt}", code=NO_SUCH_RECEIPT)
        paid = self._ledger.payments[receipt - 1].amount
        if amount > min(paid, self.drawer):
            raise MethodError(f"receipt {receipt} is of {paid}, and the drawer has {self.drawer}", code=NOT_ENOUGH)
        self.drawer -= amount
        self.refunds.inc(amount)
        return TillRefundResult(left=self.drawer)

    def _qmf_set_property(self, name: str, value: object) -> None:
        """Allow consoles to set the limit, but not below the cash in the drawer."""
        if name == "drawerLimit" and isinstance(value, int) and value < self.drawer:
            raise MethodError(f"there are {self.drawer} in the drawer: empty it first")
        super()._qmf_set_property(name, value)
