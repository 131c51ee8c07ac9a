"""Exchanges: they route a message to the queues whose bindings match. They keep no messages and know no AMQP links."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

import attrs

from qmf.broker.nodes.counters import ExchangeCounters
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.bus.topics import TopicTable


@attrs.frozen
class BindingSpec:
    """Which messages of an exchange a queue receives.

    Attributes:
        key: binding key, used by direct and topic exchanges; identifies the binding among those of a queue to an
            exchange.
        headers: used by headers exchanges: the required application properties; None as value accepts any value.
            ``x-match`` is ``all`` (the default) or ``any``; other names that start with ``x-`` are ignored.
    """

    key: str = ""
    headers: Mapping[str, object] = attrs.field(factory=dict)


class Exchange(abc.ABC):
    """An exchange. A queue has one binding to it for each binding key.

    Attributes:
        name: unique in the broker.
        counters: updated by `NodeRegistry.publish`.
    """

    #: Name of the type, in AMQP 0-10's words.
    kind: str

    def __init__(self, name: str) -> None:
        self.name = name
        self.counters = ExchangeCounters()
        self._bindings: dict[Queue, dict[str, BindingSpec]] = {}

    @property
    def binding_count(self) -> int:
        """Number of bindings."""
        return sum(map(len, self._bindings.values()))

    def bind(self, queue: Queue, spec: BindingSpec) -> bool:
        """Route matching messages to the queue from now on; False when it has a binding with this key, which stays."""
        specs = self._bindings.setdefault(queue, {})
        if spec.key in specs:
            return False
        specs[spec.key] = spec
        self._on_bound(queue, spec)
        return True

    def unbind(self, queue: Queue, key: str) -> None:
        """Remove a binding of the queue. Does nothing when it has none with this key."""
        specs = self._bindings.get(queue, {})
        spec = specs.pop(key, None)
        if spec is not None:
            self._on_unbound(queue, spec)
            if not specs:
                del self._bindings[queue]

    def bindings(self, queue: Queue) -> Sequence[BindingSpec]:
        """The bindings of a queue, in the order in which they were made."""
        return tuple(self._bindings.get(queue, {}).values())

    def _on_bound(self, queue: Queue, spec: BindingSpec) -> None:  # noqa: B027 - most types need nothing else
        """A binding was added."""

    def _on_unbound(self, queue: Queue, spec: BindingSpec) -> None:  # noqa: B027
        """A binding was removed."""

    @abc.abstractmethod
    def route(self, message: Message) -> Sequence[Queue]:
        """The queues whose bindings match the message, each once."""


class DirectExchange(Exchange):
    """The routing key must equal the binding key."""

    kind = "direct"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._queues: dict[str, dict[Queue, None]] = {}

    def _on_bound(self, queue: Queue, spec: BindingSpec) -> None:
        self._queues.setdefault(spec.key, {})[queue] = None

    def _on_unbound(self, queue: Queue, spec: BindingSpec) -> None:
        queues = self._queues[spec.key]
        del queues[queue]
        if not queues:
            del self._queues[spec.key]

    def route(self, message: Message) -> Sequence[Queue]:
        """See `Exchange`."""
        return tuple(self._queues.get(message.subject, ()))


class TopicExchange(Exchange):
    """The binding key, with wildcards, must match the routing key."""

    kind = "topic"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._table: TopicTable[Queue] = TopicTable()

    def _on_bound(self, queue: Queue, spec: BindingSpec) -> None:
        self._table.add(spec.key, queue)

    def _on_unbound(self, queue: Queue, spec: BindingSpec) -> None:
        self._table.remove(spec.key, queue)

    def route(self, message: Message) -> Sequence[Queue]:
        """See `Exchange`."""
        return self._table.match(message.subject)


class FanoutExchange(Exchange):
    """Every queue gets every message."""

    kind = "fanout"

    def route(self, message: Message) -> Sequence[Queue]:  # noqa: ARG002
        """See `Exchange`."""
        return tuple(self._bindings)


class HeadersExchange(Exchange):
    """The application properties must match the headers of a binding; its key only names it."""

    kind = "headers"

    def route(self, message: Message) -> Sequence[Queue]:
        """See `Exchange`."""
        headers = message.headers
        return [
            queue
            for queue, specs in self._bindings.items()
            if any(_headers_match(spec.headers, headers) for spec in specs.values())
        ]


class DefaultExchange:
    """The nameless exchange of AMQP 0-10: every queue is bound to it with its own name as key.

    Attributes:
        name, kind, counters: as of `Exchange`.
    """

    name = ""
    kind = DirectExchange.kind

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        """Args:

        queues: all queues of the broker, by name; the mapping may change.
        """
        self.counters = ExchangeCounters()
        self._queues = queues

    @property
    def binding_count(self) -> int:
        """Number of queues: each is bound."""
        return len(self._queues)

    def route(self, message: Message) -> Queue | None:
        """The queue whose name is the routing key, or None."""
        return self._queues.get(message.subject)


def _headers_match(required: Mapping[str, object], found: Mapping[str, object]) -> bool:
    hits = (
        name in found and (value is None or _equal(value, found[name]))
        for name, value in required.items()
        if not name.startswith("x-")
    )
    return any(hits) if required.get("x-match") == "any" else all(hits)


def _equal(required: object, found: object) -> bool:
    """Equal, where True does not equal 1, as it does in Python."""
    return required == found and isinstance(required, bool) == isinstance(found, bool)
