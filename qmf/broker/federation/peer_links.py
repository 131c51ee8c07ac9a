"""Links to other brokers: each connects, asks for its link, and starts again when either is lost."""

from __future__ import annotations

import abc
import asyncio
import time
from collections.abc import Mapping

from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.link_status import PeerLinkTrigger
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_connector import LinkFailed, LinkServices, PeerConnector
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.route_lag import RouteLag, RouteRate
from qmf.broker.federation.tracing import LinkTrace, UnforwardedMessages, broker_id
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import ClientLink
from qmf.broker.nodes.observed_definitions import RouteEnds, RouteMeasure
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.policy import OperationRefused
from qmf.bus.client.failures import FailureKind, NetworkFailure
from qmf.bus.client.network_connection import LinkOwner, NetworkConnection
from qmf.bus.engine.events import MessageTooLarge
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import LINK_RESUMPTION, Resumption
from qmf.bus.engine.values import Outcome

#: Seconds for which the other broker is asked to keep a link that can be resumed, with what was delivered on it.
KEPT_FOR = 3_600
#: Seconds that the other broker has to confirm the end of a link.
CLOSE_TIMEOUT = 2.0


class BrokerLink(PeerConnector, LinkOwner):
    """A link to another broker from its creation to its deletion; a `PeerLink` and a `PeerRoute` for observers.

    It owns its connection, and its link on that.

    Attributes:
        definition: what was asked for.
        unforwarded: messages that it did not forward.
        nodes: of this broker, that it needs; known after `check`.
        lag: how far it is behind.
    """

    #: See `ClientInfo`.
    bridge_name = ""

    def __init__(self, definition: LinkDefinition, domain: Domain, services: LinkServices, who: str = "") -> None:
        """Make a link, which connects after `start`.

        Args:
            who: what it is, for the log; by default a link of its domain.
        """
        who = who or f"{definition.direction.value} link {definition.name} of domain {domain.name}"
        super().__init__(
            definition.direction.value,
            definition.name,
            domain,
            services,
            durable=definition.durable,
            fields=definition.fields,
            container=definition.container,
            who=who,
        )
        self.definition = definition
        self.unforwarded = UnforwardedMessages(who)
        self.count_in_doubt = 0
        self.nodes: tuple[Node, ...] = ()
        #: While a link is asked for: done when the other broker has answered.
        self._answer: asyncio.Future[None] | None = None
        self._link: Link | None = None
        #: Number of the last attach of a link that can be resumed.
        self._attempt = 0
        self.lag = RouteLag()
        self._rate = RouteRate()
        #: By the links that it had before.
        self._transferred = 0

    # PeerRoute

    @property
    def ends(self) -> RouteEnds:
        asked = self.definition
        outgoing = asked.direction is LinkDirection.OUTGOING
        return RouteEnds(self.name, outgoing, asked.source, asked.target, asked.key)

    @property
    def peer_id(self) -> str:
        return "" if self._network is None else broker_id(self._network.peer.container)

    @property
    def transfers(self) -> int:
        return self._transferred + (0 if self._end is None else self._end.transfers)

    @property
    def credit(self) -> int:
        if self._network is None or self._link is None or self._end is None:
            return 0
        return max(self._network.engine.links.credit(self._link), 0)

    def measure_rate(self) -> float:
        return self._rate.measure(self._loop.time(), self.transfers)

    @property
    def count_unforwarded(self) -> int:
        return self.unforwarded.count

    def measure(self) -> RouteMeasure:
        """See `PeerRoute`; of a source at this broker."""
        queue = next((node for node in self.nodes[::-1] if isinstance(node, Queue)), None)
        if queue is None:
            return RouteMeasure()
        come, waiting, now = queue.counters.enqueues, queue.contents.depth.count, self._loop.time()
        self.lag.measure(now, come, waiting)
        return RouteMeasure(waiting, self.lag.behind(now, come - waiting))

    # Beginning and end

    @abc.abstractmethod
    def check(self) -> None:
        """See whether this broker has the nodes that the link needs, and create that of its own.

        Raises:
            NodeUnusable: it has not.
            OperationRefused: the policy refuses it.
        """

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        if node in self.nodes:
            self.fail(f"{'queue' if isinstance(node, Queue) else 'exchange'} {node.name!r} was deleted")

    def on_policy_changed(self) -> None:
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
        self.on_ended()
        confirmed = network.detach(link) if network is not None and link is not None else None
        self._tasks.spawn(self._end_connection(network, confirmed))

    async def _end_connection(self, network: NetworkConnection | None, confirmed: asyncio.Future[None] | None) -> None:
        if confirmed is not None:
            await asyncio.wait({confirmed}, timeout=CLOSE_TIMEOUT)
        if network is not None and network.usable:
            await self._clean_up(network)
        await self._connection.close()

    async def _clean_up(self, network: NetworkConnection) -> None:
        """The link was deleted: remove what else the other broker has of it."""

    # ConnectionOwner

    async def attach_links(self, network: NetworkConnection) -> None:
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
        super().lose(failure)
        self._link = None
        self._refuse(failure)

    def _let_go(self) -> None:
        if self._end is not None:
            self._transferred += self._end.transfers
        super()._let_go()

    # LinkOwner

    def on_attached(self) -> None:
        network, link = self._network, self._link
        if network is None or link is None or self._answer is None or self._answer.done():
            return
        user = self.domain.login(network.url).username or ""
        session = PeerSession(network, self.domain.name, user, self.drop, self.bridge_name)
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
        url, self._link = self._url, None
        self._let_go()
        what = "the other broker refused the link" if self._answer is not None else "the other broker ended the link"
        failure = NetworkFailure(url, what, FailureKind.CLOSED, condition, description)
        if not self._refuse(failure):
            self.drop(failure.reason)

    def on_too_large(self, event: MessageTooLarge) -> None:
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

    # For subclasses

    def _trace(self, network: NetworkConnection) -> LinkTrace:
        """What the link does about the traces of its messages, on a connection."""
        return LinkTrace(broker_id(self._container), broker_id(network.peer.container), self.definition)

    def _resumption(self, network: NetworkConnection, unsettled: Mapping[int, Outcome | None]) -> Resumption | None:
        """What is asked of the other broker, so that the link can be resumed on the next connection.

        Args:
            unsettled: what this broker knows.

        Returns:
            None if the other broker has no such links, or none is wanted.
        """
        definition = self.definition
        if not definition.exactly_once or LINK_RESUMPTION not in network.peer.capabilities:
            return None
        self._attempt = max(self._attempt + 1, time.time_ns())  # also larger than before a restart
        return Resumption(definition.container, unsettled, self._attempt, lasting=self.durable)

    # Details

    def _refuse(self, failure: NetworkFailure) -> bool:
        """If the link is being asked for, that has failed."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_exception(failure)
        return True
