"""Which bindings a dynamic route needs at the other broker: those of the exchange at this one, but no circles. No I/O.

Each broker passes on what is bound at its exchange, with the ids of the brokers through which that has come: a broker
that is among them is not asked again. What several brokers have bound with one key stays apart, by the broker where it
began (its origin); of several paths to one origin the shortest counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import attrs

from qmf.broker.nodes.bindings import PEER_ARGUMENTS, PEER_OPERATION, PEER_ORIGIN, PEER_TAGS, origins_of
from qmf.broker.nodes.exchanges import Exchange

#: Keys that are not passed on: each broker has an agent of this name.
_OF_EACH_BROKER = {"qmf.default.direct": frozenset({"broker"})}

#: Types of exchanges whose bindings are told apart by their arguments.
_BY_ARGUMENTS = frozenset({"headers", "xml"})


@attrs.frozen
class PeerBinding:
    """A binding that a dynamic route needs at the other broker.

    Attributes:
        key: binding key.
        origin: id of the broker where it began.
        tags: ids of the brokers through which it has come, this one included.
        arguments: of the binding.
    """

    key: str
    origin: str
    tags: tuple[str, ...]
    arguments: Mapping[str, object] = attrs.field(factory=dict, eq=False)

    def properties(self, operation: str) -> dict[str, object]:
        """The arguments with which it is asked for, or its end."""
        return {
            **self.arguments,
            PEER_OPERATION: operation,
            PEER_TAGS: ",".join(self.tags),
            PEER_ORIGIN: self.origin,
        }


def needed_bindings(exchange: Exchange, own: str, peer: str) -> dict[tuple[str, str], PeerBinding]:
    """The bindings that the other broker needs, by key and origin.

    Args:
        exchange: of this broker, whose bindings are followed.
        own, peer: ids of this broker and the other one.
    """
    kept = _OF_EACH_BROKER.get(exchange.name, frozenset())
    needed: dict[tuple[str, str], PeerBinding] = {}
    for binding in exchange.all_bindings():
        arguments = {name: value for name, value in binding.spec.headers.items() if not name.startswith(PEER_ARGUMENTS)}
        key = binding.spec.key
        if key in kept:
            continue
        if exchange.kind in _BY_ARGUMENTS and arguments:
            key = f"{key}#{_digest(arguments)}" if key else _digest(arguments)
        origins = origins_of(binding)
        for origin, path in {own: ()}.items() if origins is None else origins.items():
            if peer in path or own in path:
                continue
            found = needed.get((key, origin))
            if found is None or len(path) + 1 < len(found.tags):
                needed[key, origin] = PeerBinding(key, origin, (*path, own), arguments)
    return needed


def _digest(arguments: Mapping[str, object]) -> str:
    text = repr(sorted((name, repr(value)) for name, value in arguments.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
