"""What an address means to a broker: the link that is asked for, and how its answer is checked. No I/O.

AMQP 1.0 leaves addresses to brokers. For Apache qpidd the forms of its C++ client are used, and the embedded broker
takes the same: capabilities and properties of the terminus ask for the node to be created or checked. An option that a
broker cannot provide is refused here, with its name.

Source: High Level Client API, "Addresses"; AMQP 1.0, part 3.5.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

import attrs

from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import LINK_RESUMPTION
from qmf.bus.engine.values import START_FILTER, DescribedProperty, Durability, ExpiryPolicy, Filter, Terminus
from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import AddressPolicy, BindingOptions, LinkOptions, Mode, NodeType, Reliability
from qmf.messaging.bindings import check_bindings, declared_properties, has_bindings, link_properties, own_binding
from qmf.messaging.exceptions import AssertionFailed, InvalidOption, ResolutionError

#: `product` of the brokers that have addresses of their own.
ARTEMIS, RABBITMQ = "apache-activemq-artemis", "RabbitMQ"
#: And of those that have qpidd's.
QPIDD, EMBEDDED = "qpid-cpp", "qmf-broker"

#: `product` of the brokers that settle a delivery after the receiver has reported its outcome without settling it.
#: Artemis never does, and RabbitMQ ends the connection.
_CONFIRMING = (QPIDD, EMBEDDED)
#: Those with bindings.
_BINDING = (QPIDD, EMBEDDED)

#: Seconds for which a subscription with at-least-once waits for its link to come back, unless the address says.
LASTING_TIMEOUT = 120

_SELECTOR = ("selector", "apache.org:selector-filter:string")
_TOPIC_BINDING = ("subject-filter", "apache.org:legacy-amqp-topic-binding:string")
_DIRECT_BINDING = ("subject-filter", "apache.org:legacy-amqp-direct-binding:string")

_HEADERS_BINDING = ("headers-filter", "apache.org:legacy-amqp-headers-binding:map")
_NO_LOCAL = ("no-local-filter", "apache.org:no-local-filter:list")
#: The argument of a queue for which there is the filter.
_NO_LOCAL_ARGUMENT = "no-local"

_DIRECT_DESCRIPTORS = (_DIRECT_BINDING[1], 0x0000468C00000000)

_DELETE_ON_CLOSE = DescribedProperty("amqp:delete-on-close:list", [])

#: Lifetime policies under the names that addresses use.
_LIFETIMES = {
    "delete-on-close": _DELETE_ON_CLOSE,
    "delete-if-unused": DescribedProperty("amqp:delete-on-no-links:list", []),
    "delete-if-empty": DescribedProperty("amqp:delete-on-no-messages:list", []),
    "delete-if-unused-and-empty": DescribedProperty("amqp:delete-on-no-links-or-messages:list", []),
}


@attrs.frozen
class LinkRequest:
    """A link to ask a broker for.

    Attributes:
        name: of the link.
        terminus: the target of a sender, the source of a receiver.
        settled: True if messages are sent settled, so that the broker does not answer for them.
        unsettled: True if the broker shall not settle messages itself: qpidd does for subscriptions otherwise.
        lasting: True if the broker keeps the subscription for a while when the connection is lost.
        properties: of the link, by name.
    """

    name: str
    terminus: Terminus
    settled: bool
    unsettled: bool = False
    lasting: bool = False
    properties: Mapping[str, object] = attrs.field(factory=dict)


def resolve(address: Address, *, sending: bool, product: str, capabilities: Collection[str] = ()) -> LinkRequest:
    """The link for an address.

    Args:
        address: of the sender or receiver.
        sending: True for a sender.
        product: what the broker calls itself.
        capabilities: that the broker offers.

    Raises:
        InvalidOption: the broker cannot provide what an option asks for.
    """
    options = address.options
    name = options.link.name or f"{'null' if address.anonymous else address.name}_{uuid.uuid4()}"
    _check_link_options(address, product, capabilities, sending=sending)
    terminus = _with_timeout(_RESOLVERS.get(product, _qpid)(address, sending), options.link)
    _check_properties(address)
    unreliable = _is_unreliable(address, sending=sending)
    durable = bool(options.link.durable)
    lasting = durable
    if not sending:
        terminus = attrs.evolve(terminus, capabilities=(*terminus.capabilities, *_subscription(address, product)))
        lasting = durable or _asks_for_lasting(address)
    if lasting and not durable:
        terminus = _lasting(terminus, product)
    check_bindings(address)
    return LinkRequest(
        name,
        terminus,
        unreliable,
        unsettled=lasting and not sending and not unreliable,
        lasting=lasting,
        properties=link_properties(address, sending=sending) if product == EMBEDDED else {},
    )


def _check_link_options(address: Address, product: str, capabilities: Collection[str], *, sending: bool) -> None:
    """Refuse what a broker cannot do for a link."""
    link = address.options.link
    if link.reliability is Reliability.EXACTLY_ONCE:
        _check_exactly_once(address, product, capabilities)
    if link.subscribe:
        raise _refusal(address, product, "link.x-subscribe")
    if link.start is not None and product != EMBEDDED:
        raise _refusal(address, product, "link.start")
    _check_declaration(address, product, sending=sending)
    if product not in _BINDING and has_bindings(address):
        raise _refusal(address, product, "x-bindings")


def _with_timeout(terminus: Terminus, link: LinkOptions) -> Terminus:
    """A terminus that is kept without connection as long as the options of the link say."""
    if link.timeout is not None:
        terminus = attrs.evolve(terminus, timeout=round(link.timeout))
    elif link.durable:
        # It stays until it is ended, as the subscriptions of JMS do.
        terminus = attrs.evolve(terminus, timeout=0, expiry=ExpiryPolicy.NEVER)
    return attrs.evolve(terminus, durability=Durability.UNSETTLED_STATE) if link.durable else terminus


def _check_declaration(address: Address, product: str, *, sending: bool) -> None:
    """Refuse what is asked of the queue of a subscription where it cannot be had."""
    declare = address.options.link.declare
    given = declared_properties(declare)
    if not given:
        return
    if sending:
        raise InvalidOption(text=f"address {str(address)!r}, link.x-declare: only a receiver has a subscription")
    if product == QPIDD:
        given.pop(_NO_LOCAL_ARGUMENT, None)  # there is a filter for it
        if given:
            raise _refusal(address, product, f"link.x-declare: {', '.join(given)}")
    elif product != EMBEDDED:
        raise _refusal(address, product, "link.x-declare")


def _subscription(address: Address, product: str) -> tuple[str, ...]:
    """Capabilities that a receiver's address asks for if it is a subscription."""
    options = address.options
    capabilities: list[str] = []
    plain = not (address.temporary or address.anonymous or options.mode is Mode.BROWSE)
    if product in _BINDING and plain and options.link.reliability is not Reliability.EXACTLY_ONCE:
        if has_queue_of_its_name(address, product):
            capabilities += ["shared", "global"] if product == EMBEDDED else ["shared"]
        if product == QPIDD and options.link.bindings and options.node.type is None:
            # As good as neither; the answer says which it is, so which queue is bound.
            capabilities += [kind.value for kind in NodeType]
    return tuple(capabilities)


def has_queue_of_its_name(address: Address, product: str) -> bool:
    """True if the queue of a subscription has the name of the link alone, without that of the container.

    So it is where the program names it. On qpidd it is not exclusive to the session then, so that the broker's
    management may bind it: for bindings of the link it is so as well.
    """
    link = address.options.link
    return not link.durable and (link.name is not None or (product == QPIDD and bool(link.bindings)))


def is_exchange(link: Link) -> bool:
    """True if the node of a receiver whose address has link bindings is an exchange."""
    return link.source is not None and NodeType.TOPIC.value in link.source.capabilities


def _asks_for_lasting(address: Address) -> bool:
    """True if an address says at-least-once: of an exchange, the receiver is to get what is published between links."""
    options = address.options
    kept = not address.temporary and not address.anonymous and options.mode is not Mode.BROWSE
    return kept and options.link.reliability is Reliability.AT_LEAST_ONCE


def _lasting(terminus: Terminus, product: str) -> Terminus:
    """The source of a subscription that a broker keeps for a while when its link is gone, and is not closed."""
    if product == ARTEMIS:
        # It has no time-out for them. Addresses that are queues are not concerned.
        if NodeType.TOPIC.value not in terminus.capabilities:
            return terminus
        return attrs.evolve(terminus, durability=Durability.UNSETTLED_STATE, expiry=ExpiryPolicy.NEVER)
    # qpidd's subscriptions have a time-out, those of the embedded broker if they can be shared.
    shared = ("shared",) if product == EMBEDDED and "shared" not in terminus.capabilities else ()
    return attrs.evolve(
        terminus, timeout=terminus.timeout or LASTING_TIMEOUT, capabilities=(*terminus.capabilities, *shared)
    )


def binds_by_management(address: Address, product: str) -> bool:
    """True if methods of the broker's management make the bindings of an address."""
    return product == QPIDD and has_bindings(address)


def deletes_by_management(address: Address, *, sending: bool, product: str) -> bool:
    """True if a method of the broker's management deletes the node of a link that is closed.

    qpidd deletes those by itself that it created for the link.
    """
    named = not address.temporary and not address.anonymous
    return product == QPIDD and named and address.options.delete.applies(sending=sending)


def confirms_acknowledgements(product: str) -> bool:
    """True if a broker can confirm that a message was acknowledged."""
    return product in _CONFIRMING


def drops_unknown(address: Address, product: str) -> bool:
    """True if a broker accepts and drops what a sender of that address sends when the node does not exist.

    Raises:
        InvalidOption: as of `resolve`.
    """
    if product != RABBITMQ:
        return False
    node = resolve(address, sending=True, product=product).terminus.address
    return node is not None and node.startswith("/amq/queue/")


def passes_lists(product: str) -> bool:
    """True if a broker passes on lists as content; RabbitMQ 3 ends the connection."""
    return product != RABBITMQ


def delays_delivery(product: str) -> bool:
    """True if a broker delivers messages with ``x-opt-delivery-delay`` later."""
    return product in (EMBEDDED, ARTEMIS)


def declares_durable_queues(product: str) -> bool:
    """True if an address can ask for a durable queue."""
    return product in (EMBEDDED, QPIDD)


def takes_decimals(product: str) -> bool:
    """True if a broker reads on after content that is one decimal number."""
    return product != QPIDD


def can_drain(product: str) -> bool:
    """True if a broker reports that it has no message for the credit given; RabbitMQ 3 ends the session instead."""
    return product != RABBITMQ


def releases_in_transaction(product: str) -> bool:
    """True if a message that a transaction releases is in its queue again; Artemis drops it."""
    return product != ARTEMIS


def _check_exactly_once(address: Address, product: str, capabilities: Collection[str]) -> None:
    option = "link.reliability: exactly-once"
    if LINK_RESUMPTION not in capabilities:
        refusal = _refusal(address, product, option)
        raise InvalidOption(
            text=f"{refusal.text}: it does not offer {LINK_RESUMPTION}, to keep the state of lost links"
        )
    if address.options.mode is Mode.BROWSE:
        raise InvalidOption(text=f"address {str(address)!r}, {option} is not possible with mode: browse")
    if address.temporary:
        raise InvalidOption(text=f"address {str(address)!r}, {option} is not possible with a temporary node")


def _check_properties(address: Address) -> None:
    """Refuse properties of a node that nobody creates or asserts: they would have no effect."""
    options = address.options
    if options.node.properties and not address.temporary and options.create is options.assert_ is AddressPolicy.NEVER:
        reason = "has no effect without the option create or assert"
        raise InvalidOption(text=f"address {str(address)!r}, node.properties {reason}")


def _is_unreliable(address: Address, *, sending: bool) -> bool:
    reliability = address.options.link.reliability
    if reliability is None:
        return not sending and address.options.mode is Mode.BROWSE
    return reliability in (Reliability.UNRELIABLE, Reliability.AT_MOST_ONCE)


def _qpid(address: Address, sending: bool) -> Terminus:
    options = address.options
    create, check = options.create.applies(sending=sending), options.assert_.applies(sending=sending)
    capabilities = list(options.node.capabilities)
    if create:
        capabilities.append("create-on-demand")
    if options.node.type is not None:
        capabilities.append(options.node.type.value)
    if options.node.durable:
        capabilities.append("durable")
    properties = _node_properties(address) if create or check or address.temporary else {}
    if address.temporary and not properties.keys() & {"lifetime-policy", "auto-delete"}:
        properties["lifetime-policy"] = _DELETE_ON_CLOSE
    if options.delete.applies(sending=sending):
        properties.setdefault("lifetime-policy", _DELETE_ON_CLOSE)
    return Terminus(
        address=None if address.temporary or address.anonymous else address.name,
        dynamic=address.temporary,
        filters=() if sending else _filters(address),
        browse=not sending and options.mode is Mode.BROWSE,
        capabilities=tuple(capabilities),
        properties=properties,
    )


def _node_properties(address: Address) -> dict[str, object]:
    node = address.options.node
    properties: dict[str, object] = {}
    if node.type is not None:
        properties["supported-dist-modes"] = "copy" if node.type is NodeType.TOPIC else "move"
    if node.durable:
        properties["durable"] = True
    declare = node.declare
    properties.update(declared_properties(declare))
    properties.update(node.properties)
    lifetime = properties.get("lifetime-policy")
    if isinstance(lifetime, str):
        properties["lifetime-policy"] = _LIFETIMES.get(lifetime, DescribedProperty(lifetime, []))
    return properties


def _filters(address: Address) -> tuple[Filter, ...]:
    link = address.options.link
    found = []
    if link.selector is not None:
        found.append(Filter(*_SELECTOR, link.selector))
    if link.start is not None:
        found.append(Filter("start", START_FILTER, link.start))
    if link.declare.arguments.get(_NO_LOCAL_ARGUMENT):
        found.append(Filter(*_NO_LOCAL, []))
    if (binding := own_binding(address)) is not None:  # in place of the subject, which is the default of its key
        found.append(_binding_filter(binding))
    elif address.subject is not None:
        pattern = _is_pattern(address.subject)
        found.append(Filter(*(_TOPIC_BINDING if pattern else _DIRECT_BINDING), address.subject))
    found += [Filter(item.name, item.descriptor, item.value) for item in link.filters]
    return tuple(found)


def _binding_filter(binding: BindingOptions) -> Filter:
    if binding.arguments:
        return Filter(*_HEADERS_BINDING, dict(binding.arguments))
    key = binding.key or ""
    return Filter(*(_TOPIC_BINDING if _is_pattern(key) else _DIRECT_BINDING), key)


def _is_pattern(subject: str) -> bool:
    return any(word in ("*", "#") for word in subject.split("."))


def _artemis(address: Address, sending: bool) -> Terminus:
    """Addresses are created on demand, as queues (anycast) unless a topic is asked for; a subject is the JMS type."""
    options = address.options
    _refuse_management(address, ARTEMIS, sending=sending)
    selector = options.link.selector
    if not sending and address.subject is not None:
        if _is_pattern(address.subject):
            raise _refusal(address, ARTEMIS, f"subject {address.subject!r}: wildcards")
        text = address.subject.replace("'", "''")
        condition = f"JMSType = '{text}'"
        selector = condition if selector is None else f"({selector}) AND {condition}"
    filters = [] if selector is None else [Filter("jms-selector", _SELECTOR[1], selector)]
    filters += [Filter(item.name, item.descriptor, item.value) for item in options.link.filters]
    kind = options.node.type
    return Terminus(
        address=None if address.temporary or address.anonymous else address.name,
        dynamic=address.temporary,
        filters=() if sending else tuple(filters),
        browse=not sending and options.mode is Mode.BROWSE,
        capabilities=options.node.capabilities or (("queue",) if kind is None else (kind.value,)),
    )


def _rabbitmq(address: Address, sending: bool) -> Terminus:
    """An address names queue or exchange, the latter with its binding key."""
    options = address.options
    _refuse_management(address, RABBITMQ, sending=sending)
    if options.mode is Mode.BROWSE:
        raise _refusal(address, RABBITMQ, "mode: browse")
    refused = {
        "link.selector": options.link.selector,
        "link.filter": options.link.filters,
        "link.durable": options.link.durable,
        "node.capabilities": options.node.capabilities,
    }
    for name, value in refused.items():
        if value:
            raise _refusal(address, RABBITMQ, name)
    if address.temporary:
        if sending:
            raise _refusal(address, RABBITMQ, "address '#' of a sender")
        # It has no dynamic nodes, but a queue of its own for every receiver of an exchange.
        return Terminus(f"/exchange/amq.direct/temporary-{uuid.uuid4()}")
    if address.anonymous:
        raise _refusal(address, RABBITMQ, "address '<null>'")
    if address.name.startswith("/"):  # an address in its own form, as of a temporary queue
        return Terminus(address.name)
    name = address.name.replace("/", "%2F")
    if options.node.type is NodeType.TOPIC or address.name.startswith("amq."):
        key = "" if address.subject is None or sending else f"/{address.subject.replace('/', '%2F')}"
        return Terminus(f"/exchange/{name}{key or ('' if sending else '/#')}")
    create = options.create.applies(sending=sending)
    return Terminus(f"/queue/{name}" if create else f"/amq/queue/{name}")


def _refuse_management(address: Address, product: str, *, sending: bool) -> None:
    """Refuse what is asked about nodes of a broker that creates them by rules of its own."""
    node, options = address.options.node, address.options
    if node.declare != type(node.declare)():
        raise _refusal(address, product, "node.x-declare")
    if node.properties:
        raise _refusal(address, product, "node.properties")
    for name, applies in (("assert", options.assert_.applies), ("delete", options.delete.applies)):
        if applies(sending=sending):
            raise _refusal(address, product, name)


_RESOLVERS = {ARTEMIS: _artemis, RABBITMQ: _rabbitmq}


def _refusal(address: Address, product: str, option: str) -> InvalidOption:
    return InvalidOption(text=f"address {str(address)!r}, {option} is not supported by {product or 'this broker'}")


def check_subject(address: Address, link: Link) -> None:
    """Refuse a receiver without a subject on a direct exchange, which could receive nothing.

    Raises:
        ResolutionError: it is one; the filter that the broker applied tells so.
    """
    if link.is_sender or address.subject is not None or address.options.link.filters or link.source is None:
        return
    if any(item.descriptor in _DIRECT_DESCRIPTORS and item.value == "" for item in link.source.filters):
        raise ResolutionError(text=f"{address.name!r} is a direct exchange: its address needs a subject")


def _equal(actual: object, wanted: object) -> bool:
    return not actual if wanted is False else str(actual) == str(wanted)


def check_assertion(address: Address, link: Link) -> None:
    """Compare the node that a broker granted with what the address demands.

    Raises:
        AssertionFailed: a capability or a property is missing.
    """
    if not address.options.assert_.applies(sending=link.is_sender):
        return
    granted = link.target if link.is_sender else link.source
    assert granted is not None
    wanted = _qpid(address, link.is_sender)
    missing = [name for name in wanted.capabilities if name not in (*granted.capabilities, "create-on-demand")]
    used = {item.descriptor for item in granted.filters}
    missing += [f"filter {item.name}" for item in wanted.filters if item.descriptor not in used]
    if granted.properties:
        actual = dict(granted.properties)
        actual.setdefault("auto-delete", "lifetime-policy" in actual)
        missing += [
            f"{name}: {value!r}" for name, value in wanted.properties.items() if not _equal(actual.get(name), value)
        ]
    if missing:
        raise AssertionFailed(text=f"node {address.name!r} is not as demanded: {', '.join(missing)}")
