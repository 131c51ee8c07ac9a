"""The tills: what they do when somebody pays, and what consoles may do with them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from qmf.agent import Event, MethodError

from .models.shop.agent import DrawerFull, Shop, Till, TillClosed, TillCloseResult, TillOpened, TillRefundResult
from .receipts import Ledger

#: Codes of refusals, for programs; those of applications begin at 65536.
IS_OPEN, IS_CLOSED, NO_SUCH_RECEIPT, NOT_ENOUGH = range(65_536, 65_540)

#: Cents in a new till's drawer before it complains.
LIMIT = 100_000


class ShopTill(Till):
    """A till at work.

    Attributes:
        counting: seconds that it takes to count the drawer.
    """

    counting = 0.2

    def __init__(self, shop: Shop, number: int, ledger: Ledger, tell: Callable[[Event], None]) -> None:
        """Args:

        shop: where it stands.
        number: above it.
        ledger: where receipts go.
        tell: raises events.
        """
        super().__init__(shopRef=shop, number=number, drawerLimit=LIMIT)
        self._shop = shop
        self._ledger = ledger
        self._tell = tell

    def pay(self, amount: int, waited: int) -> int:
        """A customer pays, in cents, after having been served for so many nanoseconds; returns the receipt's number."""
        was_full = self.drawer > self.drawerLimit
        self.drawer += amount
        self.takings.inc(amount)
        self.receipts.inc()
        self.serving.sample(waited)
        if self.drawer > self.drawerLimit and not was_full:
            self._tell(DrawerFull(till=self.number, drawer=self.drawer))
        return self._ledger.add(self, amount, time.time_ns())

    # -- what consoles call

    def open(self, cashier: str) -> None:
        """See `Till.open`."""
        if self.cashier is not None:
            raise MethodError(f"{self.cashier} sits at till {self.number}", code=IS_OPEN)
        self.cashier = cashier
        self._shop.openTills += 1
        self._tell(TillOpened(till=self.number, cashier=cashier))

    async def close(self) -> TillCloseResult:
        """See `Till.close`. Counting takes its time, and other calls go on meanwhile."""
        if self.cashier is None:
            raise MethodError(f"till {self.number} is closed already", code=IS_CLOSED)
        cashier, self.cashier = self.cashier, None
        self._shop.openTills -= 1
        await asyncio.sleep(self.counting)
        counted, self.drawer = self.drawer, 0
        self._tell(TillClosed(till=self.number, cashier=cashier, drawer=counted))
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
        """Consoles may set the limit, but not below what is in the drawer."""
        if name == "drawerLimit" and isinstance(value, int) and value < self.drawer:
            raise MethodError(f"there are {self.drawer} in the drawer: empty it first")
        super()._qmf_set_property(name, value)
