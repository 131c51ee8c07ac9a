"""The synchronous sender and receiver: thin forms of those in `qmf.messaging.aio`.

What needs no answer from the broker is done on the caller's thread: encoding and decoding, queueing a message, fetching
one that has arrived. The loop's thread is only woken up to move bytes, once for many messages.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from qmf.messaging import aio
from qmf.messaging.addresses import Address
from qmf.messaging.aio.deliveries import ReceivedDelivery
from qmf.messaging.constants import Constant
from qmf.messaging.exceptions import DecodeError, MessagingError, Timeout
from qmf.messaging.loop import ConnectionLoop, Registry
from qmf.messaging.message import Message

if TYPE_CHECKING:
    from types import TracebackType


class Wakeup:
    """Calls a function on the loop's thread soon; calls that have not begun yet are one."""

    def __init__(self, loop: ConnectionLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._scheduled = False

    def __call__(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self._callback()


class BlockingAnswer:
    """The outcome of one message, for one thread that waits. Cheaper than a future of `concurrent.futures`."""

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._abandoned = False
        self._locked = threading.Lock()
        self._locked.acquire()

    def done(self) -> bool:
        """True once there is an outcome, or nobody waits for it any more."""
        return self._abandoned or not self._locked.locked()

    def abandon(self) -> None:
        """Nobody waits for the outcome any more."""
        self._abandoned = True

    def set_result(self, result: None) -> None:
        """The message was accepted."""
        del result
        self._locked.release()

    def set_exception(self, exception: BaseException) -> None:
        """The message was not accepted."""
        self._error = exception
        self._locked.release()

    def wait(self, timeout: float | None) -> bool:
        """Wait for the outcome.

        Returns:
            False if there is none after `timeout` seconds.

        Raises:
            MessagingError: the message was not accepted.
        """
        if not self._locked.acquire(timeout=-1 if timeout is None else max(0.0, min(timeout, threading.TIMEOUT_MAX))):
            return False
        self._locked.release()
        if self._error is not None:
            raise self._error
        return True


class Sender:
    """Sends messages to a node. Made by `Session.sender`; any thread may use it."""

    def __init__(self, core: aio.Sender, loop: ConnectionLoop, registry: Registry, durable: bool | None) -> None:
        self._core = core
        self._loop = loop
        self._registry = registry
        self._durable = durable
        self._wakeup = Wakeup(loop, core.on_credit)

    def __repr__(self) -> str:
        return repr(self._core)

    def __enter__(self) -> Sender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def target(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._core.node

    @property
    def capacity(self) -> int | Constant:
        """Messages that may be sent without an answer from the broker; an int, or `UNLIMITED`."""
        return self._core.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._core.capacity = value

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._core.closed

    def check_error(self) -> None:
        """Raise why the sender cannot be used, if so."""
        self._core.check()

    def get_error(self) -> MessagingError | None:
        """Why the sender failed, or None."""
        return self._core.error

    def unsettled(self) -> int:
        """Number of messages that the broker has not answered yet."""
        return self._core.unsettled()

    def available(self) -> int | Constant:
        """Number of messages that can be sent before the capacity is exhausted."""
        return self._core.available()

    def send(self, object: Any, sync: bool = True, timeout: float | None = None) -> None:
        """Send a message; see `qmf.messaging.aio.Sender.send`."""
        message = object if isinstance(object, Message) else Message(object)
        if self._durable is not None and message.durable is None:
            message.durable = self._durable
        data = self._core.encode(message)
        answer = BlockingAnswer() if sync else None
        self._loop.check_thread()
        if not self._core.post(data, answer):
            # No capacity, no connection, or an error to raise: the long way.
            self._loop.run(self._core.send_encoded(data, sync, timeout))
            return
        self._wakeup()
        if answer is None:
            return
        try:
            answered = answer.wait(timeout)
        finally:
            answer.abandon()  # if the wait was interrupted or too long: a refusal is reported to the handler then
        if not answered:
            raise Timeout(f"no answer to a message to {self._core.address.name!r} within {timeout:g} s")

    def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything; see `qmf.messaging.aio.Sender.sync`."""
        self._loop.run(self._core.sync(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close the sender; see `qmf.messaging.aio.Sender.close`."""
        try:
            self._loop.run(self._core.close(timeout))
        finally:
            self._registry.pop(self._core, None)


class Receiver:
    """Receives messages from a node. Made by `Session.receiver`; any thread may use it."""

    def __init__(self, core: aio.Receiver, loop: ConnectionLoop, registry: Registry) -> None:
        self._core = core
        self._loop = loop
        self._registry = registry
        self._wakeup = Wakeup(loop, core.grant)

    def __repr__(self) -> str:
        return repr(self._core)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def source(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._core.node

    @property
    def capacity(self) -> int | Constant:
        """Messages that the broker may send before they are fetched; 0: only while a fetch waits for one."""
        return self._core.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._loop.call_soon(functools.partial(setattr, self._core, "capacity", value))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._core.closed

    def check_error(self) -> None:
        """Raise why the receiver cannot be used, if so."""
        self._core.check()

    def get_error(self) -> MessagingError | None:
        """Why the receiver failed, or None."""
        return self._core.error

    def unsettled(self) -> int:
        """Number of messages that were fetched and are not acknowledged."""
        return self._core.unsettled()

    def available(self) -> int:
        """Number of messages that have arrived and can be fetched without waiting."""
        return self._core.available()

    def fetch(self, timeout: float | None = None) -> Message:
        """The next message; see `qmf.messaging.aio.Receiver.fetch`."""
        self._loop.check_process()
        delivery = self._core.pop()
        if delivery is None:
            return self._loop.run(self._core.fetch(timeout))
        if self._core.needs_grant():
            self._wakeup()
        try:
            return self._core.decode(delivery)
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
