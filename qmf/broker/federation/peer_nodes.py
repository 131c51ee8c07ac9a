"""Nodes of other brokers, as a terminus names them: by the kind of broker, since each has addresses of its own.

Artemis creates an address as queue (anycast) or topic (multicast), as a capability asks; RabbitMQ's addresses say which
they are (docs/brokers.md). All others are addressed as this broker is: a name is a queue or an exchange.
"""

from __future__ import annotations

from qmf.broker.federation.definitions import LinkDefinition
from qmf.broker.federation.local_nodes import NodeUnusable, filters_of, has_wildcards
from qmf.bus.engine.values import Durability, ExpiryPolicy, Filter, Terminus

ARTEMIS, RABBITMQ, QPIDD = "apache-activemq-artemis", "RabbitMQ", "qpid-cpp"

_JMS_SELECTOR = ("jms-selector", "apache.org:selector-filter:string")


def remote_source(definition: LinkDefinition, product: str) -> Terminus:
    """The source of an incoming link, at a broker.

    Args:
        product: of the broker, as it names itself.

    Raises:
        NodeUnusable: the broker does not have what the link asks for.
    """
    if product == RABBITMQ:
        return Terminus(_rabbitmq_source(definition))
    # At an exchange, what comes while a durable link is not up is kept for it; a queue keeps its messages anyway.
    durability = Durability.UNSETTLED_STATE if definition.durable else Durability.NONE
    expiry = ExpiryPolicy.NEVER if definition.durable else ExpiryPolicy.SESSION
    if product != ARTEMIS:
        return Terminus(definition.source, filters=filters_of(definition), durability=durability, expiry=expiry)
    kind, filters = _kind(definition), _artemis_filters(definition)
    if kind == "queue":
        return Terminus(definition.source, filters=filters, capabilities=(kind,))
    return Terminus(definition.source, filters=filters, durability=durability, expiry=expiry, capabilities=(kind,))


def remote_target(definition: LinkDefinition, product: str) -> Terminus:
    """The target of an outgoing link, at a broker; arguments as of `remote_source`."""
    target = definition.target
    if product == RABBITMQ:
        # The first one is created if it is missing: to one that is missing, RabbitMQ accepts and drops messages.
        return Terminus(_rabbitmq_name("/queue/" if _kind(definition) == "queue" else "/exchange/", target))
    return Terminus(target, capabilities=(_kind(definition),) if product == ARTEMIS else ())


def remote_relay(product: str) -> Terminus:
    """A target whose messages name their own nodes, at a broker.

    Raises:
        NodeUnusable: the broker has none.
    """
    if product == RABBITMQ:
        raise NodeUnusable("RabbitMQ has no target whose messages name their own nodes")
    return Terminus()


def _kind(definition: LinkDefinition) -> str:
    """Of the node at the other broker: what the link says, or a queue unless the name is one of an exchange."""
    name = definition.source if definition.node == definition.target else definition.target
    return definition.peer_type or ("topic" if name.startswith("amq.") else "queue")


def _rabbitmq_name(beginning: str, name: str) -> str:
    return name if name.startswith("/") else beginning + name.replace("/", "%2F")


def _rabbitmq_source(definition: LinkDefinition) -> str:
    if definition.selector:
        raise NodeUnusable("selector: RabbitMQ has none")
    if _kind(definition) == "topic":
        address = _rabbitmq_name("/exchange/", definition.source)
        key = definition.key or "#"
        return address if definition.source.startswith("/") else f"{address}/{key.replace('/', '%2F')}"
    if definition.key:
        raise NodeUnusable("key: RabbitMQ chooses no messages of a queue")
    return _rabbitmq_name("/amq/queue/", definition.source)


def _artemis_filters(definition: LinkDefinition) -> tuple[Filter, ...]:
    """A subject is the JMS type there."""
    conditions = [f"({definition.selector})"] if definition.selector else []
    if definition.key:
        if has_wildcards(definition.key):
            raise NodeUnusable(f"key {definition.key!r}: Artemis has no wildcards in subjects")
        text = definition.key.replace("'", "''")
        conditions.append(f"JMSType = '{text}'")
    return (Filter(*_JMS_SELECTOR, " AND ".join(conditions)),) if conditions else ()
