"""Connections, as programs hold them."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from types import TracebackType
from typing import Any, Self

from qmf.messaging.aio.connection_core import ConnectionCore, ErrorHandler
from qmf.messaging.aio.session import Session
from qmf.messaging.aio.session_core import SessionCore
from qmf.messaging.aio.waiting import deadline_of
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.exceptions import MessagingError, Timeout
from qmf.messaging.options import ConnectionOptions, read_options


class Connection(FixedAttributes):
    """A connection to a broker, over reconnects.

    Source: High Level Client API; published Python API, `Connection`.
    """

    __slots__ = ("_core", "_id", "_names")

    def __init__(self, url: str | None = None, **options: Any) -> None:
        """Args:

        url: ``host``, ``host:port``, ``user/password@host``, ``amqp://...``, ``amqps://...`` or ``amqp:tcp:host:port``.
        options: see `qmf.messaging.options`.

        Raises:
            ConnectionError: an option is unknown or has a wrong type, or the URL is invalid.
        """
        self._core = ConnectionCore(read_options(url, options), self)
        self._id = uuid.uuid4()
        self._names = itertools.count()

    def __repr__(self) -> str:
        return repr(self._core)

    async def __aenter__(self) -> Self:
        if not self.opened():
            await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @classmethod
    async def establish(cls, url: str | None = None, timeout: float | None = None, **options: Any) -> Self:
        """Make a connection and open it; see `__init__` and `open`."""
        connection = cls(url, **options)
        await connection.open(timeout)
        return connection

    @property
    def options(self) -> ConnectionOptions:
        """The options as read."""
        return self._core.options

    def opened(self) -> bool:
        """True from `open` to `close`."""
        return self._core.opened

    def attached(self) -> bool:
        """True while there is a network connection."""
        return self._core.network is not None

    async def wait_attached(self, timeout: float | None = None) -> bool:
        """Wait until there is a network connection; False if there is none after `timeout` seconds."""
        return await self._core.condition.wait_for(self.attached, deadline_of(timeout))

    def check_error(self) -> None:
        """Raise why the connection failed, if it did."""
        self._core.check_error()

    def get_error(self) -> MessagingError | None:
        """Why the connection failed, or None."""
        return self._core.error

    def set_async_exception_notify_handler(self, handler: ErrorHandler | None) -> None:
        """Call `handler(endpoint, error)` for errors that no call waits for.

        They are: a connection that was lost, a link that the broker ended, a message sent without `sync` that was
        refused. The endpoint is the connection, session, sender or receiver that failed. The handler runs on the loop's
        thread and must not block.
        """
        self._core.on_error = handler

    async def open(self, timeout: float | None = None) -> None:
        """Open the connection.

        Args:
            timeout: seconds; None for no limit, besides those of the reconnect options.

        Raises:
            ConnectError, AuthenticationFailure, VersionError: no broker could be connected to.
            ConnectionError: it is open already.
            Timeout: not within `timeout` seconds.
        """
        await self._core.open(timeout)

    async def attach(self, timeout: float | None = None) -> None:
        """Connect again after `detach`, with all sessions and links; errors as of `open`."""
        await self._core.attach(timeout)

    async def detach(self, timeout: float | None = None) -> None:
        """Close the network connection, and keep sessions and links for `attach`."""
        await self._core.detach(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Close all sessions and the connection.

        Raises:
            Timeout: sessions could not be closed in good order in time; the connection is closed nevertheless.
        """
        await self._core.close(timeout)

    async def session(
        self, name: str | None = None, transactional: bool = False, timeout: float | None = None
    ) -> Session:
        """The session of that name; a new one if there is none.

        Args:
            name: None for a new session.
            transactional: sends and acknowledgements take effect with `Session.commit`.
            timeout: seconds to wait for the first transaction; None for no limit.

        Raises:
            Timeout: no transaction in time.
            TransactionError: the broker has no transactions.
            MessagingError: the connection failed.
        """
        core = self._core
        core.check_error()
        full = f"{self._id}:{next(self._names) if name is None else name}"
        if (known := core.sessions.get(full)) is not None and isinstance(known.endpoint, Session):
            return known.endpoint
        made = core.sessions[full] = SessionCore(core, full, transactional=transactional)
        session = Session(made)
        if core.network is not None:
            try:
                async with asyncio.timeout(timeout):
                    await made.attach(core.network)
            except BaseException as error:
                made.abandon()
                if isinstance(error, TimeoutError):
                    raise Timeout(f"no transaction within {timeout:g} s") from None
                raise
        return session
