"""What is behind a session: its links, acknowledgements and transactions, and what these need of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.session import EngineSession
from qmf.messaging.aio.acknowledgement import Acknowledgements, settle
from qmf.messaging.aio.addressed_link import AddressedLink
from qmf.messaging.aio.deliveries import ReceivedDelivery
from qmf.messaging.aio.incoming_link import IncomingLink
from qmf.messaging.aio.outgoing_link import OutgoingLink
from qmf.messaging.aio.transactions import Transactions
from qmf.messaging.aio.waiting import Condition, deadline_of
from qmf.messaging.exceptions import (
    InvalidOption,
    MessagingError,
    ServerError,
    SessionClosed,
    Timeout,
    UnauthorizedAccess,
)
from qmf.messaging.message import Disposition

log = logging.getLogger("qmf.messaging")


class SessionConnection(Protocol):
    """What a session needs of its connection."""

    condition: Condition

    @property
    def network(self) -> NetworkConnection | None:
        """The network connection, with all links in place; the connection has not failed then."""

    @property
    def detached(self) -> bool:
        """True before the connection is opened, and after it was detached."""

    def check_error(self) -> None:
        """Raise why the connection failed."""

    def check(self) -> None:
        """Raise why the connection cannot be used."""

    def report(self, endpoint: object, error: MessagingError) -> None:
        """Pass an error that no call waits for to the program's handler."""

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
        endpoint: what its errors are reported for: the program's session.
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
        self.on_message: Callable[[], None] | None = None
        self._connection = connection
        self._session: EngineSession | None = None

    def __repr__(self) -> str:
        return f"<Session {self.name}>"

    @property
    def failed(self) -> bool:
        """See `LinkSession`."""
        return self.error is not None or self.closed

    def check(self) -> None:
        """Raise why the session cannot be used.

        Raises:
            SessionClosed: it was closed.
            MessagingError: it failed, or its connection did.
        """
        if self.error is not None or self.closed or self._connection.network is None:
            self.check_open()
            self._connection.check()

    def check_open(self) -> None:
        """Raise why no link can be made; a connection that is not open is no reason."""
        if self.error is not None:
            raise self.error
        self._connection.check_error()
        if self.closed:
            raise SessionClosed(text=f"session {self.name} is closed")

    def report(self, endpoint: object, error: MessagingError) -> None:
        """See `LinkSession`."""
        self._connection.report(endpoint, error)

    # Links

    async def open_link(self, link: AddressedLink, timeout: float | None) -> None:
        """Have a link attached that is among those of this session; errors as of `Session.sender`."""
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

    def check_reliability(self, link: AddressedLink) -> None:
        """Refuse exactly-once in a transaction."""
        if link.resumable and self.transactions is not None:
            option = "link.reliability: exactly-once"
            raise InvalidOption(text=f"address {str(link.address)!r}, {option} is not possible in a transaction")

    def _is_open(self, link: AddressedLink) -> bool:
        if link.error is not None:
            raise link.error
        self.check()
        return not link.attaching

    def forget(self, link: AddressedLink) -> None:
        """See `LinkSession`."""
        self.senders = [item for item in self.senders if item is not link]
        self.receivers = [item for item in self.receivers if item is not link]

    def arrived(self, count: int) -> None:
        """See `IncomingSession`."""
        if self.on_message is None:
            return
        for _ in range(count):
            try:
                self.on_message()
            except Exception:
                log.exception("the message handler of session %s failed", self.name)

    def settle(self, deliveries: Iterable[ReceivedDelivery], disposition: Disposition | None, *, confirm: bool) -> None:
        """Report what became of messages, in the current transaction or at once; see `acknowledgement.settle`."""
        if self.transactions is not None:
            self.transactions.acknowledge(deliveries, disposition)
        else:
            settle(deliveries, disposition, confirm=confirm)

    # Ending

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
            self.network.engine.end(self._session)
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
        session = self._session = network.engine.begin()
        network.own_session(session, self._on_ended)
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
        if self.transactions is not None:
            self.transactions.lose()
        for link in (*self.senders, *self.receivers):
            link.lose()
        self.network = self._session = None

    def fail(self, error: MessagingError) -> None:
        """The session cannot be used any more."""
        if self.error is None:
            self.error = error
            for link in (*self.senders, *self.receivers):
                link.fail(error)
            self.condition.notify()

    def _on_ended(self, condition: str, description: str) -> None:
        text = f"session {self.name} ended by the broker" + (f": {description}" if description else "")
        kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else ServerError
        error = kind(condition or None, text)
        self.fail(error)
        self._connection.report(self.endpoint, error)
