"""Domains and links as they are asked for: values, read from the properties that consoles give. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import attrs

from qmf.broker.federation.peer_credentials import CredentialsUnusable, PeerCredentials, read_credentials
from qmf.broker.nodes.arguments import Arguments, NodeArgumentError
from qmf.broker.nodes.relay_addresses import DEAD_LETTERS
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import Principal, split_stored
from qmf.bus.url import BusUrl, UrlError, parse_url

#: A field of a link in the store, besides its properties and its creator: the container id under which the other broker
#: knows it.
_CONTAINER = "qmf.container"

#: Brokers that a message may have left by links before it is not forwarded any more, unless the link says otherwise.
MAX_HOPS = 32

#: What a link may be asked for, and whether it stands for exactly-once.
_RELIABILITIES = {"at-least-once": False, "exactly-once": True}

#: What a link may say of the node at the other broker.
_PEER_TYPES = ("", "queue", "topic")

#: Beginning of the properties that are arguments of a queue: that of a relay, or of an outgoing link at an exchange.
_QUEUE_ARGUMENTS = "qpid."

#: What qpidd's URLs have before the host, and whether it stands for TLS.
_TRANSPORTS = {"tcp:": False, "ssl:": True}


@attrs.frozen(eq=False)
class Domain:
    """Another broker.

    Attributes:
        name: of the domain.
        durable: it is there again after a restart.
        urls: of the broker, in the order in which they are tried.
        mechanisms: names of SASL mechanisms that may be used; None for the strongest that the broker offers.
        username, password: to log in with; None for those of each URL.
        properties: as given.
        credentials: files with what links connect and log in with.
    """

    name: str
    durable: bool
    urls: tuple[BusUrl, ...]
    mechanisms: tuple[str, ...] | None
    username: str | None
    password: str | None = attrs.field(repr=False)
    properties: Mapping[str, object] = attrs.field(repr=False)
    credentials: PeerCredentials = attrs.field(factory=PeerCredentials)

    kind = "domain"  #: see `PeerDomain`

    @property
    def fields(self) -> Mapping[str, object]:
        """What the store keeps of it: `read_domain` reads it."""
        return self.properties

    @property
    def url(self) -> str:
        """The URLs as one text, without passwords."""
        return ",".join(map(str, self.urls))

    def login(self, url: BusUrl) -> BusUrl:
        """A URL with the user to log in as, and the password."""
        if url.username is not None or self.username is None:
            return url
        return attrs.evolve(url, username=self.username, password=self.password)


@attrs.frozen(eq=False)
class LinkDefinition:
    """A link to another broker.

    Attributes:
        name: of the link.
        direction: of its messages.
        domain: name of the domain.
        source, target: addresses; one is of this broker, the other one of the other broker.
        durable: it is there again after a restart.
        key: of the messages that are taken from an exchange; empty for the default of the exchange.
        selector: of the messages that are taken, by their properties; empty for all.
        queue: properties of the queue that an outgoing link has at an exchange.
        max_hops: a message is not forwarded that has left so many brokers by links before.
        principal: on whose behalf it takes and publishes messages.
        container: container id under which the other broker knows it.
        properties: as given.
        exactly_once: its messages come once, if the other broker can resume links; at least once otherwise.
        peer_type: what the node at the other broker is, if its name does not say it: ``queue``, ``topic`` or empty.
        tag: id that is added to the traces of its messages; empty for that of the broker which they leave.
        excludes: ids of brokers; a message that has left one of them is not forwarded. Empty for those of both brokers.
        window: messages that may be in flight towards this broker; None for the usual number.
        by_address: each message goes to the node of its address at this broker, and `target` is empty.
        dead_letters: with that, name of the queue for messages whose address has no node.
    """

    name: str
    direction: LinkDirection
    domain: str
    source: str
    target: str
    durable: bool
    key: str
    selector: str
    queue: Mapping[str, object]
    max_hops: int
    principal: Principal
    container: str
    properties: Mapping[str, object]
    exactly_once: bool = False
    peer_type: str = ""
    tag: str = ""
    excludes: tuple[str, ...] = ()
    window: int | None = None
    by_address: bool = False
    dead_letters: str = DEAD_LETTERS

    @property
    def node(self) -> str:
        """Address at this broker."""
        return self.target if self.direction is LinkDirection.INCOMING else self.source

    @property
    def fields(self) -> dict[str, object]:
        """What the store keeps of it: `read_link` reads it."""
        return stored_fields(self.properties, self.principal, self.container)


def read_domain(name: str, properties: Mapping[str, object], *, strict: bool = False) -> Domain:
    """A domain from its properties, which have qpidd's names.

    Args:
        properties: ``url`` (a text with one URL or several behind commas, or a list of them), ``username``,
            ``password``, ``sasl_mechanisms``, ``sasl_service``, ``min_ssf``, ``max_ssf``, ``durable``,
            ``ssl_trustfile``, ``ssl_certfile``, ``ssl_keyfile``, ``token_file``.
        strict: refuse other properties.

    Raises:
        ForwardingError: a property is missing or wrong.
    """
    arguments = Arguments(properties)
    try:
        urls = _urls(arguments.pop("url"))
        names = arguments.text("sasl_mechanisms").replace(",", " ").split()
        username, password = read_login(arguments, "username"), read_login(arguments, "password")
        arguments.text("sasl_service")  # of Kerberos, which no client has here
        least = arguments.number("min_ssf") or 0
        arguments.number("max_ssf")
        durable = arguments.boolean("durable")
        credentials = read_credentials(arguments)
        if strict:  # one that is restored says in its state what is missing
            credentials.check()
    except (NodeArgumentError, CredentialsUnusable) as error:
        raise ForwardingError(f"invalid-argument: {error}") from error
    if "NONE" in (item.upper() for item in names):
        raise ForwardingError("invalid-argument: sasl_mechanisms: connections without SASL are not possible here")
    if least and (plain := [url for url in urls if not url.tls]):
        raise ForwardingError(f"invalid-argument: min_ssf: {plain[0]} has no TLS; write amqps://")
    refuse_unknown(arguments, strict=strict)
    return Domain(
        name,
        durable,
        urls,
        tuple(names) or None,
        username or None,
        password or None,
        plain_values(properties),
        credentials,
    )


def stored_fields(properties: Mapping[str, object], principal: Principal, container: str) -> dict[str, object]:
    """What the store keeps of a link, a bridge or a relay: `split_link_fields` reads it."""
    return {**properties, **principal.fields, _CONTAINER: container}


def split_link_fields(fields: Mapping[str, object]) -> tuple[dict[str, object], Principal, str]:
    """Properties, creator and container id of what the store has."""
    properties, principal = split_stored(fields)
    return properties, principal, str(properties.pop(_CONTAINER, ""))


def split_queue_arguments(properties: Mapping[str, object]) -> tuple[Arguments, dict[str, object]]:
    """Properties of a link or a relay, and the arguments of its queue, which begin with ``qpid.``."""
    own = {key: value for key, value in properties.items() if not key.startswith(_QUEUE_ARGUMENTS)}
    return Arguments(own), {key: value for key, value in properties.items() if key not in own}


def new_container() -> str:
    """A container id for a link."""
    return f"qmf-link-{uuid.uuid4()}"


def read_link(
    direction: LinkDirection,
    name: str,
    properties: Mapping[str, object],
    principal: Principal,
    container: str | None = None,
    *,
    strict: bool = False,
) -> LinkDefinition:
    """A link from its properties, or from what the store has of it (`split_link_fields`).

    Args:
        properties: ``domain``, ``source``, ``target``, ``durable``, ``key``, ``selector``, ``max_hops``,
            ``reliability``, ``peer_type``, ``by_address``, ``dead_letters``, and those of a queue, which begin with
            ``qpid.``.
        container: container id under which the other broker knows it; None for a new one.
        strict: refuse other properties.

    Raises:
        ForwardingError: a property is missing or wrong.
    """
    arguments, queue = split_queue_arguments(properties)
    try:
        domain, source, target = (arguments.text(key) for key in ("domain", "source", "target"))
        durable, key, selector = arguments.boolean("durable"), arguments.text("key"), arguments.text("selector")
        max_hops = arguments.number("max_hops")
        exactly_once = read_reliability(arguments, durable=durable)
        peer_type = arguments.text("peer_type")
        by_address, dead_letters = arguments.boolean("by_address"), arguments.text("dead_letters")
    except NodeArgumentError as error:
        raise ForwardingError(f"invalid-argument: {error}") from error
    if not domain:
        raise ForwardingError("Domain must be specified")
    refuse_unknown(arguments, strict=strict)
    definition = LinkDefinition(
        name,
        direction,
        domain,
        source,
        target,
        durable,
        key,
        selector,
        queue,
        MAX_HOPS if max_hops is None else max_hops,
        principal.lasting,
        new_container() if container is None else container,
        plain_values(properties),
        exactly_once,
        peer_type,
        by_address=by_address,
        dead_letters=dead_letters or DEAD_LETTERS,
    )
    if problem := _contradiction(definition):
        raise ForwardingError(f"invalid-argument: {problem}")
    return definition


def _contradiction(link: LinkDefinition) -> str:
    """What is wrong with a link whose properties are right each for itself; empty for nothing."""
    incoming = link.direction is LinkDirection.INCOMING
    problems = {
        "by_address: a link with it has no target": link.by_address and bool(link.target),
        "by_address: is for incoming links": link.by_address and not incoming,
        "dead_letters: is for incoming links with by_address": link.dead_letters != DEAD_LETTERS
        and not link.by_address,
        "source: is missing": not link.source,
        "target: is missing": not (link.target or link.by_address),
        "max_hops: must be 1 or more, not 0": link.max_hops == 0,
        f"peer_type: must be queue or topic, not {link.peer_type!r}": link.peer_type not in _PEER_TYPES,
        f"{next(iter(link.queue), '')}: an incoming link has no queue of its own": bool(link.queue) and incoming,
    }
    return next((text for text, wrong in problems.items() if wrong), "")


def read_reliability(arguments: Arguments, *, durable: bool) -> bool:
    """The property ``reliability``: True for exactly-once, which durable links have unless they ask for less."""
    text = arguments.text("reliability")
    if text and text not in _RELIABILITIES:
        raise NodeArgumentError(f"reliability: must be {' or '.join(_RELIABILITIES)}, not {text!r}")
    return _RELIABILITIES.get(text, durable)


def read_login(arguments: Arguments, name: str) -> str:
    """A user or a password: tools may have taken one of digits for a number. Errors don't show it."""
    value = arguments.pop(name)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise NodeArgumentError(f"{name}: must be text")
    return "" if value is None else str(value)


def _urls(value: object) -> tuple[BusUrl, ...]:
    """The URLs of a domain: ours, or those of qpidd, such as ``amqp:tcp:one:5672,tcp:two:5672``."""
    items = value.split(",") if isinstance(value, str) else value
    if not value:
        raise ForwardingError("A url is required for a domain!")
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ForwardingError("invalid-argument: url: must be a text or a list of texts")
    try:
        return tuple(_url(str(item).strip()) for item in items)
    except UrlError as error:
        raise ForwardingError(f"invalid-argument: url: {error}") from error


def _url(text: str) -> BusUrl:
    if "://" not in text:
        text = text.removeprefix("amqp:")
        for transport, tls in _TRANSPORTS.items():
            credentials, at, host = text.rpartition("@")
            if host.startswith(transport):
                rest = f"{credentials}{at}{host.removeprefix(transport)}"
                return parse_url(f"amqps://{rest}" if tls else rest)
    return parse_url(text)


def refuse_unknown(arguments: Arguments, *, strict: bool) -> None:
    """Refuse properties that were not read.

    Raises:
        ForwardingError: `strict` is set, and there are some.
    """
    if strict and arguments.unknown:
        raise ForwardingError(f"invalid-argument: {', '.join(arguments.unknown)}: unknown")


def plain_values(properties: Mapping[str, object]) -> dict[str, object]:
    """Properties as the store can keep them."""
    return {str(name): list(value) if isinstance(value, tuple) else value for name, value in properties.items()}
