"""What `qpid-route` prints: the links and routes of a broker, and the map of those of all brokers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import attrs

from qmf.errors import QmfError
from qmf.tools.route.places import BrokerPlace
from qmf.tools.route.routed_broker import BridgeView, LinkView, RoutedBroker


@attrs.frozen
class MappedRoute:
    """A route, and the brokers at its ends.

    Attributes:
        broker: that has it, with host and port.
        other: that its link goes to.
        bridge: the route.
    """

    broker: str
    other: str
    bridge: BridgeView

    @property
    def ends(self) -> tuple[str, str]:
        """Where its messages come from, and where they go."""
        local = self.bridge.flag("srcIsLocal")
        return (self.broker, self.other) if local else (self.other, self.broker)


def link_lines(links: Sequence[LinkView]) -> Iterator[str]:
    """The links of a broker."""
    if not links:
        yield "No Links Found"
        return
    yield ""
    yield "Host            Port    Transport Durable  State             Last Error"
    yield "============================================================================="
    for link in links:
        durable = "Y" if link.values.get("durable") else "N"
        transport = str(link.values.get("transport", ""))
        yield f"{link.host:<16}{link.port:<8}{transport:<13}{durable}     {link.state:<18}{link.last_error}".rstrip()


def route_lines(broker: RoutedBroker) -> Iterator[str]:
    """The routes of a broker."""
    for link, bridge in broker.routes():
        yield (f"{broker.place} {link.place} {bridge.text('dest')} {bridge.shown_key:>10} {bridge.flag('srcIsLocal')}")


def map_lines(routes: Sequence[MappedRoute]) -> Iterator[str]:
    """The routes of several brokers."""
    yield ""
    yield "Dynamic Routes:"
    dynamic = [item for item in routes if item.bridge.flag("dynamic")]
    if not dynamic:
        yield "  none found"
    yield ""
    for exchange in dict.fromkeys(item.bridge.text("src") for item in dynamic):
        yield f"  Exchange {exchange}:"
        yield from _pairs([item.ends for item in dynamic if item.bridge.text("src") == exchange])
        yield ""
    yield "Static Routes:"
    static = [item for item in routes if not item.bridge.flag("dynamic")]
    if not static:
        yield "  none found"
    yield ""
    for item in static:
        yield _static_line(item)
    if static:
        yield ""


def dot_lines(routes: Sequence[MappedRoute], brokers: Sequence[str]) -> Iterator[str]:
    """The same as a graph in the language of Graphviz: an edge for each route, in the direction of its messages."""
    yield "digraph routes {"
    yield "  node [shape=box];"
    for broker in brokers:
        yield f"  {_quote(broker)};"
    for item in routes:
        source, target = item.ends
        bridge = item.bridge
        label = f"{bridge.text('src')} {bridge.shown_key}" if not bridge.flag("srcIsQueue") else bridge.text("src")
        if bridge.text("dest") != bridge.text("src"):
            label = f"{label} to {bridge.text('dest')}"
        style = ", style=dashed" if bridge.flag("dynamic") else ""
        yield f"  {_quote(source)} -> {_quote(target)} [label={_quote(label)}{style}];"
    yield "}"


def _pairs(ends: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Routes between two brokers, once for both directions."""
    shown: set[tuple[str, str]] = set()
    for source, target in ends:
        if (source, target) in shown or (target, source) in shown:
            continue
        shown.add((source, target))
        arrow = "<=>" if (target, source) in ends else " =>"
        yield f"    {source} {arrow} {target}"


def _static_line(item: MappedRoute) -> str:
    bridge = item.bridge
    kind = "queue" if bridge.flag("srcIsQueue") else "ex"
    source, target = f"{kind}={bridge.text('src')}", f"ex={bridge.text('dest')}"
    key = "" if bridge.flag("srcIsQueue") else f" key={bridge.text('key')}"
    if bridge.flag("srcIsLocal"):
        return f"  {item.broker}({source}) => {item.other}({target}){key}"
    return f"  {item.broker}({target}) <= {item.other}({source}){key}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


#: Connects to a broker, until the end of the block.
Connect = Callable[[BrokerPlace], contextlib.AbstractContextManager[RoutedBroker]]


class Topology:
    """The brokers that were found.

    Attributes:
        places: where they are, those that cannot be reached included.
        routes: of those that can.
    """

    def __init__(self, connect: Connect, report: Callable[[str], None]) -> None:
        """Make a topology of no brokers.

        Args:
            connect: connects to a broker.
            report: called with a line for each broker.
        """
        self.places: list[BrokerPlace] = []
        self.routes: list[MappedRoute] = []
        self._connect = connect
        self._report = report

    def find(self, start: RoutedBroker) -> None:
        """Add a broker, and all that can be reached from it."""
        self.places.append(start.place)
        self._report(f"    {start.place}... Ok")
        waiting = list(self._look(start))
        while waiting:
            place = waiting.pop(0)
            if self._find(place) is not None:
                continue
            self.places.append(place)
            try:
                with self._connect(place) as broker:
                    waiting += self._look(broker)
            except QmfError as error:
                self._report(f"    {place}... {error}")
            else:
                self._report(f"    {place}... Ok")
        # By the names under which the brokers were found first.
        self.routes = [MappedRoute(item.broker, self._name(item.other), item.bridge) for item in self.routes]

    def _look(self, broker: RoutedBroker) -> Iterator[BrokerPlace]:
        for link, bridge in broker.routes():
            self.routes.append(MappedRoute(str(broker.place), link.place, bridge))
        for link in broker.links():
            yield BrokerPlace(link.host, link.port, link.values.get("transport") == "ssl")

    def _find(self, place: BrokerPlace) -> BrokerPlace | None:
        return next((item for item in self.places if item.is_at(place.host, place.port)), None)

    def _name(self, place: str) -> str:
        host, _, port = place.rpartition(":")
        return str(self._find(BrokerPlace(host, int(port))) or place)
