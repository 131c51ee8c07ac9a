"""A broker with its links and routes, as its agent shows them, and their methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from qmf.client import BrokerAgent
from qmf.tools.route.places import BrokerPlace

#: Types of links that routes cannot be on.
_AMQP_LINKS = ("incoming", "outgoing")


@attrs.frozen
class LinkView:
    """A link of a broker.

    Attributes:
        id: name of the object.
        values: properties and statistics, by name.
    """

    id: str
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the link."""
        return str(self.values.get("name", ""))

    @property
    def host(self) -> str:
        """Host of the other broker."""
        return str(self.values.get("host", ""))

    @property
    def port(self) -> int:
        """Port of the other broker."""
        return int(self.values.get("port", 0))

    @property
    def place(self) -> str:
        """Both."""
        return f"{self.host}:{self.port}"

    @property
    def state(self) -> str:
        """State of the link."""
        return str(self.values.get("state", ""))

    @property
    def last_error(self) -> str:
        """Why it is not up, or empty."""
        return str(self.values.get("lastError") or "")


@attrs.frozen
class BridgeView:
    """A route of a broker.

    Attributes:
        id: name of the object.
        link_id: that of its link.
        values: properties, by name.
    """

    id: str
    link_id: str
    values: Mapping[str, Any]

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
        found = (LinkView(_id_of(item), item["_values"]) for item in self.agent.find_all("link"))
        return [link for link in found if link.name not in others]

    def bridges(self) -> list[BridgeView]:
        """All routes."""
        found = self.agent.find_all("bridge")
        return [BridgeView(_id_of(item), _name_of(item["_values"].get("linkRef")), item["_values"]) for item in found]

    def routes(self) -> Iterator[tuple[LinkView, BridgeView]]:
        """All routes, each with its link."""
        links = {link.id: link for link in self.links()}
        for bridge in self.bridges():
            if (link := links.get(bridge.link_id)) is not None:
                yield link, bridge

    def link_to(self, other: BrokerPlace) -> LinkView | None:
        """The link to another broker."""
        return next((link for link in self.links() if other.is_at(link.host, link.port)), None)

    def bridge_on(self, link: LinkView, fits: Callable[[BridgeView], bool]) -> BridgeView | None:
        """A route on a link."""
        return next((item for item in self.bridges() if item.link_id == link.id and fits(item)), None)

    def close(self, item: LinkView | BridgeView) -> None:
        """Delete a link or a route."""
        self.agent.call("close", {}, item.id)


def _id_of(content: Mapping[str, Any]) -> str:
    return _name_of(content.get("_object_id"))


def _name_of(reference: object) -> str:
    return str(reference.get("_object_name", "")) if isinstance(reference, Mapping) else ""
