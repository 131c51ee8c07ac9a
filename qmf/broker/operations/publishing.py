"""From an encoded message to what its sender learns: None when it was accepted, else why it was refused."""

from __future__ import annotations

import logging
import time

from qmf.broker.nodes.delivery_times import InvalidAnnotation
from qmf.broker.nodes.exchanges import HeadersExchange
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node, RoutingResult
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.publisher import Publisher
from qmf.broker.refusal import Reason, Refusal
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

#: The message annotation with the time when a message came, in nanoseconds since 1970; qpidd's name.
INGRESS_TIME = "x-opt-ingress-timestamp"


class WrongUserId(DecodeError):
    """The properties of a message name another user than the one who has logged in.

    Whoever receives it would believe that, since brokers answer for it. qpidd refuses such messages as well.
    """


def read_and_resolve(
    registry: NodeRegistry, data: bytes, target: Node | None, *, message_format: int = 0, user: str = ""
) -> tuple[Message, Node | None]:
    """Read a message, and find its node; arguments as of `read_message`.

    Args:
        target: the node that it goes to; None for the one in its `to`.
        user: who has logged in; empty for a client that has not, which may name anybody.

    Raises:
        DecodeError: the message is malformed.
        WrongUserId: it names another user.
    """
    message = read_message(data, registry.clock(), message_format)
    if message.user_id and user and message.user_id != user.encode() and user not in registry.agents:
        raise WrongUserId(f"the message names the user {message.user_id!r}, and the client is {user!r}")
    if registry.timestamps:
        message = message.with_annotation(INGRESS_TIME, time.time_ns())
    if target is None and message.to is not None:
        target = registry.relay_target(message.to)
    if type(target) is HeadersExchange:  # `isinstance` takes several times as long for an abstract base
        _ = message.headers  # read now, so that malformed ones are rejected
    return message, target


def reject(registry: NodeRegistry, error: DecodeError | OperationRefused, count: int = 1) -> Refusal:
    """Count messages that are malformed, or refused by the policy; gives what their sender learns."""
    registry.counters.received += count
    registry.counters.rejected += count
    log.info("rejected %s: %s", "a message" if count == 1 else f"{count} messages", error)
    if isinstance(error, OperationRefused):
        return Refusal(Reason.UNAUTHORIZED, str(error))
    if isinstance(error, WrongUserId):
        return Refusal(Reason.UNAUTHORIZED, str(error))
    return Refusal(Reason.INVALID if isinstance(error, InvalidAnnotation) else Reason.MALFORMED, str(error))


def publish_message(publisher: Publisher, message: Message, target: Node | None) -> Refusal | None:
    """Publish a message that `read_and_resolve` has read."""
    try:
        result = publisher.publish(target, message)
    except OperationRefused as error:
        return reject(publisher.registry, error)
    if result is RoutingResult.QUEUE_FULL:
        return Refusal(Reason.FULL, publisher.registry.refusal)
    return no_node(publisher.registry, message) if target is None else None


def no_node(registry: NodeRegistry, message: Message) -> Refusal:
    """Why a message is refused whose address names nothing."""
    text = "the message has no address" if message.to is None else registry.missing(message.to)
    return Refusal(Reason.NOT_FOUND, text)
