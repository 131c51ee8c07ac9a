"""Sessions: senders, receivers, acknowledgement, transactions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from qmf.bus.engine.session import EngineSession
from qmf.messaging.addresses import Address
from qmf.messaging.aio.acknowledgement import Acknowledgements, settle
from qmf.messaging.aio.deliveries import ReceivedDelivery
from qmf.messaging.aio.driver import Driver
from qmf.messaging.aio.endpoint import Endpoint
from qmf.messaging.aio.receiver import Receiver
from qmf.messaging.aio.sender import Sender
from qmf.messaging.aio.transactions import Transactions
from qmf.messaging.aio.waiting import Condition, deadline_of
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.exceptions import (
    AcknowledgementUnknown,
    Empty,
    InvalidOption,
    MessagingError,
    NontransactionalSession,
    ServerError,
    SessionClosed,
    Timeout,
    UnauthorizedAccess,
)
from qmf.messaging.message import Disposition, Message
from qmf.messaging.resolution import drops_unknown

log = logging.getLogger("qmf.messaging")

MessageHandler = Callable[["Session"], None]


class SessionConnection(Protocol):
    """What a session needs of its connection."""

    condition: Condition

    @property
    def detached(self) -> bool:
        """True before the connection is opened, and after it was detached."""

    def attached(self) -> bool:
        """True while there is a network connection; it has not failed then."""

    def check_error(self) -> None:
        """Raise why the connection failed."""

    def check(self) -> None:
        """Raise why the connection cannot be used."""

    def report(self, endpoint: object, error: MessagingError) -> None:
        """Pass an error that no call waits for to the program's handler."""

    def forget(self, session: Session) -> None:
        """The session is closed."""


class Session(FixedAttributes):
    """A session of a connection. Made by `Connection.session`.

    Attributes:
        name: unique in its connection.
        transactional: True if sends and acknowledgements take effect with `commit`.
        error: why it failed, or None.
        senders, receivers: those that are open.
    """

    __slots__ = (
        "_acknowledgements",
        "_closed",
        "_connection",
        "_driver",
        "_on_message",
        "_session",
        "_transactions",
        "condition",
        "error",
        "name",
        "receivers",
        "senders",
        "transactional",
    )

    def __init__(self, connection: SessionConnection, name: str, *, transactional: bool) -> None:
        self.name = name
        self.transactional = transactional
        self.condition = connection.condition
        self.error: MessagingError | None = None
        self.senders: list[Sender] = []
        self.receivers: list[Receiver] = []
        self._connection = connection
        self._driver: Driver | None = None
        self._session: EngineSession | None = None
        self._acknowledgements = Acknowledgements(name)
        self._transactions = Transactions(self, self._acknowledgements) if transactional else None
        self._closed = False
        self._on_message: MessageHandler | None = None

    def __repr__(self) -> str:
        return f"<Session {self.name}>"

    # State

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def check(self) -> None:
        """Raise why the session cannot be used.

        Raises:
            SessionClosed: it was closed.
            MessagingError: it failed, or its connection did.
        """
        if self.error is not None or self._closed or not self._connection.attached():
            self._check_open()
            self._connection.check()

    def report(self, endpoint: object, error: MessagingError) -> None:
        """See `EndpointSession`."""
        self._connection.report(endpoint, error)

    def set_message_received_handler(self, handler: MessageHandler | None) -> None:
        """Call `handler` with this session whenever a message arrives; on the loop's thread, it must not block."""
        self._on_message = handler

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
        self._check_open()
        sender = Sender(self, target, capacity, durable, self._transactions)
        self._check_reliability(sender)
        if self._driver is not None and drops_unknown(sender.address, self._driver.product):
            # A receiver is refused where a sender is not.
            await (await self.receiver(Address.of(sender.address.name), timeout=timeout)).close()
        self.senders.append(sender)
        await self._open(sender, timeout)
        return sender

    async def receiver(self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None) -> Receiver:
        """Open a receiver.

        Args:
            source: the address.
            capacity: messages that the broker may send before they are fetched.
            timeout: seconds to wait for the broker.

        Raises:
            MessagingError: as of `sender`.
        """
        self._check_open()
        receiver = Receiver(self, source, capacity, self._acknowledgements)
        self._check_reliability(receiver)
        self.receivers.append(receiver)
        await self._open(receiver, timeout)
        return receiver

    @property
    def failed(self) -> bool:
        """See `EndpointSession`."""
        return self.error is not None or self._closed

    def _check_open(self) -> None:
        """Raise why no link can be made; a connection that is not open is no reason."""
        if self.error is not None:
            raise self.error
        self._connection.check_error()
        if self._closed:
            raise SessionClosed(text=f"session {self.name} is closed")

    def _check_reliability(self, endpoint: Endpoint) -> None:
        if endpoint.resumable and self.transactional:
            option = "link.reliability: exactly-once"
            raise InvalidOption(text=f"address {str(endpoint.address)!r}, {option} is not possible in a transaction")

    async def _open(self, endpoint: Sender | Receiver, timeout: float | None) -> None:
        if self._connection.detached:
            return
        try:
            if self._driver is not None and self._session is not None:
                endpoint.attach(self._driver, self._session)
            deadline = deadline_of(timeout)
            if not await self.condition.wait_for(lambda: self._is_open(endpoint), deadline):
                raise Timeout(f"no answer to the link to {endpoint.address.name!r} within {timeout:g} s")
        except BaseException:
            endpoint.detach()
            raise

    def _is_open(self, endpoint: Endpoint) -> bool:
        if endpoint.error is not None:
            raise endpoint.error
        self.check()
        return not endpoint.attaching

    def forget(self, endpoint: object) -> None:
        """See `EndpointSession`."""
        self.senders = [item for item in self.senders if item is not endpoint]
        self.receivers = [item for item in self.receivers if item is not endpoint]

    async def next_receiver(self, timeout: float | None = None) -> Receiver:
        """The receiver whose message has arrived first; its `fetch` returns at once.

        Raises:
            Empty: no message within `timeout` seconds.
            MessagingError: session or connection failed.
        """
        if not await self.condition.wait_for(self._has_message, deadline_of(timeout)):
            raise Empty(text="no message" + ("" if timeout is None else f" within {timeout:g} s"))
        return self.first_receiver()

    def _has_message(self) -> bool:
        self.check()
        return any(receiver.available() for receiver in self.receivers)

    def first_receiver(self) -> Receiver:
        """The receiver whose message has arrived first, of those that have one."""
        return min((item for item in self.receivers if item.available()), key=lambda item: item.first_arrival())

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
        self.check()
        deliveries = self.take_unacknowledged(message)
        self.settle(deliveries, disposition, confirm=sync)
        if not sync or self.transactional:
            return
        if not await self.condition.wait_for(lambda: self._is_answered(deliveries), deadline_of(timeout)):
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
                self.check()  # the reason, without reconnecting
            return True
        self.check()
        if (error := missing.receiver.error) is not None:
            raise error
        return False

    def take_unacknowledged(self, message: Message | None) -> list[ReceivedDelivery]:
        """The deliveries to acknowledge; see `Acknowledgements.take`."""
        return self._acknowledgements.take(message)

    def settle(self, deliveries: Iterable[ReceivedDelivery], disposition: Disposition | None, *, confirm: bool) -> None:
        """Report what became of messages, in the current transaction or at once; see `acknowledgement.settle`."""
        if self._transactions is not None:
            self._transactions.acknowledge(deliveries, disposition)
        else:
            settle(deliveries, disposition, confirm=confirm)

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
        if self._transactions is None:
            raise NontransactionalSession(text=f"session {self.name} is not transactional")
        return self._transactions

    # Ending

    async def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything that was sent in this session.

        Raises:
            Timeout: not within `timeout` seconds.
            MessagingError: as of `Sender.sync`.
        """
        deadline = deadline_of(timeout)
        loop = asyncio.get_running_loop()
        for sender in list(self.senders):
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
        if self._closed:
            return
        try:
            deadline = deadline_of(timeout)
            if self.error is None and not self.transactional:
                loop = asyncio.get_running_loop()
                for endpoint in (*self.senders, *self.receivers):
                    await endpoint.finish(None if deadline is None else max(0.0, deadline - loop.time()))
            for endpoint in (*self.receivers, *self.senders):
                if endpoint.deletes_node:
                    await endpoint.close_link(deadline)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the session with its links at once."""
        for endpoint in (*self.senders, *self.receivers):
            if isinstance(endpoint, Sender):
                endpoint.drop(SessionClosed(text=f"session {self.name} was closed"))
            endpoint.detach(with_session=True)
        self.senders.clear()
        self.receivers.clear()
        self._acknowledgements.clear()
        if self._session is not None and self._driver is not None:
            self._driver.engine.end(self._session)
            self._driver.transport.flush_soon()
        self._closed = True
        self._connection.forget(self)
        self.condition.notify()

    # For the connection

    async def attach(self, driver: Driver) -> None:
        """Begin the session on a connection, with all links.

        Raises:
            TransactionError: the broker has no transactions.
        """
        self._driver = driver
        session = self._session = driver.engine.begin()
        driver.own_session(session, self._on_ended)
        for endpoint in (*self.senders, *self.receivers):
            endpoint.attach(driver, session)
        driver.transport.flush_soon()
        if self._transactions is not None:
            await self._transactions.begin(driver, session)
            self.condition.notify()
        for sender in self.senders:
            sender.on_credit()

    def lose(self) -> None:
        """The connection is gone. A transaction that was open is aborted: nothing of it is sent again."""
        if self._transactions is not None:
            self._transactions.lose()
        for endpoint in (*self.senders, *self.receivers):
            endpoint.lose()
        self._driver = self._session = None

    def fail(self, error: MessagingError) -> None:
        """The session cannot be used any more."""
        if self.error is None:
            self.error = error
            for endpoint in (*self.senders, *self.receivers):
                endpoint.fail(error)
            self.condition.notify()

    def _on_ended(self, condition: str, description: str) -> None:
        text = f"session {self.name} ended by the broker" + (f": {description}" if description else "")
        kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else ServerError
        error = kind(condition or None, text)
        self.fail(error)
        self._connection.report(self, error)

    # For receivers

    def arrived(self, count: int) -> None:
        """See `ReceiverSession`."""
        if self._on_message is None:
            return
        for _ in range(count):
            try:
                self._on_message(self)
            except Exception:
                log.exception("the message handler of session %s failed", self.name)
