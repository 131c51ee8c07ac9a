"""The synchronous connection, session, sender and receiver: thin forms of those in `qmf.messaging.aio`.

What needs no answer from the broker is done on the caller's thread: encoding and decoding, queueing a message, fetching
one that has arrived. The loop's thread is only woken up to move bytes, once for many messages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

from qmf.messaging import aio
from qmf.messaging.addresses import Address
from qmf.messaging.aio import receiver as aio_receiver
from qmf.messaging.aio import sender as aio_sender
from qmf.messaging.aio.deliveries import ReceivedDelivery
from qmf.messaging.aio.session import core_of
from qmf.messaging.blocking import MANY, BlockingAnswer, Wakeup
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.exceptions import DecodeError, MessagingError, Timeout
from qmf.messaging.loop import ConnectionLoop
from qmf.messaging.message import Disposition, Message
from qmf.messaging.synchronous_base import ConnectedEndpoint, Endpoint, Registry


class Connection(Endpoint):
    """A connection to a broker, over reconnects. Any thread may use it.

    Blocking calls end with their timeout, with the loss of the connection (unless it reconnects), and with Ctrl-C.

    Source: High Level Client API; published Python API, `Connection`.
    """

    __slots__ = ("_core", "_loop", "_registry")

    def __init__(self, url: str | None = None, **options: Any) -> None:
        """See `qmf.messaging.aio.Connection`; nothing is connected yet."""
        super().__init__()
        self._core = aio.Connection(url, **options)
        self._loop = ConnectionLoop()
        self._registry: Registry = {}
        self._core.set_async_exception_notify_handler(
            lambda core, error: self._registry.get(core, self)._report(error, self)
        )

    @classmethod
    def establish(cls, url: str | None = None, timeout: float | None = None, **options: Any) -> Self:
        """Make a connection and open it; see `__init__` and `open`."""
        connection = cls(url, **options)
        connection.open(timeout)
        return connection

    def __repr__(self) -> str:
        return repr(self._core)

    def __enter__(self) -> Self:
        if not self.opened():
            self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def options(self) -> Any:
        """The options as read; see `qmf.messaging.options.ConnectionOptions`."""
        return self._core.options

    def opened(self) -> bool:
        """True from `open` to `close`."""
        return self._core.opened()

    def attached(self) -> bool:
        """True while there is a network connection."""
        return self._core.attached()

    def check_error(self) -> None:
        """Raise why the connection failed, if it did."""
        self._core.check_error()

    def get_error(self) -> MessagingError | None:
        """Why the connection failed, or None."""
        return self._core.get_error()

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
            self._registry.clear()

    def session(self, name: str | None = None, transactional: bool = False, timeout: float | None = None) -> Session:
        """The session of that name; see `qmf.messaging.aio.Connection.session`."""

        async def make() -> Session:
            core = await self._core.session(name, transactional, timeout)
            session = self._registry.get(core)
            if not isinstance(session, Session):
                session = self._registry[core] = Session(core, self, self._loop, self._registry)
            return session

        return self._loop.run(make())


class Session(ConnectedEndpoint):
    """A session of a connection. Made by `Connection.session`; any thread may use it.

    Attributes:
        name: unique in its connection.
        connection: that it belongs to.
        transactional: True if sends and acknowledgements take effect with `commit`.
    """

    __slots__ = ("connection", "name", "transactional")

    _core: aio.Session

    def __init__(self, core: aio.Session, connection: Connection, loop: ConnectionLoop, registry: Registry) -> None:
        super().__init__(core, loop, registry)
        self.name = core.name
        self.connection = connection
        self.transactional = core.transactional

    def set_message_received_handler(self, handler: Callable[[Session], None] | None) -> None:
        """Call `handler` with this session whenever a message arrives.

        The handler runs on the thread of the connection. It must not block, and must not call methods that wait for the
        broker: wake up another thread there.
        """
        self._core.set_message_received_handler(None if handler is None else lambda _: handler(self))

    #: The name of older versions of the published API.
    set_message_received_notify_handler = set_message_received_handler

    def sender(
        self,
        target: str,
        *,
        capacity: int | Constant = UNLIMITED,
        durable: bool | None = None,
        timeout: float | None = None,
    ) -> Sender:
        """Open a sender; see `qmf.messaging.aio.Session.sender`.

        Args:
            target: the address.
            capacity: messages that may be sent without an answer from the broker.
            durable: of messages that do not say so themselves.
            timeout: seconds to wait for the broker.
        """

        async def make() -> Sender:
            core = await self._core.sender(target, capacity=capacity, durable=durable, timeout=timeout)
            sender = self._registry[core] = Sender(core, self, self._loop, self._registry)
            return sender

        return self._loop.run(make())

    def receiver(self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None) -> Receiver:
        """Open a receiver; see `qmf.messaging.aio.Session.receiver`."""

        async def make() -> Receiver:
            core = await self._core.receiver(source, capacity=capacity, timeout=timeout)
            receiver = self._registry[core] = Receiver(core, self, self._loop, self._registry)
            return receiver

        return self._loop.run(make())

    def next_receiver(self, timeout: float | None = None) -> Receiver:
        """The receiver whose message has arrived first; see `qmf.messaging.aio.Session.next_receiver`."""
        receiver = self._registry[self._loop.run(self._core.next_receiver(timeout))]
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
        if sync:
            self._loop.run(self._core.acknowledge(message, disposition, sync, timeout))
            return
        core = core_of(self._core)
        core.check()
        deliveries = core.acknowledgements.take(message)
        self._loop.call_soon(functools.partial(core.settle, deliveries, disposition, confirm=False))

    def commit(self, timeout: float | None = None) -> None:
        """Commit the transaction; see `qmf.messaging.aio.Session.commit`."""
        self._loop.run(self._core.commit(timeout))

    def rollback(self, timeout: float | None = None) -> None:
        """Roll the transaction back; see `qmf.messaging.aio.Session.rollback`."""
        self._loop.run(self._core.rollback(timeout))

    def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything; see `qmf.messaging.aio.Session.sync`."""
        self._loop.run(self._core.sync(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close the session; see `qmf.messaging.aio.Session.close`."""
        core = core_of(self._core)
        closed = (self._core, *(link.endpoint for link in (*core.senders, *core.receivers)))
        try:
            self._loop.run(self._core.close(timeout))
        finally:
            for endpoint in closed:
                self._registry.pop(endpoint, None)


class Sender(ConnectedEndpoint):
    """Sends messages to a node. Made by `Session.sender`; any thread may use it.

    Attributes:
        session: that it belongs to.
    """

    __slots__ = ("_link", "_wakeup", "session")

    _core: aio.Sender

    def __init__(self, core: aio.Sender, session: Session, loop: ConnectionLoop, registry: Registry) -> None:
        super().__init__(core, loop, registry)
        self.session = session
        link = self._link = aio_sender.link_of(core)
        self._wakeup = Wakeup(loop, functools.partial(link.perform, link.on_credit))

    @property
    def target(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._core.target

    @property
    def capacity(self) -> int | Constant:
        """Messages that may be sent without an answer from the broker; an int, or `UNLIMITED`."""
        return self._core.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._core.capacity = value

    @property
    def durable(self) -> bool | None:
        """Whether messages that do not say so themselves are durable; None as False."""
        return self._core.durable

    @durable.setter
    def durable(self, value: bool | None) -> None:
        self._core.durable = value

    def unsettled(self) -> int:
        """Number of messages that the broker has not answered yet."""
        return self._core.unsettled()

    def available(self) -> int | Constant:
        """Number of messages that can be sent before the capacity is exhausted."""
        return self._core.available()

    def send(self, object: Any, sync: bool = True, timeout: float | None = None) -> None:
        """Send a message; see `qmf.messaging.aio.Sender.send`."""
        message = object if isinstance(object, Message) else Message(object)
        link = self._link
        data = link.encoder.encode(message)
        answer = BlockingAnswer() if sync else None
        self._loop.check_thread()
        waited = 0.0
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
            elif not link.waits_for_credit:
                wakeup()
            return
        if not link.waits_for_credit:
            self._wakeup()
        try:
            answered = answer.wait(None if timeout is None else timeout - waited)
        finally:
            answer.abandon()  # if the wait was interrupted or too long: a refusal is reported to the handler then
        if not answered:
            raise Timeout(f"no answer to a message to {link.address.name!r} within {timeout:g} s")

    def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything; see `qmf.messaging.aio.Sender.sync`."""
        self._loop.run(self._core.sync(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close the sender; see `qmf.messaging.aio.Sender.close`."""
        try:
            self._loop.run(self._core.close(timeout))
        finally:
            self._registry.pop(self._core, None)


class Receiver(ConnectedEndpoint):
    """Receives messages from a node. Made by `Session.receiver`; any thread may use it.

    Attributes:
        session: that it belongs to.
    """

    __slots__ = ("_link", "_wakeup", "session")

    _core: aio.Receiver

    def __init__(self, core: aio.Receiver, session: Session, loop: ConnectionLoop, registry: Registry) -> None:
        super().__init__(core, loop, registry)
        self.session = session
        link = self._link = aio_receiver.link_of(core)
        self._wakeup = Wakeup(loop, functools.partial(link.perform, link.grant))

    @property
    def source(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._core.source

    @property
    def capacity(self) -> int | Constant:
        """Messages that the broker may send before they are fetched; see `qmf.messaging.aio.Receiver.capacity`."""
        return self._core.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._link.window.resize(value)
        self._loop.call_soon(functools.partial(self._link.perform, self._link.adjust))

    @property
    def threshold(self) -> float:
        """Part of the capacity: when so many messages are left to come or to be fetched, the broker may send more."""
        return self._core.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._link.window.threshold = value
        self._wakeup()

    def unsettled(self) -> int:
        """Number of messages that were fetched and are not acknowledged."""
        return self._core.unsettled()

    def available(self) -> int:
        """Number of messages that have arrived and can be fetched without waiting."""
        return self._core.available()

    def fetch(self, timeout: float | None = None) -> Message:
        """The next message; see `qmf.messaging.aio.Receiver.fetch`."""
        self._loop.check_process()
        delivery = self._link.pop()
        if delivery is None:
            if timeout == 0:
                return self._loop.run(self._core.fetch(timeout))
            self._loop.check_thread()
            delivery = self._link.wait_on_thread(timeout, self._wakeup)
            if delivery is None:
                return self._loop.run(self._link.fetch_last(timeout))
        if self._link.needs_grant():
            try:
                self._wakeup.let_run(if_busy=self._link.available() >= MANY)
            except BaseException:
                self._link.put_back(delivery)
                raise
        try:
            return self._link.decode(delivery)
        except DecodeError as error:
            self._loop.call_soon(functools.partial(_reject, delivery, str(error)))
            raise

    def close(self, timeout: float | None = None) -> None:
        """Close the receiver; see `qmf.messaging.aio.Receiver.close`."""
        try:
            self._loop.run(self._core.close(timeout))
        finally:
            self._registry.pop(self._core, None)


def _reject(delivery: ReceivedDelivery, reason: str) -> None:
    delivery.reject("amqp:decode-error", reason)
