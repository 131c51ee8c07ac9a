"""Dead letters: messages that were not forwarded, moved to a queue with the reason, in one unit of the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.relay_addresses import RELAY_ENDED, RELAY_REASON, RELAY_TO, relay_annotations
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.transactions.transaction import TakenEntry, Transaction, TransactionFull


class DeadLetters:
    """Moves messages to the queue for dead letters."""

    def __init__(
        self, operations: Operations, principal: Principal, name: str, on_moved: Callable[[str, str], None]
    ) -> None:
        """Make what moves messages.

        Args:
            principal: on whose behalf.
            name: of the queue for dead letters.
            on_moved: called with the address of each message that was moved, and the reason.
        """
        self.count = 0
        self._registry = operations.registry
        self._publisher = operations.publisher(principal)
        self._name = name
        self._on_moved = on_moved

    def give_up(
        self,
        source: Queue,
        letters: Sequence[tuple[Entry, str]],
        on_kept: Callable[[Sequence[Entry], str], None],
    ) -> None:
        """Move messages that are acquired.

        Args:
            source: where they are.
            letters: entries, each with its reason.
            on_kept: called with those that cannot be moved, which stay acquired, and why.
        """
        entries = [entry for entry, _ in letters]
        target = self._registry.queue(self._name)
        if target is None:
            on_kept(entries, f"queue {self._name!r} for dead letters is missing")
            return
        transaction = Transaction(b"")
        kept: list[Entry] = []
        now = round(time.time() * 1000)
        try:
            for entry, reason in letters:
                message = entry.message.with_annotation(RELAY_REASON, reason).with_annotation(RELAY_ENDED, now)
                transaction.sent.append(self._publisher.admit(target, message))
                transaction.acquisitions.append(TakenEntry(source, entry, kept.append))
        except OperationRefused as error:
            on_kept(entries, str(error))
            return

        def finish(error: NotStored | None) -> None:
            if error is not None:
                on_kept(kept, f"dead letters cannot be stored: {error.reason}")
                return
            for entry, reason in letters:
                self.count += 1
                self._on_moved(address_of(entry.message), reason)

        try:
            transaction.commit(self._registry, finish)
        except TransactionFull as error:
            on_kept(entries, f"dead letters: {error}")


def address_of(message: Message) -> str:
    """The address to which a message was to be relayed; empty if it has none."""
    return str(relay_annotations(message).get(RELAY_TO, ""))
