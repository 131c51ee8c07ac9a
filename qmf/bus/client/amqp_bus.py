"""The real bus: AMQP 1.0 over TCP or TLS, which reconnects after losses of the connection.

`AmqpBus` is what programs hold. It has a `PersistentConnection`, and `BusLinks` on it. After a loss it connects again
with back-off, attaches every subscription, and only then is connected again.
"""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from qmf._marks import OWN_CONNECTION
from qmf.bus.backoff import Backoff
from qmf.bus.base import (
    Binding,
    Bus,
    BusWatcher,
    DataCallback,
    MessageCallback,
    OutcomeCallback,
    Subscription,
)
from qmf.bus.client.bus_links import BusLinks
from qmf.bus.client.failures import FailureKind, NetworkFailure
from qmf.bus.client.persistent_connection import PersistentConnection
from qmf.bus.client.settings import AccessToken, ClientSettings, client_settings
from qmf.bus.url import BusUrl, parse_url
from qmf.bus.watchers import BusWatchers
from qmf.errors import AuthenticationError, ConnectError, DisconnectedError

if TYPE_CHECKING:
    from qmf.bus.client.sender_links import SenderLinks

#: Seconds between heartbeats. A broker that cannot be reached any more is noticed after twice that, which is short
#: enough for a console and costs a few small frames per minute.
HEARTBEAT = 15.0
#: Seconds for one attempt to reconnect. When thousands come back to a broker, its answer to one waits for those to all
#: others; who gives up and begins again only makes it longer.
ATTEMPT_TIMEOUT = 60.0


class AmqpBus(Bus):
    """A bus on an AMQP 1.0 broker."""

    def __init__(
        self,
        url: str | BusUrl,
        *,
        container: str | None = None,
        username: str | None = None,
        password: str | None = None,
        token: AccessToken | None = None,
        mechanisms: Sequence[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        reconnect: bool = True,
        heartbeat: float | None = HEARTBEAT,
        backoff: Backoff | None = None,
    ) -> None:
        """Make a bus, which connects when it is opened.

        Args:
            url: as in `parse_url`. With ``amqp://`` messages can be read on the way; use ``amqps://`` across networks.
            container: our container id; by default a new one per connection. With a fixed one, a broker that has not
                noticed the end of the old connection yet may refuse the new one.
            username, password: user to log in as; they take precedence over those of the URL. Without a user and a
                token, SASL ANONYMOUS is used.
            token: access token to log in with, by SASL OAUTHBEARER, or a function that returns the one for each login;
                None for none.
            mechanisms: SASL mechanisms that may be used; by default the strongest that the broker offers. A user
                becomes anonymous, and a password is sent without TLS to another machine, only if that is named.
            ssl_context: for ``amqps://``; by default one that trusts the system's authorities and checks the host name.
            reconnect: False to stay disconnected after a loss.
            heartbeat: seconds between the heartbeats that are asked of the broker; it counts as lost after twice that.
                None: never.
            backoff: waits between attempts to reconnect.

        Raises:
            UrlError: the URL is invalid.
        """
        self._url = parse_url(url) if isinstance(url, str) else url
        self._container = container
        self._token = token
        self._mechanisms = mechanisms
        self._reconnect = reconnect
        self._heartbeat = heartbeat
        self._backoff = backoff or Backoff()
        self._watchers = BusWatchers()
        self._links = BusLinks(self.url, self._watchers)
        login = attrs.evolve(
            self._url,
            username=username if username is not None else self._url.username,
            password=password if password is not None else self._url.password,
        )
        self._user = _user_with_password(login, mechanisms)
        self._connection = PersistentConnection(
            [login],
            self._links,
            settings=self._settings,
            ssl_context=ssl_context,
            waits=self._waits,
            attempt_timeout=ATTEMPT_TIMEOUT,
        )

    @property
    def url(self) -> str:
        """See `Bus`."""
        return str(self._url)

    @property
    def user(self) -> str | None:
        """See `Bus`: who has logged in, as the broker says, or who did so by a password."""
        return self._links.user or self._user

    @property
    def connected(self) -> bool:
        """See `Bus`."""
        return self._links.network is not None

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._watchers.add(watcher)

    async def open(self, timeout: float = 10.0) -> None:
        """See `Bus`."""
        try:
            await self._connection.open(timeout)
        except NetworkFailure as failure:
            kind = AuthenticationError if failure.kind is FailureKind.AUTHENTICATION else ConnectError
            raise kind(self.url, failure.reason) from failure.__cause__

    async def close(self) -> None:
        """See `Bus`."""
        if self._links.closing:
            return
        try:
            await self._links.finish()
        except asyncio.CancelledError:
            await self._connection.close(0)
            raise
        await self._connection.close()

    async def subscribe(self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200) -> Subscription:
        """See `Bus`."""
        return (await self.subscribe_all((binding,), on_message, prefetch=prefetch))[0]

    async def subscribe_all(
        self, bindings: Sequence[Binding], on_message: MessageCallback, *, prefetch: int = 200
    ) -> Sequence[Subscription]:
        """See `Bus`."""
        self._check()
        return (await self._links.subscribe(bindings, on_message, max(1, prefetch)),)

    async def subscribe_data(self, binding: Binding, on_data: DataCallback, *, prefetch: int = 200) -> Subscription:
        """See `Bus`."""
        self._check()
        return await self._links.subscribe((binding,), None, max(1, prefetch), on_data)

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`."""
        await (self._links.senders or self._check()).send(data, confirm=confirm)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus`."""
        return (self._links.senders or self._check()).try_send(data, on_outcome)

    def _check(self) -> SenderLinks:
        """The links on which messages are sent.

        Raises:
            DisconnectedError: there is no connection.
        """
        if self._links.senders is not None:
            return self._links.senders
        raise DisconnectedError(self.url, "closed" if self._links.closing else self._connection.reason)

    # For the connection

    def _settings(self, url: BusUrl) -> ClientSettings:
        return client_settings(
            url,
            self._container or f"qmf-{uuid.uuid4()}",
            mechanisms=self._mechanisms,
            heartbeat=self._heartbeat,
            token=self._token,
            properties={OWN_CONNECTION: True},
        )

    def _waits(self, again: bool) -> Iterator[float]:
        """Whoever opens a bus gets the error of the first attempt."""
        if not again:
            return iter((0.0,))
        return self._backoff.delays() if self._reconnect else iter(())


def _user_with_password(login: BusUrl, mechanisms: Sequence[str] | None) -> str | None:
    """The user who logs in by a password; whoever does by a certificate or a token has the name that is in it."""
    by_password = mechanisms is None or not {"EXTERNAL", "ANONYMOUS"} & {name.upper() for name in mechanisms}
    return login.username if login.password is not None and by_password else None
