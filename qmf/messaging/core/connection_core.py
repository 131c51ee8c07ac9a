"""What is behind a connection: its persistent connection, its sessions, and what its parts need of it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid

import attrs

from qmf.bus.client.failures import NetworkFailure
from qmf.bus.client.network_connection import Dial, NetworkConnection
from qmf.bus.client.persistent_connection import PersistentConnection
from qmf.bus.client.settings import ClientSettings, client_settings
from qmf.bus.connection_state import ConnectionState
from qmf.bus.url import BusUrl
from qmf.messaging.content_types import ContentTypes
from qmf.messaging.core.failures import connect_error, is_final, lost_error
from qmf.messaging.core.reporting import ErrorHandler, Reporter
from qmf.messaging.core.session_core import SessionCore
from qmf.messaging.core.waiting import Condition, deadline_of
from qmf.messaging.exceptions import ConnectionClosed, ConnectionError, Detached, MessagingError, Timeout
from qmf.messaging.options import ConnectionOptions

log = logging.getLogger("qmf.messaging")

#: Seconds for one attempt to connect, and then for its links.
ATTEMPT_TIMEOUT = 30.0


class ConnectionCore:
    """A connection to a broker; the owner of its persistent connection.

    Attributes:
        options: as given.
        condition: notified of every change; for the parts of the connection.
        sessions: those that are open, by name.
        error: why the connection failed, or None.
        closing: the error of what still waits when the program closes the connection; None before.
        endpoint, on_error: see `Reporter`.
    """

    def __init__(self, options: ConnectionOptions, dial: Dial | None = None) -> None:
        """Make a connection that is not open yet.

        Args:
            options: see there.
            dial: see `qmf.bus.client.network_connection`.
        """
        self._dial = dial
        self._id = uuid.uuid4()
        # The same container for all network connections: brokers know subscriptions by it.
        self.options = attrs.evolve(options, container=options.container or f"qmf-{self._id}")
        self.condition = Condition()
        self.sessions: dict[str, SessionCore] = {}
        self.error: MessagingError | None = None
        self.closing: MessagingError | None = None
        self.endpoint: object = self
        self.on_error: ErrorHandler | None = None
        self._names = itertools.count()
        self._connection = self._new_connection()

    def _new_connection(self) -> PersistentConnection:
        return PersistentConnection(
            self.options.urls,
            self,
            settings=self._settings,
            ssl_context=self.options.ssl_context,
            waits=lambda again: self.options.reconnect.waits(again),
            attempt_timeout=ATTEMPT_TIMEOUT,
            dial=self._dial,
        )

    def change(self, options: ConnectionOptions) -> None:
        """Use other options; the connection must not be open."""
        self.options = attrs.evolve(options, container=self.options.container)
        if self._connection.state is ConnectionState.NEW:
            self._connection = self._new_connection()

    def change_reconnecting(self, options: ConnectionOptions) -> None:
        """Use the URLs and the options of reconnecting of other options, from the next loss or attempt on."""
        self.options = attrs.evolve(self.options, urls=options.urls, reconnect=options.reconnect)
        self._connection.urls = options.urls

    def _settings(self, url: BusUrl) -> ClientSettings:
        options = self.options
        if url.username is None:
            url = attrs.evolve(url, username=options.username)
        if url.password is None:
            url = attrs.evolve(url, password=options.password)
        return client_settings(
            url,
            options.container or "",
            mechanisms=options.mechanisms,
            heartbeat=options.heartbeat,
            max_message=options.max_message_size,
            token=options.token,
            properties=options.properties,
        )

    def __repr__(self) -> str:
        return f"<Connection {self.options.urls[0]} {self._connection.state.value}>"

    # State

    @property
    def network(self) -> NetworkConnection | None:
        """The network connection, with all links in place; None while there is none."""
        return self._connection.network

    @property
    def content_types(self) -> ContentTypes:
        """See `SessionConnection`."""
        return self.options.content_types

    @property
    def opened(self) -> bool:
        """True from `open` to `close`."""
        return self._connection.state not in (ConnectionState.NEW, ConnectionState.CLOSED)

    @property
    def detached(self) -> bool:
        """True before `open`, and after `detach`."""
        return self._connection.state in (ConnectionState.NEW, ConnectionState.DETACHED)

    def check_error(self) -> None:
        """Raise why the connection failed, if it did."""
        if self.error is not None:
            raise self.error

    def check(self) -> None:
        """Raise why the connection cannot be used now.

        Raises:
            ConnectionClosed: it was closed.
            Detached: it was detached, or not opened yet.
            MessagingError: it failed.
        """
        self.check_error()
        if self.detached:
            raise Detached(text=self.state_text())
        if not self.opened:
            raise ConnectionClosed(text=self.state_text())

    def state_text(self) -> str:
        """What the connection is, for messages."""
        return f"the connection to {self.options.urls[0]} is {self._connection.state.value}"

    def report(self, source: Reporter, error: MessagingError) -> None:
        """Pass an error to the program's handler, if that has one for what failed.

        Args:
            source: what failed.
            error: why.
        """
        log.info("%s: %s", source, error)
        if source.on_error is not None:
            try:
                source.on_error(source.endpoint, error)
            except Exception:
                log.exception("an error handler failed")

    # Opening and closing

    async def open(self, timeout: float | None) -> None:
        """See `Connection.open`."""
        if self.opened:
            raise ConnectionError(text="the connection is open already")
        if self._connection.state is ConnectionState.CLOSED:
            self._connection = self._new_connection()
        await self._connect(timeout)

    async def attach(self, timeout: float | None) -> None:
        """See `Connection.attach`."""
        if self.network is not None:
            return
        if self._connection.state is not ConnectionState.DETACHED:
            raise ConnectionError(text=self.state_text())
        await self._connect(timeout)

    async def _connect(self, timeout: float | None) -> None:
        self.error = None
        connection = self._connection
        try:
            async with asyncio.timeout(timeout):
                await connection.open()
        except TimeoutError:
            raise Timeout(f"no connection to {self.options.urls[0]} within {timeout:g} s") from None
        except NetworkFailure as failure:
            if connection.state is ConnectionState.CLOSED:
                raise ConnectionClosed(text="the connection was closed while it was opened") from None
            self.error = connect_error(failure)
            self.report(self, self.error)
            raise self.error from failure.__cause__

    async def detach(self, timeout: float | None) -> None:
        """See `Connection.detach`."""
        await self._connection.detach(timeout)
        self.condition.notify()

    async def close(self, timeout: float | None) -> None:
        """See `Connection.close`."""
        try:
            deadline = deadline_of(timeout)
            loop = asyncio.get_running_loop()
            for session in list(self.sessions.values()):
                if self.error is None and self.network is not None:
                    await session.close(None if deadline is None else max(0.0, deadline - loop.time()))
        finally:
            await self._connection.close(timeout)
            self.closing = ConnectionClosed(text="the connection was closed")
            for session in list(self.sessions.values()):
                session.fail(self.closing)
            self.sessions.clear()
            self.condition.notify()
            self.condition.cancel_timer()

    # ConnectionOwner

    async def attach_links(self, network: NetworkConnection) -> None:
        """See `ConnectionOwner`."""
        for session in list(self.sessions.values()):
            await session.attach(network)

    def lose(self, failure: NetworkFailure) -> None:  # noqa: ARG002
        """See `ConnectionOwner`."""
        for session in self.sessions.values():
            session.lose()

    def on_connected(self, network: NetworkConnection, *, again: bool) -> None:  # noqa: ARG002
        """See `ConnectionOwner`."""
        self.condition.notify()

    def on_disconnected(self, failure: NetworkFailure, wait: float | None) -> None:
        """See `ConnectionOwner`."""
        error = lost_error(failure)
        if wait is None:
            self._fail(error)
        else:
            log.warning("%s; connecting again", error)
            self.condition.notify()

    def on_given_up(self, error: Exception) -> None:
        """See `ConnectionOwner`."""
        if isinstance(error, NetworkFailure):
            self._fail(connect_error(error))
        elif isinstance(error, MessagingError):
            self._fail(error)
        else:  # a defect here or below: programs that wait must learn of it
            log.error("connecting to %s failed", self.options.urls[0], exc_info=error)
            self._fail(ConnectionError(text=f"cannot connect to {self.options.urls[0]}: {error}"))

    def is_final(self, error: Exception) -> bool:
        """See `ConnectionOwner`."""
        return is_final(error)

    def _fail(self, error: MessagingError) -> None:
        self.error = error
        for session in self.sessions.values():
            session.fail(error)
        self.report(self, error)
        self.condition.notify()

    # Sessions

    async def session(self, name: str | None, transactional: bool, timeout: float | None) -> SessionCore:
        """See `Connection.session`."""
        self.check_error()
        full = f"{self._id}:{next(self._names) if name is None else name}"
        if (known := self.sessions.get(full)) is not None:
            return known
        session = self.sessions[full] = SessionCore(self, full, transactional=transactional)
        if self.network is not None:
            try:
                async with asyncio.timeout(timeout):
                    await session.attach(self.network)
            except BaseException as error:
                session.abandon()
                if isinstance(error, TimeoutError):
                    raise Timeout(f"no transaction within {timeout:g} s") from None
                raise
        return session

    def forget(self, session: SessionCore) -> None:
        """The session is closed."""
        self.sessions.pop(session.name, None)
