"""Connections to other brokers that federation has: each is made again when it is lost."""

from __future__ import annotations

import abc
import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.broker.federation.definitions import Domain
from qmf.broker.federation.link_status import LINK_BACKOFF, LinkStatus, PeerLinkState, PeerLinkTrigger, RetryWaits
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import ClientLink, ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.operations import Operations
from qmf.bus.backoff import Backoff
from qmf.bus.client.failures import NetworkFailure
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.client.persistent_connection import PersistentConnection
from qmf.bus.client.settings import ClientSettings, client_settings
from qmf.bus.url import BusUrl

log = logging.getLogger("qmf.broker.federation")

#: Seconds for one attempt at one URL, for the connection and then for its links.
ATTEMPT_TIMEOUT = 30.0
#: Seconds between heartbeats that are asked of the other broker.
HEARTBEAT = 10.0


class LinkFailed(Exception):
    """A link cannot go on, and is not tried again; says why."""


@attrs.frozen
class LinkServices:
    """What all links of a broker share.

    Attributes:
        operations: of the broker.
        container: container id of the broker: other brokers know it by that.
        backoff: waits between attempts.
        clock: the time of day.
        run: is another one whenever the broker starts.
    """

    operations: Operations
    container: str
    backoff: Backoff = LINK_BACKOFF
    clock: Callable[[], float] = time.time
    run: str = attrs.field(factory=lambda: secrets.token_hex(8))


class PeerConnector(abc.ABC):
    """A connection to another broker from its creation to its deletion, with a state.

    It is a `PeerLink` for observers, in part a `PeerRoute`, and the `ConnectionOwner` of its connection.

    Attributes:
        domain: the other broker.
        status: how it is.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        domain: Domain,
        services: LinkServices,
        *,
        durable: bool,
        fields: Mapping[str, object],
        container: str,
        who: str,
    ) -> None:
        """Make a connection, which begins after `start`.

        Args:
            container: container id under which the other broker knows it.
            who: what it is, for the log.
        """
        self.kind, self.name = kind, name
        self.durable, self.fields = durable, fields
        self.domain = domain
        self.status = LinkStatus(services.clock)
        self.session: ClientSession | None = None
        self._who = who
        self._operations = services.operations
        self._container = services.container
        self._own_container = container
        self._loop = asyncio.get_running_loop()
        self._waits = RetryWaits(services.backoff, self._loop.time)
        self._connection = PersistentConnection(
            domain.urls,
            self,
            settings=self._settings,
            ssl_context=domain.credentials.context,
            waits=self._waits.after,
            attempt_timeout=ATTEMPT_TIMEOUT,
        )
        self._tasks = BackgroundTasks()
        self._network: NetworkConnection | None = None
        #: This broker's end of a link on it, while that is up.
        self._end: ClientLink | None = None
        #: Why this broker has ended the connection, until it is gone.
        self._dropped = ""
        self._url = domain.urls[0]

    # PeerLink

    @property
    def place(self) -> tuple[str, int, bool]:
        """See `PeerLink`; the URL that was tried last."""
        return self._url.host, self._url.port, self._url.tls

    @property
    def state_name(self) -> str:
        return self.status.state.value

    @property
    def is_up(self) -> bool:
        return self.status.state is PeerLinkState.OPERATIONAL

    @property
    def losses(self) -> int:
        return self.status.losses

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def since(self) -> float:
        return self.status.since

    # Beginning and end

    def start(self) -> None:
        """Connect from now on."""
        if not self.status.ended:
            self._tasks.spawn(self._connect())

    def fail(self, reason: str) -> None:
        """It cannot go on."""
        if not self.status.ended:
            self._move(PeerLinkTrigger.FAIL, reason)
            self._let_go()
            self.on_ended()
            self._tasks.spawn(self._connection.close())

    def on_node_deleted(self, node: Queue | Exchange) -> None:  # noqa: B027  # not everything needs one
        """A node of this broker was deleted."""

    def on_policy_changed(self) -> None:  # noqa: B027
        """Other rules apply."""

    def on_ended(self) -> None:  # noqa: B027  # not everything keeps something for the next connection
        """It is not tried any more: give back what was kept for the next connection."""

    def remove(self) -> None:
        """It is deleted: end it in the background."""
        self.status.change(PeerLinkTrigger.CLOSE)
        self._let_go()
        self.on_ended()
        self._tasks.spawn(self._connection.close())

    async def close(self) -> None:
        """The broker ends: close the connection; what the other broker keeps is kept."""
        if self.status.state is not PeerLinkState.CLOSED:
            self.status.change(PeerLinkTrigger.CLOSE)
            self._let_go()
            self.on_ended()
            await self._connection.close()
        await self._tasks.wait()

    async def _connect(self) -> None:
        try:
            await self._connection.open()
        except Exception as error:  # noqa: BLE001  # the last error of all attempts, whatever it is
            self.on_given_up(error)

    # ConnectionOwner

    @abc.abstractmethod
    async def attach_links(self, network: NetworkConnection) -> None:
        """See `ConnectionOwner`.

        Raises:
            NetworkFailure: the other broker refuses what is asked of it.
            LinkFailed: this broker cannot have it.
        """

    def lose(self, failure: NetworkFailure) -> None:  # noqa: ARG002
        self._let_go()
        self._network = None

    def on_connected(self, network: NetworkConnection, *, again: bool) -> None:  # noqa: ARG002
        if not self.status.ended:
            self._waits.on_up()
            self._move(PeerLinkTrigger.UP)

    def on_disconnected(self, failure: NetworkFailure, wait: float | None) -> None:  # noqa: ARG002
        self._on_lost(failure)

    def on_given_up(self, error: Exception) -> None:
        if self.status.ended:
            return
        if not isinstance(error, LinkFailed):  # a defect here or below: operators must learn of it
            log.error("%s failed", self._who, exc_info=error)
        self._move(PeerLinkTrigger.FAIL, str(error))
        self.on_ended()

    def is_final(self, error: Exception) -> bool:
        """See `ConnectionOwner`. An attempt has failed."""
        if isinstance(error, LinkFailed) or not isinstance(error, NetworkFailure):
            return True
        self._on_lost(error)
        return False

    # For subclasses

    def drop(self, reason: str) -> None:
        """End the connection, for a reason; it is made again."""
        network = self._network
        if network is None or not network.usable or self._dropped:
            return
        self._dropped = reason
        # Later: not in the middle of a batch of the connection's events, and after the outcomes of these.
        self._loop.call_soon(self._close_network, network)

    def _finish(self) -> None:  # noqa: B027  # not everything has a link
        """The link is gone: give back what the other broker has not accepted, or keep it for the next one."""

    # Details

    def _close_network(self, network: NetworkConnection) -> None:
        if network.usable:
            network.engine.close()
            network.transport.close()

    def _settings(self, url: BusUrl) -> ClientSettings:
        credentials = self.domain.credentials
        return client_settings(
            self.domain.login(url),
            self._own_container,
            mechanisms=self.domain.mechanisms,
            heartbeat=HEARTBEAT,
            token=None if credentials.token is None else credentials.read_token,
            properties={"qmf.link": self.name},
        )

    def _on_lost(self, failure: NetworkFailure) -> None:
        self._url = failure.url
        reason, self._dropped = self._dropped or failure.reason, ""
        if not self.status.ended:
            self._move(PeerLinkTrigger.LOSE, reason)

    def _let_go(self) -> None:
        """The link is gone, as observers and nodes see it."""
        session, end = self.session, self._end
        self.session = self._end = None
        if session is None:
            return
        observer = self._operations.registry.observer
        if end is not None:
            observer.on_detached(session, end)
            self._finish()
        observer.on_disconnected(session)
        if not session.ended.done():
            session.ended.set_result(None)

    def _move(self, trigger: PeerLinkTrigger, reason: str = "") -> None:
        if self.status.change(trigger, reason):
            text = f": {reason}" if reason else ""
            level = logging.INFO if trigger is PeerLinkTrigger.UP else logging.WARNING
            log.log(level, "%s to %s is %s%s", self._who, self._url, self.status.state.value.lower(), text)
