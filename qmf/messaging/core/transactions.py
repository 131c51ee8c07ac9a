"""Transactions: what is sent and acknowledged in a session takes effect together, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Outcome
from qmf.messaging.core.acknowledgement import Acknowledgements, outcome_of, reason_of
from qmf.messaging.core.coordinator_link import CoordinatorLink
from qmf.messaging.core.deliveries import ReceivedDelivery
from qmf.messaging.core.incoming_link import IncomingLink
from qmf.messaging.core.outgoing_link import OutgoingLink
from qmf.messaging.core.waiting import Condition, deadline_of
from qmf.messaging.exceptions import MessagingError, Timeout, TransactionAborted, TransactionUnknown
from qmf.messaging.message import Disposition


class TransactionalSession(Protocol):
    """What transactions need of their session."""

    name: str
    condition: Condition

    @property
    def senders(self) -> Sequence[OutgoingLink]:
        """Those that are open."""

    @property
    def receivers(self) -> Sequence[IncomingLink]:
        """Those that are open."""

    def check(self) -> None:
        """Raise why the session cannot be used."""

    def fail(self, error: MessagingError) -> None:
        """The session cannot be used any more."""


class Transactions:
    """The transactions of a session, one after the other, over reconnects."""

    def __init__(self, session: TransactionalSession, acknowledgements: Acknowledgements) -> None:
        self._session = session
        self._acknowledgements = acknowledgements
        self._coordinator: CoordinatorLink | None = None
        #: A message of the current transaction was refused, or the connection was lost: it cannot be committed.
        self._aborted: MessagingError | None = None
        #: Acknowledged in the current transaction.
        self._acknowledged: list[ReceivedDelivery] = []

    # For senders and acknowledgement

    @property
    def current(self) -> bytes | None:
        """See `SenderTransactions`."""
        return self._coordinator.transaction if self._coordinator is not None else None

    def on_sent(self) -> None:
        """See `SenderTransactions`."""
        if self._coordinator is not None:
            self._coordinator.used = True

    def on_failed(self, error: MessagingError) -> None:
        """See `SenderTransactions`."""
        if self._aborted is None:
            self._aborted = error

    def acknowledge(self, deliveries: Iterable[ReceivedDelivery], disposition: Disposition | None) -> None:
        """Report what became of messages, as part of the current transaction."""
        live = []
        for delivery in deliveries:
            if not delivery.stale:
                if delivery.delivery_tag is not None:
                    live.append(delivery)
            elif outcome_of(disposition) is not Outcome.RELEASED:
                self.on_failed(TransactionAborted(text="the link of an acknowledged message is gone: it comes again"))
        self._acknowledged += live
        if not live or self._coordinator is None or (transaction := self._coordinator.transaction) is None:
            return
        self._coordinator.used = True
        if disposition is None:
            ReceivedDelivery.accept_all(live, transaction)
            return
        for delivery in live:
            delivery.update(outcome_of(disposition), transaction, *reason_of(disposition))

    # For the connection

    async def begin(self, network: NetworkConnection, session: EngineSession) -> None:
        """Begin a transaction on a new connection.

        Raises:
            TransactionError: the broker has no transactions.
        """
        self._coordinator = CoordinatorLink(network, session)
        await self._coordinator.declare()

    def lose(self) -> MessagingError | None:
        """The connection is gone. A transaction that was open is aborted: nothing of it is sent again.

        Returns:
            the error of the transaction that was aborted by that, or None.
        """
        self._acknowledged.clear()
        if self._coordinator is None:
            return None
        self._coordinator.lose()
        used, self._coordinator = self._coordinator.used, None
        if used and self._aborted is None:
            self._aborted = TransactionAborted(text="the connection was lost")
            for sender in self._session.senders:
                sender.drop(self._aborted)
            return self._aborted
        return None

    # For the program

    async def commit(self, timeout: float | None) -> None:
        """See `Session.commit`."""
        await self._end("commit", self._commit, timeout)

    async def rollback(self, timeout: float | None) -> None:
        """See `Session.rollback`."""
        await self._end("rollback", self._roll_back, timeout)
        self._aborted = None

    async def _end(
        self, operation: str, end: Callable[[CoordinatorLink], Awaitable[None]], timeout: float | None
    ) -> None:
        coordinator = await self._wait_for_coordinator(timeout)
        try:
            async with asyncio.timeout(timeout):
                await self._session.condition.wait_for(self._is_flushed)
                await end(coordinator)
        except TimeoutError:
            self._give_up(coordinator, operation)
            raise Timeout(f"no answer to {operation} within {timeout:g} s") from None
        except asyncio.CancelledError:
            self._give_up(coordinator, operation)
            raise

    def _give_up(self, coordinator: CoordinatorLink, operation: str) -> None:
        """Nobody waits for the broker's answer any more: if there is no transaction, the session has none to go on."""
        if coordinator is self._coordinator and coordinator.transaction is None:
            name = self._session.name
            self._session.fail(TransactionUnknown(text=f"the broker has not answered {operation} of session {name}"))

    async def _wait_for_coordinator(self, timeout: float | None) -> CoordinatorLink:
        """The coordinator, once a transaction has begun."""
        if not await self._session.condition.wait_for(self._is_in_transaction, deadline_of(timeout)):
            raise Timeout(f"no transaction within {timeout:g} s")
        assert self._coordinator is not None
        return self._coordinator

    def _is_in_transaction(self) -> bool:
        self._session.check()
        return self.current is not None

    def _is_flushed(self) -> bool:
        self._session.check()
        return not any(sender.count_unsettled() for sender in self._session.senders)

    async def _commit(self, coordinator: CoordinatorLink) -> None:
        if self._aborted is not None:
            await self._roll_back(coordinator)
            error, self._aborted = self._aborted, None
            raise TransactionAborted(error.code, f"the transaction was rolled back: {error}") from error
        try:
            await coordinator.end(fail=False)
        except TransactionAborted:
            self._return_all()
            self._send_waiting()
            raise
        acknowledged, self._acknowledged = self._acknowledged, []
        ReceivedDelivery.accept_all(acknowledged)
        self._send_waiting()

    async def _roll_back(self, coordinator: CoordinatorLink) -> None:
        with contextlib.suppress(TransactionAborted):  # it is rolled back then, as wanted
            await coordinator.end(fail=True)
        self._return_all()
        self._send_waiting()

    def _send_waiting(self) -> None:
        """Send, in the transaction that has begun, what was posted meanwhile."""
        for sender in self._session.senders:
            sender.on_credit()

    def _return_all(self) -> None:
        """Return fetched and waiting messages to their nodes, in their order."""
        for delivery in self._acknowledged:
            delivery.modify(failed=True)
        self._acknowledged.clear()
        self._acknowledgements.release()
        for receiver in self._session.receivers:
            receiver.release()
            receiver.grant()
