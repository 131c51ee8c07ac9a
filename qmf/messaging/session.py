"""The synchronous session: a thin form of that in `qmf.messaging.aio`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from qmf.messaging import aio
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.endpoints import Receiver, Sender
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.loop import ConnectionLoop, Registry
from qmf.messaging.message import Disposition, Message

if TYPE_CHECKING:
    from types import TracebackType


class Session:
    """A session of a connection. Made by `Connection.session`; any thread may use it.

    Attributes:
        name: unique in its connection.
        transactional: True if sends and acknowledgements take effect with `commit`.
    """

    def __init__(self, core: aio.Session, loop: ConnectionLoop, registry: Registry) -> None:
        self.name = core.name
        self.transactional = core.transactional
        self._core = core
        self._loop = loop
        self._registry = registry

    def __repr__(self) -> str:
        return repr(self._core)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._core.closed

    def check_error(self) -> None:
        """Raise why the session cannot be used, if so."""
        self._core.check()

    def get_error(self) -> MessagingError | None:
        """Why the session failed, or None."""
        return self._core.error

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
            core = await self._core.sender(target, capacity=capacity, timeout=timeout)
            sender = self._registry[core] = Sender(core, self._loop, self._registry, durable)
            return sender

        return self._loop.run(make())

    def receiver(self, source: str, *, capacity: int | Constant = 0, timeout: float | None = None) -> Receiver:
        """Open a receiver; see `qmf.messaging.aio.Session.receiver`."""

        async def make() -> Receiver:
            core = await self._core.receiver(source, capacity=capacity, timeout=timeout)
            receiver = self._registry[core] = Receiver(core, self._loop, self._registry)
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
        self._core.check()
        deliveries = self._core.take_unacknowledged(message)
        self._loop.call_soon(functools.partial(self._core.settle, deliveries, disposition, confirm=False))

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
        cores = (self._core, *self._core.senders, *self._core.receivers)
        try:
            self._loop.run(self._core.close(timeout))
        finally:
            for core in cores:
                self._registry.pop(core, None)
