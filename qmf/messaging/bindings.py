"""Bindings that an address asks for: those of qpidd's management methods, and the link properties of `qmf-broker`.

Source: High Level Client API, "Node Properties", "Link Properties"; docs/protocol.md, "Bindings of links".
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.bus.engine.values import LINK_BINDINGS, NODE_BINDINGS
from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import BindingOptions, DeclareOptions
from qmf.messaging.exceptions import InvalidOption

#: Property of a link to `qmf-broker`: properties of the queue that it receives from, if it is one of a subscription.
LINK_DECLARATION = "qmf.link-declaration"


@attrs.frozen
class BrokerBinding:
    """A binding with all names.

    Attributes:
        exchange, queue, key: their names.
        arguments: by name.
    """

    exchange: str
    queue: str
    key: str
    arguments: Mapping[str, object] = attrs.field(factory=dict)


def has_bindings(address: Address) -> bool:
    """True if an address asks for bindings."""
    return bool(_of_node(address) or _of_link(address))


def check_bindings(address: Address) -> None:
    """Check the bindings of the node of an address.

    Raises:
        InvalidOption: a binding names neither exchange nor queue.
    """
    for option in _of_node(address):
        if option.exchange is None and option.queue is None:
            raise InvalidOption(text=f"address {str(address)!r}, x-bindings: a binding needs an exchange or a queue")


def bindings_of(address: Address, node: str, subscription: str | None) -> tuple[BrokerBinding, ...]:
    """The bindings that an address asks for; what they leave out is the node and, for a subscription, its queue.

    Args:
        address: of the link.
        node: its name.
        subscription: name of the queue of a receiver whose node is an exchange; otherwise None.
    """
    of_link = [_complete(address, option) for option in _of_link(address)]
    if subscription is not None and (own := own_binding(address)) is not None:
        of_link.remove(own)
    queue = node if subscription is None else subscription
    return (
        *(_binding(node, node, option) for option in _of_node(address)),
        *(_binding(node, queue, option) for option in of_link),
    )


def own_binding(address: Address) -> BindingOptions | None:
    """The first binding of a subscription to its own exchange, which is that of its filter, with its key; or None."""
    for option in _of_link(address):
        if option.exchange is None and option.queue is None:
            return _complete(address, option)
    return None


def link_properties(address: Address, *, sending: bool) -> dict[str, object]:
    """The properties of a link that ask `qmf-broker` for what is bound, and for the queue of a subscription."""
    own = None if sending else own_binding(address)
    groups = {
        NODE_BINDINGS: [_map(option) for option in _of_node(address)],
        LINK_BINDINGS: [_map(_complete(address, option)) for option in _of_link(address)],
    }
    if own is not None:
        groups[LINK_BINDINGS].remove(_map(own))
    properties: dict[str, object] = {name: group for name, group in groups.items() if group}
    if given := declared_properties(address.options.link.declare):
        given.pop("no-local", None)
        properties[LINK_DECLARATION] = given
    return properties


def declared_properties(declare: DeclareOptions) -> dict[str, object]:
    """What ``x-declare`` asks for but for bindings, by the names of the broker's properties."""
    named = {
        "exchange-type": declare.type,
        "exclusive": declare.exclusive,
        "auto-delete": declare.auto_delete,
        "alternate-exchange": declare.alternate_exchange,
    }
    return {**{name: value for name, value in named.items() if value is not None}, **declare.arguments}


def _of_node(address: Address) -> tuple[BindingOptions, ...]:
    node = address.options.node
    return (*node.declare.bindings, *node.bindings)


def _of_link(address: Address) -> tuple[BindingOptions, ...]:
    link = address.options.link
    return (*link.declare.bindings, *link.bindings)


def _complete(address: Address, option: BindingOptions) -> BindingOptions:
    """A binding of a link, with the subject of the address as the default of its key."""
    return attrs.evolve(option, key=address.subject) if option.key is None else option


def _binding(node: str, queue: str, option: BindingOptions) -> BrokerBinding:
    exchange, queue = option.exchange or node, option.queue or queue
    return BrokerBinding(exchange, queue, option.key or "", option.arguments)


def _map(option: BindingOptions) -> dict[str, object]:
    given = {"exchange": option.exchange, "queue": option.queue, "key": option.key}
    found: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    return {**found, "arguments": dict(option.arguments)} if option.arguments else found
