"""Links to the coordinator, on which a client declares and discharges its transactions."""

from __future__ import annotations

from collections.abc import Hashable

from qmf.broker.observer import TransactionCounts
from qmf.bus.engine.link import Link

#: The target of such a link as management shows it, which is qpidd's name for it.
COORDINATOR = "txn-ctrl"


class CoordinatorLink:
    """A link to the coordinator; a `ClientLink` for observers.

    Attributes:
        link: the engine's.
        transfers: requests received.
        transactions: see `ClientLink`.
        owned: the open transactions that were declared on the link; some of them may have been discharged on another.
    """

    source, target = "", COORDINATOR  #: see `ClientLink`
    queue = exchange = None  #: see `ClientLink`
    browsing = presettled = False  #: see `ClientLink`

    def __init__(self, link: Link) -> None:
        self.link = link
        self.transfers = 0
        self.transactions = TransactionCounts()
        self.owned: set[bytes] = set()

    @property
    def name(self) -> str:
        """See `ClientLink`."""
        return self.link.name

    @property
    def session(self) -> Hashable:
        """See `ClientLink`."""
        return self.link.session_id

    def unsettled(self) -> tuple[int, int]:
        """See `ClientLink`: none, the client only sends."""
        return 0, 0
