"""A broker with its links and routes, as its agent shows them, and their methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from qmf.client import BrokerAgent, BrokerObject
from qmf.client.objects import Link
from qmf.tools.route.places import BrokerPlace

#: Types of links that routes cannot be on.
_AMQP_LINKS = ("incoming", "outgoing")


class LinkView(Link):
    """A link of a broker."""

    @property
    def place(self) -> str:
        """Host and port of the other broker."""
        return f"{self.host}:{self.port}"

    @property
    def last_error(self) -> str:
        """Why it is not up, or empty."""
        return str(self.lastError or "")


class BridgeView(BrokerObject):
    """A route of a broker."""

    class_name = "bridge"

    @property
    def link_id(self) -> str:
        """Name of the object of its link."""
        reference = self.values.get("linkRef")
        return str(reference.get("_object_name", "")) if isinstance(reference, dict) else ""

    def text(self, name: str) -> str:
        """A property that is a text."""
        return str(self.values.get(name) or "")

    def flag(self, name: str) -> bool:
        """A property that is true or false."""
        return bool(self.values.get(name))

    @property
    def shown_key(self) -> str:
        """Which messages it forwards, for people."""
        return "<dynamic>" if self.flag("dynamic") else self.text("key") or self.text("src")


class RoutedBroker:
    """A broker that has links and routes.

    Attributes:
        place: where it is.
        agent: its agent.
    """

    def __init__(self, place: BrokerPlace, agent: BrokerAgent) -> None:
        """Make a view of a connected broker; arguments as the attributes."""
        self.place = place
        self.agent = agent

    def links(self) -> list[LinkView]:
        """The links that routes can be on: incoming and outgoing ones of AMQP 1.0 are not."""
        others = {str(item.get("name")) for kind in _AMQP_LINKS for item in self.agent.list(kind)}
        # A broker of this project has those only while they are up, and the others always.
        others |= {str(item.get("name")) for item in self.agent.list("route") if item.get("kind") in _AMQP_LINKS}
        found = (LinkView(self.agent, item) for item in self.agent.find_all(LinkView.class_name))
        return [link for link in found if link.name not in others]

    def bridges(self) -> list[BridgeView]:
        """All routes."""
        return [BridgeView(self.agent, item) for item in self.agent.find_all(BridgeView.class_name)]

    def routes(self) -> Iterator[tuple[LinkView, BridgeView]]:
        """All routes, each with its link."""
        links = {link.getObjectId(): link for link in self.links()}
        for bridge in self.bridges():
            if (link := links.get(bridge.link_id)) is not None:
                yield link, bridge

    def link_to(self, other: BrokerPlace) -> LinkView | None:
        """The link to another broker."""
        return next((link for link in self.links() if other.is_at(link.host, link.port)), None)

    def bridge_on(self, link: LinkView, fits: Callable[[BridgeView], bool]) -> BridgeView | None:
        """A route on a link."""
        return next((item for item in self.bridges() if item.link_id == link.getObjectId() and fits(item)), None)

    def close(self, item: LinkView | BridgeView) -> None:
        """Delete a link or a route."""
        self.agent.call("close", {}, item.getObjectId())
