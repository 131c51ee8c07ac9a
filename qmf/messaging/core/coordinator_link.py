"""The link to the broker's coordinator: declare and discharge transactions (AMQP 1.0, part 4)."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from qmf.bus.client.network_connection import LinkOwner, NetworkConnection
from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Outcome, Terminus
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message
from qmf.codec.types import Described, UInt64
from qmf.messaging.exceptions import MessagingError, TransactionAborted, TransactionError, TransactionUnknown

_DECLARE, _DISCHARGE = UInt64(0x31), UInt64(0x32)


class CoordinatorLink(LinkOwner):
    """The link of one session to the coordinator, on one connection.

    Attributes:
        transaction: id of the current transaction; None before it is declared, and while it is discharged.
        used: True if something was sent or acknowledged in it.
    """

    def __init__(self, network: NetworkConnection, session: EngineSession) -> None:
        """Ask the broker for the link; `opened` waits for the answer."""
        self.transaction: bytes | None = None
        self.used = False
        self._network = network
        loop = asyncio.get_running_loop()
        self._granted: asyncio.Future[None] = loop.create_future()
        self._answers: dict[int, asyncio.Future[bytes | None]] = {}
        self._error: MessagingError | None = None
        self._discharging = False
        self._link: Link = network.engine.links.attach(
            f"transactions-{uuid.uuid4()}",
            is_sender=True,
            terminus=Terminus(coordinator=True, capabilities=("amqp:local-transactions",)),
            session=session,
        )
        network.set_owner(self._link, self)
        network.transport.flush_soon()

    async def declare(self) -> None:
        """Begin a transaction.

        Raises:
            TransactionError: the broker has no transactions, or refused.
            TransactionAborted: the connection was lost.
        """
        await asyncio.shield(self._granted)
        self.used = False
        self.transaction = await self._send(_DECLARE, [None])

    async def end(self, *, fail: bool) -> None:
        """End the transaction, and begin the next one: both requests are sent at once.

        Args:
            fail: roll the transaction back; False commits it.

        Raises:
            TransactionAborted: the broker could not commit; it has rolled the transaction back. The next one has begun.
            TransactionUnknown: the connection was lost before the answer to a commit.
            TransactionError: the transaction has ended, but the broker refused to begin the next one.
        """
        transaction, self.transaction = self.transaction, None
        self._discharging = not fail
        try:
            discharge, declare = self._send(_DISCHARGE, [transaction, fail]), self._send(_DECLARE, [None])
            ended, begun = await asyncio.gather(discharge, declare, return_exceptions=True)
        finally:
            self._discharging = False
        if not isinstance(begun, BaseException):
            self.used = False
            self.transaction = begun
        if isinstance(ended, BaseException):
            raise ended
        # After a commit was confirmed, a lost connection is nothing that its caller has to know of.
        if isinstance(begun, BaseException) and not isinstance(begun, TransactionUnknown):
            raise begun

    def lose(self) -> None:
        """The connection is gone."""
        kind = TransactionUnknown if self._discharging else TransactionAborted
        self._fail(kind(text="the connection was lost during a transaction"))

    def _send(self, descriptor: UInt64, fields: list[object]) -> asyncio.Future[bytes | None]:
        """Send a request; the future gets the id of a declared transaction, or the error."""
        if self._error is not None:
            raise self._error
        data = encode_message(AmqpMessage(section=Section.VALUE, body=Described(descriptor, fields)))
        tag = self._network.engine.deliveries.send(self._link, data)
        self._network.transport.flush_soon()
        answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._answers[tag] = answer
        return answer

    def _fail(self, error: MessagingError) -> None:
        self._error = self._error or error
        waiters: list[asyncio.Future[Any]] = [self._granted, *self._answers.values()]
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
        if self._granted.done() and not self._granted.cancelled():
            self._granted.exception()
        self._answers.clear()

    # LinkOwner

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        if not self._granted.done() and self._network.engine.links.credit(self._link) > 0:
            self._granted.set_result(None)

    def on_detached(self, condition: str, description: str) -> None:
        """See `LinkOwner`."""
        text = "transactions refused by the broker" + (f": {description}" if description else "")
        self._fail(TransactionError(condition or None, text))

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`."""
        answer = self._answers.pop(settled.delivery_tag, None)
        if answer is None or answer.done():
            return
        if settled.outcome is Outcome.ACCEPTED:
            answer.set_result(settled.transaction)
        else:
            text = settled.description or f"the broker {settled.outcome.value} the transaction"
            answer.set_exception(TransactionAborted(settled.condition or None, text))
