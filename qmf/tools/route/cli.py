"""`qpid-route`: changes and shows the links between brokers, and the routes on them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from qmf.tools.connecting import OK, access_of, check_connection_options, open_broker, run_tool
from qmf.tools.route.changes import RouteChanges, RouteOptions, RouteSpec
from qmf.tools.route.listings import Topology, dot_lines, link_lines, map_lines, route_lines
from qmf.tools.route.options import USAGE, build_parser
from qmf.tools.route.places import BrokerPlace
from qmf.tools.route.routed_broker import RoutedBroker

#: Exit code for wrong arguments, as of Apache's tool (-1).
WRONG_ARGUMENTS = 255


@attrs.frozen
class RouteCommand:
    """A command of the tool.

    Attributes:
        fewest, most: arguments behind the two words of the command.
        run: does it, with these arguments.
        linked: its arguments begin with two brokers, the second of which the link goes to.
    """

    fewest: int
    most: int
    run: Callable[[RouteTool, Sequence[str]], None]
    linked: bool = True


class RouteTool:
    """One run of the tool.

    Attributes:
        options: of the command line.
        broker: that it is connected to.
        other: the other broker, where the command has one.
    """

    def __init__(self, options: argparse.Namespace, broker: RoutedBroker, other: BrokerPlace | None) -> None:
        """Make a run; arguments as the attributes."""
        self.options = options
        self.broker = broker
        self.other = other
        names = [field.name for field in attrs.fields(RouteOptions)]
        self._changes = RouteChanges(broker, RouteOptions(**{name: getattr(options, name) for name in names}))

    def add_dynamic(self, words: Sequence[str]) -> None:
        """dynamic add: exchange [tag] [exclude-list] [mechanism]"""
        exchange, tag, excludes, mechanism = _pad(words, 4)
        self._changes.add_route(
            self._other(), RouteSpec(exchange, exchange, dynamic=True, tag=tag, excludes=excludes), mechanism
        )

    def delete_dynamic(self, words: Sequence[str]) -> None:
        """dynamic del: exchange"""
        self._changes.delete_route(self._other(), RouteSpec(words[0], words[0], dynamic=True))

    def add_route(self, words: Sequence[str]) -> None:
        """route add: exchange, routing-key [tag] [exclude-list] [mechanism]"""
        exchange, key, tag, excludes, mechanism = _pad(words, 5)
        self._changes.add_route(
            self._other(), RouteSpec(exchange, exchange, key, tag=tag, excludes=excludes), mechanism
        )

    def delete_route(self, words: Sequence[str]) -> None:
        """route del: exchange, routing-key"""
        self._changes.delete_route(self._other(), RouteSpec(words[0], words[0], words[1]))

    def add_queue(self, words: Sequence[str]) -> None:
        """queue add: exchange, queue [mechanism]"""
        exchange, queue, mechanism = _pad(words, 3)
        self._changes.add_route(self._other(), RouteSpec(queue, exchange, queue=True), mechanism)

    def delete_queue(self, words: Sequence[str]) -> None:
        """queue del: exchange, queue"""
        self._changes.delete_route(self._other(), RouteSpec(words[1], words[0], queue=True))

    def add_link(self, words: Sequence[str]) -> None:
        """link add: [mechanism]"""
        self._changes.add_link(self._other(), *words)

    def delete_link(self, words: Sequence[str]) -> None:  # noqa: ARG002  # it has no more of them
        """link del"""
        self._changes.delete_link(self._other())

    def list_links(self, words: Sequence[str]) -> None:  # noqa: ARG002
        """link list"""
        _print(link_lines(self.broker.links()))

    def list_routes(self, words: Sequence[str]) -> None:  # noqa: ARG002
        """route list"""
        _print(route_lines(self.broker))

    def flush_routes(self, words: Sequence[str]) -> None:  # noqa: ARG002
        """route flush"""
        self._changes.flush()

    def map_routes(self, words: Sequence[str]) -> None:  # noqa: ARG002
        """route map"""
        as_graph = self.options.dot
        topology = Topology(self._connect, (lambda _: None) if as_graph else print)
        if not as_graph:
            _print(["", "Finding Linked Brokers:"])
        topology.find(self.broker)
        if as_graph:
            _print(dot_lines(topology.routes, [str(place) for place in topology.places]))
        else:
            _print(map_lines(topology.routes))

    def _other(self) -> BrokerPlace:
        assert self.other is not None
        return self.other

    @contextlib.contextmanager
    def _connect(self, place: BrokerPlace) -> Iterator[RoutedBroker]:
        """Another broker, with the login of the first one."""
        start = self.broker.place
        login = f"{start.username}/{start.password}@" if start.username else ""
        scheme = "amqps://" if place.tls else ""
        options = argparse.Namespace(**{**vars(self.options), "broker": f"{scheme}{login}{place}"})
        with open_broker(access_of(options), self.options.timeout) as agent:
            yield RoutedBroker(place, agent)


COMMANDS: Mapping[tuple[str, str], RouteCommand] = {
    ("dynamic", "add"): RouteCommand(1, 4, RouteTool.add_dynamic),
    ("dynamic", "del"): RouteCommand(1, 1, RouteTool.delete_dynamic),
    ("route", "add"): RouteCommand(2, 5, RouteTool.add_route),
    ("route", "del"): RouteCommand(2, 2, RouteTool.delete_route),
    ("queue", "add"): RouteCommand(2, 3, RouteTool.add_queue),
    ("queue", "del"): RouteCommand(2, 2, RouteTool.delete_queue),
    ("link", "add"): RouteCommand(0, 1, RouteTool.add_link),
    ("link", "del"): RouteCommand(0, 0, RouteTool.delete_link),
    ("link", "list"): RouteCommand(0, 0, RouteTool.list_links, linked=False),
    ("route", "list"): RouteCommand(0, 0, RouteTool.list_routes, linked=False),
    ("route", "flush"): RouteCommand(0, 0, RouteTool.flush_routes, linked=False),
    ("route", "map"): RouteCommand(0, 0, RouteTool.map_routes, linked=False),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; `argv`: arguments without the program's name; None means those of the process.

    Returns:
        0 for success; 1 if the broker cannot be reached or refuses what is asked for; 255 for wrong arguments; 130
        after Ctrl-C. Wrong options end the program with 2.
    """
    parser = build_parser()
    options = parser.parse_intermixed_args(argv)
    check_connection_options(parser, options)
    command = COMMANDS.get(tuple(options.words[:2]))
    words = options.words[2:]
    brokers = 2 if command is not None and command.linked else min(1, len(words))
    if command is None or not command.fewest <= len(words) - brokers <= command.most:
        print(f"Usage: {USAGE}")
        return WRONG_ARGUMENTS
    at, rest = words[:brokers], words[brokers:]
    return run_tool(lambda: _run(options, command, at, rest))


def _run(options: argparse.Namespace, command: RouteCommand, brokers: Sequence[str], words: Sequence[str]) -> int:
    places = [BrokerPlace.of(item) for item in brokers] or [BrokerPlace.of("localhost")]
    own = 1 if options.src_local and len(places) > 1 else 0
    options.broker = brokers[own] if brokers else "localhost"
    other = places[1 - own] if len(places) > 1 else None
    with open_broker(access_of(options), options.timeout) as agent:
        command.run(RouteTool(options, RoutedBroker(places[own], agent), other), words)
    return OK


def _pad(words: Sequence[str], count: int) -> list[str]:
    return [*words, *[""] * (count - len(words))]


def _print(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        print(line)
