"""Addresses by kind of broker: the source of a link for a binding, and the target of messages for an exchange.

AMQP 1.0 leaves the meaning of addresses to the broker. Brokers that are not known here are addressed like Apache qpidd.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from qmf.bus.base import Binding, ExchangeKind
from qmf.bus.engine.link import BATCHABLE
from qmf.bus.engine.values import LINK_BINDINGS, Filter, Terminus
from qmf.bus.topics import TopicTable

#: Capability of a broker that accepts messages for any node on one link (QMF2.md 1.1).
ANONYMOUS_RELAY = "ANONYMOUS-RELAY"

_WILDCARDS = frozenset({"*", "#"})


class Dialect(abc.ABC):
    """The addresses of one kind of broker."""

    #: Use one link for the messages of all exchanges, where the broker offers the anonymous relay.
    uses_relay: ClassVar[bool] = True
    #: Properties of the links on which we send.
    sender_properties: ClassVar[Mapping[str, object]] = {}

    @abc.abstractmethod
    def source(self, binding: Binding) -> Terminus:
        """Source of a link that receives what a binding matches, or more: see `subject_filter`."""

    def target(self, exchange: str) -> Terminus:
        """Target of a link for the messages of one exchange."""
        return Terminus(exchange)

    def joining_properties(self, bindings: Sequence[Binding]) -> Mapping[str, object] | None:
        """Properties of a link that receives for these bindings besides its own; None if each needs a link."""
        del bindings
        return None

    def subject_filter(self, binding: Binding) -> Callable[[str], bool] | None:
        """A function that returns whether the binding matches a subject; None when `source` gives no others."""
        del binding
        return None


class QpidDialect(Dialect):
    """Apache qpidd: exchanges are nodes, keys are filters.

    QMF2.md 1.2.
    """

    _FILTERS: ClassVar = {
        ExchangeKind.TOPIC: ("legacy-amqp-topic-binding", "apache.org:legacy-amqp-topic-binding:string"),
        ExchangeKind.DIRECT: ("legacy-amqp-direct-binding", "apache.org:legacy-amqp-direct-binding:string"),
    }

    def source(self, binding: Binding) -> Terminus:
        """See `Dialect`."""
        name, descriptor = self._FILTERS[binding.kind]
        return Terminus(binding.exchange, filters=(Filter(name, descriptor, binding.key),))


class EmbeddedDialect(QpidDialect):
    """The embedded broker: addressed like qpidd.

    It sends outcomes of requests and answers when that costs least, and binds the queue of a link several times.
    """

    sender_properties: ClassVar = {BATCHABLE: True}

    def joining_properties(self, bindings: Sequence[Binding]) -> Mapping[str, object] | None:
        """See `Dialect`: docs/protocol.md, "Bindings of links"."""
        return {LINK_BINDINGS: [{"exchange": binding.exchange, "key": binding.key} for binding in bindings]}


class ArtemisDialect(Dialect):
    """Apache ActiveMQ Artemis: an exchange is an address of which every link gets all messages (multicast).

    A selector on the subject, which JMS calls the type, matches the beginning of the binding's key, up to its first
    wildcard. The messages that pass it are filtered again here.
    """

    def source(self, binding: Binding) -> Terminus:
        """See `Dialect`."""
        words = binding.key.split(".")
        literal = list(itertools.takewhile(lambda word: word not in _WILDCARDS, words))
        if binding.kind is ExchangeKind.DIRECT or literal == words:
            filters = _selector(f"JMSType = {_quote(binding.key)}")
        elif literal:
            filters = _selector(f"JMSType LIKE {_quote(_pattern(literal))} ESCAPE '\\'")
        else:
            filters = ()  # a selector would exclude messages without a subject
        return Terminus(binding.exchange, filters=filters, capabilities=("topic",))

    def target(self, exchange: str) -> Terminus:
        """See `Dialect`."""
        return Terminus(exchange, capabilities=("topic",))

    def subject_filter(self, binding: Binding) -> Callable[[str], bool] | None:
        """See `Dialect`."""
        if binding.kind is ExchangeKind.DIRECT or _WILDCARDS.isdisjoint(binding.key.split(".")):
            return None
        table: TopicTable[None] = TopicTable()
        table.add(binding.key, None)
        return lambda subject: bool(table.match(subject))


class RabbitMqDialect(Dialect):
    """RabbitMQ: addresses contain exchange and key ("version 1" of its AMQP 1.0 addresses).

    Its administrator declares the exchanges ``qmf.default.topic`` and ``qmf.default.direct``: AMQP 1.0 cannot.
    """

    uses_relay = False

    def source(self, binding: Binding) -> Terminus:
        """See `Dialect`."""
        return Terminus(f"/exchange/{self._part(binding.exchange)}/{self._part(binding.key)}")

    def target(self, exchange: str) -> Terminus:
        """See `Dialect`."""
        return Terminus(f"/exchange/{self._part(exchange)}")

    @staticmethod
    def _part(text: str) -> str:
        """Part of an address: a slash is escaped, all other characters are as they are."""
        return text.replace("/", "%2F")


_BY_PRODUCT: dict[str, type[Dialect]] = {
    "apache-activemq-artemis": ArtemisDialect,
    "RabbitMQ": RabbitMqDialect,
    "qmf-broker": EmbeddedDialect,
}


def dialect_of(product: str) -> Dialect:
    """The dialect of a broker by the `product` among the properties of its connection."""
    return _BY_PRODUCT.get(product, QpidDialect)()


def _selector(text: str) -> tuple[Filter, ...]:
    return (Filter("jms-selector", "apache.org:selector-filter:string", text),)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _pattern(words: list[str]) -> str:
    """Pattern for SQL's ``LIKE`` that matches everything that starts with these words."""
    return "".join(f"\\{char}" if char in "\\%_" else char for char in ".".join(words)) + "%"
