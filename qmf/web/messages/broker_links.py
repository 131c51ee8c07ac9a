"""The broker as this interface uses it: one connection, senders by destination, and a source for each consumer.

The connection is opened when it is first needed, and again when it is lost. Its container id is always the same:
brokers identify durable subscriptions by it.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import enum
from collections.abc import Callable

from qmf.messaging import REJECTED, RELEASED, Disposition, Empty, Message, MessagingError, Timeout
from qmf.messaging.aio import Connection, Receiver, Sender, Session
from qmf.messaging.exceptions import ConnectionError as MessagingConnectionError
from qmf.messaging.exceptions import InvalidOption, LinkClosed
from qmf.web.messages.consumer_ids import ConsumerOptions
from qmf.web.messages.destinations import Destination, DestinationKind, link_options, subscription_name

#: Seconds that the broker has to answer.
ANSWER_TIMEOUT = 10.0
#: Senders that are kept open.
MAX_SENDERS = 200

#: Makes a connection that is not open yet.
MakeConnection = Callable[[], Connection]


class Settlement(enum.Enum):
    """What became of an acknowledgement."""

    DONE = "done"
    LOST = "lost"  #: the message had gone back to its node before
    UNKNOWN = "unknown"  #: the connection was lost before the broker confirmed


class ConsumerSource:
    """The receiver of a consumer, in a session of its own."""

    def __init__(self, session: Session, receiver: Receiver, *, lasting: bool) -> None:
        """Take over a session and its receiver.

        Args:
            session: of this receiver alone.
            receiver: without capacity: it gets a message only while a pull waits for one.
            lasting: its subscription is durable.
        """
        self._session = session
        self._receiver = receiver
        self._lasting = lasting

    @property
    def failed(self) -> bool:
        """True if it can't be used any more."""
        failed = self._session.get_error() is not None or self._receiver.get_error() is not None
        return failed or self._session.closed or self._receiver.closed

    async def fetch(self, wait: float) -> Message | None:
        """The next message; None if there is none within `wait` seconds.

        Raises:
            MessagingError: the source has failed.
        """
        try:
            return await self._receiver.fetch(wait)
        except Empty:
            return None

    @staticmethod
    def is_lost(message: Message) -> bool:
        """True if a message that is not acknowledged has gone back to its node with the connection."""
        return bool(message.delivery.stale)

    async def accept(self, message: Message) -> Settlement:
        """Acknowledge a message; it does not come again if the answer is DONE.

        Raises:
            MessagingError: the source has failed.
        """
        if self.is_lost(message):
            return Settlement.LOST
        try:
            await self._session.acknowledge(message, timeout=ANSWER_TIMEOUT)
        except (Timeout, MessagingError):
            return Settlement.UNKNOWN
        # Brokers that don't confirm: what is in the socket arrives, even if this process is killed now.
        await asyncio.sleep(0)
        return Settlement.UNKNOWN if self.is_lost(message) else Settlement.DONE

    async def release(self, message: Message) -> Settlement:
        """Give a message back to its node.

        Raises:
            MessagingError: the source has failed.
        """
        if self.is_lost(message):
            return Settlement.LOST
        await self._session.acknowledge(message, Disposition(RELEASED), sync=False)
        return Settlement.DONE

    async def reject(self, message: Message, reason: str) -> None:
        """Tell the broker that a message can't be processed: it is gone, or goes where rejected ones go.

        Raises:
            MessagingError: the source has failed.
        """
        if not self.is_lost(message):
            await self._session.acknowledge(message, Disposition(REJECTED, text=reason), sync=False)

    async def close(self, *, keep: bool) -> None:
        """Close it. Messages that are not acknowledged go back to their node; `keep`: a durable subscription stays."""
        # The broker may be gone, or have deleted the queue: it is closed then.
        if not (keep and self._lasting):
            with contextlib.suppress(MessagingError, Timeout):
                await self._receiver.close(ANSWER_TIMEOUT)
        with contextlib.suppress(MessagingError, Timeout):
            await self._session.close(ANSWER_TIMEOUT)


class BrokerLinks:
    """The connection, with the senders and sources on it."""

    def __init__(self, make_connection: MakeConnection) -> None:
        self._make = make_connection
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        #: Each with the session that it has for itself.
        self._senders: collections.OrderedDict[str, tuple[Session, Sender]] = collections.OrderedDict()
        self._sender_locks: dict[str, asyncio.Lock] = {}

    async def connection(self) -> Connection:
        """The connection, open.

        Raises:
            MessagingError, Timeout: there is none.
        """
        async with self._opening:
            if self._connection is None or self._connection.get_error() is not None:
                await self._drop_connection()
                connection = self._make()
                await connection.open(ANSWER_TIMEOUT)
                self._connection = connection
            return self._connection

    async def close(self) -> None:
        """Close everything."""
        async with self._opening:
            await self._drop_connection()

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        self._senders.clear()
        if connection is not None:
            with contextlib.suppress(MessagingError, Timeout):
                await connection.close(ANSWER_TIMEOUT)

    async def check_attached(self) -> Connection:
        """The connection, if the broker is there now or soon.

        Raises:
            MessagingError, Timeout: it is not.
        """
        connection = await self.connection()
        if not await connection.wait_attached(ANSWER_TIMEOUT):
            raise MessagingConnectionError(text=f"no connection to {connection.options.urls[0]}")
        return connection

    async def check(self, destination: Destination) -> None:
        """Raise if there is no such queue or topic.

        Raises:
            NotFound: there is none.
            MessagingError, Timeout: the broker says why not.
        """
        connection = await self.check_attached()
        session = await connection.session(timeout=ANSWER_TIMEOUT)
        try:
            # A sender, because a receiver would subscribe; the broker is asked for the kind where it can check that.
            assertion = destination.address().replace("; {", "; {assert: always, ", 1)
            try:
                await session.sender(assertion, timeout=ANSWER_TIMEOUT)
            except InvalidOption:
                await session.sender(destination.address(), timeout=ANSWER_TIMEOUT)
        finally:
            session.abandon()

    async def send(self, destination: Destination, message: Message) -> None:
        """Send a message; returns when the broker has accepted it.

        Raises:
            MessagingError, Timeout: it has not.
        """
        sender = await self._sender(destination)
        await sender.send(message, timeout=ANSWER_TIMEOUT)

    async def _sender(self, destination: Destination) -> Sender:
        connection = await self.connection()
        key = destination.path
        async with self._sender_locks.setdefault(key, asyncio.Lock()):
            if (known := self._senders.get(key)) is not None:
                if _is_usable(known[1]):
                    self._senders.move_to_end(key)
                    return known[1]
                known[0].abandon()
                del self._senders[key]
            await self.check_attached()
            session = await connection.session(timeout=ANSWER_TIMEOUT)
            try:
                sender = await session.sender(destination.address(), timeout=ANSWER_TIMEOUT)
            except BaseException:
                session.abandon()
                self._sender_locks.pop(key, None)
                raise
            self._senders[key] = session, sender
        while len(self._senders) > MAX_SENDERS:
            old, (surplus, _) = self._senders.popitem(last=False)
            self._sender_locks.pop(old, None)
            with contextlib.suppress(MessagingError, Timeout):
                await surplus.close(ANSWER_TIMEOUT)
        return sender

    async def source(self, destination: Destination, options: ConsumerOptions) -> ConsumerSource:
        """A new source for a consumer.

        Raises:
            MessagingError, Timeout: the broker refuses it.
        """
        connection = await self.check_attached()
        name = None
        if destination.kind is DestinationKind.TOPIC and options.durable and options.name is not None:
            name = subscription_name(destination, options.name)
        link = link_options(selector=options.selector, name=name, durable=name is not None)
        session = await connection.session(timeout=ANSWER_TIMEOUT)
        try:
            receiver = await session.receiver(destination.address(*link), timeout=ANSWER_TIMEOUT)
        except BaseException:
            session.abandon()
            raise
        return ConsumerSource(session, receiver, lasting=name is not None)


def _is_usable(sender: Sender) -> bool:
    try:
        sender.check_error()
    except (MessagingError, LinkClosed):
        return False
    return True
