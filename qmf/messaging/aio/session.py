"""Sessions for asyncio: senders, receivers, acknowledgement, transactions."""

from __future__ import annotations

from typing import TypeVar, overload

from qmf._closable import AsyncClosable
from qmf.messaging.aio.message import ReceivedMessage
from qmf.messaging.aio.opening import Opening, opens
from qmf.messaging.aio.receiver import Receiver
from qmf.messaging.aio.sender import Sender
from qmf.messaging.bases import SessionBase
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.content_types import ContentType
from qmf.messaging.message import Disposition, Message

T = TypeVar("T")


class Session(SessionBase, AsyncClosable):
    """A session of a connection. Made by `Connection.session`."""

    __slots__ = ()

    @overload
    def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
        content: None = None,
    ) -> Opening[Sender]: ...

    @overload
    def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
        content: ContentType[T] | type[T],
    ) -> Opening[Sender[T]]: ...

    @opens
    async def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
        content: object = None,
    ) -> Sender:
        """Open a sender. Entered as a context, it is closed at its end.

        Args:
            target: the address.
            capacity: messages that may be sent without an answer from the broker.
            durable: of messages that do not say so themselves.
            timeout: seconds to wait for the broker. Without a wait on a connection that is not open or is detached: the
                link is opened with the connection.
            content: what is sent, a `ContentType` or a class: of a content type of the connection, or of AMQP's values.
                Type checkers then know what `send` takes.

        Raises:
            MalformedAddress, InvalidOption: the address is wrong, or asks for what the broker does not provide.
            NotFound, AssertionFailed, ResolutionError, UnauthorizedAccess, LinkError: the broker refused.
            Timeout: no answer in time.
            ContentError: there is no content type for the class.
            MessagingError: session or connection failed.
        """
        return Sender(await self._core.open_sender(target, capacity, durable, timeout, content))

    @overload
    def receiver(
        self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None, content: None = None
    ) -> Opening[Receiver]: ...

    @overload
    def receiver(
        self,
        source: str,
        *,
        capacity: int | Constant = 0,
        timeout: float | None = None,
        content: ContentType[T] | type[T],
    ) -> Opening[Receiver[T]]: ...

    @opens
    async def receiver(
        self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None, content: object = None
    ) -> Receiver:
        """Open a receiver. Entered as a context, it is closed at its end.

        Args:
            source: the address.
            capacity: messages that the broker may send before they are fetched.
            timeout: seconds to wait for the broker.
            content: what is received, see `sender`; type checkers then know what `Message.content` is. `fetch` raises
                `DecodeError` for other content.

        Raises:
            MessagingError: as of `sender`.
        """
        return Receiver(await self._core.open_receiver(source, capacity, timeout, ReceivedMessage, content))

    async def next_receiver(self, timeout: float | None = None) -> Receiver:
        """The receiver whose message has arrived first; its `fetch` returns at once.

        Raises:
            Empty: no message within `timeout` seconds.
            MessagingError: session or connection failed.
        """
        receiver = (await self._core.next_receiver(timeout)).endpoint
        assert isinstance(receiver, Receiver)
        return receiver

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
            SessionError: the message was not fetched in this session, or is acknowledged already; or within a
                transaction, it is released with `set_redelivered` or `undeliverable_here`.
            InsufficientCapacity: `ack_capacity` is 0.
            AcknowledgementUnknown: of messages that were processed or are rejected: their connection was lost, or their
                receiver closed, before the broker confirmed. They may come again; the others are acknowledged, and the
                session can be used.
            Timeout: no confirmation in time; the broker may deliver the messages again.
            MessagingError: receiver, session or connection failed.
        """
        if sync:
            await self._core.acknowledge(message, disposition, timeout)
        else:
            self._core.settle(self._core.take(message, disposition), disposition, confirm=False)

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
        await self._core.commit(timeout)

    async def rollback(self, timeout: float | None = None) -> None:
        """Undo everything sent and acknowledged since the last commit; fetched messages come again.

        Raises:
            NontransactionalSession: the session is not transactional.
            Timeout: no answer in time. If the broker had been asked, the session cannot be used any more.
        """
        await self._core.rollback(timeout)

    async def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything that was sent in this session.

        Raises:
            Timeout: not within `timeout` seconds.
            MessagingError: as of `Sender.sync`.
        """
        await self._core.sync(timeout)

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
