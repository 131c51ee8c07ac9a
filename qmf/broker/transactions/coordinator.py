"""The transactions of one client."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.grants import Publication
from qmf.broker.refusal import Reason, Refusal
from qmf.broker.transactions.transaction import Transaction, TransactionFull

#: Transactions that a client may have open, and bytes of the messages that it has sent in them.
MAX_TRANSACTIONS = 100
MAX_TRANSACTION_BYTES = 100 * 1024 * 1024


class TransactionFailed(Exception):
    """Something in a transaction cannot be done."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal)


class Coordinator:
    """The transactions of one client."""

    def __init__(self, registry: NodeRegistry) -> None:
        self._registry = registry
        self._transactions: dict[bytes, Transaction] = {}
        self._numbers = itertools.count(1)

    def find(self, id: bytes) -> Transaction:
        """An open transaction.

        Raises:
            TransactionFailed: no transaction has that id.
        """
        transaction = self._transactions.get(id)
        if transaction is None:
            raise TransactionFailed(Refusal(Reason.UNKNOWN_TRANSACTION, f"there is no open transaction {id.hex()}"))
        return transaction

    def add(self, transaction: Transaction, publication: Publication) -> None:
        """Keep a message until its transaction ends.

        Raises:
            TransactionFailed: there is no memory for it; the transaction can only be rolled back.
        """
        size, depth = len(publication.message.data), self._registry.depth
        if sum(each.size for each in self._transactions.values()) + size > MAX_TRANSACTION_BYTES:
            transaction.refused = f"the open transactions of a client may have {MAX_TRANSACTION_BYTES} bytes"
        elif depth is not None and not depth.fits(1, size):
            transaction.refused = f"Maximum depth of all queues exceeded: {depth}"
        else:
            transaction.add(publication, depth)
            return
        raise TransactionFailed(Refusal(Reason.FULL, transaction.refused))

    def declare(self, counts: TransactionCounts) -> bytes:
        """Begin a transaction; returns its id.

        Args:
            counts: of the link that asks for it; are updated.

        Raises:
            TransactionFailed: too many are open.
        """
        if len(self._transactions) >= MAX_TRANSACTIONS:
            raise TransactionFailed(Refusal(Reason.FULL, f"a client may have {MAX_TRANSACTIONS} open transactions"))
        id = next(self._numbers).to_bytes(8)
        self._transactions[id] = Transaction(id)
        counts.started += 1
        return id

    def discharge(
        self, id: bytes, counts: TransactionCounts, on_done: Callable[[Refusal | None], None], *, fail: bool
    ) -> None:
        """End a transaction.

        Args:
            counts: of the link that asks for it; are updated.
            on_done: called once: with None, or with why the transaction could not be committed: it was rolled back.
            fail: roll it back.

        Raises:
            TransactionFailed: no open transaction has that id.
        """
        transaction = self.find(id)
        del self._transactions[id]
        transaction.release(self._registry.depth)
        if fail:
            transaction.roll_back()
            transaction.let_go()
            counts.rolled_back += 1
            on_done(None)
            return

        def on_failed(reason: str) -> None:
            counts.rolled_back += 1
            on_done(Refusal(Reason.ROLLED_BACK, f"the transaction was rolled back: {reason}"))

        def on_committed(error: NotStored | None) -> None:
            if error is None:
                counts.committed += 1
                on_done(None)
            else:
                on_failed(f"cannot store: {error.reason}")

        try:
            if transaction.refused:
                raise TransactionFull(f"a message was refused: {transaction.refused}")
            transaction.commit(self._registry, on_committed)
        except TransactionFull as error:
            transaction.roll_back()
            on_failed(str(error))
        finally:
            transaction.let_go()

    def roll_back(self, ids: Iterable[bytes]) -> None:
        """Roll back those of the transactions that are open."""
        for id in ids:
            if (transaction := self._transactions.pop(id, None)) is not None:
                transaction.release(self._registry.depth)
                transaction.roll_back()
                transaction.let_go()
