"""Decisions about messages: outcomes of those received, the end of those in transactions.

What happens for every message calls proton's C library (`lib`) directly, as in `deliveries.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cproton import lib

from qmf.bus.engine.link import Link
from qmf.bus.engine.native import Native, delivery_at
from qmf.bus.engine.outcomes import STATES, update
from qmf.bus.engine.transactions import DECLARED, TRANSACTIONAL, encode_state, write_state
from qmf.bus.engine.values import Outcome

_ACCEPTED = STATES[Outcome.ACCEPTED]


class Decisions:
    """Decisions about the messages of a connection.

    Attributes:
        waiting: messages that will be accepted with the next message that is sent: link and delivery tag.
    """

    def __init__(self, native: Native | None) -> None:
        """Make the decisions of an engine, which has made none yet.

        Args:
            native: the compiled functions; None to do without.
        """
        self._native = native
        self.waiting: list[tuple[Link, int]] = []

    def settle(
        self,
        link: Link,
        delivery_tag: int,
        outcome: Outcome = Outcome.ACCEPTED,
        condition: str = "",
        description: str = "",
        transaction: bytes | None = None,
    ) -> None:
        """Settle a message that was received. Does nothing when the link has ended, or the message was settled before.

        Args:
            link, delivery_tag: of `Delivery`.
            outcome: for the peer.
            condition, description: error, for a rejected message.
            transaction: id of the transaction that the message is part of.
        """
        if transaction is not None:
            self._set_transactional(link, delivery_tag, outcome, transaction, condition, description)
            if (handle := link.received.pop(delivery_tag, None)) is not None:
                lib.pn_delivery_settle(self._delivery_of(handle))
            return
        if self.waiting:
            self.accept_waiting()
        self._settle(link, delivery_tag, outcome, condition, description)

    def accept_all(self, link: Link, delivery_tags: Iterable[int], transaction: bytes | None = None) -> None:
        """Settle messages that were received as accepted, or with a transaction only accept them; see `set_outcome`."""
        if self.waiting:
            self.accept_waiting()
        self._accept(link, delivery_tags if isinstance(delivery_tags, list) else [*delivery_tags], transaction)

    def accept_later(self, link: Link, delivery_tag: int) -> None:
        """Accept a message that was received, and settle it, together with the next message that is sent.

        That or the next outcome takes place before `accept_waiting` at the latest.
        """
        self.waiting.append((link, delivery_tag))

    def accept_waiting(self) -> None:
        """Accept all messages of `accept_later` now."""
        waiting, self.waiting = self.waiting, []
        for link, delivery_tag in waiting:
            self._settle(link, delivery_tag, Outcome.ACCEPTED, "", "")

    def modify(self, link: Link, delivery_tag: int, *, failed: bool, undeliverable: bool) -> None:
        """Settle a message that was received with the outcome modified: it returns to its node.

        Args:
            link, delivery_tag: of `Delivery`.
            failed: the attempt to deliver it counts.
            undeliverable: it must not be sent on this link again.
        """
        if (handle := link.received.pop(delivery_tag, None)) is not None:
            delivery = self._delivery_of(handle)
            update(delivery, Outcome.MODIFIED, "", "", failed=failed, undeliverable=undeliverable).settle()

    def set_outcome(
        self,
        link: Link,
        delivery_tag: int,
        outcome: Outcome,
        transaction: bytes | None = None,
        condition: str = "",
        description: str = "",
        *,
        failed: bool = False,
        undeliverable: bool = False,
    ) -> None:
        """Give a message that was received an outcome without settling it.

        Within a transaction `settle` follows when that has ended. Without one, the peer settles, which
        `ConfirmedBatch` reports.

        Args:
            link, delivery_tag: of `Delivery`.
            outcome: for the peer.
            transaction: id of the transaction that the outcome is part of.
            condition, description: error, for a rejected message.
            failed, undeliverable: of a modified message, see `modify`; without a transaction.
        """
        if transaction is not None:
            self._set_transactional(link, delivery_tag, outcome, transaction, condition, description)
        elif (handle := link.received.get(delivery_tag)) is not None:
            link.confirming[handle] = delivery_tag
            delivery = self._delivery_of(handle)
            if outcome is Outcome.ACCEPTED:
                lib.pn_delivery_update(delivery, _ACCEPTED)
            else:
                update(delivery, outcome, condition, description, failed=failed, undeliverable=undeliverable)

    def accept_unsettled(self, link: Link, delivery_tags: list[int]) -> None:
        """Accept messages that were received without settling them, as `set_outcome` does: the peer settles them."""
        if self._native is not None:
            self._native.accept(link.received, delivery_tags, None, link.confirming)
            return
        for tag in delivery_tags:
            self.set_outcome(link, tag, Outcome.ACCEPTED)

    def declare(self, link: Link, delivery_tag: int, transaction: bytes) -> None:
        """Settle a message to the coordinator with the id of the transaction that it has declared."""
        if (handle := link.received.pop(delivery_tag, None)) is not None:
            delivery = self._delivery_of(handle)
            write_state(delivery, DECLARED, transaction)
            lib.pn_delivery_settle(delivery)

    def reopen_sent(self, link: Link, delivery_tag: int) -> None:
        """The outcome of a message that we sent was within a transaction that was rolled back: it has none again."""
        if (handle := link.transactional.pop(delivery_tag, None)) is not None:
            link.sent[handle] = delivery_tag

    def settle_sent(self, link: Link, delivery_tag: int, outcome: Outcome) -> None:
        """Settle a message that we sent, whose outcome was within a transaction that has ended."""
        if (handle := link.transactional.pop(delivery_tag, None)) is not None:
            delivery = self._delivery_of(handle)
            lib.pn_delivery_update(delivery, STATES[outcome])
            lib.pn_delivery_settle(delivery)

    def settle_all_sent(self, link: Link, delivery_tags: list[int]) -> None:
        """Settle messages that we sent, and that the peer has accepted, as `settle_sent` does."""
        if self._native is not None:
            self._native.accept(link.transactional, delivery_tags, None, None)
            return
        for tag in delivery_tags:
            self.settle_sent(link, tag, Outcome.ACCEPTED)

    def _delivery_of(self, handle: Any) -> Any:
        """The C object of what stands for a delivery in the dictionaries of links; see `Deliveries`."""
        return handle if self._native is None else delivery_at(handle)

    def _settle(self, link: Link, delivery_tag: int, outcome: Outcome, condition: str, description: str) -> None:
        if outcome is Outcome.ACCEPTED:
            self._accept(link, [delivery_tag])
        elif (handle := link.received.pop(delivery_tag, None)) is not None:
            update(self._delivery_of(handle), outcome, condition, description).settle()

    def _accept(self, link: Link, delivery_tags: list[int], transaction: bytes | None = None) -> None:
        if self._native is not None:
            state = None if transaction is None else encode_state(transaction, _ACCEPTED)
            self._native.accept(link.received, delivery_tags, state, None)
            return
        for tag in delivery_tags:
            if transaction is not None:
                self._set_transactional(link, tag, Outcome.ACCEPTED, transaction)
            elif (handle := link.received.pop(tag, None)) is not None:
                lib.pn_delivery_update(handle, _ACCEPTED)
                lib.pn_delivery_settle(handle)

    def _set_transactional(
        self,
        link: Link,
        delivery_tag: int,
        outcome: Outcome,
        transaction: bytes,
        condition: str = "",
        description: str = "",
    ) -> None:
        if (handle := link.received.get(delivery_tag)) is not None:
            delivery = self._delivery_of(handle)
            write_state(delivery, TRANSACTIONAL, transaction, STATES[outcome], condition, description)
