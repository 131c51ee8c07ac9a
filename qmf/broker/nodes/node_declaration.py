"""What a client asks of a node that is created for it: capabilities and properties, as AMQP's termini have them.

The names are those of Apache qpidd; what begins with `qpid.`, and the like, is in `arguments`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import attrs

from qmf.broker.nodes.arguments import Arguments, NodeArgumentError, read_exchange_arguments, read_queue_arguments
from qmf.broker.nodes.exchange_types import EXCHANGE_TYPES
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import ExchangeSettings, Lifetime, QueueLimits, QueueSettings

log = logging.getLogger("qmf.broker")

#: The lifetime policy of nodes that end with the link that created them.
DELETE_ON_CLOSE = "amqp:delete-on-close:list"
_LIFETIMES = {
    DELETE_ON_CLOSE: Lifetime.ON_CLOSE,
    "amqp:delete-on-no-links:list": Lifetime.UNUSED,
    "amqp:delete-on-no-messages:list": Lifetime.EMPTY,
    "amqp:delete-on-no-links-or-messages:list": Lifetime.UNUSED_AND_EMPTY,
}


class NodeDeclarationError(ValueError):
    """A node cannot be created as asked for; the message names the property.

    Attributes:
        invalid: a value is wrong, rather than something that this broker does not have.
    """

    def __init__(self, text: str, *, invalid: bool = False) -> None:
        self.invalid = invalid
        super().__init__(text)


@attrs.frozen
class NodeDeclaration:
    """How a node is created.

    Attributes:
        exchange: settings of an exchange; None for a queue.
        queue: settings of a queue.
        delete_on_close: the node is deleted with the link that created it.
    """

    exchange: ExchangeSettings | None = None
    queue: QueueSettings = attrs.field(factory=QueueSettings)
    delete_on_close: bool = False

    @property
    def durable(self) -> bool:
        """The node outlives the broker's process."""
        return self.queue.durable if self.exchange is None else self.exchange.durable

    @property
    def alternate(self) -> str:
        """Name of the alternate exchange, or empty."""
        return self.queue.alternate if self.exchange is None else self.exchange.alternate


def read_node_declaration(
    capabilities: Collection[str],
    properties: Mapping[str, object],
    *,
    strict: bool = False,
    limits: QueueLimits | None = None,
) -> NodeDeclaration:
    """The declaration in a terminus, or in the properties that the broker's method `create` has.

    Args:
        capabilities: ``queue``, ``topic``, ``temporary-topic``, ``durable``.
        properties: by qpidd's names.
        strict: refuse properties that are not known; otherwise they are kept, and logged.
        limits: of a queue that asks for none; None for qpidd's.

    Raises:
        NodeDeclarationError: one has a wrong value, or does not go with another one.
    """
    arguments = Arguments(properties)
    try:
        declaration = _read(capabilities, properties, arguments, limits or QueueLimits())
    except NodeArgumentError as error:
        raise NodeDeclarationError(str(error), invalid=True) from error
    if strict and arguments.unknown:
        raise NodeDeclarationError(f"{', '.join(arguments.unknown)}: unknown")
    for name in arguments.unknown:
        log.warning("property %s of a new node has no effect on this broker", name)
    return declaration


_NODE_PROPERTIES = frozenset(
    {
        "alternate-exchange",
        "auto-delete",
        "durable",
        "exchange-type",
        "exclusive",
        "lifetime-policy",
        "supported-dist-modes",
    }
)


#: Capabilities of an exchange; the second one is that of JMS.
_TOPICS = frozenset({"topic", "temporary-topic"})


def _read(
    capabilities: Collection[str], properties: Mapping[str, object], arguments: Arguments, limits: QueueLimits
) -> NodeDeclaration:
    durable = arguments.boolean("durable") or "durable" in capabilities
    auto_delete, alternate = arguments.boolean("auto-delete"), arguments.text("alternate-exchange")
    exclusive = arguments.boolean("exclusive")
    modes, kind = arguments.pop("supported-dist-modes"), arguments.pop("exchange-type")
    lifetime = _lifetime(arguments)
    kept = {str(name): value for name, value in properties.items() if name not in _NODE_PROPERTIES}
    if not _TOPICS.isdisjoint(capabilities) or (modes == "copy" and "queue" not in capabilities) or kind is not None:
        name = str(kind or "topic")
        if name not in EXCHANGE_TYPES:
            raise NodeArgumentError(f"exchange-type: must be {', '.join(EXCHANGE_TYPES)}, not {kind!r}")
        if lifetime not in (None, Lifetime.ON_CLOSE, Lifetime.UNUSED):
            raise NodeArgumentError("lifetime-policy: an exchange holds no messages")
        exchange = ExchangeSettings(
            name, durable, auto_delete or lifetime is Lifetime.UNUSED, alternate, arguments=kept
        )
        return NodeDeclaration(
            exchange=read_exchange_arguments(arguments, exchange), delete_on_close=lifetime is Lifetime.ON_CLOSE
        )
    queue = QueueSettings(
        durable=durable,
        exclusive=exclusive,
        auto_delete=auto_delete or lifetime is not None,
        lifetime=lifetime or Lifetime.UNUSED,
        alternate=alternate,
        arguments=kept,
    )
    queue = read_queue_arguments(arguments, queue, limits)
    return NodeDeclaration(queue=queue, delete_on_close=lifetime is Lifetime.ON_CLOSE)


def properties_of(node: Queue | Exchange) -> dict[str, object]:
    """The properties with which `read_node_declaration` gives the declaration of a node that exists."""
    settings = node.settings
    properties: dict[str, object] = {**settings.arguments, "durable": settings.durable}
    if settings.alternate:
        properties["alternate-exchange"] = settings.alternate
    if isinstance(settings, ExchangeSettings):
        properties |= {"exchange-type": settings.kind, "auto-delete": settings.auto_delete}
        return properties
    properties |= {"supported-dist-modes": "move", "exclusive": settings.exclusive}
    if settings.auto_delete:
        properties["lifetime-policy"] = next(
            policy for policy, lifetime in _LIFETIMES.items() if lifetime is settings.lifetime
        )
    return properties


def _lifetime(arguments: Arguments) -> Lifetime | None:
    policy = arguments.pop("lifetime-policy")
    if policy is None:
        return None
    if policy not in _LIFETIMES:
        raise NodeArgumentError(f"lifetime-policy: this broker has no {policy}")
    return _LIFETIMES[str(policy)]
