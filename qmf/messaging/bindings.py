"""Bindings that an address asks for: those of qpidd's management methods, and the link properties of `qmf-broker`.

Source: High Level Client API, "Node Properties", "Link Properties"; docs/protocol.md, "Bindings of links".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import BindingOptions
from qmf.messaging.exceptions import InvalidOption

#: Properties of a link to `qmf-broker`: bindings of its node, and of the queue that it receives from.
NODE_BINDINGS, LINK_BINDINGS = "qmf.node-bindings", "qmf.link-bindings"


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
    return any(True for _ in _all(address))


def bindings_of(address: Address, node: str) -> tuple[BrokerBinding, ...]:
    """The bindings that an address asks for; what they leave out is the node.

    Raises:
        InvalidOption: a binding names neither exchange nor queue.
    """
    return tuple(_binding(address, node, option) for option in _all(address))


def link_properties(address: Address) -> dict[str, object]:
    """The properties of a link that ask `qmf-broker` for the bindings of an address."""
    options = address.options
    groups = {
        NODE_BINDINGS: (*options.node.declare.bindings, *options.node.bindings),
        LINK_BINDINGS: (*options.link.declare.bindings, *options.link.bindings),
    }
    return {name: [_map(option) for option in group] for name, group in groups.items() if group}


def _all(address: Address) -> Iterator[BindingOptions]:
    options = address.options
    for group in (options.node.declare, options.node, options.link.declare, options.link):
        yield from group.bindings


def _binding(address: Address, node: str, option: BindingOptions) -> BrokerBinding:
    if option.exchange is None and option.queue is None:
        raise InvalidOption(text=f"address {str(address)!r}, x-bindings: a binding needs an exchange or a queue")
    exchange, queue = (node if name is None else name for name in (option.exchange, option.queue))
    return BrokerBinding(exchange, queue, option.key or "", option.arguments)


def _map(option: BindingOptions) -> dict[str, object]:
    given = {"exchange": option.exchange, "queue": option.queue, "key": option.key}
    found: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    return {**found, "arguments": dict(option.arguments)} if option.arguments else found
