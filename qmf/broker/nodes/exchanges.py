"""Exchanges: they route a message to the queues whose bindings match. They keep no messages and know no AMQP links."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Mapping, Sequence

from qmf.broker.nodes.bindings import EXCLUSIVE_BINDING, PEER_ARGUMENTS, Binding, BindingRefused, BindingSpec
from qmf.broker.nodes.counters import ExchangeCounters
from qmf.broker.nodes.flow_control import FlowControl
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.bus.topics import AMQP_TOPICS, MQTT_TOPICS, TopicDialect, TopicTable

#: What `qpid.msg_sequence` counts to: it goes on with the lowest number of 64 bits.
_MAX_SEQUENCE = (1 << 63) - 1


class Exchange(abc.ABC):
    """An exchange. A queue has one binding to it for each binding key.

    Attributes:
        name: unique in the broker.
        settings: how it behaves.
        counters: updated by `NodeRegistry.publish`.
        alternate: the exchange for messages that no binding matches; None for none.
        alternate_users: queues and exchanges whose alternate exchange it is.
        sequence: the number that the next message gets, where messages are numbered.
        initial_value: the last message, where new bindings are given it.
        flows: flow control of the queues that are bound, with the numbers of their bindings; of those that have any.
    """

    #: Name of the type, in AMQP 0-10's words.
    kind: str
    #: Messages with the same subject go to the same queues.
    by_subject = True

    def __init__(self, name: str, settings: ExchangeSettings | None = None) -> None:
        self.name = name
        self.settings = settings or ExchangeSettings(self.kind)
        self.counters = ExchangeCounters()
        self.alternate: Exchange | None = None
        self.alternate_users = 0
        self.sequence = 0
        self.initial_value: Message | None = None
        #: Messages have to be prepared before they are routed.
        self.prepares = self.settings.sequence or self.settings.initial_value
        self.flows: Counter[FlowControl] = Counter()
        self._bindings: dict[Queue, dict[str, Binding]] = {}
        #: Bindings of queues that have several.
        self._repeated = 0

    @property
    def binding_count(self) -> int:
        """Number of bindings."""
        return len(self._bindings) + self._repeated

    def bind(self, queue: Queue, spec: BindingSpec) -> bool:
        """Route matching messages to the queue from now on; False when it has a binding with this key, which stays.

        Raises:
            BindingRefused: the arguments are invalid.
        """
        bindings = self._bindings.get(queue, {})
        if spec.key in bindings:
            return False
        binding = Binding(queue, spec)
        self._on_bound(binding)
        self._repeated += bool(bindings)
        self._bindings.setdefault(queue, bindings)[spec.key] = binding
        if queue.flow is not None:
            self.flows[queue.flow] += 1
        return True

    def unbind(self, queue: Queue, key: str) -> None:
        """Remove a binding of the queue. Does nothing when it has none with this key."""
        bindings = self._bindings.get(queue, {})
        binding = bindings.pop(key, None)
        if binding is not None:
            self._on_unbound(binding)
            if queue.flow is not None:
                self.flows -= Counter([queue.flow])
            if bindings:
                self._repeated -= 1
            else:
                del self._bindings[queue]

    def binding(self, queue: Queue, key: str) -> Binding | None:
        """The binding of a queue with this key, or None."""
        found = self._bindings.get(queue)
        return None if found is None else found.get(key)

    def bindings(self, queue: Queue) -> Sequence[Binding]:
        """The bindings of a queue, in the order in which they were made."""
        found = self._bindings.get(queue)
        return () if found is None else tuple(found.values())

    def all_bindings(self) -> Sequence[Binding]:
        """All bindings."""
        return [binding for bindings in self._bindings.values() for binding in bindings.values()]

    def bindings_replaced_by(self, queue: Queue, spec: BindingSpec) -> Sequence[Binding]:  # noqa: ARG002
        """The bindings of other queues that a new one replaces."""
        return ()

    def prepare(self, message: Message) -> Message:
        """The message as it is routed: numbered, and remembered for new bindings."""
        if self.settings.sequence:
            message = message.with_sequence("qpid.msg_sequence", self.sequence)
            self.sequence = -_MAX_SEQUENCE - 1 if self.sequence == _MAX_SEQUENCE else self.sequence + 1
        if self.settings.initial_value:
            self.initial_value = message
        return message

    def close(self) -> None:  # noqa: B027 - most types have nothing to close
        """The exchange is deleted, or the broker ends."""

    def route(self, message: Message) -> Sequence[Binding]:
        """The bindings that match the message; one for each queue."""
        found = self._matching(message)
        if not self._repeated or len(found) < 2:
            return found
        return list({binding.queue: binding for binding in reversed(found)}.values())[::-1]

    def _on_bound(self, binding: Binding) -> None:  # noqa: B027 - most types need nothing else
        """A binding is added.

        Raises:
            BindingRefused: the arguments are invalid.
        """

    def _on_unbound(self, binding: Binding) -> None:  # noqa: B027
        """A binding was removed."""

    @abc.abstractmethod
    def _matching(self, message: Message) -> Sequence[Binding]:
        """The bindings that match the message."""


class KeyedExchange(Exchange):
    """Base of exchanges that compare the routing key with the binding keys."""

    def __init__(self, name: str, settings: ExchangeSettings | None = None) -> None:
        super().__init__(name, settings)
        self._by_key: dict[str, dict[Binding, None]] = {}

    def _on_bound(self, binding: Binding) -> None:
        self._by_key.setdefault(binding.spec.key, {})[binding] = None

    def _on_unbound(self, binding: Binding) -> None:
        bindings = self._by_key[binding.spec.key]
        del bindings[binding]
        if not bindings:
            del self._by_key[binding.spec.key]

    def _matching(self, message: Message) -> Sequence[Binding]:
        return tuple(self._by_key.get(message.subject, ()))


class DirectExchange(KeyedExchange):
    """The routing key must equal the binding key."""

    kind = "direct"

    def bindings_replaced_by(self, queue: Queue, spec: BindingSpec) -> Sequence[Binding]:
        if spec.headers.get(EXCLUSIVE_BINDING) in (None, 0, False):
            return ()
        return [binding for binding in self._by_key.get(spec.key, ()) if binding.queue is not queue]


class TopicExchange(Exchange):
    """The binding key, with wildcards, must match the routing key."""

    kind = "topic"
    #: Of routing and binding keys.
    dialect: TopicDialect = AMQP_TOPICS

    def __init__(self, name: str, settings: ExchangeSettings | None = None) -> None:
        super().__init__(name, settings)
        self._table: TopicTable[Binding] = TopicTable(self.dialect)

    def _on_bound(self, binding: Binding) -> None:
        self._table.add(binding.spec.key, binding)

    def _on_unbound(self, binding: Binding) -> None:
        self._table.remove(binding.spec.key, binding)

    def route(self, message: Message) -> Sequence[Binding]:
        # As fast as possible: most messages of QMF pass here.
        return super().route(message) if self._repeated else self._table.match(message.subject)

    def is_heard(self, key: str) -> bool:
        """Whether a message with this routing key would reach a queue."""
        return bool(self._table.match(key))

    def _matching(self, message: Message) -> Sequence[Binding]:
        return self._table.match(message.subject)


class MqttExchange(TopicExchange):
    """As `TopicExchange`, with the topics and filters of MQTT."""

    kind = "mqtt"
    dialect = MQTT_TOPICS

    def _on_bound(self, binding: Binding) -> None:
        levels = binding.spec.key.split("/")
        misplaced = any("#" in level for level in levels[:-1]) or levels[-1].count("#") > (levels[-1] == "#")
        if not binding.spec.key or misplaced or any("+" in level and level != "+" for level in levels):
            raise BindingRefused(f"{binding.spec.key!r} is no topic filter of MQTT")
        super()._on_bound(binding)


class FanoutExchange(Exchange):
    """Every queue gets every message."""

    kind = "fanout"

    def __init__(self, name: str, settings: ExchangeSettings | None = None) -> None:
        super().__init__(name, settings)
        self._all: tuple[Binding, ...] | None = None

    def _on_bound(self, binding: Binding) -> None:  # noqa: ARG002
        self._all = None

    _on_unbound = _on_bound

    def _matching(self, message: Message) -> Sequence[Binding]:  # noqa: ARG002
        if self._all is None:
            self._all = tuple(self.all_bindings())
        return self._all


class HeadersExchange(Exchange):
    """The application properties must match the headers of a binding; its key only names it."""

    kind = "headers"
    by_subject = False

    def _on_bound(self, binding: Binding) -> None:
        if binding.spec.headers.get("x-match", "all") not in ("all", "any"):
            raise BindingRefused(
                'Invalid or missing x-match value binding to headers exchange. Must be a string ["all" or "any"]'
            )

    def _matching(self, message: Message) -> Sequence[Binding]:
        headers = message.headers
        return [binding for binding in self.all_bindings() if _headers_match(binding.spec.headers, headers)]


class DefaultExchange:
    """The nameless exchange of AMQP 0-10: every queue is bound to it with its own name as key."""

    name = ""
    kind = DirectExchange.kind
    by_subject = True
    prepares = False
    alternate = None

    def __init__(self, bindings: Mapping[str, Binding]) -> None:
        """Make the exchange of a broker.

        Args:
            bindings: of all queues of the broker, by their names; the mapping may change.
        """
        self.counters = ExchangeCounters()
        self._bindings = bindings

    @property
    def binding_count(self) -> int:
        """Number of queues: each is bound."""
        return len(self._bindings)

    def route(self, message: Message) -> Sequence[Binding]:
        """The binding of the queue whose name is the routing key, if there is one."""
        found = self._bindings.get(message.subject)
        return () if found is None else (found,)


def _headers_match(required: Mapping[str, object], found: Mapping[str, object]) -> bool:
    hits = (
        name in found and (value is None or _equal(value, found[name]))
        for name, value in required.items()
        if not name.startswith(("x-", PEER_ARGUMENTS))
    )
    return any(hits) if required.get("x-match") == "any" else all(hits)


def _equal(required: object, found: object) -> bool:
    """Equal, where True does not equal 1, as it does in Python."""
    return required == found and isinstance(required, bool) == isinstance(found, bool)
