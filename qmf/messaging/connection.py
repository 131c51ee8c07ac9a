"""The synchronous connection: a thin form of that in `qmf.messaging.aio`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.loop import ConnectionLoop, Registry
from qmf.messaging.session import Session

if TYPE_CHECKING:
    from types import TracebackType


class Connection:
    """A connection to a broker, over reconnects. Any thread may use it.

    Blocking calls end with their timeout, with the loss of the connection (unless it reconnects), and with Ctrl-C.

    Source: High Level Client API; published Python API, `Connection`.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        """See `qmf.messaging.aio.Connection`; nothing is connected yet."""
        self._core = aio.Connection(url, **options)
        self._loop = ConnectionLoop()
        self._registry: Registry = {}

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def set_async_exception_notify_handler(self, handler: Callable[[object, MessagingError], None] | None) -> None:
        """Call `handler(endpoint, error)` for errors that no call waits for.

        The endpoint is this connection, or the session, sender or receiver that failed. See
        `qmf.messaging.aio.Connection.set_async_exception_notify_handler`. The handler runs on the thread of the
        connection; it must not block, and must not call methods that wait for the broker.
        """
        if handler is None:
            self._core.set_async_exception_notify_handler(None)
        else:
            self._core.set_async_exception_notify_handler(
                lambda core, error: handler(self._registry.get(core, self), error)
            )

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
                session = self._registry[core] = Session(core, self._loop, self._registry)
            return session

        return self._loop.run(make())
