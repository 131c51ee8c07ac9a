"""The real bus: AMQP 1.0 over TCP or TLS, which reconnects after losses of the connection.

`AmqpBus` owns what outlives a connection: subscriptions, watchers, and the state of `bus_state.py`. Each connection is
a `ClientConnection`. After a loss the bus connects again with back-off, attaches every subscription, and only then is
connected again. proton, and the modules that need it, are imported with the first connection: that takes longer than
importing everything else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._marks import OWN_CONNECTION
from qmf._version import __version__
from qmf.bus.backoff import Backoff
from qmf.bus.base import (
    Binding,
    Bus,
    BusEvent,
    BusWatcher,
    Connected,
    Disconnected,
    LinkLost,
    MessageCallback,
    OutcomeCallback,
)
from qmf.bus.bus_state import TRANSITIONS, BusState, BusTrigger
from qmf.bus.url import BusUrl, parse_url
from qmf.bus.watchers import BusWatchers
from qmf.errors import ConnectError, DisconnectedError, LinkError

if TYPE_CHECKING:
    from qmf.bus.client.connection import ClientConnection
    from qmf.bus.client.subscription import AmqpSubscription

log = logging.getLogger("qmf.bus")

#: Seconds between heartbeats. A broker that cannot be reached any more is noticed after twice that, which is short
#: enough for a console and costs a few small frames per minute.
HEARTBEAT = 15.0
#: Seconds for one attempt to reconnect.
ATTEMPT_TIMEOUT = 10.0


class AmqpBus(Bus):
    """A bus on an AMQP 1.0 broker."""

    def __init__(
        self,
        url: str | BusUrl,
        *,
        container: str | None = None,
        username: str | None = None,
        password: str | None = None,
        mechanisms: Sequence[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        reconnect: bool = True,
        heartbeat: float | None = HEARTBEAT,
        backoff: Backoff | None = None,
    ) -> None:
        """Args:

        url: as in `parse_url`. With ``amqp://`` a password is sent in the clear; use ``amqps://`` across networks.
        container: our container id; by default a new one per connection. With a fixed one, a broker that has not
            noticed the end of the old connection yet may refuse the new one.
        username, password: user to log in as; they take precedence over those of the URL. Without a user, SASL
            ANONYMOUS is used.
        mechanisms: SASL mechanisms allowed; by default PLAIN with a user, ANONYMOUS without: the bus never falls back
            from a user to anonymous access.
        ssl_context: for ``amqps://``; by default one that trusts the system's authorities and checks the host's name.
        reconnect: False to stay disconnected after a loss.
        heartbeat: seconds between the heartbeats that are asked of the broker; it counts as lost after twice that.
            None: never.
        backoff: waits between attempts to reconnect.

        Raises:
            UrlError: the URL is invalid.
        """
        self._url = parse_url(url) if isinstance(url, str) else url
        self._container = container
        self._username = username if username is not None else self._url.username
        self._password = password if password is not None else self._url.password
        self._mechanisms = (
            tuple(mechanisms) if mechanisms is not None else (("PLAIN",) if self._username else ("ANONYMOUS",))
        )
        self._ssl_context = ssl_context
        self._reconnect = reconnect
        self._heartbeat = heartbeat
        self._backoff = backoff or Backoff()
        self._state = BusState.NEW
        self._connection: ClientConnection | None = None
        self._subscriptions: list[AmqpSubscription] = []
        self._watchers = BusWatchers()
        self._reconnecting: asyncio.Task[None] | None = None
        self._reason = "not opened yet"

    @property
    def url(self) -> str:
        """See `Bus`."""
        return str(self._url)

    @property
    def connected(self) -> bool:
        """See `Bus`."""
        return self._state is BusState.CONNECTED

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._watchers.add(watcher)

    async def open(self, timeout: float = 10.0) -> None:
        """See `Bus`."""
        self._state = TRANSITIONS.next(self._state, BusTrigger.CONNECT)
        try:
            connection = await self._connect(timeout)
            if self._state is not BusState.CONNECTING:
                raise ConnectError(self.url, "closed while connecting")
            if not connection.is_open:  # it ended before it could be used
                self._connection = None
                await connection.close()
                raise ConnectError(self.url, connection.reason)
        except BaseException as error:
            if self._state is BusState.CONNECTING:
                self._state = TRANSITIONS.next(self._state, BusTrigger.FAILED)
            if isinstance(error, ConnectError):
                self._reason = error.reason
            raise
        self._on_connected(connection, again=False)

    async def close(self) -> None:
        """See `Bus`."""
        if self._state is BusState.CLOSED:
            return
        self._state = TRANSITIONS.next(self._state, BusTrigger.CLOSE)
        self._reason = "closed"
        task, self._reconnecting = self._reconnecting, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        self._subscriptions.clear()

    async def subscribe(
        self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200
    ) -> AmqpSubscription:
        """See `Bus`."""
        from qmf.bus.client.subscription import AmqpSubscription

        connection = self._require_connection()
        subscription = AmqpSubscription(self, binding, on_message, max(1, prefetch))
        await connection.subscribe(subscription)
        self._subscriptions.append(subscription)
        return subscription

    async def unsubscribe(self, subscription: AmqpSubscription) -> None:
        """See `SubscriptionOwner`."""
        if subscription not in self._subscriptions:
            return
        self._subscriptions.remove(subscription)
        if self._connection is not None:
            await self._connection.unsubscribe(subscription)

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`."""
        await self._require_connection().senders.send(data, confirm=confirm)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus`."""
        return self._require_connection().senders.try_send(data, on_outcome)

    # Connections

    def _require_connection(self) -> ClientConnection:
        if self._state is not BusState.CONNECTED or self._connection is None:
            raise DisconnectedError(self.url, self._reason)
        return self._connection

    async def _connect(self, timeout: float) -> ClientConnection:
        from qmf.bus.client.connection import ClientConnection
        from qmf.bus.engine.values import ConnectionSettings

        settings = ConnectionSettings(
            container=self._container or f"qmf-{uuid.uuid4()}",
            hostname=self._url.host,
            idle_timeout=None if self._heartbeat is None else 2 * self._heartbeat,
            mechanisms=self._mechanisms,
            username=self._username,
            password=self._password,
            properties=_connection_properties(),
        )
        connection = self._connection = ClientConnection(
            self._url, settings, on_lost=self._on_lost, on_link_lost=self._notify
        )
        try:
            await connection.connect(self._tls_context(), timeout)
        except BaseException:
            if self._connection is connection:
                self._connection = None
            raise
        return connection

    def _tls_context(self) -> ssl.SSLContext | None:
        if not self._url.tls:
            return None
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        return self._ssl_context

    def _on_connected(self, connection: ClientConnection, *, again: bool) -> None:
        self._state = TRANSITIONS.next(self._state, BusTrigger.CONNECTED)
        who = connection.broker or "no container id"
        # As visible as the loss was, which is a warning.
        if again:
            log.warning("connected to %s again (%s)", self.url, who)
        else:
            log.info("connected to %s (%s)", self.url, who)
        self._notify(Connected(again, connection.broker))

    def _notify(self, event: BusEvent) -> None:
        if isinstance(event, LinkLost):
            log.warning("%s: %s", self.url, LinkError(event.address, event.condition, event.description))
        self._watchers.notify(event)

    def _on_lost(self, reason: str) -> None:
        if self._state is not BusState.CONNECTED:
            return  # while subscriptions were being attached again: `_restore` handles it
        self._state = TRANSITIONS.next(self._state, BusTrigger.LOST)
        self._reason = reason
        self._connection = None
        if not self._reconnect:
            log.warning("connection to %s lost: %s", self.url, reason)
            self._notify(Disconnected(reason, None))
            return
        delays = self._backoff.delays()
        wait = next(delays)
        log.warning("connection to %s lost: %s; trying again in %.1f s", self.url, reason, wait)
        self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect_after(wait, delays))
        self._notify(Disconnected(reason, wait))

    async def _reconnect_after(self, wait: float, delays: Iterator[float]) -> None:
        """Try to connect again after `wait` seconds, then after each of `delays`, until that succeeds."""
        while True:
            await asyncio.sleep(wait)
            self._state = TRANSITIONS.next(self._state, BusTrigger.CONNECT)
            try:
                connection = await self._connect(ATTEMPT_TIMEOUT)
                await self._restore(connection)
            except ConnectError as error:
                self._state = TRANSITIONS.next(self._state, BusTrigger.LOST)
                self._reason = error.reason
                wait = next(delays)
                log.info("%s; trying again in %.1f s", error, wait)
            except Exception as error:
                # A bug, which must not end an agent that runs for years.
                self._state = TRANSITIONS.next(self._state, BusTrigger.LOST)
                self._reason = str(error)
                wait = next(delays)
                log.exception("connecting to %s failed; trying again in %.1f s", self.url, wait)
            else:
                self._reconnecting = None
                self._on_connected(connection, again=True)
                return

    async def _restore(self, connection: ClientConnection) -> None:
        """Attach every subscription on a new connection."""
        subscriptions = list(self._subscriptions)
        answers = [connection.attach(subscription) for subscription in subscriptions]
        try:
            if answers:
                await asyncio.wait(answers, timeout=ATTEMPT_TIMEOUT)
        finally:
            complete = all(answer.done() for answer in answers)
            errors = [_exception_of(answer) for answer in answers]
        if not complete or not connection.is_open:
            self._connection = None
            await connection.close()
            raise ConnectError(
                self.url, connection.reason or f"subscriptions not confirmed within {ATTEMPT_TIMEOUT:g} s"
            )
        for subscription, error in zip(subscriptions, errors, strict=True):
            if isinstance(error, LinkError):
                connection.attach_later(subscription, error)


def _connection_properties() -> dict[str, str | int]:
    """What brokers show of a connection; the names are qpidd's."""
    process = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return {
        OWN_CONNECTION: True,
        "product": "qmf",
        "version": __version__,
        "qpid.client_process": process,
        "qpid.client_pid": os.getpid(),
        "qpid.client_ppid": os.getppid(),
    }


def _exception_of(answer: asyncio.Future[None]) -> BaseException | None:
    """The exception of an answer, which is retrieved then; an answer that is still due is cancelled."""
    return None if answer.cancel() or answer.cancelled() else answer.exception()
