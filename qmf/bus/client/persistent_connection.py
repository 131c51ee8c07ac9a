"""A connection to a broker that outlives its network connections: attempts, waits between them, further URLs.

It has one `NetworkConnection` after the other. Its owner puts its links in place on each of them; only then the
connection counts as connected. The states are those of `qmf/bus/connection_state.py`. proton, and the modules that need
it, are imported with the first attempt: that takes longer than importing everything else.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from qmf.bus.client.failures import NetworkFailure
from qmf.bus.client.settings import ClientSettings
from qmf.bus.connection_state import TRANSITIONS, ConnectionState, ConnectionTrigger
from qmf.bus.url import BusUrl
from qmf.errors import CallerError

if TYPE_CHECKING:
    from qmf.bus.client.network_connection import Dial, NetworkConnection

log = logging.getLogger("qmf.bus")


class ConnectionOwner(Protocol):
    """Owner of a persistent connection; called on the loop's thread, must not block."""

    async def attach_links(self, network: NetworkConnection) -> None:
        """Put all links in place on a new network connection. An error fails the attempt."""

    def lose(self, failure: NetworkFailure) -> None:
        """The network connection is gone with its links, those of a failed attempt included."""

    def on_connected(self, network: NetworkConnection, *, again: bool) -> None:
        """All links are in place; `again` is True after a reconnect."""

    def on_disconnected(self, failure: NetworkFailure, wait: float | None) -> None:
        """The network connection was lost; the next attempt follows after `wait` seconds, or none if that is None."""

    def on_given_up(self, error: Exception) -> None:
        """The last attempt to reconnect has failed."""

    def is_final(self, error: Exception) -> bool:
        """True if no further attempt shall be made after this error of one."""


class PersistentConnection:
    """A connection that is opened again when it is lost.

    Attributes:
        state: see `qmf/bus/connection_state.py`.
        network: the network connection; None while there is none with all links in place.
        failure: why the last network connection ended or the last attempt failed, or None.
        urls: of brokers, which each attempt tries in this order; other ones may be set for the next attempt.
    """

    def __init__(
        self,
        urls: Sequence[BusUrl],
        owner: ConnectionOwner,
        *,
        settings: Callable[[BusUrl], ClientSettings],
        ssl_context: ssl.SSLContext | Callable[[], ssl.SSLContext] | None,
        waits: Callable[[bool], Iterator[float]],
        attempt_timeout: float,
        dial: Dial | None = None,
    ) -> None:
        """Make a connection that is not open yet.

        Args:
            urls: of brokers, which each attempt tries in this order; at least one.
            owner: notified of what happens.
            settings: makes the settings for a URL.
            ssl_context: for URLs with TLS, or what makes it for each attempt; None for one that trusts the system's
                authorities and checks the host's name.
            waits: makes the seconds to wait before each attempt, called with False for the first connection and with
                True after a loss; no further attempts follow after its end.
            attempt_timeout: seconds for one attempt at one URL, for the connection and then for its links.
            dial: see `NetworkConnection`.
        """
        self._dial = dial
        self.state = ConnectionState.NEW
        self.network: NetworkConnection | None = None
        self.failure: Exception | None = None
        self.urls = urls
        self._owner = owner
        self._settings = settings
        self._ssl_context = ssl_context
        self._waits = waits
        self._attempt_timeout = attempt_timeout
        self._keeper: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """True while there is a network connection with all links in place."""
        return self.state is ConnectionState.CONNECTED

    @property
    def reason(self) -> str:
        """Why it is not connected, in one line."""
        if self.failure is None:
            return self.state.value
        return self.failure.reason if isinstance(self.failure, NetworkFailure) else str(self.failure)

    async def open(self, attempt_timeout: float | None = None) -> None:
        """Connect, for the first time or after `detach`. When this fails or is cancelled, it can be called again.

        Args:
            attempt_timeout: of these attempts, if it is another than usual.

        Raises:
            NetworkFailure: all attempts have failed, or the connection was closed meanwhile; the last failure. It may
                be an error of the owner as well.
            BusStateError: it is open or closed already.
        """
        undo = ConnectionTrigger.FAILED if self.state is ConnectionState.NEW else ConnectionTrigger.DETACH
        self._move(ConnectionTrigger.CONNECT)
        waits = self._waits(False)
        keeper = self._keeper = asyncio.get_running_loop().create_task(
            self._keep_trying(next(waits, 0.0), waits, attempt_timeout or self._attempt_timeout, again=False)
        )
        try:
            await asyncio.wait({keeper})
            if keeper.cancelled():
                raise NetworkFailure(self.urls[0], "closed while connecting")
            keeper.result()
        except BaseException:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
            if self.state is ConnectionState.CONNECTING:
                self._move(undo)
            raise

    async def detach(self, timeout: float | None = None) -> None:
        """Close the network connection, in at most `timeout` seconds if given, until `open` is called again."""
        if self.state in (ConnectionState.CONNECTING, ConnectionState.CONNECTED):
            self._move(ConnectionTrigger.DETACH)
            await self._end(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Close the connection for good, in at most `timeout` seconds if given. A second call does nothing."""
        if self.state is not ConnectionState.CLOSED:
            self._move(ConnectionTrigger.CLOSE)
            await self._end(timeout)

    async def _end(self, timeout: float | None) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper is not asyncio.current_task():
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        network, self.network = self.network, None
        if network is not None:
            try:
                await network.close(timeout)
            finally:
                self._owner.lose(NetworkFailure(network.url, "closed"))

    def _move(self, trigger: ConnectionTrigger) -> None:
        self.state = TRANSITIONS.next(self.state, trigger)

    async def _keep_trying(self, wait: float, waits: Iterator[float], timeout: float, *, again: bool) -> None:
        """Try to connect after `wait` seconds, then after each of `waits`, until that succeeds.

        Raises:
            Exception: the error of the last attempt.
        """
        while True:
            if wait:
                await asyncio.sleep(wait)
            try:
                network = await self._connect(timeout)
            except Exception as error:
                self.failure = error
                following = None if self._owner.is_final(error) else next(waits, None)
                if following is None:
                    raise
                wait = following
                if isinstance(error, NetworkFailure):
                    log.info("cannot connect to %s; trying again in %.1f s", error, wait)
                else:
                    # Of the owner; or a bug, which must not end a program that runs for years.
                    log.exception("connecting to %s failed; trying again in %.1f s", self.urls[0], wait)
            else:
                self.network = network
                self._move(ConnectionTrigger.CONNECTED)
                self._owner.on_connected(network, again=again)
                return

    async def _connect(self, timeout: float) -> NetworkConnection:
        """One attempt: the first of the URLs that works."""
        urls = self.urls
        for url in urls[:-1]:
            try:
                return await self._connect_to(url, timeout)
            except Exception as error:
                if self._owner.is_final(error):
                    raise
                log.info("%s", error)
        return await self._connect_to(urls[-1], timeout)

    async def _connect_to(self, url: BusUrl, timeout: float) -> NetworkConnection:
        from qmf.bus.client.network_connection import NetworkConnection

        network = NetworkConnection(url, self._settings(url), self._on_lost, self._dial)
        await network.connect(self._tls_context(url), timeout)
        try:
            async with asyncio.timeout(timeout) as limit:
                if network.usable:
                    await self._owner.attach_links(network)
            if network.failure is not None:
                raise network.failure
        except BaseException as error:
            late = isinstance(error, TimeoutError) and limit.expired()
            ended = network.failure is not None and isinstance(error, Exception)  # before we end it
            failure = network.failure or NetworkFailure(url, f"links not confirmed within {timeout:g} s")
            await network.close()
            self._owner.lose(failure)
            if late or ended:
                raise failure from None
            raise
        return network

    def _tls_context(self, url: BusUrl) -> ssl.SSLContext | None:
        if not url.tls:
            return None
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        if isinstance(self._ssl_context, ssl.SSLContext):
            return self._ssl_context
        try:
            return self._ssl_context()
        except CallerError as error:
            raise NetworkFailure(url, str(error)) from error

    def _on_lost(self, failure: NetworkFailure) -> None:
        """The network connection has ended, and not by our doing."""
        self.network, self.failure = None, failure
        self._owner.lose(failure)
        if self.state is not ConnectionState.CONNECTED:
            return  # while links were being attached, which notices
        waits = self._waits(True)
        wait = next(waits, None)
        if wait is None:
            self._move(ConnectionTrigger.DETACH)
        else:
            self._move(ConnectionTrigger.LOST)
            self._keeper = asyncio.get_running_loop().create_task(self._reconnect(wait, waits))
        self._owner.on_disconnected(failure, wait)

    async def _reconnect(self, wait: float, waits: Iterator[float]) -> None:
        try:
            await self._keep_trying(wait, waits, self._attempt_timeout, again=True)
        except Exception as error:  # noqa: BLE001  # the owner reports it
            self._move(ConnectionTrigger.DETACH)
            self._owner.on_given_up(error)
