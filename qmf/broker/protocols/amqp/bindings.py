"""Bindings and queues that a client asks for in the properties of a link (docs/protocol.md, "Bindings of links")."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclarationError, read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Action, ObjectType
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import LINK_BINDINGS, NODE_BINDINGS

#: Link property: properties of the queue that the client receives from, where it is one of a subscription.
LINK_DECLARATION = "qmf.link-declaration"


class BindingError(LinkRefused):
    """A binding cannot be made."""


@attrs.frozen
class BindingRequest:
    """A binding as a client asks for it.

    Attributes:
        exchange, queue: their names; None for the node of the link.
        spec: key and headers.
    """

    exchange: str | None
    queue: str | None
    spec: BindingSpec


def read_declaration(value: object, limits: QueueLimits, own: QueueSettings) -> QueueSettings:
    """How a link wants the queue of its subscription.

    Args:
        value: of the link property; None for `own`.
        limits: of a queue that asks for none.
        own: of a queue for which nothing is asked; it has what happens when it is full, unless the link says that.

    Raises:
        LinkRefused: it is no map, or a value in it is wrong.
    """
    if value is None:
        return own
    if not isinstance(value, Mapping):
        raise LinkRefused("amqp:invalid-field", f"{LINK_DECLARATION}: must be a map")
    properties = {str(name): item for name, item in value.items()}
    exclusive = properties.pop("exclusive", own.exclusive)
    try:
        settings = read_node_declaration(("queue",), {**properties, "exclusive": exclusive}, limits=limits).queue
    except NodeDeclarationError as error:
        raise LinkRefused("amqp:invalid-field", f"{LINK_DECLARATION}: {error}") from error
    if not properties.keys() & {"qpid.policy_type", "qpid.max_count", "qpid.max_size"}:
        settings = attrs.evolve(settings, overflow=own.overflow, keeps_large=own.keeps_large, limits=own.limits)
    return settings


def read_bindings(value: object) -> list[BindingRequest]:
    """The bindings in a link property.

    Raises:
        BindingError: it is not a list of maps, or a value in it has a wrong type.
    """
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BindingError("amqp:invalid-field", "must be a list of maps")
    return [_request(item) for item in value]


def _request(item: Mapping[object, object]) -> BindingRequest:
    values = {str(name): value for name, value in item.items()}
    texts = {name: values.get(name) for name in ("exchange", "queue", "key")}
    arguments = values.get("arguments", {})
    if not isinstance(arguments, Mapping) or not all(isinstance(text, str | None) for text in texts.values()):
        raise BindingError("amqp:invalid-field", "names and key must be text, arguments a map")
    exchange, queue, key = (None if text is None else str(text) for text in texts.values())
    return BindingRequest(exchange, queue, BindingSpec(key or "", {str(name): arguments[name] for name in arguments}))


def make_bindings(
    operations: Operations, principal: Principal, link: Link, node: Node | None, subscription: Node | None
) -> None:
    """Make the bindings that the properties of a link ask for.

    Args:
        node: that the link names.
        subscription: the queue that the link receives from.

    Raises:
        OperationRefused: the policy refuses one.
        LinkRefused: one cannot be made.
    """
    for name, queue in ((NODE_BINDINGS, node), (LINK_BINDINGS, subscription)):
        try:
            for request in read_bindings(link.properties.get(name)):
                make_binding(operations, principal, request, node, queue)
        except BindingError as error:
            raise LinkRefused(error.condition, f"{name}: {error.description}") from error


def make_binding(
    operations: Operations, principal: Principal, request: BindingRequest, node: Node | None, queue: Node | None
) -> None:
    """Make a binding; one that exists is left as it is.

    Args:
        node: stands for an exchange that it does not name.
        queue: the same for a queue.

    Raises:
        OperationRefused: the policy refuses it.
        BindingError: exchange or queue do not exist, or there is such a binding with other arguments.
    """
    registry = operations.registry
    exchange = node if request.exchange is None else registry.exchange(request.exchange)
    queue = queue if request.queue is None else registry.queue(request.queue)
    if not isinstance(exchange, Exchange) or not isinstance(queue, Queue):
        names = (request.exchange or _name(node), request.queue or _name(queue))
        properties = {"queuename": names[1], "routingkey": request.spec.key}
        operations.ask_missing(principal, Action.BIND, ObjectType.EXCHANGE, names[0], properties)
    if not isinstance(exchange, Exchange):
        raise BindingError("amqp:not-found", f"no exchange {request.exchange or _name(node)!r}")
    if not isinstance(queue, Queue):
        raise BindingError("amqp:not-found", f"no queue {request.queue or _name(queue)!r}")
    try:
        operations.bind(principal, exchange, queue, request.spec)
    except BindingRefused as error:
        raise BindingError("amqp:not-allowed", str(error)) from error


def _name(node: Node | None) -> str:
    return "" if node is None else node.name
