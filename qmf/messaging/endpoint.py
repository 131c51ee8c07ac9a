"""What connections, sessions, senders and receivers have in common."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.core.reporting import ErrorHandler, Reporter
from qmf.messaging.exceptions import MessagingError


class EndpointCore(Reporter, Protocol):
    """What is behind an object of the API."""

    error: MessagingError | None


CoreT = TypeVar("CoreT", bound=EndpointCore)


class Endpoint(FixedAttributes, Generic[CoreT]):
    """What a connection, a session, a sender and a receiver have in common: an error, and a handler of it."""

    __slots__ = ("_core",)

    def __init__(self, core: CoreT) -> None:
        self._core = core
        core.endpoint = self

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def error(self) -> MessagingError | None:
        """Why this failed, or None."""
        return self._core.error

    def get_error(self) -> MessagingError | None:
        """Why this failed, or None."""
        return self._core.error

    def set_async_exception_notify_handler(self, handler: ErrorHandler | None) -> None:
        """Call `handler(endpoint, error)` when this fails.

        The errors are: of a connection that it could not be made or was lost, of a session that the broker ended it, of
        a sender or receiver that the broker refused or ended it, and of a sender that a message was not accepted. A
        call that waits raises the same error. The handler of a session or connection is not called for the errors of
        what belongs to it, nor the other way round. It runs on the thread of the connection's loop, must not block, and
        must not call methods that wait for the broker.
        """
        self._core.on_error = handler
