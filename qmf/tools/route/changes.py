"""What `qpid-route` changes: links and routes are added and deleted."""

from __future__ import annotations

import time

import attrs

from qmf.errors import QmfError, RemoteError
from qmf.tools.route.options import UNLIMITED
from qmf.tools.route.places import BrokerPlace
from qmf.tools.route.routed_broker import BridgeView, LinkView, RoutedBroker

#: How often a link is looked at until it is up, and the seconds between.
_LOOKS, _PAUSE = 30, 0.1


class RouteError(QmfError):
    """A link or a route cannot be added or deleted; says why."""


@attrs.frozen
class RouteOptions:
    """Options of the command line; names as there.

    Attributes:
        verbose, quiet, durable, del_empty_link, src_local: flags.
        ack: messages that are acknowledged together.
        credit: messages in flight at most.
        transport: of links.
        max_hops: see `docs/federation.md`; None for the default.
    """

    verbose: bool = False
    quiet: bool = False
    durable: bool = False
    del_empty_link: bool = False
    src_local: bool = False
    ack: int = 0
    credit: int = UNLIMITED
    transport: str = "tcp"
    max_hops: int | None = None


@attrs.frozen
class RouteSpec:
    """A route that is added or deleted.

    Attributes:
        src, dest: its ends.
        key: binding key, or empty.
        queue: its source is a queue.
        dynamic: it follows the bindings of its destination.
        tag, excludes: ids for traces, or empty.
    """

    src: str
    dest: str
    key: str = ""
    queue: bool = False
    dynamic: bool = False
    tag: str = ""
    excludes: str = ""

    def is_of(self, bridge: BridgeView, *, src_local: bool) -> bool:
        """A route of a broker is this one."""
        return (
            bridge.text("src") == self.src
            and bridge.text("dest") == self.dest
            and bridge.text("key") == self.key
            and bridge.flag("srcIsQueue") == self.queue
            and bridge.flag("dynamic") == self.dynamic
            and bridge.flag("srcIsLocal") == src_local
        )

    def names(self, bridge: BridgeView, *, src_local: bool) -> bool:
        """A route of a broker is the one that is to be deleted: the command line has no source of exchanges for it,
        and no key of queues, so these may be others."""
        same = bridge.text("src") == self.src if self.queue else bridge.text("key") == self.key
        return (
            same
            and bridge.text("dest") == self.dest
            and bridge.flag("srcIsQueue") == self.queue
            and bridge.flag("dynamic") == self.dynamic
            and bridge.flag("srcIsLocal") == src_local
        )


class RouteChanges:
    """Changes the links and routes of one broker."""

    def __init__(self, broker: RoutedBroker, options: RouteOptions) -> None:
        """Make what changes them; arguments as the attributes of others."""
        self._broker = broker
        self._options = options

    def add_link(self, other: BrokerPlace, mechanism: str = "") -> LinkView:
        """Add a link to another broker, unless it is there.

        Raises:
            RouteError: the other broker is this one, or the link cannot be had.
            QmfError: as the methods of `BrokerAgent`.
        """
        if other.is_at(self._broker.place.host, self._broker.place.port):
            raise RouteError("Linking broker to itself is not permitted")
        if self._broker.link_to(other) is None:
            transport = "ssl" if other.tls else self._options.transport
            arguments = {
                "host": other.host,
                "port": other.port,
                "durable": self._options.durable,
                "authMechanism": mechanism,
                "username": other.username,
                "password": other.password,
                "transport": transport,
            }
            self._broker.agent.call("connect", arguments)
        return self._check_link(other)

    def delete_link(self, other: BrokerPlace) -> None:
        """Delete a link, with its routes.

        Raises:
            RouteError: there is none.
            QmfError: as the methods of `BrokerAgent`.
        """
        link = self._broker.link_to(other)
        if link is None:
            raise RouteError("Link not found")
        self._broker.close(link)
        self._say("Close method returned: 0 OK")

    def add_route(self, other: BrokerPlace, route: RouteSpec, mechanism: str = "") -> None:
        """Add a route, and a link for it if there is none.

        Raises:
            RouteError: there is such a route, the link cannot be had, or is not durable and the route shall be.
            QmfError: as the methods of `BrokerAgent`.
        """
        options = self._options
        if route.dynamic and options.src_local:
            raise RouteError("--src-local is not permitted on dynamic routes")
        link = self.add_link(other, mechanism)
        found = self._broker.bridge_on(link, lambda item: route.is_of(item, src_local=options.src_local))
        if found is not None:
            if options.quiet:
                return
            raise RouteError(f"Duplicate Route - ignoring: {route.dest}({route.key or route.src})")
        if options.durable and not link.values.get("durable"):
            raise RouteError("Can't create a durable route on a non-durable link")
        self._say("Creating inter-broker binding...")
        # The name of the link is not first: that may begin with "qpid.", as only the broker's own names do.
        name = f"{route.dest}:{route.key or route.src}:{link.name}:{route.queue}:{options.src_local}"
        properties = {
            "link": link.name,
            "src": route.src,
            "dest": route.dest,
            "key": route.key,
            "tag": route.tag,
            "excludes": route.excludes,
            "srcIsQueue": route.queue,
            "srcIsLocal": options.src_local,
            "durable": options.durable,
            "dynamic": route.dynamic,
            "sync": options.ack,
            "credit": options.credit,
        }
        if options.max_hops is not None:
            properties["max_hops"] = options.max_hops
        self._broker.agent.create("bridge", name, properties)
        self._say("Bridge method returned: 0 OK")

    def delete_route(self, other: BrokerPlace, route: RouteSpec) -> None:
        """Delete a route, and its link, if that has no other one and the options say so.

        Raises:
            RouteError: there is no such route.
            QmfError: as the methods of `BrokerAgent`.
        """
        options, broker = self._options, self._broker
        link = broker.link_to(other)
        if link is None:
            if options.quiet:
                return
            raise RouteError(f"No link found from {other} to {broker.place}")
        found = broker.bridge_on(link, lambda item: route.names(item, src_local=options.src_local))
        if found is None:
            if options.quiet:
                return
            raise RouteError("Route not found")
        self._say("Closing bridge...")
        broker.close(found)
        closed = found.getObjectId()
        if options.del_empty_link and broker.bridge_on(link, lambda item: item.getObjectId() != closed) is None:
            self._say("Last bridge on link, closing link...")
            broker.close(link)

    def flush(self) -> None:
        """Delete all routes, and all links if the options say so; one that cannot be deleted stops no other.

        Raises:
            RouteError: some could not be deleted; each was named.
        """
        left = [
            self._flush(bridge, f"Bridge: {link.place} {bridge.text('dest')} {bridge.text('key')}")
            for link, bridge in list(self._broker.routes())
        ]
        if self._options.del_empty_link:
            left += [self._flush(link, f"Link: {link.place}") for link in self._broker.links()]
        if any(left):
            raise RouteError(f"{sum(left)} of {len(left)} links and routes are not deleted")

    def _flush(self, item: LinkView | BridgeView, what: str) -> bool:
        """Delete a link or a route. Returns whether it is still there."""
        try:
            self._broker.close(item)
        except RemoteError as error:
            print(f"Deleting {what}... Error: {error}")
            return True
        self._say(f"Deleting {what}... Ok")
        return False

    def _check_link(self, other: BrokerPlace) -> LinkView:
        """The link, as soon as it is up, or after a while."""
        link = self._broker.link_to(other)
        looks = 0 if self._options.quiet else _LOOKS
        while looks and (link is None or link.state in ("Waiting", "Connecting", "Closing")):
            time.sleep(_PAUSE)
            link, looks = self._broker.link_to(other), looks - 1
        if link is None:
            raise RouteError("Link failed to create")
        if link.state == "Failed":
            raise RouteError(f"Link failed to create {link.last_error}".rstrip())
        self._say(f"Link state is {link.state}")
        return link

    def _say(self, text: str) -> None:
        if self._options.verbose:
            print(text)
