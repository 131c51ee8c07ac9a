"""What a client of STOMP sends, as observers of the broker see it."""

from __future__ import annotations

from collections.abc import Hashable

from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.queues import Queue


class StompSender:
    """All that one client sends, to any destination; a `ClientLink`.

    Attributes:
        name: of the session that the broker has named to the client.
        source: what names the client.
        transfers: frames SEND so far.
        transactions: that the client has begun.
    """

    queue: Queue | None = None  #: see `ClientLink`
    exchange = None  #: see `ClientLink`
    browsing = presettled = False  #: see `ClientLink`
    target = ""  #: see `ClientLink`: each frame names its own
    session: Hashable = 0

    def __init__(self, session_id: str, container: str, transactions: TransactionCounts) -> None:
        self.name = session_id
        self.source = container
        self.transfers = 0
        self.transactions: TransactionCounts | None = transactions

    def count_unsettled(self) -> tuple[int, int]:
        """See `ClientLink`: none, the client only sends."""
        return 0, 0
