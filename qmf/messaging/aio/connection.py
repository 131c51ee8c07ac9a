"""Connections for asyncio."""

from __future__ import annotations

from typing import Any, Self

from qmf._closable import AsyncClosable
from qmf.messaging.aio.opening import opens
from qmf.messaging.aio.session import Session
from qmf.messaging.bases import ConnectionBase
from qmf.messaging.core.waiting import deadline_of


class Connection(ConnectionBase, AsyncClosable):
    """A connection to a broker, over reconnects.

    Source: High Level Client API; published Python API, `Connection`.
    """

    __slots__ = ()

    def __init__(self, url: str | None = None, **options: Any) -> None:
        """Make a connection, which `open` opens.

        Args:
            url: ``host``, ``host:port``, ``user/password@host``, ``amqp://...``, ``amqps://...`` or
                ``amqp:tcp:host:port``.
            options: see `qmf.messaging.options`.

        Raises:
            ConnectionError: an option is unknown or has a wrong type, or the URL is invalid.
        """
        super().__init__(url, options, self._dialer())

    async def __aenter__(self) -> Self:
        if not self.opened():
            await self.open()
        return self

    @classmethod
    @opens
    async def establish(cls, url: str | None = None, timeout: float | None = None, **options: Any) -> Self:
        """Make a connection and open it; see `__init__` and `open`. Entered as a context, it is closed at its end."""
        connection = cls(url, **options)
        await connection.open(timeout)
        return connection

    async def wait_attached(self, timeout: float | None = None) -> bool:
        """Wait until there is a network connection; False if there is none after `timeout` seconds."""
        return await self._core.condition.wait_for(self.attached, deadline_of(timeout))

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

    @opens
    async def session(
        self, name: str | None = None, transactional: bool = False, timeout: float | None = None
    ) -> Session:
        """The session of that name; a new one if there is none. Entered as a context, it is closed at its end.

        Args:
            name: None for a new session.
            transactional: sends and acknowledgements take effect with `Session.commit`.
            timeout: seconds to wait for the first transaction; None for no limit.

        Raises:
            Timeout: no transaction in time.
            TransactionError: the broker has no transactions.
            MessagingError: the connection failed.
        """
        core = await self._core.session(name, transactional, timeout)
        return core.endpoint if isinstance(core.endpoint, Session) else Session(core)
