"""Links to other brokers: each connects, asks for its link, and starts again when either is lost."""

from __future__ import annotations

import abc
import asyncio
import logging
import time
from collections.abc import Callable, Mapping

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.link_status import LinkStatus, PeerLinkState, PeerLinkTrigger, RetryWaits
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.tracing import LinkTrace, UnforwardedMessages, broker_id
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observer import ClientLink, ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.bus.backoff import Backoff
from qmf.bus.client.failures import FailureKind, NetworkFailure
from qmf.bus.client.network_connection import LinkOwner, NetworkConnection
from qmf.bus.client.persistent_connection import PersistentConnection
from qmf.bus.client.settings import ClientSettings, client_settings
from qmf.bus.engine.events import MessageTooLarge
from qmf.bus.engine.link import Link
from qmf.bus.url import BusUrl

log = logging.getLogger("qmf.broker.federation")

#: Seconds for one attempt at one URL, for the connection and then for its link.
ATTEMPT_TIMEOUT = 30.0
#: Seconds between heartbeats that are asked of the other broker.
HEARTBEAT = 10.0
#: Seconds that the other broker has to confirm the end of a link.
CLOSE_TIMEOUT = 2.0


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
    """

    operations: Operations
    container: str
    backoff: Backoff = attrs.field(factory=Backoff)
    clock: Callable[[], float] = time.time


class BrokerLink(LinkOwner, abc.ABC):
    """A link to another broker from its creation to its deletion; a `PeerLink` for observers.

    It owns its connection, and its link on that.

    Attributes:
        definition: what was asked for.
        domain: the other broker.
        status: how it is.
        unforwarded: messages that it did not forward.
        nodes: of this broker, that it needs; known after `check`.
        session: see `PeerLink`.
    """

    def __init__(self, definition: LinkDefinition, domain: Domain, services: LinkServices) -> None:
        """Make a link, which connects after `start`.

        Args:
            definition, domain: as the attributes.
            services: of the broker.
        """
        self.definition = definition
        self.domain = domain
        self.status = LinkStatus(services.clock)
        self._who = f"{definition.direction.value} link {definition.name} of domain {domain.name}"
        self.unforwarded = UnforwardedMessages(self._who)
        self.nodes: tuple[Node, ...] = ()
        self.session: ClientSession | None = None
        self._operations = services.operations
        self._container = services.container
        self._loop = asyncio.get_running_loop()
        self._waits = RetryWaits(services.backoff, self._loop.time)
        self._connection = PersistentConnection(
            domain.urls,
            self,
            settings=self._settings,
            ssl_context=None,
            waits=self._waits.after,
            attempt_timeout=ATTEMPT_TIMEOUT,
        )
        self._tasks = BackgroundTasks()
        #: While a link is asked for: done when the other broker has answered.
        self._answer: asyncio.Future[None] | None = None
        self._network: NetworkConnection | None = None
        self._link: Link | None = None
        #: This broker's end of the link, while it is up.
        self._end: ClientLink | None = None
        #: Why this broker has ended the connection, until it is gone.
        self._dropped = ""
        self._url = domain.urls[0]

    # PeerLink

    @property
    def name(self) -> str:
        """See `PeerLink`."""
        return self.definition.name

    @property
    def kind(self) -> str:
        """See `PeerLink`."""
        return self.definition.direction.value

    @property
    def durable(self) -> bool:
        """See `PeerLink`."""
        return self.definition.durable

    @property
    def fields(self) -> Mapping[str, object]:
        """See `PeerLink`."""
        return self.definition.fields

    @property
    def place(self) -> tuple[str, int, bool]:
        """See `PeerLink`; the URL that was tried last."""
        return self._url.host, self._url.port, self._url.tls

    @property
    def state_name(self) -> str:
        """See `PeerLink`."""
        return self.status.state.value

    @property
    def reason(self) -> str:
        """See `PeerLink`."""
        return self.status.reason

    @property
    def since(self) -> float:
        """See `PeerLink`."""
        return self.status.since

    # Beginning and end

    @abc.abstractmethod
    def check(self) -> None:
        """See whether this broker has the nodes that the link needs, and create that of its own.

        Raises:
            NodeUnusable: it has not.
            OperationRefused: the policy refuses it.
        """

    def start(self) -> None:
        """Connect from now on."""
        if not self.status.ended:
            self._tasks.spawn(self._connect())

    def fail(self, reason: str) -> None:
        """The link cannot go on."""
        if not self.status.ended:
            self._move(PeerLinkTrigger.FAIL, reason)
            self._let_go()
            self._tasks.spawn(self._connection.close())

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of this broker was deleted."""
        if node in self.nodes:
            self.fail(f"{'queue' if isinstance(node, Queue) else 'exchange'} {node.name!r} was deleted")

    def on_policy_changed(self) -> None:
        """Other rules apply."""
        if not self.status.ended:
            try:
                self.check()
            except OperationRefused as error:
                self.fail(str(error))
            except NodeUnusable:
                pass  # an exclusive queue, which is this link's

    def remove(self) -> None:
        """The link is deleted: end it, also at the other broker, in the background."""
        network, link = self._network, self._link
        self.status.change(PeerLinkTrigger.CLOSE)
        self._let_go()
        confirmed = network.detach(link) if network is not None and link is not None else None
        self._tasks.spawn(self._end_connection(confirmed))

    async def close(self) -> None:
        """The broker ends: close the connection; what the other broker keeps for the link is kept."""
        if self.status.state is not PeerLinkState.CLOSED:
            self.status.change(PeerLinkTrigger.CLOSE)
            self._let_go()
            await self._connection.close()
        await self._tasks.wait()

    async def _end_connection(self, confirmed: asyncio.Future[None] | None) -> None:
        if confirmed is not None:
            await asyncio.wait({confirmed}, timeout=CLOSE_TIMEOUT)
        await self._connection.close()

    async def _connect(self) -> None:
        try:
            await self._connection.open()
        except Exception as error:  # noqa: BLE001  # the last error of all attempts, whatever it is
            self.on_given_up(error)

    # ConnectionOwner

    async def attach_links(self, network: NetworkConnection) -> None:
        """See `ConnectionOwner`.

        Raises:
            NetworkFailure: the other broker refuses the link.
            LinkFailed: this broker cannot have it.
        """
        self._url = network.url
        answer = self._answer = self._loop.create_future()
        try:
            self._network = network
            self._link = self._request(network)
            network.set_owner(self._link, self)
            network.transport.flush_soon()
            await answer
        finally:
            self._answer = None

    def lose(self, failure: NetworkFailure) -> None:
        """See `ConnectionOwner`."""
        self._let_go()
        self._link = self._network = None
        self._refuse(failure)

    def on_connected(self, network: NetworkConnection, *, again: bool) -> None:  # noqa: ARG002
        """See `ConnectionOwner`."""
        if not self.status.ended:
            self._waits.on_up()
            self._move(PeerLinkTrigger.UP)

    def on_disconnected(self, failure: NetworkFailure, wait: float | None) -> None:  # noqa: ARG002
        """See `ConnectionOwner`."""
        self._on_lost(failure)

    def on_given_up(self, error: Exception) -> None:
        """See `ConnectionOwner`."""
        if self.status.ended:
            return
        if not isinstance(error, LinkFailed):  # a defect here or below: operators must learn of it
            log.error("%s failed", self._who, exc_info=error)
        self._move(PeerLinkTrigger.FAIL, str(error))

    def is_final(self, error: Exception) -> bool:
        """See `ConnectionOwner`. An attempt has failed."""
        if isinstance(error, LinkFailed) or not isinstance(error, NetworkFailure):
            return True
        self._on_lost(error)
        return False

    # LinkOwner

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        network, link = self._network, self._link
        if network is None or link is None or self._answer is None or self._answer.done():
            return
        user = self.domain.login(network.url).username or ""
        session = PeerSession(network, self.domain.name, user, self.drop)
        try:
            end = self._begin(network, link, session)
        except LinkFailed as error:
            self._answer.set_exception(error)
            return
        self.session, self._end = session, end
        observer = self._operations.registry.observer
        observer.on_connected(session)
        observer.on_attached(session, end)
        self._answer.set_result(None)

    def on_detached(self, condition: str, description: str) -> None:
        """See `LinkOwner`."""
        url, self._link = self._url, None
        self._let_go()
        what = "the other broker refused the link" if self._answer is not None else "the other broker ended the link"
        failure = NetworkFailure(url, what, FailureKind.CLOSED, condition, description)
        if not self._refuse(failure):
            self.drop(failure.reason)

    def on_too_large(self, event: MessageTooLarge) -> None:
        """See `LinkOwner`."""
        self.drop(f"a message of {event.size} bytes is larger than this broker takes")

    # What subclasses do

    @abc.abstractmethod
    def _request(self, network: NetworkConnection) -> Link:
        """Ask the other broker for the link.

        Raises:
            LinkFailed: this broker has no node for it.
        """

    @abc.abstractmethod
    def _begin(self, network: NetworkConnection, link: Link, session: PeerSession) -> ClientLink:
        """The link is granted: transfer messages. Returns this broker's end of it.

        Raises:
            LinkFailed: this broker has no node for it any more.
        """

    @abc.abstractmethod
    def _finish(self) -> None:
        """The link is gone: give back what the other broker has not accepted."""

    # For subclasses

    def drop(self, reason: str) -> None:
        """End the connection, for a reason; the link is tried again."""
        network = self._network
        if network is None or not network.usable or self._dropped:
            return
        self._dropped = reason
        # Later: not in the middle of a batch of the connection's events, and after the outcomes of these.
        self._loop.call_soon(self._close_network, network)

    def _close_network(self, network: NetworkConnection) -> None:
        if network.usable:
            network.engine.close()
            network.transport.close()

    def _trace(self, network: NetworkConnection) -> LinkTrace:
        """What the link does about the traces of its messages, on a connection."""
        return LinkTrace(broker_id(self._container), broker_id(network.peer.container), self.definition)

    # Details

    def _settings(self, url: BusUrl) -> ClientSettings:
        return client_settings(
            self.domain.login(url),
            self.definition.container,
            mechanisms=self.domain.mechanisms,
            heartbeat=HEARTBEAT,
            properties={"qmf.link": self.name},
        )

    def _on_lost(self, failure: NetworkFailure) -> None:
        self._url = failure.url
        reason, self._dropped = self._dropped or failure.reason, ""
        if not self.status.ended:
            self._move(PeerLinkTrigger.LOSE, reason)

    def _refuse(self, failure: NetworkFailure) -> bool:
        """If the link is being asked for, that has failed."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_exception(failure)
        return True

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
