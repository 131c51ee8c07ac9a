"""Copies of received messages: those that are tried again later, and dead letters. No I/O."""

from __future__ import annotations

from typing import Any

from qmf.messaging.message import Message

#: Properties of copies: attempts that have failed; of dead letters also the last error, where they come from, and the
#: user who sent them, in whose name nobody else may send.
ATTEMPTS, ERROR, SOURCE, USER = "qmf.attempts", "qmf.error", "qmf.source", "qmf.user_id"

_ANNOTATIONS, _DELAY = "x-amqp-message-annotations", "x-opt-delivery-delay"
#: What belongs to one delivery, or decides about it.
_DELIVERY_COUNT = "x-amqp-delivery-count"
_OF_A_DELIVERY = {_DELIVERY_COUNT, "x-amqp-first-acquirer", "x-amqp-delivery-annotations", "x-amqp-to"}
#: Characters of an error in a property.
_MAX_ERROR = 500


def failed_attempts(message: Message) -> int:
    """How often a message was tried before, as a copy says."""
    value = message.properties.get(ATTEMPTS)
    return value if type(value) is int and value > 0 else 0


def deliveries_before(message: Message) -> int:
    """How often the broker has delivered a message before, without a final outcome; 0 where it does not say."""
    value = message.properties.get(_DELIVERY_COUNT)
    return value if type(value) is int and value > 0 else 0


def delayed_copy(message: Message, attempts: int, delay: float) -> Message:
    """A copy that the broker delivers after `delay` seconds."""
    copy = _copy(message, {ATTEMPTS: attempts})
    copy.properties[_ANNOTATIONS] = {**copy.properties.get(_ANNOTATIONS, {}), _DELAY: round(delay * 1000)}
    return copy


def dead_letter(message: Message, attempts: int, error: BaseException, source: str) -> Message:
    """A copy for the dead letters. A message with a format of its own stays as it is: it has no room for properties."""
    if message.message_format:
        copy = Message(message.content)
        copy.message_format = message.message_format
        return copy
    reason = f"{type(error).__name__}: {error}"[:_MAX_ERROR]
    return _copy(message, {ATTEMPTS: attempts, ERROR: reason, SOURCE: source})


def _copy(message: Message, properties: dict[str, Any]) -> Message:
    kept = {name: value for name, value in message.properties.items() if name not in _OF_A_DELIVERY}
    if _ANNOTATIONS in kept:
        kept[_ANNOTATIONS] = {name: value for name, value in kept[_ANNOTATIONS].items() if name != _DELAY}
    if message.user_id is not None:
        kept.setdefault(USER, message.user_id)
    return Message(
        message.content,
        message.content_type,
        id=message.id,
        subject=message.subject,
        reply_to=message.reply_to,
        correlation_id=message.correlation_id,
        durable=message.durable,
        priority=message.priority,
        ttl=message.ttl,
        properties={**kept, **properties},
    )
