"""Connections: opening, reconnecting, and the sessions that outlive a network connection."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import attrs

from qmf.messaging.aio.connection_states import TRANSITIONS, ConnectionState, ConnectionTrigger
from qmf.messaging.aio.driver import Driver
from qmf.messaging.aio.session import Session
from qmf.messaging.aio.waiting import Condition, deadline_of
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.exceptions import (
    AuthenticationFailure,
    ConnectError,
    ConnectionClosed,
    ConnectionError,
    Detached,
    MessagingError,
    Timeout,
    VersionError,
)
from qmf.messaging.options import ConnectionOptions, read_options

log = logging.getLogger("qmf.messaging")

#: Seconds for one attempt to connect, if the caller sets no shorter limit.
ATTEMPT_TIMEOUT = 30.0

ErrorHandler = Callable[[object, MessagingError], None]


class Connection(FixedAttributes):
    """A connection to a broker, over reconnects.

    Attributes:
        options: as given.
        condition: notified of every change; for the parts of the connection.
        sessions: those that are open, by name.
        error: why the connection failed, or None.

    Source: High Level Client API; published Python API, `Connection`.
    """

    __slots__ = (
        "_driver",
        "_id",
        "_keeper",
        "_names",
        "_on_error",
        "_state",
        "condition",
        "error",
        "options",
        "sessions",
    )

    def __init__(self, url: str | None = None, **options: Any) -> None:
        """Args:

        url: ``host``, ``host:port``, ``user/password@host``, ``amqp://...``, ``amqps://...`` or ``amqp:tcp:host:port``.
        options: see `qmf.messaging.options`.

        Raises:
            ConnectionError: an option is unknown or has a wrong type, or the URL is invalid.
        """
        self._id = uuid.uuid4()
        given = read_options(url, options)
        # The same for all network connections: brokers know subscriptions by it.
        self.options: ConnectionOptions = attrs.evolve(given, container=given.container or f"qmf-{self._id}")
        self.condition = Condition()
        self.sessions: dict[str, Session] = {}
        self.error: MessagingError | None = None
        self._state = ConnectionState.NEW
        self._driver: Driver | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._names = itertools.count()
        self._on_error: ErrorHandler | None = None

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

    # State

    def opened(self) -> bool:
        """True from `open` to `close`."""
        return self._state not in (ConnectionState.NEW, ConnectionState.CLOSED)

    @property
    def detached(self) -> bool:
        """True before `open`, and after `detach`."""
        return self._state in (ConnectionState.NEW, ConnectionState.DETACHED)

    def attached(self) -> bool:
        """True while there is a network connection."""
        return self._state is ConnectionState.ATTACHED

    def get_error(self) -> MessagingError | None:
        """Why the connection failed, or None."""
        return self.error

    def check_error(self) -> None:
        """Raise why the connection failed, if it did."""
        if self.error is not None:
            raise self.error

    def check(self) -> None:
        """Raise why the connection cannot be used now.

        Raises:
            ConnectionClosed: it is not open.
            Detached: it was detached.
            MessagingError: it failed.
        """
        self.check_error()
        if not self.opened():
            raise ConnectionClosed(text=f"the connection to {self.options.urls[0]} is {self._state.value}")
        if self._state is ConnectionState.DETACHED:
            raise Detached(text=f"the connection to {self.options.urls[0]} is detached")

    def set_async_exception_notify_handler(self, handler: ErrorHandler | None) -> None:
        """Call `handler(endpoint, error)` for errors that no call waits for.

        They are: a connection that was lost, a link that the broker ended, a message sent without `sync` that was
        refused. The handler runs on the loop's thread and must not block.
        """
        self._on_error = handler

    def report(self, endpoint: object, error: MessagingError) -> None:
        """Pass an error to the handler."""
        log.info("%s: %s", endpoint, error)
        if self._on_error is not None:
            try:
                self._on_error(endpoint, error)
            except Exception:
                log.exception("the error handler of a connection failed")

    # Opening and closing

    async def open(self, timeout: float | None = None) -> None:
        """Open the connection.

        Args:
            timeout: seconds; None for no limit, besides those of the reconnect options.

        Raises:
            ConnectError, AuthenticationFailure, VersionError: no broker could be connected to.
            ConnectionError: it is open already.
            Timeout: not within `timeout` seconds.
        """
        if self.opened():
            raise ConnectionError(text="the connection is open already")
        self._move(ConnectionTrigger.OPEN)
        self.error = None
        try:
            await self._connect(timeout)
        except BaseException:
            self._move(ConnectionTrigger.CLOSE)
            raise

    async def attach(self, timeout: float | None = None) -> None:
        """Connect again after `detach`, with all sessions and links; errors as of `open`."""
        self._move(ConnectionTrigger.ATTACH)
        if self._state is ConnectionState.CONNECTING:
            self.error = None
            try:
                await self._connect(timeout)
            except BaseException:
                if self._state is ConnectionState.CONNECTING:
                    self._move(ConnectionTrigger.DETACH)
                raise

    async def detach(self, timeout: float | None = None) -> None:
        """Close the network connection, and keep sessions and links for `attach`."""
        self._move(ConnectionTrigger.DETACH)
        await self._end(timeout)
        for session in self.sessions.values():
            session.lose()
        self.condition.notify()

    async def close(self, timeout: float | None = None) -> None:
        """Close all sessions and the connection.

        Raises:
            Timeout: sessions could not be closed in good order in time; the connection is closed nevertheless.
        """
        try:
            deadline = deadline_of(timeout)
            loop = asyncio.get_running_loop()
            for session in list(self.sessions.values()):
                if self.error is None and self._state is ConnectionState.ATTACHED:
                    await session.close(None if deadline is None else max(0.0, deadline - loop.time()))
        finally:
            self._move(ConnectionTrigger.CLOSE)
            await self._end(timeout)
            closed = ConnectionClosed(text="the connection was closed")
            for session in list(self.sessions.values()):
                session.fail(closed)
            self.sessions.clear()
            self.condition.notify()
            self.condition.cancel_timer()

    async def _end(self, timeout: float | None) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper is not asyncio.current_task():
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close(timeout)

    def _move(self, trigger: ConnectionTrigger) -> None:
        self._state = TRANSITIONS.next(self._state, trigger)

    async def _connect(self, timeout: float | None) -> None:
        task = self._keeper = asyncio.get_running_loop().create_task(self._keep_trying(first=True))
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout)
        except BaseException:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        if not done:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise Timeout(f"no connection to {self.options.urls[0]} within {timeout:g} s")
        if task.cancelled():
            raise ConnectionClosed(text="the connection was closed while it was opened")
        task.result()

    async def _keep_trying(self, *, first: bool) -> None:
        """Connect to one of the brokers; with reconnect, again and again within its limits.

        Raises:
            ConnectError, AuthenticationFailure, VersionError: all attempts failed; the last error.
        """
        reconnect = self.options.reconnect
        loop = asyncio.get_running_loop()
        give_up = None if reconnect.timeout is None or not reconnect.enabled else loop.time() + reconnect.timeout
        interval = reconnect.interval_min
        for attempt in itertools.count(1):
            error: MessagingError | None = None
            for url in self.options.urls:
                driver = Driver(url, self.options, self._lost)
                try:
                    async with asyncio.timeout(ATTEMPT_TIMEOUT):
                        await driver.connect()
                        await self._attached(driver)
                except (AuthenticationFailure, VersionError):
                    raise
                except TimeoutError:
                    error = ConnectError(text=f"cannot connect to {url}: no answer within {ATTEMPT_TIMEOUT:g} s")
                except MessagingError as failure:
                    error = failure
                else:
                    return
                log.info("%s", error)
            assert error is not None
            limited = reconnect.limit is not None and attempt >= reconnect.limit + first
            late = give_up is not None and loop.time() + interval > give_up
            if not reconnect.enabled or limited or late:
                raise error
            await asyncio.sleep(interval)
            interval = min(interval * 2, reconnect.interval_max)

    async def _attached(self, driver: Driver) -> None:
        """Put all sessions and links in place on a new network connection."""
        self._driver = driver
        try:
            for session in list(self.sessions.values()):
                await session.attach(driver)
        except BaseException:
            self._driver = None
            await driver.close()
            for session in self.sessions.values():
                session.lose()
            raise
        self._move(ConnectionTrigger.CONNECTED)
        self.condition.notify()

    def _lost(self, error: ConnectionError) -> None:
        """The network connection is gone, and not by our doing."""
        self._driver = None
        for session in self.sessions.values():
            session.lose()
        if self._state is not ConnectionState.ATTACHED:
            return  # while sessions were being attached, which notices
        if self.options.reconnect.enabled:
            self._move(ConnectionTrigger.RETRY)
            log.warning("%s; connecting again", error)
            self._keeper = asyncio.get_running_loop().create_task(self._reconnect())
        else:
            self._fail(error)
        self.condition.notify()

    async def _reconnect(self) -> None:
        try:
            await self._keep_trying(first=False)
        except MessagingError as error:
            self._fail(error)
            self.condition.notify()
        except Exception as error:
            # A defect here or below: programs that wait must learn of it.
            log.exception("connecting to %s failed", self.options.urls[0])
            self._fail(ConnectionError(text=f"cannot connect to {self.options.urls[0]}: {error}"))
            self.condition.notify()

    def _fail(self, error: MessagingError) -> None:
        self.error = error  # before the state: threads that see that look for the reason
        self._move(ConnectionTrigger.FAIL)
        for session in self.sessions.values():
            session.fail(error)
        self.report(self, error)

    def __repr__(self) -> str:
        return f"<Connection {self.options.urls[0]} {self._state.value}>"

    # Sessions

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
        self.check_error()
        full = f"{self._id}:{next(self._names) if name is None else name}"
        if full in self.sessions:
            return self.sessions[full]
        session = self.sessions[full] = Session(self, full, transactional=transactional)
        if self._driver is not None and self._state is ConnectionState.ATTACHED:
            try:
                async with asyncio.timeout(timeout):
                    await session.attach(self._driver)
            except BaseException as error:
                session.abandon()
                if isinstance(error, TimeoutError):
                    raise Timeout(f"no transaction within {timeout:g} s") from None
                raise
        return session

    def forget(self, session: Session) -> None:
        """See `SessionConnection`."""
        self.sessions.pop(session.name, None)
