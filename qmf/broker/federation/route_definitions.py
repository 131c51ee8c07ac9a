"""Links for routes, and the routes on them (bridges), as they are asked for: values, read from properties. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.broker.federation.definitions import (
    MAX_HOPS,
    Domain,
    LinkDefinition,
    new_container,
    plain_values,
    read_login,
    read_reliability,
    refuse_unknown,
    stored_fields,
)
from qmf.broker.federation.peer_credentials import CredentialsUnusable, read_credentials
from qmf.broker.nodes.arguments import Arguments, NodeArgumentError
from qmf.broker.nodes.observed_definitions import BridgeProperties
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import TRANSPORTS, LinkDirection
from qmf.broker.operations.principal import Principal
from qmf.bus.url import BusUrl, UrlError, parse_url

#: Beginning of names that only the broker gives.
RESERVED = "qpid."
#: What qpidd's tools send for a credit without limit.
UNLIMITED = 0xFFFFFFFF
_PORTS = 0xFFFF
_MOST_SYNC = 0xFFFF


@attrs.frozen(eq=False)
class RouteLinkDefinition:
    """A connection to another broker, for routes.

    Attributes:
        name: of the link.
        durable: it is there again after a restart.
        domain: the other broker, as a value that no console sees.
        principal: on whose behalf it was created.
        container: container id under which the other broker knows it.
        properties: as given.
    """

    name: str
    durable: bool
    domain: Domain
    principal: Principal
    container: str
    properties: Mapping[str, object] = attrs.field(repr=False)

    @property
    def fields(self) -> dict[str, object]:
        """What the store keeps of it: `read_route_link` reads it."""
        return stored_fields(self.properties, self.principal, self.container)


@attrs.frozen(eq=False)
class BridgeDefinition(BridgeProperties):
    """A route: messages of one node at one of two brokers go to one at the other broker.

    Attributes:
        name: of the bridge.
        link: name of its link.
        queue: an existing queue that a pulled exchange is bound to, instead of one that is made for the route.
        max_hops, durable, principal, container, properties, exactly_once: see `LinkDefinition`.
    """

    name: str
    link: str
    queue: str
    max_hops: int
    durable: bool
    principal: Principal
    container: str
    properties: Mapping[str, object]
    exactly_once: bool

    @property
    def fields(self) -> dict[str, object]:
        """What the store keeps of it: `read_bridge` reads it."""
        return stored_fields(self.properties, self.principal, self.container)

    @property
    def transfer(self) -> LinkDefinition:
        """The link of AMQP by which its messages go."""
        window = self.credit if 0 < self.credit < UNLIMITED else None
        return LinkDefinition(
            self.name,
            LinkDirection.OUTGOING if self.src_is_local else LinkDirection.INCOMING,
            self.link,
            self.src,
            self.dest,
            self.durable,
            "" if self.src_is_queue else self.key,
            "",
            {},
            self.max_hops,
            self.principal,
            self.container,
            self.properties,
            self.exactly_once,
            "queue" if self.src_is_queue and not self.src_is_local else "topic",
            tag=self.tag,
            excludes=tuple(self.excludes.replace(",", " ").split()),
            window=window,
        )


def read_route_link(
    name: str,
    properties: Mapping[str, object],
    principal: Principal,
    container: str | None = None,
    *,
    strict: bool = False,
) -> RouteLinkDefinition:
    """A link from its properties, which have qpidd's names, or from what the store has of it (`split_link_fields`).

    Args:
        properties: ``host``, ``port``, ``transport``, ``durable``, ``authMechanism``, ``username``, ``password``;
            of this broker's own ``alternates``, ``ssl_trustfile``, ``ssl_certfile``, ``ssl_keyfile``, ``token_file``.
        container: container id under which the other broker knows it; None for a new one.
        strict: refuse other properties.

    Raises:
        ForwardingError: a property is missing or wrong.
    """
    arguments = Arguments(properties)
    try:
        host, port = arguments.text("host"), arguments.number("port", _PORTS)
        transport, durable = arguments.text("transport") or "tcp", arguments.boolean("durable")
        mechanisms = arguments.text("authMechanism").replace(",", " ").split()
        username, password = read_login(arguments, "username"), read_login(arguments, "password")
        alternates = arguments.pop("alternates")
        credentials = read_credentials(arguments)
        if strict:
            credentials.check()
    except (NodeArgumentError, CredentialsUnusable) as error:
        raise ForwardingError(f"invalid parameter to method call: {error}") from error
    if not host or not port:
        raise ForwardingError(f"invalid parameter to method call: {'port' if host else 'host'}: is missing")
    if transport not in TRANSPORTS:
        raise ForwardingError(f"transport is not supported: {transport}")
    refuse_unknown(arguments, strict=strict)
    tls = TRANSPORTS[transport]
    domain = Domain(
        name,
        durable,
        (BusUrl(host, port, tls), *_alternates(alternates, port, tls=tls)),
        tuple(mechanisms) or None,
        username or None,
        password or None,
        plain_values(properties),
        credentials,
    )
    known = new_container() if container is None else container
    return RouteLinkDefinition(name, durable, domain, principal.lasting, known, plain_values(properties))


def _alternates(value: object, port: int, *, tls: bool) -> list[BusUrl]:
    """Other hosts of a link, such as ``two,three:5673``: tried in this order after its own, by default at its port."""
    items = value.split(",") if isinstance(value, str) else () if value is None else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ForwardingError("invalid parameter to method call: alternates: must be a text or a list of texts")
    found = []
    for item in filter(None, (str(item).strip() for item in items)):
        try:
            url = parse_url(item)
        except UrlError as error:
            raise ForwardingError(f"invalid parameter to method call: alternates: {error}") from error
        if url != BusUrl(url.host, url.port):
            raise ForwardingError(f"invalid parameter to method call: alternates: {item!r}: must be HOST or HOST:PORT")
        has_port = item.removeprefix(f"[{url.host}]").removeprefix(url.host).startswith(":")
        found.append(BusUrl(url.host, url.port if has_port else port, tls))
    return found


def read_bridge(
    name: str,
    properties: Mapping[str, object],
    principal: Principal,
    container: str | None = None,
    *,
    strict: bool = False,
) -> BridgeDefinition:
    """A bridge from its properties, or from what the store has of it (`split_link_fields`).

    The properties have qpidd's names; ``max_hops`` and ``reliability`` are this broker's.

    Args:
        properties: ``link``, ``src``, ``dest``, ``key``, ``tag``, ``excludes``, ``srcIsQueue``, ``srcIsLocal``,
            ``dynamic``, ``sync``, ``credit``, ``durable``, ``queue``, ``max_hops``, ``reliability``.
        container: container id under which the other broker knows it; None for a new one.
        strict: refuse other properties.

    Raises:
        ForwardingError: a property is missing or wrong.
    """
    arguments = Arguments(properties)
    try:
        link, src, dest, key = (arguments.text(item) for item in ("link", "src", "dest", "key"))
        tag, excludes, queue = (arguments.text(item) for item in ("tag", "excludes", "queue"))
        is_queue, is_local, dynamic = (arguments.boolean(item) for item in ("srcIsQueue", "srcIsLocal", "dynamic"))
        sync, credit = arguments.number("sync", _MOST_SYNC) or 0, arguments.number("credit", UNLIMITED)
        durable, max_hops = arguments.boolean("durable"), arguments.number("max_hops")
        exactly_once = read_reliability(arguments, durable=durable)
    except NodeArgumentError as error:
        raise ForwardingError(f"invalid parameter to method call: {error}") from error
    bridge = BridgeDefinition(
        src,
        dest,
        key,
        tag,
        excludes,
        is_queue,
        is_local,
        dynamic,
        sync,
        UNLIMITED if credit is None else credit,
        name,
        link,
        queue,
        MAX_HOPS if max_hops is None else max_hops,
        durable,
        principal.lasting,
        new_container() if container is None else container,
        plain_values(properties),
        exactly_once,
    )
    _check_bridge(bridge)
    refuse_unknown(arguments, strict=strict)
    return bridge


def _check_bridge(bridge: BridgeDefinition) -> None:
    """See whether properties of a bridge go together.

    Raises:
        ForwardingError: they don't.
    """
    for what, address in (("src", bridge.src), ("dest", bridge.dest)):
        if not address:
            raise ForwardingError(f"invalid parameter to method call: {what}: is missing")
    if bridge.dynamic and bridge.src_is_local:
        raise ForwardingError("Dynamic routing not supported for push routes")
    if bridge.dynamic and bridge.src_is_queue:
        raise ForwardingError("invalid parameter to method call: dynamic: the source must be an exchange")
    if bridge.queue and (bridge.src_is_local or bridge.src_is_queue):
        raise ForwardingError("invalid parameter to method call: queue: only pulled exchanges have one")
    if {",", " "} & {*bridge.tag}:
        raise ForwardingError("invalid parameter to method call: tag: must not contain commas or blanks")
    if bridge.credit and bridge.sync > bridge.credit:
        raise ForwardingError("The credit value must be greater than configured sync (ack) interval.")
    if bridge.max_hops == 0:
        raise ForwardingError("invalid parameter to method call: max_hops: must be 1 or more, not 0")
