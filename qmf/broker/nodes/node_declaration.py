"""What a client asks of a node that is created for it: capabilities and properties of a terminus.

The names are those of Apache qpidd (its C++ client and `qpid.max_count` and the like).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import attrs

from qmf.broker.nodes.exchanges import DirectExchange, Exchange, FanoutExchange, HeadersExchange, TopicExchange
from qmf.broker.nodes.queues import OverflowPolicy, Queue, QueueLimits
from qmf.bus.engine.values import DescribedProperty

log = logging.getLogger("qmf.broker")

EXCHANGE_TYPES: Mapping[str, type[Exchange]] = {
    kind.kind: kind for kind in (DirectExchange, TopicExchange, FanoutExchange, HeadersExchange)
}
_OVERFLOW = {"ring": OverflowPolicy.DROP_OLDEST, "reject": OverflowPolicy.REFUSE}

#: The lifetime policy of nodes that end with the link that created them, and that of nodes without links.
DELETE_ON_CLOSE, DELETE_IF_UNUSED = "amqp:delete-on-close:list", "amqp:delete-on-no-links:list"


class NodeDeclarationError(ValueError):
    """A node cannot be created as asked for; the message names the property."""


@attrs.frozen
class NodeDeclaration:
    """How a node is created.

    Attributes:
        exchange: the type of an exchange; None for a queue.
        exclusive: of a queue: only one consumer is allowed.
        auto_delete: of a queue: it is deleted when its last consumer is gone.
        delete_on_close: the node is deleted with the link that created it.
        overflow: what a full queue does.
        max_count, max_size: limits of a queue in messages and bytes; None for those of the broker.
    """

    exchange: type[Exchange] | None = None
    exclusive: bool = False
    auto_delete: bool = False
    delete_on_close: bool = False
    overflow: OverflowPolicy = OverflowPolicy.REFUSE
    max_count: int | None = None
    max_size: int | None = None

    def limits(self, default: QueueLimits) -> QueueLimits:
        """The limits of a queue."""
        return QueueLimits(
            default.count if self.max_count is None else min(self.max_count, default.count),
            default.size if self.max_size is None else min(self.max_size, default.size),
        )


def read_node_declaration(
    capabilities: Collection[str], properties: Mapping[str, object], *, strict: bool = False
) -> NodeDeclaration:
    """The declaration in a terminus, or in the properties that the broker's method `create` has.

    Args:
        capabilities: ``queue``, ``topic``, ``durable``.
        properties: by qpidd's names.
        strict: refuse properties that are not known; otherwise they are logged.

    Raises:
        NodeDeclarationError: one has a wrong type, or asks for what this broker does not have.
    """
    left = dict(properties)
    if "durable" in capabilities or left.pop("durable", False):
        raise NodeDeclarationError("durable: this broker keeps nothing over a restart")
    if left.pop("alternate-exchange", None):
        raise NodeDeclarationError("alternate-exchange: this broker has none")
    modes, kind = left.pop("supported-dist-modes", None), left.pop("exchange-type", None)
    lifetime = left.pop("lifetime-policy", None)
    policy = lifetime.descriptor if isinstance(lifetime, DescribedProperty) else lifetime
    if policy not in (None, DELETE_ON_CLOSE, DELETE_IF_UNUSED):
        raise NodeDeclarationError(f"lifetime-policy: this broker has no {policy}")
    exchange = None
    if "topic" in capabilities or (modes == "copy" and "queue" not in capabilities) or kind is not None:
        exchange = EXCHANGE_TYPES.get(str(kind or "topic"))
        if exchange is None:
            raise NodeDeclarationError(f"exchange-type: must be {', '.join(EXCHANGE_TYPES)}, not {kind!r}")
    declaration = NodeDeclaration(
        exchange=exchange,
        exclusive=_boolean(left, "exclusive"),
        auto_delete=_boolean(left, "auto-delete") or policy == DELETE_IF_UNUSED,
        delete_on_close=policy == DELETE_ON_CLOSE,
        overflow=_overflow(left.pop("qpid.policy_type", "reject")),
        max_count=_number(left, "qpid.max_count"),
        max_size=_number(left, "qpid.max_size"),
    )
    if strict and left:
        raise NodeDeclarationError(f"{', '.join(map(str, left))}: unknown")
    for name in left:
        log.warning("property %s of a new node has no effect on this broker", name)
    return declaration


def describe_node(
    node: object, requested: NodeDeclaration, *, temporary: bool
) -> tuple[tuple[str, ...], dict[str, object]]:
    """What a node is: capabilities, and properties by the names of the request."""
    if isinstance(node, Queue):
        properties: dict[str, object] = {"supported-dist-modes": "move", "exclusive": node.exclusive}
        if node.auto_delete:
            properties["auto-delete"] = True
        if requested.max_count is not None:
            properties["qpid.max_count"] = node.limits.count
        if requested.max_size is not None:
            properties["qpid.max_size"] = node.limits.size
        capabilities: tuple[str, ...] = ("queue",)
    else:
        properties = {"supported-dist-modes": "copy", "exchange-type": getattr(node, "kind", "direct")}
        capabilities = ("topic",)
    if temporary:
        properties["lifetime-policy"] = DescribedProperty(DELETE_ON_CLOSE, [])
    return capabilities, properties


def _boolean(values: dict[str, object], name: str) -> bool:
    value = values.pop(name, False)
    if not isinstance(value, bool):
        raise NodeDeclarationError(f"{name}: must be true or false, not {value!r}")
    return value


def _number(values: dict[str, object], name: str) -> int | None:
    value = values.pop(name, None)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise NodeDeclarationError(f"{name}: must be a number above 0, not {value!r}")
    return value


def _overflow(value: object) -> OverflowPolicy:
    policy = _OVERFLOW.get(str(value))
    if policy is None:
        raise NodeDeclarationError(f"qpid.policy_type: must be {' or '.join(_OVERFLOW)}, not {value!r}")
    return policy
