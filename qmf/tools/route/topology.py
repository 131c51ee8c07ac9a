"""Finds the brokers that are linked with one, over links of links."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from qmf.errors import QmfError
from qmf.tools.route.listings import MappedRoute
from qmf.tools.route.places import BrokerPlace
from qmf.tools.route.routed_broker import RoutedBroker

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
