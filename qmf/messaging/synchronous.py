"""The synchronous connection, session, sender and receiver.

What needs no answer from the broker is done on the caller's thread: encoding and decoding, queueing a message, fetching
one that has arrived. A single message is sent there as well, and acknowledged, while the loop's thread waits for the
broker; for many messages that one is woken up once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

from qmf._closable import Closable
from qmf.messaging.bases import ConnectionBase, ReceiverBase, SenderBase, SessionBase
from qmf.messaging.blocking import MANY, BlockingAnswer, Wakeup
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.content_types import ContentType
from qmf.messaging.core.deliveries import ReceivedDelivery
from qmf.messaging.core.incoming_link import IncomingLink
from qmf.messaging.core.outgoing_link import OutgoingLink
from qmf.messaging.core.session_core import SessionCore
from qmf.messaging.exceptions import DecodeError, MessagingError, Timeout
from qmf.messaging.loop import ConnectionLoop
from qmf.messaging.message import Disposition, Message
from qmf.messaging.received import ReceivedMessage
from qmf.messaging.typing import ContentT

T = TypeVar("T")


class Connection(ConnectionBase, Closable):
    """A connection to a broker, over reconnects. Any thread may use it.

    Blocking calls end with their timeout, with the loss of the connection (unless it reconnects), and with Ctrl-C.

    Source: High Level Client API; published Python API, `Connection`.
    """

    __slots__ = ("_loop",)

    def __init__(self, url: Any = None, **options: Any) -> None:
        """See `qmf.messaging.aio.Connection`; nothing is connected yet."""
        super().__init__(url, options, self._dialer())
        self._loop = ConnectionLoop(self._uses_tcp)
        self._core.condition.new_signal = self._loop.new_signal

    def _uses_tcp(self) -> bool:
        """True if a broker may be connected to over TCP and nothing else."""
        urls = self._core.options.urls
        return self._dialer() is None and any(not url.tls and url.path is None for url in urls)

    @classmethod
    def establish(cls, url: Any = None, timeout: float | None = None, **options: Any) -> Self:
        """Make a connection and open it; see `__init__` and `open`."""
        connection = cls(url, **options)
        connection.open(timeout)
        return connection

    def __enter__(self) -> Self:
        if not self.opened():
            self.open()
        return self

    def open(self, timeout: float | None = None) -> None:
        """Open the connection; see `qmf.messaging.aio.Connection.open`."""
        self._loop.run(self._core.open(timeout))

    def attach(self, timeout: float | None = None) -> None:
        """Connect again after `detach`; see `qmf.messaging.aio.Connection.attach`."""
        self._loop.run(self._core.attach(timeout))

    def detach(self, timeout: float | None = None) -> None:
        """Close the network connection, and keep sessions and links for `attach`."""
        self._loop.run(self._core.detach(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close all sessions and the connection; see `qmf.messaging.aio.Connection.close`."""
        try:
            self._loop.run(self._core.close(timeout))
        finally:
            self._loop.stop()

    def session(self, name: str | None = None, transactional: bool = False, timeout: float | None = None) -> Session:
        """The session of that name; see `qmf.messaging.aio.Connection.session`."""

        async def make() -> Session:
            core = await self._core.session(name, transactional, timeout)
            return core.endpoint if isinstance(core.endpoint, Session) else Session(core, self, self._loop)

        return self._loop.run(make())


class Session(SessionBase, Closable):
    """A session of a connection. Made by `Connection.session`; any thread may use it.

    Attributes:
        connection: that it belongs to.
    """

    __slots__ = ("_loop", "_queued", "connection")

    def __init__(self, core: SessionCore, connection: Connection, loop: ConnectionLoop) -> None:
        super().__init__(core)
        self.connection = connection
        self._loop = loop
        #: After how many waits for messages an acknowledgement was queued, as of senders.
        self._queued = -1

    def set_message_received_notify_handler(self, handler: Callable[[Session], None] | None) -> None:
        """The name of `set_message_received_handler` in older versions of the published API."""
        self.set_message_received_handler(handler)

    @overload
    def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
        content: None = None,
    ) -> Sender: ...

    @overload
    def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
        content: ContentType[T] | type[T],
    ) -> Sender[T]: ...

    def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
        content: object = None,
    ) -> Sender:
        """Open a sender; see `qmf.messaging.aio.Session.sender`.

        Args:
            target: the address.
            capacity: messages that may be sent without an answer from the broker.
            durable: of messages that do not say so themselves.
            timeout: seconds to wait for the broker.
            content: what is sent.
        """

        async def make() -> Sender:
            return Sender(await self._core.open_sender(target, capacity, durable, timeout, content), self, self._loop)

        return self._loop.run(make())

    @overload
    def receiver(
        self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None, content: None = None
    ) -> Receiver: ...

    @overload
    def receiver(
        self,
        source: str,
        *,
        capacity: int | Constant = 0,
        timeout: float | None = None,
        content: ContentType[T] | type[T],
    ) -> Receiver[T]: ...

    def receiver(
        self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None, content: object = None
    ) -> Receiver:
        """Open a receiver; see `qmf.messaging.aio.Session.receiver`."""

        async def make() -> Receiver:
            link = await self._core.open_receiver(source, capacity, timeout, ReceivedMessage, content)
            return Receiver(link, self, self._loop)

        return self._loop.run(make())

    def next_receiver(self, timeout: float | None = None) -> Receiver:
        """The receiver whose message has arrived first; see `qmf.messaging.aio.Session.next_receiver`."""
        self.check_closed()
        receiver = self._loop.run(self._core.next_receiver(timeout)).endpoint
        assert isinstance(receiver, Receiver)
        return receiver

    def acknowledge(
        self,
        message: Message | None = None,
        disposition: Disposition | None = None,
        sync: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Report what became of fetched messages; see `qmf.messaging.aio.Session.acknowledge`."""
        self.check_closed()
        if sync:
            self._loop.run(self._core.acknowledge(message, disposition, timeout))
            return
        self._loop.check_process()
        deliveries = self._core.take(message, disposition)
        fetches = self._core.condition.fetches
        if disposition is None and self._queued != fetches and self._core.accept_at_once(deliveries):
            return
        self._queued = fetches
        self._loop.call_soon(functools.partial(self._core.settle, deliveries, disposition, confirm=False))

    def commit(self, timeout: float | None = None) -> None:
        """Commit the transaction; see `qmf.messaging.aio.Session.commit`."""
        self.check_closed()
        self._loop.run(self._core.commit(timeout))

    def rollback(self, timeout: float | None = None) -> None:
        """Roll the transaction back; see `qmf.messaging.aio.Session.rollback`."""
        self.check_closed()
        self._loop.run(self._core.rollback(timeout))

    def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything; see `qmf.messaging.aio.Session.sync`."""
        self._loop.run(self._core.sync(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close the session; see `qmf.messaging.aio.Session.close`."""
        self._loop.run(self._core.close(timeout))


class Sender(SenderBase, Closable, Generic[ContentT]):
    """Sends messages to a node. Made by `Session.sender`; any thread may use it.

    Attributes:
        session: that it belongs to.
    """

    __slots__ = ("_condition", "_loop", "_queued", "_wakeup", "session")

    def __init__(self, core: OutgoingLink, session: Session, loop: ConnectionLoop) -> None:
        super().__init__(core)
        self.session = session
        self._loop = loop
        self._condition = core.condition
        #: After how many waits for messages one that nobody waits for was queued: those after it are, too, up to the
        #: next such wait. Of many, the loop's thread sends several together.
        self._queued = -1
        self._wakeup = Wakeup(loop, core.send_posted)

    def send(self, object: Message[ContentT] | ContentT, sync: bool = True, timeout: float | None = None) -> None:
        """Send a message; see `qmf.messaging.aio.Sender.send`."""
        message = object if isinstance(object, Message) else Message(object)
        link = self._core
        data = link.encoder.encode(message)
        answer = BlockingAnswer(self._condition.signal_of_thread()) if sync else None
        self._loop.check_thread()
        waited = 0.0
        streaming = answer is None and (link.unsettled or self._queued == self._condition.fetches)
        if not streaming and link.send_at_once(data, answer):
            if answer is not None:
                self._wait(answer, timeout)
            return
        if not link.post(data, answer):
            self._wakeup.posted = 0  # the loop's thread has the time now
            waited = link.wait_for_room(timeout)
            if not link.post(data, answer):  # no connection, or another thread was faster: the long way
                self._loop.run(link.send_encoded(data, sync, timeout, waited))
                return
        if answer is None:
            wakeup = self._wakeup
            wakeup.posted += 1
            if wakeup.posted >= MANY:
                wakeup.posted = 0
                wakeup.let_run(if_busy=True)
            elif not (wakeup.scheduled or link.waits_for_credit):
                self._queued = self._condition.fetches
                wakeup.call()
            return
        if not link.waits_for_credit:
            self._wakeup.call()
        self._wait(answer, timeout, waited)

    def _wait(self, answer: BlockingAnswer, timeout: float | None, waited: float = 0.0) -> None:
        try:
            answered = answer.wait(None if timeout is None else timeout - waited)
        finally:
            answer.abandon()  # if the wait was interrupted or too long: a refusal is reported to the handler then
        if not answered:
            raise Timeout(f"no answer to a message to {self._core.address.name!r} within {timeout:g} s")

    def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything; see `qmf.messaging.aio.Sender.sync`."""
        self._loop.run(self._core.sync(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close the sender; see `qmf.messaging.aio.Sender.close`."""
        self._loop.run(self._core.close_orderly(timeout))


class Receiver(ReceiverBase, Closable, Generic[ContentT]):
    """Receives messages from a node. Made by `Session.receiver`; any thread may use it.

    ``for message in receiver`` fetches one message after the other, without a limit of time. It ends when the program,
    on another thread, closes the receiver, its session or its connection; every other end raises its error, as `fetch`
    does, and the iteration can be begun again.

    Attributes:
        session: that it belongs to.
    """

    __slots__ = ("_loop", "_wakeup", "session")

    def __init__(self, core: IncomingLink, session: Session, loop: ConnectionLoop) -> None:
        super().__init__(core)
        self.session = session
        self._loop = loop
        self._wakeup = Wakeup(loop, functools.partial(core.perform, core.grant))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ReceivedMessage[ContentT]:
        try:
            return self.fetch()
        except MessagingError:
            if self._core.ended:
                raise StopIteration from None
            raise

    def fetch(self, timeout: float | None = None) -> ReceivedMessage[ContentT]:
        """The next message; see `qmf.messaging.aio.Receiver.fetch`."""
        self._loop.check_process()
        ready: ReceivedMessage[ContentT] | None = self._core.arrived.take_ready()
        if ready is not None:  # most often, in few steps
            return ready
        delivery = self._core.arrived.pop()
        if delivery is None:
            self.check_closed()
            if timeout == 0:
                return self._loop.run(self._core.fetch(timeout))
            self._loop.check_thread()
            try:
                delivery = self._core.wait_on_thread(timeout, self._wakeup.call)
            except BaseException as error:
                if not isinstance(error, MessagingError):  # interrupted: what it has asked for is taken back
                    self._call_soon(self._core.adjust)
                raise
            if delivery is None:
                return self._loop.run(self._core.fetch_last(timeout))
        if self._core.needs_grant():
            try:
                self._wakeup.let_run(if_busy=self._core.available() >= MANY)
            except BaseException:
                self._core.arrived.put_back(delivery)
                raise
        try:
            message: ReceivedMessage[ContentT] = self._core.arrived.decode(delivery)
            return message
        except DecodeError as error:
            if error.message is None:
                self._loop.call_soon(functools.partial(_reject, delivery, str(error)))
            raise

    def close(self, timeout: float | None = None) -> None:
        """Close the receiver; see `qmf.messaging.aio.Receiver.close`."""
        self._loop.run(self._core.close_orderly(timeout))

    def _call_soon(self, action: Callable[[], object]) -> None:
        self._loop.call_soon(functools.partial(self._core.perform, action))


def _reject(delivery: ReceivedDelivery, reason: str) -> None:
    delivery.reject("amqp:decode-error", reason)
