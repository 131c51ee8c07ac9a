"""What operations need of federation: the domains of a broker, which are other brokers, and its links to them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Protocol

from qmf.broker.nodes.observed_forwarding import MessageRelay
from qmf.broker.nodes.observed_peers import PeerBridge, PeerDomain, PeerLink
from qmf.broker.nodes.peer_routes import PeerRoute
from qmf.broker.operations.principal import Principal

#: Transports of links for routes, and whether they stand for TLS.
TRANSPORTS = {"tcp": False, "ssl": True}


class FederationError(Exception):
    """A domain or a link to another broker cannot be created or deleted; says why."""


class LinkDirection(enum.Enum):
    """Where the messages of a link between brokers go; the value is qpidd's name for such links."""

    INCOMING = "incoming"  #: from the other broker to this one
    OUTGOING = "outgoing"


class Federation(Protocol):
    """The domains and links of a broker."""

    @property
    def domains(self) -> Collection[PeerDomain]:
        """All domains."""

    @property
    def links(self) -> Collection[PeerLink]:
        """All links."""

    def add_domain(self, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Add a domain.

        Args:
            name: of the domain.
            properties: as consoles give them.
            strict: refuse properties that are not known.

        Raises:
            FederationError: there is one of that name, or a property is wrong.
        """

    def remove_domain(self, name: str) -> None:
        """Remove a domain.

        Raises:
            FederationError: there is none, or a link needs it.
        """

    def add_link(
        self,
        principal: Principal,
        direction: LinkDirection,
        name: str,
        properties: Mapping[str, object],
        *,
        strict: bool,
    ) -> None:
        """Add a link, which connects from now on.

        Args:
            principal: on whose behalf it takes and publishes messages.
            direction: of its messages.
            name: of the link.
            properties: as consoles give them.
            strict: refuse properties that are not known.

        Raises:
            FederationError: there is one of that name, its domain or its node does not exist, or a property is wrong.
            OperationRefused: the policy refuses to the principal what the link does.
        """

    def remove_link(self, direction: LinkDirection, name: str) -> None:
        """Remove a link.

        Raises:
            FederationError: there is none.
        """

    @property
    def route_links(self) -> Collection[PeerLink]:
        """All links for routes."""

    @property
    def bridges(self) -> Collection[PeerBridge]:
        """All routes on them."""

    @property
    def routes(self) -> Collection[PeerRoute]:
        """All links that transfer messages, and all bridges."""

    def add_route_link(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool
    ) -> None:
        """Add a link for routes, which connects from now on.

        Args:
            principal: who creates it.
            name: of the link.
            properties: as consoles give them.
            strict: refuse properties that are not known.

        Raises:
            FederationError: there is one of that name, or a property is wrong.
        """

    def remove_route_link(self, name: str) -> None:
        """Remove a link for routes, and these.

        Raises:
            FederationError: there is none.
        """

    def add_bridge(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Add a route; arguments as of `add_route_link`.

        Raises:
            FederationError: there is one of that name, its link or its node does not exist, or a property is wrong.
            OperationRefused: the policy refuses to the principal what the route does.
        """

    def remove_bridge(self, name: str) -> None:
        """Remove a route.

        Raises:
            FederationError: there is none.
        """


class Relays(Protocol):
    """The relays of a broker: what forwards messages to ``name@domain``."""

    @property
    def relays(self) -> Collection[MessageRelay]:
        """All relays."""

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Add a relay, which forwards messages from now on.

        Args:
            principal: who creates it; it acts on its behalf.
            name: the domain in addresses.
            properties: as consoles give them.
            strict: refuse properties that are not known.

        Raises:
            FederationError: there is one for the domain, or a property is wrong.
            OperationRefused: the policy refuses to the principal what the relay does.
        """

    def remove(self, name: str) -> None:
        """Remove a relay; its messages stay in their queue.

        Raises:
            FederationError: there is none.
        """

    def pause(self, name: str) -> None:
        """Let messages wait, until `resume`, or the next start of the broker.

        Raises:
            FederationError: there is none.
        """

    def resume(self, name: str) -> None:
        """Forward messages again.

        Raises:
            FederationError: there is none.
        """

    def retry(self, name: str, count: int) -> int:
        """Let dead letters of a relay wait for their transfer again.

        Args:
            name: of the relay.
            count: how many at most; 0 for all.

        Returns:
            their number.

        Raises:
            FederationError: there is none.
        """
