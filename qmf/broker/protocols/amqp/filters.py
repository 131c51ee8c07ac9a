"""What a source asks for: by its filters (QMF2.md 1.2), and of the queue that it gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import Selector, compile_selector
from qmf.broker.nodes.settings import QueueSettings
from qmf.broker.nodes.start_positions import StartError, StartPosition, read_start
from qmf.broker.protocols.amqp.bindings import LINK_DECLARATION, read_declaration
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import START_FILTER, Filter, Terminus
from qmf.bus.topics import TopicTable

_DIRECT = frozenset({"apache.org:legacy-amqp-direct-binding:string", 0x0000468C00000000})
_TOPIC = frozenset({"apache.org:legacy-amqp-topic-binding:string", 0x0000468C00000001})
_HEADERS = frozenset({"apache.org:legacy-amqp-headers-binding:map", 0x0000468C00000002})
_NO_LOCAL = frozenset({"apache.org:no-local-filter:list", 0x0000468C00000003})
_SELECTOR = frozenset({"apache.org:selector-filter:string", 0x0000468C00000004})


def selector_from_filters(filters: Iterable[Filter]) -> tuple[Selector | None, tuple[Filter, ...]]:
    """The selector among the filters of a source, and the filter that it is, for the answer to the peer.

    Raises:
        ValueError: the value is not a string, or not a selector.
    """
    text, applied = selector_text(filters)
    return (compile_selector(text), applied) if applied else (None, ())


def selector_text(filters: Iterable[Filter]) -> tuple[str, tuple[Filter, ...]]:
    """The text of the selector among the filters of a source, or an empty one, and the filter that it is.

    Raises:
        ValueError: the value is not a string.
    """
    for entry in filters:
        if entry.descriptor in _SELECTOR:
            if not isinstance(entry.value, str):
                raise ValueError(f"filter {entry.name} needs a string")
            return entry.value, (entry,)
    return "", ()


def subject_from_filters(filters: Iterable[Filter]) -> tuple[Selector | None, tuple[Filter, ...]]:
    """The messages of a queue that the filter by subject among those of a source chooses, as by qpidd, and the filter.

    The subject equals that of the filter, or matches it as the key of a topic exchange.

    Raises:
        ValueError: the value is not a string.
    """
    for entry in filters:
        if entry.descriptor in _DIRECT or entry.descriptor in _TOPIC:
            if not isinstance(entry.value, str):
                raise ValueError(f"filter {entry.name} needs a string")
            return _subject_selector(entry.value), (entry,)
    return None, ()


def _subject_selector(subject: str) -> Selector | None:
    if not subject:
        return None
    keys: TopicTable[str] = TopicTable()
    keys.add(subject, subject)
    return lambda message: message.subject == subject or bool(keys.match(message.subject))


def no_local_filter(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """The filter by which a client leaves out its own messages; empty if there is none.

    It needs no value: clients send an empty list, as it is defined, or a string, as qpid-jms does.
    """
    return tuple(entry for entry in filters if entry.descriptor in _NO_LOCAL)[:1]


def binding_from_filters(filters: Iterable[Filter], exchange_kind: str) -> tuple[BindingSpec, tuple[Filter, ...]]:
    """The binding that the filters of a source describe.

    Only the first filter of a known kind is applied. Without any there is the default of the exchange, as with qpidd:
    all messages of a topic, mqtt or headers exchange, those with an empty routing key of a direct exchange.

    Returns:
        the binding, and the filter that was applied, for the answer to the peer: a filter that is not echoed was not
        applied.

    Raises:
        ValueError: the value of a known filter has the wrong type; names the filter.
    """
    for entry in filters:
        if entry.descriptor in _DIRECT or entry.descriptor in _TOPIC:
            if not isinstance(entry.value, str):
                raise ValueError(f"filter {entry.name} needs a string")
            return BindingSpec(key=entry.value), (entry,)
        if entry.descriptor in _HEADERS:
            if not isinstance(entry.value, Mapping) or not all(isinstance(name, str) for name in entry.value):
                raise ValueError(f"filter {entry.name} needs a map with strings as keys")
            return BindingSpec(headers={str(name): _plain(value) for name, value in entry.value.items()}), (entry,)
    return _DEFAULTS.get(exchange_kind, (BindingSpec(), ()))


#: Bindings for sources without filters, with the filters that qpidd reports for them, by the type of exchange.
_DEFAULTS: Mapping[str, tuple[BindingSpec, tuple[Filter, ...]]] = {
    "topic": (BindingSpec(key="#"), (Filter("default-subject-filter", 0x0000468C00000001, "#"),)),
    "mqtt": (BindingSpec(key="#"), (Filter("default-subject-filter", 0x0000468C00000001, "#"),)),
    "direct": (BindingSpec(), (Filter("default-subject-filter", 0x0000468C00000000, ""),)),
    "headers": (BindingSpec(), (Filter("default-headers-filter", 0x0000468C00000002, {"x-match": "all"}),)),
}


def _plain(value: object) -> object:
    """Binary as text where it is UTF-8: application properties are decoded in the same way."""
    if isinstance(value, bytes | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value)
    return value


def selector_of(source: Terminus, *, of_queue: bool = False) -> tuple[Selector | None, tuple[Filter, ...]]:
    """What the filters of a source choose, by the subject in queues alone; and those that were applied.

    Raises:
        LinkRefused: a filter is wrong.
    """
    try:
        selector, applied = selector_from_filters(source.filters)
        by_subject, subjects = subject_from_filters(source.filters) if of_queue else (None, ())
    except ValueError as error:
        raise LinkRefused("amqp:invalid-field", str(error)) from error
    if by_subject is None or selector is None:
        return selector or by_subject, (*applied, *subjects)
    return lambda message: by_subject(message) and selector(message), (*applied, *subjects)


def start_of(source: Terminus, node: Node) -> tuple[StartPosition | None, tuple[Filter, ...]]:
    """Where the filters of a source say that it begins, and the filter that says it.

    Raises:
        LinkRefused: a filter is wrong, or the node has no messages to begin at.
    """
    for entry in source.filters:
        if entry.descriptor == START_FILTER:
            try:
                start = read_start(entry.value)
            except StartError as error:
                raise LinkRefused("amqp:invalid-field", f"filter {entry.name}: {error}") from error
            if not isinstance(node, Queue):
                text = f"filter {entry.name}: {node.name!r} is an exchange, which has no messages to begin at"
                raise LinkRefused("amqp:not-allowed", text)
            return start, (entry,)
    return None, ()


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
