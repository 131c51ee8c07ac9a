"""The transactions of one client: declared and discharged by messages to the coordinator (AMQP 1.0, part 4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import attrs

from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.observer import TransactionCounts
from qmf.broker.operations.grants import Publication
from qmf.broker.refusal import AmqpRefusal
from qmf.broker.transactions.transaction import Transaction, TransactionFull
from qmf.codec.message import decode_message
from qmf.codec.types import Described
from qmf.errors import DecodeError

_DECLARE = frozenset({0x31, "amqp:declare:list"})
_DISCHARGE = frozenset({0x32, "amqp:discharge:list"})

#: Transactions that a client may have open, and bytes of the messages that it has sent in them.
MAX_TRANSACTIONS = 100
MAX_TRANSACTION_BYTES = 100 * 1024 * 1024


class TransactionFailed(AmqpRefusal):
    """A request to the coordinator cannot be fulfilled."""


@attrs.frozen
class Declared:
    """A transaction was declared.

    Attributes:
        id: of the transaction.
    """

    id: bytes


#: See `Coordinator.request`.
OnDone = Callable[[Declared | TransactionFailed | None], None]


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
            raise TransactionFailed("amqp:transaction:unknown-id", f"there is no open transaction {id.hex()}")
        return transaction

    def add(self, transaction: Transaction, publication: Publication) -> None:
        """Keep a message until its transaction ends.

        Raises:
            TransactionFailed: there is no memory for it; the transaction can only be rolled back.
        """
        size, memory = len(publication.message.data), self._registry.memory
        if sum(each.size for each in self._transactions.values()) + size > MAX_TRANSACTION_BYTES:
            transaction.refused = f"the open transactions of a client may have {MAX_TRANSACTION_BYTES} bytes"
        elif memory is not None and not memory.fits(1, size):
            transaction.refused = f"Maximum depth of all queues exceeded: {memory}"
        else:
            transaction.add(publication, memory)
            return
        raise TransactionFailed("amqp:resource-limit-exceeded", transaction.refused)

    def request(self, data: bytes, counts: TransactionCounts, on_done: OnDone) -> None:
        """Carry out a message to the coordinator.

        Args:
            data: the message.
            counts: of the link that it came on; are updated.
            on_done: called once, with the transaction that was declared, or None for one that was discharged; or with
                why a transaction could not be committed: it was rolled back.

        Raises:
            TransactionFailed: the message is not understood, or names no transaction, or a queue is full.
        """
        try:
            body = decode_message(data, text=False).body
        except DecodeError as error:
            raise TransactionFailed("amqp:decode-error", str(error)) from error
        fields = body.value if isinstance(body, Described) else None
        if not isinstance(body, Described) or not isinstance(fields, list):
            raise TransactionFailed("amqp:not-implemented", "the coordinator understands declare and discharge")
        if body.descriptor in _DECLARE:
            on_done(self._declare(counts))
            return
        if body.descriptor in _DISCHARGE and fields and isinstance(fields[0], bytes):
            self._discharge(fields[0], counts, on_done, fail=len(fields) > 1 and fields[1] is True)
            return
        raise TransactionFailed("amqp:not-implemented", "the coordinator understands declare and discharge")

    def roll_back(self, ids: Iterable[bytes]) -> None:
        """Roll back those of the transactions that are open."""
        for id in ids:
            if (transaction := self._transactions.pop(id, None)) is not None:
                transaction.release(self._registry.memory)
                transaction.roll_back()
                transaction.let_go()

    def _declare(self, counts: TransactionCounts) -> Declared:
        if len(self._transactions) >= MAX_TRANSACTIONS:
            raise TransactionFailed(
                "amqp:resource-limit-exceeded", f"a client may have {MAX_TRANSACTIONS} open transactions"
            )
        id = next(self._numbers).to_bytes(8)
        self._transactions[id] = Transaction(id)
        counts.started += 1
        return Declared(id)

    def _discharge(self, id: bytes, counts: TransactionCounts, on_done: OnDone, *, fail: bool) -> None:
        transaction = self.find(id)
        del self._transactions[id]
        transaction.release(self._registry.memory)
        if fail:
            transaction.roll_back()
            transaction.let_go()
            counts.rolled_back += 1
            on_done(None)
            return

        def on_committed(error: NotStored | None) -> None:
            if error is None:
                counts.committed += 1
                on_done(None)
            else:
                counts.rolled_back += 1
                reason = f"the transaction was rolled back: cannot store: {error.reason}"
                on_done(TransactionFailed("amqp:transaction:rollback", reason))

        try:
            if transaction.refused:
                raise TransactionFull(f"a message was refused: {transaction.refused}")
            transaction.commit(self._registry, on_committed)
        except TransactionFull as error:
            transaction.roll_back()
            counts.rolled_back += 1
            raise TransactionFailed("amqp:transaction:rollback", f"the transaction was rolled back: {error}") from error
        finally:
            transaction.let_go()
