"""What operations and management need of federation: the domains of a broker (other brokers), and its links to them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from qmf.broker.nodes.observed_peers import PeerBridge, PeerDomain, PeerLink
from qmf.broker.nodes.peer_routes import PeerRoute
from qmf.broker.operations.forwarders import Forwarders

#: Transports of links for routes, and whether they stand for TLS.
TRANSPORTS = {"tcp": False, "ssl": True}


class LinkDirection(enum.Enum):
    """Where the messages of a link between brokers go; the value is qpidd's name for such links."""

    INCOMING = "incoming"  #: from the other broker to this one
    OUTGOING = "outgoing"


class Federation(Protocol):
    """The domains and links of a broker."""

    @property
    def types(self) -> Mapping[str, Forwarders[Any]]:
        """What there is of each type, by the name that consoles have for it."""

    @property
    def domains(self) -> Collection[PeerDomain]:
        """All domains."""

    @property
    def links(self) -> Collection[PeerLink]:
        """All links that transfer messages."""

    @property
    def route_links(self) -> Collection[PeerLink]:
        """All links for routes."""

    @property
    def bridges(self) -> Collection[PeerBridge]:
        """All routes on them."""

    @property
    def routes(self) -> Collection[PeerRoute]:
        """All links that transfer messages, and all bridges."""
