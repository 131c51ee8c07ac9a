"""Exchanges: from a message to the queues that want it. They keep no messages and know no AMQP links."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

import attrs

from qmf.broker.nodes.counters import ExchangeCounts
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.bus.topics import TopicTable


@attrs.frozen
class BindingSpec:
    """What a queue wants from an exchange.

    Attributes:
        key: binding key; direct and topic exchanges look at it.
        headers: of a headers exchange: the wanted application properties; None as value accepts any. ``x-match`` says
            ``all`` (the default) or ``any``; other names starting with ``x-`` don't count.
    """

    key: str = ""
    headers: Mapping[str, object] = attrs.field(factory=dict)


class Exchange(abc.ABC):
    """An exchange. A queue is bound to it once.

    Attributes:
        name: unique in the broker.
        counts: what passed, counted by who routes.
    """

    #: As management tools call it.
    kind: str

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = ExchangeCounts()
        self._matches: dict[Queue, BindingSpec] = {}

    @property
    def bindings(self) -> int:
        """Number of queues that are bound."""
        return len(self._matches)

    def bind(self, queue: Queue, match: BindingSpec) -> None:
        """Send the queue what matches from now on."""
        self._matches[queue] = match

    def unbind(self, queue: Queue) -> None:
        """Send the queue nothing more."""
        self._matches.pop(queue, None)

    def match(self, queue: Queue) -> BindingSpec | None:
        """What a queue wants, if it is bound."""
        return self._matches.get(queue)

    @abc.abstractmethod
    def route(self, message: Message) -> Sequence[Queue]:
        """The queues that want the message, each once, in the order in which they were bound where that is known."""


class DirectExchange(Exchange):
    """The routing key equals the binding key."""

    kind = "direct"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._queues: dict[str, dict[Queue, None]] = {}

    def bind(self, queue: Queue, match: BindingSpec) -> None:
        """See `Exchange`."""
        super().bind(queue, match)
        self._queues.setdefault(match.key, {})[queue] = None

    def unbind(self, queue: Queue) -> None:
        """See `Exchange`."""
        match = self._matches.pop(queue, None)
        if match is not None:
            queues = self._queues[match.key]
            del queues[queue]
            if not queues:
                del self._queues[match.key]

    def route(self, message: Message) -> Sequence[Queue]:
        """See `Exchange`."""
        return tuple(self._queues.get(message.subject, ()))


class TopicExchange(Exchange):
    """The binding key, with wildcards, matches the routing key."""

    kind = "topic"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._table: TopicTable[Queue] = TopicTable()

    def bind(self, queue: Queue, match: BindingSpec) -> None:
        """See `Exchange`."""
        super().bind(queue, match)
        self._table.add(match.key, queue)

    def unbind(self, queue: Queue) -> None:
        """See `Exchange`."""
        match = self._matches.pop(queue, None)
        if match is not None:
            self._table.remove(match.key, queue)

    def route(self, message: Message) -> Sequence[Queue]:
        """See `Exchange`."""
        return self._table.match(message.subject)


class FanoutExchange(Exchange):
    """Everybody gets everything."""

    kind = "fanout"

    def route(self, message: Message) -> Sequence[Queue]:  # noqa: ARG002
        """See `Exchange`."""
        return tuple(self._matches)


class HeadersExchange(Exchange):
    """The application properties match."""

    kind = "headers"

    def route(self, message: Message) -> Sequence[Queue]:
        """See `Exchange`."""
        return [queue for queue, match in self._matches.items() if _headers_match(match.headers, message.headers)]


def _headers_match(wanted: Mapping[str, object], found: Mapping[str, object]) -> bool:
    hits = (
        name in found and (value is None or _same(value, found[name]))
        for name, value in wanted.items()
        if not name.startswith("x-")
    )
    return any(hits) if wanted.get("x-match") == "any" else all(hits)


def _same(wanted: object, found: object) -> bool:
    """Equal, but True is not 1: in Python they are."""
    return wanted == found and isinstance(wanted, bool) == isinstance(found, bool)
