"""All connections of one type that a broker has to others: connected when it starts, and closed with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from qmf._background_tasks import BackgroundTasks
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_connector import LinkServices, PeerConnector
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.forwarders import Forwarders, ForwardingError
from qmf.broker.operations.policy import OperationRefused

C = TypeVar("C", bound=PeerConnector)


class PeerConnectors(Forwarders[C]):
    """The connections of one type: links, links for routes, or routes."""

    def __init__(self, services: LinkServices, is_taken: Callable[[str], bool], called: str, label: str = "") -> None:
        """Make those of a broker that has none.

        Args:
            is_taken: says whether one of any type has a name.
        """
        super().__init__(services.operations.registry, called, label)
        self._services = services
        self._is_taken = is_taken
        #: Ends those that were deleted.
        self._closing = BackgroundTasks()
        self._started = False

    def remove(self, name: str) -> None:
        item = self._take(name)
        item.remove()
        self._closing.spawn(item.close())

    def start(self) -> None:
        """Connect those that are there, and those that are added from now on."""
        self._started = True
        for item in self:
            item.start()

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        for item in list(self):
            item.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        for item in list(self):
            item.on_policy_changed()

    async def close(self) -> None:
        """End all; returns when their connections are closed."""
        await asyncio.gather(*(item.close() for item in self), self._closing.wait())

    def _keep(self, item: C) -> None:
        super()._keep(item)
        if self._started:
            item.start()

    def _refuse_taken(self, name: str) -> None:
        if self._is_taken(name):
            raise ForwardingError(f"object already exists: {name}")


def check_new(link: BrokerLink) -> None:
    """See whether this broker has what a link needs.

    Raises:
        ForwardingError: it has not.
        OperationRefused: the policy refuses it.
    """
    try:
        link.check()
    except NodeUnusable as error:
        raise ForwardingError(f"not-found: {error}") from error


def check_restored(link: BrokerLink) -> None:
    """The same for a link that the store has: its state says what is missing."""
    try:
        link.check()
    except (NodeUnusable, OperationRefused) as error:
        link.fail(str(error))
