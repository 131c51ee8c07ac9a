"""What the connections, sessions, senders and receivers of the synchronous API have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeAlias

from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.loop import ConnectionLoop

#: Called with the endpoint that failed, and why.
ErrorHandler: TypeAlias = Callable[[object, MessagingError], None]


class Endpoint(FixedAttributes):
    """Something that can fail while no call waits for it."""

    __slots__ = ("_on_error",)

    def __init__(self) -> None:
        self._on_error: ErrorHandler | None = None

    def set_async_exception_notify_handler(self, handler: ErrorHandler | None) -> None:
        """Call `handler(endpoint, error)` for errors that no call waits for.

        They are: a connection that was lost, a link that the broker ended, a message sent without `sync` that was
        refused. The endpoint is the connection, session, sender or receiver that failed. Its own handler is called, or
        else that of its connection. The handler runs on the thread of the connection; it must not block, and must not
        call methods that wait for the broker.
        """
        self._on_error = handler

    def _report(self, error: MessagingError, connection: Endpoint) -> None:
        handler = self._on_error or connection._on_error
        if handler is not None:
            handler(self, error)


#: The open sessions, senders and receivers of a connection, by those of `qmf.messaging.aio` behind them.
Registry: TypeAlias = dict[object, Endpoint]


class _Core(Protocol):
    """A session, sender or receiver of `qmf.messaging.aio`."""

    @property
    def closed(self) -> bool: ...

    def check_error(self) -> None: ...

    def get_error(self) -> MessagingError | None: ...


class ConnectedEndpoint(Endpoint):
    """A session, sender or receiver."""

    __slots__ = ("_core", "_loop", "_registry")

    def __init__(self, core: _Core, loop: ConnectionLoop, registry: Registry) -> None:
        super().__init__()
        self._core = core
        self._loop = loop
        self._registry = registry

    def __repr__(self) -> str:
        return repr(self._core)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._core.closed

    def check_error(self) -> None:
        """Raise why this cannot be used, if so."""
        self._core.check_error()

    def get_error(self) -> MessagingError | None:
        """Why this failed, or None."""
        return self._core.get_error()

    def close(self, timeout: float | None = None) -> None:
        """Close it; see the class of the same name in `qmf.messaging.aio`."""
        raise NotImplementedError
