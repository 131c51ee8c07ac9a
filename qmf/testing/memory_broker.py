"""A broker within the process of a test, and connections to it: messaging without a port and without a network."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any, Self

from qmf import messaging
from qmf._closable import Closable
from qmf.broker import EmbeddedBroker
from qmf.errors import CallerError
from qmf.messaging import aio

#: The URL that stands for the broker; nothing looks it up.
URL = "amqp://memory"


class MemoryBroker(Closable):
    """The embedded broker without a port, for tests of programs that use `qmf.messaging` or `qmf.messaging.aio`.

    Connections reach it through a pair of sockets of the process. All else is as with `qmf-broker`: addresses,
    browsing, selectors, transactions, redelivery. It runs in a thread of its own, and serves tests with and without
    asyncio.

    Attributes:
        Connection: the class to use in place of `qmf.messaging.Connection`; whatever the URL, it reaches this broker.
        AsyncConnection: the same for `qmf.messaging.aio.Connection`.
    """

    Connection: type[messaging.Connection]
    AsyncConnection: type[aio.Connection]

    def __init__(self, **options: Any) -> None:
        """Prepare a broker, which starts when the block is entered.

        Args:
            options: of `qmf.broker.Broker`, such as `queues` or `users`.
        """
        self._broker = EmbeddedBroker("", 0, **options)
        #: Second handles of the clients' sockets.
        self._sockets: list[socket.socket] = []
        reached: dict[str, Any] = {"__slots__": (), "_dialer": lambda _: self._dial}
        self.Connection = type("Connection", (messaging.Connection,), reached)
        self.AsyncConnection = type("Connection", (aio.Connection,), reached)

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start the broker."""
        self._broker.start()

    def close(self) -> None:
        """Close the broker, with the connections to it and all that it has. A second call does nothing."""
        self._broker.close()
        self._forget_sockets()

    def connection(self, **options: Any) -> messaging.Connection:
        """A new connection, which is open; the options are those of `Connection`."""
        return self.Connection.establish(URL, **options)

    async def async_connection(self, **options: Any) -> aio.Connection:
        """The same for asyncio."""
        return await self.AsyncConnection.establish(URL, **options)

    def messages(self, address: str) -> list[messaging.Message]:
        """The messages that wait in a queue, which stay there, in their order.

        Raises:
            NotFound: there is no such queue.
        """
        found: list[messaging.Message] = []
        with self.connection() as connection:
            receiver = connection.session().receiver(f"{address}; {{mode: browse}}", capacity=100)
            with contextlib.suppress(messaging.Empty):
                while True:
                    found.append(receiver.fetch(timeout=0))
        return found

    def disconnect(self) -> None:
        """Cut all connections, as a failing network does; they may come again at once."""
        for item in self._sockets:
            with contextlib.suppress(OSError):  # closed by its client
                item.shutdown(socket.SHUT_RDWR)
        self._forget_sockets()

    def _forget_sockets(self) -> None:
        sockets, self._sockets = self._sockets, []
        for item in sockets:
            item.close()

    async def _dial(self, protocol: asyncio.BaseProtocol) -> None:
        loop = asyncio.get_running_loop()
        try:
            near = await loop.run_in_executor(None, self._broker.connect)
        except CallerError as error:
            raise OSError(str(error)) from error
        near.setblocking(False)
        self._sockets.append(near.dup())
        if near.family == getattr(socket, "AF_UNIX", None):
            await loop.create_unix_connection(lambda: protocol, sock=near)
        else:
            await loop.create_connection(lambda: protocol, sock=near)
