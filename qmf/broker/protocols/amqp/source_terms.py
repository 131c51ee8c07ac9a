"""What the source of a link asks for besides its node: which messages, from where on, and its queue's settings."""

from __future__ import annotations

import attrs

from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import Selector
from qmf.broker.nodes.settings import QueueSettings
from qmf.broker.nodes.start_positions import StartError, StartPosition
from qmf.broker.protocols.amqp.bindings import LINK_DECLARATION, read_declaration
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.broker.protocols.amqp.filters import choice_from_filters, start_from_filters
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Filter, Terminus


def selector_of(source: Terminus, *, of_queue: bool = False) -> tuple[Selector | None, tuple[Filter, ...]]:
    """What the filters of a source choose, by the subject in queues alone; and those that were applied.

    Raises:
        LinkRefused: a filter is wrong.
    """
    try:
        return choice_from_filters(source.filters, of_queue=of_queue)
    except ValueError as error:
        raise LinkRefused("amqp:invalid-field", str(error)) from error


def start_of(source: Terminus, node: Node) -> tuple[StartPosition | None, tuple[Filter, ...]]:
    """Where the filters of a source say that it begins, and the filter that says it.

    Raises:
        LinkRefused: a filter is wrong, or the node has no messages to begin at.
    """
    try:
        start, applied = start_from_filters(source.filters)
    except StartError as error:
        raise LinkRefused("amqp:invalid-field", str(error)) from error
    if start is not None and not isinstance(node, Queue):
        text = f"filter {applied[0].name}: {node.name!r} is an exchange, which has no messages to begin at"
        raise LinkRefused("amqp:not-allowed", text)
    return start, applied


def subscription_settings(registry: NodeRegistry, link: Link, source: Terminus, *, excluded: str) -> QueueSettings:
    """The settings of a queue that a link gets for itself: those of the topic, and what the link declares.

    Args:
        source: what it asked for.
        excluded: container of the client whose messages the queue does not take; empty for none.
    """
    settings = registry.subscriptions.lasting
    if (topic := registry.topics.get(source.address)) is not None:
        own = topic.settings
        if not topic.has_limits:
            own = attrs.evolve(own, overflow=settings.overflow, limits=settings.limits, keeps_large=True)
        settings = attrs.evolve(own, exclusive=True)
    settings = read_declaration(link.properties.get(LINK_DECLARATION), registry.limits, settings)
    return attrs.evolve(settings, excluded=excluded) if excluded else settings
