"""Destinations of STOMP, and what they name at the broker."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

#: The exchange of destinations that are topics.
TOPIC_EXCHANGE = "amq.topic"
#: How destinations begin that say what they are.
QUEUE, TOPIC, EXCHANGE, TEMPORARY = "/queue/", "/topic/", "/exchange/", "/temp-queue/"


class StompDestinationKind(enum.Enum):
    """What a destination names."""

    QUEUE = "queue"  #: that is created when it is used
    TEMPORARY = "temporary"  #: a queue of the connection
    EXCHANGE = "exchange"  #: an exchange, with a key
    ADDRESS = "address"  #: a queue or an exchange that exists


class DestinationError(Exception):
    """A destination names nothing; says why."""


@attrs.frozen
class StompDestination:
    """What a destination names.

    Attributes:
        name: of the queue or exchange.
        key: of messages, or of a binding; empty where there is none.
    """

    kind: StompDestinationKind
    name: str
    key: str = ""


def read_destination(text: str, headers: Mapping[str, str], type_header: str) -> StompDestination:
    """What a destination names.

    Args:
        text: the header `destination`.
        type_header: that says what a destination without a prefix is: ``ANYCAST`` (a queue) or ``MULTICAST`` (a topic);
            ``destination-type`` of messages, ``subscription-type`` of subscriptions.

    Raises:
        DestinationError: it names nothing.
    """
    if text.startswith(QUEUE):
        return _with_name(StompDestinationKind.QUEUE, text, text.removeprefix(QUEUE))
    if text.startswith(TEMPORARY):
        return _with_name(StompDestinationKind.TEMPORARY, text, text.removeprefix(TEMPORARY))
    if text.startswith(TOPIC):
        key = text.removeprefix(TOPIC)
        return attrs.evolve(_with_name(StompDestinationKind.EXCHANGE, text, TOPIC_EXCHANGE), key=key)
    if text.startswith(EXCHANGE):
        name, _, key = text.removeprefix(EXCHANGE).partition("/")
        return attrs.evolve(_with_name(StompDestinationKind.EXCHANGE, text, name), key=key)
    match headers.get(type_header, ""):
        case "":
            return _with_name(StompDestinationKind.ADDRESS, text, text)
        case "ANYCAST":
            return _with_name(StompDestinationKind.QUEUE, text, text)
        case "MULTICAST":
            return attrs.evolve(_with_name(StompDestinationKind.EXCHANGE, text, TOPIC_EXCHANGE), key=text)
        case other:
            raise DestinationError(f"{type_header} is ANYCAST or MULTICAST, not {other[:50]!r}")


def _with_name(kind: StompDestinationKind, text: str, name: str) -> StompDestination:
    if not name:
        raise DestinationError(f"destination {text[:100]!r} has no name")
    return StompDestination(kind, name)
