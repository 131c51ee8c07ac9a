"""What is behind a session: its links, acknowledgements and transactions, and what these need of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.session import EngineSession
from qmf.messaging.addresses import Address
from qmf.messaging.constants import Constant
from qmf.messaging.content_types import ContentReader, ContentTypes, ContentWriter
from qmf.messaging.core.acknowledgement import Acknowledgements, check_in_transaction, settle
from qmf.messaging.core.addressed_link import AddressedLink
from qmf.messaging.core.deliveries import ReceivedDelivery
from qmf.messaging.core.incoming_link import IncomingLink
from qmf.messaging.core.outgoing_link import OutgoingLink
from qmf.messaging.core.reporting import ErrorHandler, Reporter
from qmf.messaging.core.transactions import Transactions
from qmf.messaging.core.waiting import Condition, deadline_of
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


class SessionConnection(Protocol):
    """What a session needs of its connection."""

    condition: Condition

    @property
    def content_types(self) -> ContentTypes:
        """That senders and receivers apply."""

    @property
    def network(self) -> NetworkConnection | None:
        """The network connection, with all links in place; the connection has not failed then."""

    @property
    def detached(self) -> bool:
        """True before the connection is opened, and after it was detached."""

    @property
    def closing(self) -> MessagingError | None:
        """The error of what still waits when the program closes the connection."""

    def check_error(self) -> None:
        """Raise why the connection failed."""

    def check(self) -> None:
        """Raise why the connection cannot be used."""

    def report(self, source: Reporter, error: MessagingError) -> None:
        """Pass an error to the program's handler."""

    def forget(self, session: SessionCore) -> None:
        """The session is closed."""


class SessionCore:
    """A session of a connection, over its network connections.

    Attributes:
        name: unique in its connection.
        condition: of the connection.
        error: why it failed, or None.
        closed: True after `abandon`.
        senders, receivers: the links that are open.
        network: the network connection that it is attached to, or None.
        acknowledgements: of the messages that were fetched.
        transactions: None without.
        endpoint, on_error: see `Reporter`.
        on_message: called whenever a message arrives, or None.
    """

    __slots__ = (
        "_connection",
        "_session",
        "acknowledgements",
        "closed",
        "condition",
        "endpoint",
        "error",
        "name",
        "network",
        "on_error",
        "on_message",
        "receivers",
        "senders",
        "transactions",
    )

    def __init__(self, connection: SessionConnection, name: str, *, transactional: bool) -> None:
        self.name = name
        self.condition = connection.condition
        self.error: MessagingError | None = None
        self.closed = False
        self.senders: list[OutgoingLink] = []
        self.receivers: list[IncomingLink] = []
        self.network: NetworkConnection | None = None
        self.acknowledgements = Acknowledgements(name)
        self.transactions = Transactions(self, self.acknowledgements) if transactional else None
        self.endpoint: object = self
        self.on_error: ErrorHandler | None = None
        self.on_message: Callable[[], None] | None = None
        self._connection = connection
        self._session: EngineSession | None = None

    def __repr__(self) -> str:
        return f"<Session {self.name}>"

    @property
    def failed(self) -> bool:
        """See `LinkSession`."""
        return self.error is not None or self.closed

    @property
    def ended(self) -> bool:
        """See `IncomingSession`."""
        return self.closed if self.error is None else self.error is self._connection.closing

    def check(self) -> None:
        """Raise why the session cannot be used.

        Raises:
            SessionClosed: it was closed.
            MessagingError: it failed, or its connection did.
        """
        if self.error is not None or self.closed or self._connection.network is None:
            self._check_open()
            self._connection.check()

    def report(self, source: Reporter, error: MessagingError) -> None:
        """See `LinkSession`."""
        self._connection.report(source, error)

    # Links

    async def open_sender(
        self, target: str, capacity: int | Constant, durable: bool | None, timeout: float | None, content: object = None
    ) -> OutgoingLink:
        """See `Session.sender`."""
        self._check_open()
        writer = ContentWriter(self._connection.content_types, content)
        link = OutgoingLink(self, target, capacity, durable, self.transactions, writer)
        self._check_reliability(link)
        if self.network is not None and drops_unknown(link.address, self.network.peer.product):
            # A receiver is refused where a sender is not.
            await (await self.open_receiver(Address.of(link.address.name), 0, timeout)).close_orderly(None)
        self.senders.append(link)
        await self._open(link, timeout)
        return link

    async def open_receiver(
        self,
        source: str,
        capacity: int | Constant,
        timeout: float | None,
        kind: type[Message] = Message,
        content: object = None,
        *,
        decoded: bool = True,
    ) -> IncomingLink:
        """See `Session.receiver`; `kind` is the class of its messages, `decoded` applies content types."""
        self._check_open()
        reader = ContentReader(self._connection.content_types, content) if decoded else None
        link = IncomingLink(self, source, capacity, self.acknowledgements, kind, reader)
        self._check_reliability(link)
        self.receivers.append(link)
        await self._open(link, timeout)
        return link

    def _check_open(self) -> None:
        """Raise why no link can be made; a connection that is not open is no reason."""
        if self.error is not None:
            raise self.error
        self._connection.check_error()
        if self.closed:
            raise self.closed_error()

    def closed_error(self) -> MessagingError:
        """The error of a session that was closed."""
        return SessionClosed(text=f"session {self.name} is closed")

    def _check_reliability(self, link: AddressedLink) -> None:
        if link.resumable and self.transactions is not None:
            option = "link.reliability: exactly-once"
            raise InvalidOption(text=f"address {str(link.address)!r}, {option} is not possible in a transaction")

    async def _open(self, link: AddressedLink, timeout: float | None) -> None:
        if self._connection.detached:
            return
        try:
            if self.network is not None:
                link.attach(self.network, self._session)
            if not await self.condition.wait_for(lambda: self._is_open(link), deadline_of(timeout)):
                raise Timeout(f"no answer to the link to {link.address.name!r} within {timeout:g} s")
        except BaseException:
            link.close()
            raise

    def _is_open(self, link: AddressedLink) -> bool:
        if link.error is not None:
            raise link.error
        self.check()
        return not link.attaching

    def forget(self, link: AddressedLink) -> None:
        """See `LinkSession`."""
        self.senders = [item for item in self.senders if item is not link]
        self.receivers = [item for item in self.receivers if item is not link]

    def on_arrived(self, count: int) -> None:
        """See `IncomingSession`."""
        if self.on_message is None:
            return
        for _ in range(count):
            try:
                self.on_message()
            except Exception:
                log.exception("the message handler of session %s failed", self.name)

    async def next_receiver(self, timeout: float | None) -> IncomingLink:
        """See `Session.next_receiver`."""
        if not await self.condition.wait_for(self._has_message, deadline_of(timeout)):
            raise Empty(text="no message" + ("" if timeout is None else f" within {timeout:g} s"))
        return min((link for link in self.receivers if link.available()), key=lambda link: link.first_arrival())

    def _has_message(self) -> bool:
        self.check()
        return any(link.available() for link in self.receivers)

    # Acknowledgement

    async def acknowledge(
        self, message: Message | None, disposition: Disposition | None, timeout: float | None
    ) -> None:
        """See `Session.acknowledge`, with `sync`."""
        deliveries = self.take(message, disposition)
        self.settle(deliveries, disposition, confirm=True)
        if self.transactions is not None:
            return
        if not await self.condition.wait_for(lambda: self._is_answered(deliveries), deadline_of(timeout)):
            raise Timeout(f"acknowledgements not confirmed within {timeout:g} s")
        if lost := sum(delivery.lost for delivery in deliveries):
            raise AcknowledgementUnknown(
                text=f"{lost} of {len(deliveries)} acknowledgements in session {self.name} were not confirmed before "
                "their link was gone: these messages may come again"
            )

    def take(self, message: Message | None, disposition: Disposition | None) -> list[ReceivedDelivery]:
        """The deliveries to acknowledge; see `Acknowledgements.take`. To be followed by `settle`.

        Raises:
            SessionError: also for a disposition that a transaction cannot have.
        """
        self.check()
        if self.transactions is not None:
            check_in_transaction(disposition, "" if self.network is None else self.network.peer.product)
        return self.acknowledgements.take(message)

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

    def accept_at_once(self, deliveries: list[ReceivedDelivery]) -> bool:
        """Report on another thread than the loop's that messages were processed, if nothing is in the way of that.

        Returns:
            False if it was not reported: the loop's thread has to call `settle`.
        """
        return self.transactions is None and ReceivedDelivery.accept_at_once(deliveries)

    def settle(self, deliveries: Sequence[ReceivedDelivery], disposition: Disposition | None, *, confirm: bool) -> None:
        """Report what became of messages, in the current transaction or at once; see `acknowledgement.settle`."""
        if self.transactions is not None:
            self.transactions.acknowledge(deliveries, disposition)
        else:
            settle(deliveries, disposition, confirm=confirm)

    # Transactions

    async def commit(self, timeout: float | None) -> None:
        """See `Session.commit`."""
        await self._needs_transactions().commit(timeout)

    async def rollback(self, timeout: float | None) -> None:
        """See `Session.rollback`."""
        await self._needs_transactions().rollback(timeout)

    def _needs_transactions(self) -> Transactions:
        if self.transactions is None:
            raise NontransactionalSession(text=f"session {self.name} is not transactional")
        return self.transactions

    # Ending

    async def sync(self, timeout: float | None) -> None:
        """See `Session.sync`."""
        deadline = deadline_of(timeout)
        loop = asyncio.get_running_loop()
        for sender in list(self.senders):
            await sender.sync(None if deadline is None else max(0.0, deadline - loop.time()))

    async def close(self, timeout: float | None) -> None:
        """See `Session.close`."""
        if self.closed:
            return
        try:
            deadline = deadline_of(timeout)
            if self.error is None and self.transactions is None:
                loop = asyncio.get_running_loop()
                for link in (*self.senders, *self.receivers):
                    await link.finish(None if deadline is None else max(0.0, deadline - loop.time()))
            for link in (*self.receivers, *self.senders):
                if link.deletes_node:
                    await link.close_and_delete(deadline)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """See `Session.abandon`."""
        for sender in self.senders:
            sender.drop(SessionClosed(text=f"session {self.name} was closed"))
        for link in (*self.senders, *self.receivers):
            link.close_with_session()
        self.acknowledgements.clear()
        if self._session is not None and self.network is not None:
            self.network.engine.sessions.end(self._session)
            self.network.transport.flush_soon()
        self.closed = True
        self._connection.forget(self)
        self.condition.notify()

    # For the connection

    async def attach(self, network: NetworkConnection) -> None:
        """Begin the session on a connection, with all links.

        Raises:
            TransactionError: the broker has no transactions.
        """
        self.network = network
        session = self._session = network.engine.sessions.begin()
        network.set_session_owner(session, self._on_ended)
        for link in (*self.senders, *self.receivers):
            link.attach(network, session)
        network.transport.flush_soon()
        if self.transactions is not None:
            await self.transactions.begin(network, session)
            self.condition.notify()
        for sender in self.senders:
            sender.on_credit()

    def lose(self) -> None:
        """The connection is gone. A transaction that was open is aborted: nothing of it is sent again."""
        if self.transactions is not None and (aborted := self.transactions.lose()) is not None:
            self._connection.report(self, aborted)
        for link in (*self.senders, *self.receivers):
            link.lose()
        self.network = self._session = None

    def fail(self, error: MessagingError) -> None:
        """The session cannot be used any more."""
        if self.error is None:
            self.error = error
            for link in (*self.senders, *self.receivers):
                link.fail(error, with_session=True)
            self.condition.notify()

    def _on_ended(self, condition: str, description: str) -> None:
        text = f"session {self.name} ended by the broker" + (f": {description}" if description else "")
        kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else ServerError
        error = kind(condition or None, text)
        self.fail(error)
        self._connection.report(self, error)
