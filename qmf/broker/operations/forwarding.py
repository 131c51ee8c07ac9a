"""Operations on what forwards messages: domains, links and routes to other brokers, relays, links within the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.operations.peers import Federation, FederationError, LinkDirection, Relays
from qmf.broker.operations.policy import Action, ObjectType, Operation
from qmf.broker.operations.principal import Principal
from qmf.broker.operations.queue_links import QueueLinkError, QueueLinks


class ForwardingOperations:
    """What clients, consoles and programs in the process can do with what forwards messages; see `Operations`.

    ACL files know the creation of links alone, so that it stands for all changes.

    Attributes:
        federation: the domains and links of the broker; None for one that can have none. Set when the broker starts.
        queue_links: the links within the broker; None for one that can have none. Set when the broker starts.
        relays: the relays of the broker; None for one that does not relay. Set when the broker starts.
    """

    def __init__(self, ask: Callable[[Principal, Operation], None]) -> None:
        """Make the operations of a broker; `ask` asks the policy, see `Operations.ask`."""
        self._ask = ask
        self.federation: Federation | None = None
        self.queue_links: QueueLinks | None = None
        self.relays: Relays | None = None

    def create_domain(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create a domain; see `Federation.add_domain`."""
        self._ask_federation(principal, name).add_domain(name, properties, strict=strict)

    def delete_domain(self, principal: Principal, name: str) -> None:
        """Delete a domain; see `Federation.remove_domain`."""
        self._ask_federation(principal, name).remove_domain(name)

    def create_link(
        self,
        principal: Principal,
        direction: LinkDirection,
        name: str,
        properties: Mapping[str, object],
        *,
        strict: bool = False,
    ) -> None:
        """Create a link to another broker; see `Federation.add_link`."""
        self._ask_federation(principal, name).add_link(principal, direction, name, properties, strict=strict)

    def delete_link(self, principal: Principal, direction: LinkDirection, name: str) -> None:
        """Delete a link to another broker; see `Federation.remove_link`."""
        self._ask_federation(principal, name).remove_link(direction, name)

    def create_route_link(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create a link for routes; see `Federation.add_route_link`."""
        self._ask_federation(principal, name).add_route_link(principal, name, properties, strict=strict)

    def delete_route_link(self, principal: Principal, name: str) -> None:
        """Delete a link for routes, with these; see `Federation.remove_route_link`."""
        self._ask_federation(principal, name).remove_route_link(name)

    def create_bridge(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create a route on a link; see `Federation.add_bridge`."""
        self._ask_federation(principal, name).add_bridge(principal, name, properties, strict=strict)

    def delete_bridge(self, principal: Principal, name: str) -> None:
        """Delete a route; see `Federation.remove_bridge`."""
        self._ask_federation(principal, name).remove_bridge(name)

    def create_relay(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create a relay to a domain; see `Relays.add`."""
        self._ask_relays(principal, name).add(principal, name, properties, strict=strict)

    def delete_relay(self, principal: Principal, name: str) -> None:
        """Delete a relay; see `Relays.remove`."""
        self._ask_relays(principal, name).remove(name)

    def pause_relay(self, principal: Principal, name: str) -> None:
        """Let messages wait; see `Relays.pause`."""
        self._ask_relays(principal, name).pause(name)

    def resume_relay(self, principal: Principal, name: str) -> None:
        """Forward messages again; see `Relays.resume`."""
        self._ask_relays(principal, name).resume(name)

    def retry_dead_letters(self, principal: Principal, name: str, count: int) -> int:
        """Forward dead letters again; see `Relays.retry`."""
        return self._ask_relays(principal, name).retry(name, count)

    def create_queue_link(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create a link within the broker; see `QueueLinks.add`."""
        self._ask_queue_links(principal, name).add(principal, name, properties, strict=strict)

    def delete_queue_link(self, principal: Principal, name: str) -> None:
        """Delete a link within the broker; see `QueueLinks.remove`."""
        self._ask_queue_links(principal, name).remove(name)

    def pause_queue_link(self, principal: Principal, name: str) -> None:
        """Let a link take no messages; see `QueueLinks.pause`."""
        self._ask_queue_links(principal, name).pause(name)

    def resume_queue_link(self, principal: Principal, name: str) -> None:
        """Let a link take messages again; see `QueueLinks.resume`."""
        self._ask_queue_links(principal, name).resume(name)

    def _ask_federation(self, principal: Principal, name: str) -> Federation:
        self._ask(principal, Operation(Action.CREATE, ObjectType.LINK, name))
        if self.federation is None:
            raise FederationError("this broker can have no links to other brokers")
        return self.federation

    def _ask_queue_links(self, principal: Principal, name: str) -> QueueLinks:
        self._ask(principal, Operation(Action.CREATE, ObjectType.LINK, name))
        if self.queue_links is None:
            raise QueueLinkError("this broker can have no links between queues")
        return self.queue_links

    def _ask_relays(self, principal: Principal, name: str) -> Relays:
        self._ask(principal, Operation(Action.CREATE, ObjectType.LINK, name))
        if self.relays is None:
            raise FederationError("this broker does not relay: it was started without that")
        return self.relays
