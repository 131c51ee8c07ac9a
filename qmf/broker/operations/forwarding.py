"""Operations on what forwards messages: domains, links and routes to other brokers, relays, links within the broker."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_definitions import PeerBridge, PeerDomain, PeerLink, PeerRoute
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.forwarders import Forwarders, ForwardingError, PausableForwarders, Relays
from qmf.broker.operations.policy import Action, ObjectType, Operation
from qmf.broker.operations.principal import Principal

#: Types that are not those of federation, as consoles name them.
RELAY, QUEUE_LINK = "relay", "queuelink"

_MISSING = {
    RELAY: "this broker does not relay: it was started without that",
    QUEUE_LINK: "this broker can have no links between queues",
}


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


class ForwardingOperations:
    """What clients, consoles and programs in the process can do with what forwards messages; see `Operations`.

    ACL files know the creation of links alone, so that it stands for all changes. Types have the names that consoles
    have for them: ``domain``, ``incoming``, ``outgoing``, ``link``, ``bridge``, ``relay`` and ``queuelink``.

    Attributes:
        federation: the domains and links of the broker; None for one that can have none. Set when the broker starts.
        queue_links: the links within the broker; None for one that can have none. Set when the broker starts.
        relays: the relays of the broker; None for one that does not relay. Set when the broker starts.
    """

    def __init__(self, ask: Callable[[Principal, Operation], None]) -> None:
        """Make the operations of a broker; `ask` asks the policy, see `Operations.ask`."""
        self._ask = ask
        self.federation: Federation | None = None
        self.queue_links: PausableForwarders[Any] | None = None
        self.relays: Relays[Any] | None = None

    @property
    def types(self) -> dict[str, Forwarders[Any]]:
        """What the broker has of each type."""
        others = {QUEUE_LINK: self.queue_links, RELAY: self.relays}
        found = {} if self.federation is None else dict(self.federation.types)
        return found | {type: each for type, each in others.items() if each is not None}

    def create(
        self, principal: Principal, type: str, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create one of a type; see `Forwarders.add`."""
        self._find(principal, type, name).add(principal, name, properties, strict=strict)

    def delete(self, principal: Principal, type: str, name: str) -> None:
        """Delete one of a type; see `Forwarders.remove`."""
        self._find(principal, type, name).remove(name)

    def pause(self, principal: Principal, type: str, name: str) -> None:
        """Let messages wait; see `PausableForwarders.pause`."""
        self._find_pausable(principal, type, name).pause(name)

    def resume(self, principal: Principal, type: str, name: str) -> None:
        """Forward messages again; see `PausableForwarders.resume`."""
        self._find_pausable(principal, type, name).resume(name)

    def retry_dead_letters(self, principal: Principal, name: str, count: int) -> int:
        """Forward dead letters again; see `Relays.retry`."""
        self._find(principal, RELAY, name)
        assert self.relays is not None
        return self.relays.retry(name, count)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted: what needs it ends."""
        for each in self.types.values():
            each.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        """Other rules apply: what its creator may not do any more ends."""
        for each in self.types.values():
            each.on_policy_changed()

    def _find(self, principal: Principal, type: str, name: str) -> Forwarders[Any]:
        self._ask(principal, Operation(Action.CREATE, ObjectType.LINK, name))
        found = self.types.get(type)
        if found is None:
            raise ForwardingError(_MISSING.get(type, "this broker can have no links to other brokers"))
        return found

    def _find_pausable(self, principal: Principal, type: str, name: str) -> PausableForwarders[Any]:
        found = self._find(principal, type, name)
        assert isinstance(found, PausableForwarders)
        return found
