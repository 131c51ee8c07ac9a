"""Sessions, as programs hold them: senders, receivers, acknowledgement, transactions."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence

from qmf.messaging.addresses import Address
from qmf.messaging.aio.deliveries import ReceivedDelivery
from qmf.messaging.aio.incoming_link import IncomingLink
from qmf.messaging.aio.outgoing_link import OutgoingLink
from qmf.messaging.aio.receiver import Receiver
from qmf.messaging.aio.sender import Sender
from qmf.messaging.aio.session_core import SessionCore
from qmf.messaging.aio.transactions import Transactions
from qmf.messaging.aio.waiting import deadline_of
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.exceptions import (
    AcknowledgementUnknown,
    Empty,
    MessagingError,
    NontransactionalSession,
    Timeout,
)
from qmf.messaging.message import Disposition, Message
from qmf.messaging.resolution import drops_unknown

MessageHandler = Callable[["Session"], None]


class Session(FixedAttributes):
    """A session of a connection. Made by `Connection.session`.

    Attributes:
        name: unique in its connection.
        transactional: True if sends and acknowledgements take effect with `commit`.
    """

    __slots__ = ("_core", "name", "transactional")

    def __init__(self, core: SessionCore) -> None:
        self.name = core.name
        self.transactional = core.transactions is not None
        self._core = core
        core.endpoint = self

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._core.closed

    def check_error(self) -> None:
        """Raise why the session cannot be used, if so.

        Raises:
            SessionClosed: it was closed.
            MessagingError: it failed, or its connection did.
        """
        self._core.check()

    def get_error(self) -> MessagingError | None:
        """Why the session failed, or None."""
        return self._core.error

    def set_message_received_handler(self, handler: MessageHandler | None) -> None:
        """Call `handler` with this session whenever a message arrives; on the loop's thread, it must not block."""
        self._core.on_message = None if handler is None else functools.partial(handler, self)

    # Senders and receivers

    async def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
    ) -> Sender:
        """Open a sender.

        Args:
            target: the address.
            capacity: messages that may be sent without an answer from the broker.
            durable: of messages that do not say so themselves.
            timeout: seconds to wait for the broker. Without a wait on a connection that is not open or is detached: the
                link is opened with the connection.

        Raises:
            MalformedAddress, InvalidOption: the address is wrong, or asks for what the broker does not provide.
            NotFound, AssertionFailed, ResolutionError, UnauthorizedAccess, LinkError: the broker refused.
            Timeout: no answer in time.
            MessagingError: session or connection failed.
        """
        core = self._core
        core.check_open()
        link = OutgoingLink(core, target, capacity, durable, core.transactions)
        core.check_reliability(link)
        if core.network is not None and drops_unknown(link.address, core.network.peer.product):
            # A receiver is refused where a sender is not.
            await (await self.receiver(Address.of(link.address.name), timeout=timeout)).close()
        core.senders.append(link)
        await core.open_link(link, timeout)
        return Sender(link)

    async def receiver(self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None) -> Receiver:
        """Open a receiver.

        Args:
            source: the address.
            capacity: messages that the broker may send before they are fetched.
            timeout: seconds to wait for the broker.

        Raises:
            MessagingError: as of `sender`.
        """
        core = self._core
        core.check_open()
        link = IncomingLink(core, source, capacity, core.acknowledgements)
        core.check_reliability(link)
        core.receivers.append(link)
        await core.open_link(link, timeout)
        return Receiver(link)

    async def next_receiver(self, timeout: float | None = None) -> Receiver:
        """The receiver whose message has arrived first; its `fetch` returns at once.

        Raises:
            Empty: no message within `timeout` seconds.
            MessagingError: session or connection failed.
        """
        if not await self._core.condition.wait_for(self._has_message, deadline_of(timeout)):
            raise Empty(text="no message" + ("" if timeout is None else f" within {timeout:g} s"))
        links = [link for link in self._core.receivers if link.available()]
        receiver = min(links, key=lambda link: link.first_arrival()).endpoint
        assert isinstance(receiver, Receiver)
        return receiver

    def _has_message(self) -> bool:
        self._core.check()
        return any(link.available() for link in self._core.receivers)

    # Acknowledgement

    async def acknowledge(
        self,
        message: Message | None = None,
        disposition: Disposition | None = None,
        sync: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Report to the broker what became of fetched messages.

        Args:
            message: which one; None for all that were fetched and are not acknowledged. One that came settled, as on
                unreliable links, needs no acknowledgement: it is passed over.
            disposition: None if they were processed; else that they are rejected or released.
            sync: wait until the broker has confirmed it, if it can: qpidd and the embedded broker do. Within a
                transaction, `commit` does. Without, messages of links that are gone are passed over.
            timeout: seconds to wait for the confirmation; None for no limit.

        Raises:
            SessionError: the message was not fetched in this session, or is acknowledged already.
            AcknowledgementUnknown: of messages that were processed or are rejected: their connection was lost, or their
                receiver closed, before the broker confirmed. They may come again; the others are acknowledged, and the
                session can be used.
            Timeout: no confirmation in time; the broker may deliver the messages again.
            MessagingError: receiver, session or connection failed.
        """
        core = self._core
        core.check()
        deliveries = core.acknowledgements.take(message)
        core.settle(deliveries, disposition, confirm=sync)
        if not sync or self.transactional:
            return
        if not await core.condition.wait_for(lambda: self._is_answered(deliveries), deadline_of(timeout)):
            raise Timeout(f"acknowledgements not confirmed within {timeout:g} s")
        if lost := sum(delivery.lost for delivery in deliveries):
            raise AcknowledgementUnknown(
                text=f"{lost} of {len(deliveries)} acknowledgements in session {self.name} were not confirmed before "
                "their link was gone: these messages may come again"
            )

    def _is_answered(self, deliveries: Sequence[ReceivedDelivery]) -> bool:
        missing = next((delivery for delivery in deliveries if not (delivery.confirmed or delivery.lost)), None)
        if missing is None:
            if any(delivery.lost for delivery in deliveries):
                self._core.check()  # the reason, without reconnecting
            return True
        self._core.check()
        if (error := missing.receiver.error) is not None:
            raise error
        return False

    # Transactions

    async def commit(self, timeout: float | None = None) -> None:
        """Make everything sent and acknowledged since the last commit take effect, and begin a new transaction.

        Raises:
            NontransactionalSession: the session is not transactional.
            TransactionAborted: the transaction was rolled back, by the broker, because it did not accept a message, or
                because the connection was lost. A new one has begun.
            TransactionUnknown: the connection was lost before the broker confirmed.
            Timeout: no answer in time. If the broker had been asked to commit, the outcome is open, and the session
                cannot be used any more.
        """
        await self._needs_transactions().commit(timeout)

    async def rollback(self, timeout: float | None = None) -> None:
        """Undo everything sent and acknowledged since the last commit; fetched messages come again.

        Raises:
            NontransactionalSession: the session is not transactional.
            Timeout: no answer in time. If the broker had been asked, the session cannot be used any more.
        """
        await self._needs_transactions().rollback(timeout)

    def _needs_transactions(self) -> Transactions:
        transactions = self._core.transactions
        if transactions is None:
            raise NontransactionalSession(text=f"session {self.name} is not transactional")
        return transactions

    # Ending

    async def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything that was sent in this session.

        Raises:
            Timeout: not within `timeout` seconds.
            MessagingError: as of `Sender.sync`.
        """
        deadline = deadline_of(timeout)
        loop = asyncio.get_running_loop()
        for sender in list(self._core.senders):
            await sender.sync(None if deadline is None else max(0.0, deadline - loop.time()))

    async def close(self, timeout: float | None = None) -> None:
        """Wait until everything that was sent is answered, and close the session with its links.

        With exactly-once, acknowledgements are confirmed as well.

        A transaction that is open is rolled back, messages that are not acknowledged return to their nodes. Durable
        subscriptions stay: a receiver with the same link name, of a connection with the same container id, goes on.

        Raises:
            Timeout: the broker did not answer in time or, without `timeout`, no longer answers; the session is closed
                nevertheless.
            MessagingError: the error of an earlier message that no call has raised; the session is closed nevertheless.
        """
        await self._core.close(timeout)

    def abandon(self) -> None:
        """Close the session with its links at once."""
        self._core.abandon()


def core_of(session: Session) -> SessionCore:
    """What is behind a session, for its synchronous form."""
    return session._core
