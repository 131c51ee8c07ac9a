"""Outgoing links of federation: messages leave their queue when another broker has accepted them."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.local_nodes import LocalSource, NodeUnusable
from qmf.broker.federation.peer_links import BrokerLink, LinkFailed, LinkSurroundings
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observer import ClientLink
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.protocols.amqp.conditions import CONDITIONS
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.broker.refusal import Reason
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus


class OutgoingBrokerLink(BrokerLink):
    """A link from a node of this broker to another broker."""

    def __init__(self, definition: LinkDefinition, domain: Domain, surroundings: LinkSurroundings) -> None:
        """Make a link; the arguments are those of `BrokerLink`."""
        super().__init__(definition, domain, surroundings)
        self._source = LocalSource(definition, surroundings.operations)
        self._pushing: OutgoingLink | None = None

    def check(self) -> None:
        """See `BrokerLink`."""
        self._open_source()

    def _open_source(self) -> tuple[ConsumeGrant, Callable[[Message], bool] | None]:
        grant, node, selector = self._source.open()
        self.nodes = (node, grant.queue)
        return grant, selector

    def remove(self) -> None:
        """See `BrokerLink`."""
        super().remove()
        self._source.remove()

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        if self._pushing is not None:
            self._pushing.dispatch()

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """See `LinkOwner`."""
        if self._pushing is not None:
            self._pushing.on_accepted(batch.delivery_tags)

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`. What the other broker has no room for stays, and is sent when the link is up again."""
        if self._pushing is None:
            return
        full = settled.outcome is Outcome.REJECTED and settled.condition == CONDITIONS[Reason.FULL]
        if full:
            self.drop(f"no room in {self.definition.target!r} of the other broker: {settled.description}")
            self._pushing.queue.delivery.remove_consumer(self._pushing)
            settled = attrs.evolve(settled, outcome=Outcome.RELEASED)
        self._pushing.on_outcome(settled)

    def _request(self, network: NetworkConnection) -> Link:
        definition = self.definition
        try:
            self._open_source()
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        return network.engine.links.attach(
            definition.name,
            is_sender=True,
            terminus=Terminus(definition.target),
            own_terminus=Terminus(definition.source),
            unsettled=True,
        )

    def _begin(self, network: NetworkConnection, link: Link, session: PeerSession) -> ClientLink:  # noqa: ARG002
        try:
            grant, selector = self._open_source()
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        pushing = self._pushing = OutgoingLink(network.transport, link, grant.queue, selector)
        pushing.attach(grant)
        self._loop.call_soon(self.on_credit)
        return pushing

    def _finish(self) -> None:
        pushing, self._pushing = self._pushing, None
        if pushing is not None:
            queue = pushing.queue
            pushing.on_detached()
            self._operations.registry.on_unused(queue)
