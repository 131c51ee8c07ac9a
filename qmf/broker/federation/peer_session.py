"""Another broker on the connection of a link, as observers see it: like a client, but one that is connected to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import Traffic
from qmf.broker.nodes.queues import Queue
from qmf.broker.refusal import Reason
from qmf.bus.client.network_connection import NetworkConnection


class PeerSession:
    """A `ClientSession` of one network connection."""

    def __init__(
        self, network: NetworkConnection, domain: str, user: str, drop: Callable[[str], None], bridge: str = ""
    ) -> None:
        """Make the session of a connection.

        Args:
            network: the connection, which is open.
            user: as whom this broker has logged in, or empty.
            bridge: name of the route of which it is, or empty.
            drop: ends the connection for a reason; the link connects again.
        """
        transport, peer = network.transport, network.peer
        self.info = ClientInfo(
            transport.peer_address,
            peer.container,
            user,
            properties=peer.properties,
            protocol="AMQP 1.0",
            domain=domain,
            bridge=bridge,
            local=transport.local_address,
        )
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._network = network
        self._drop = drop

    def traffic(self) -> Traffic:
        transport = self._network.transport
        frames_in, frames_out = transport.engine.frames
        return Traffic(frames_in, frames_out, transport.octets_in, transport.octets_out)

    def close(self, reason: str, cause: Reason | None = None) -> None:  # noqa: ARG002  # people read the reason
        self._drop(reason)

    def abort(self) -> None:
        self._network.transport.abort()

    def end_session(self, session: Hashable, reason: str) -> None:  # noqa: ARG002  # there is one
        self._drop(reason)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """See `ClientSession`; the link itself is told."""

    def on_policy_changed(self) -> None:
        """See `ClientSession`; the link itself is told."""
