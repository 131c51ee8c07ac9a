"""How brokers are told what QMF says as exchange and key: the source of a binding's link, and the target of messages.

AMQP 1.0 leaves the meaning of addresses to brokers. One that is not known here is spoken to like Apache qpidd, as the
embedded broker is.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable
from typing import ClassVar

from qmf.bus.base import Binding, ExchangeKind
from qmf.bus.engine.values import Filter, Terminus
from qmf.bus.topics import TopicTable

#: Capability of a broker that takes messages for any node on one link (QMF2.md 1.1).
ANONYMOUS_RELAY = "ANONYMOUS-RELAY"

_WILD = frozenset({"*", "#"})


class Dialect(abc.ABC):
    """The addresses of one kind of broker."""

    #: Messages for all exchanges can go out on one link, where the broker offers the anonymous relay.
    relays: ClassVar[bool] = True

    @abc.abstractmethod
    def source(self, binding: Binding) -> Terminus:
        """Where a link for a binding receives from."""

    def target(self, exchange: str) -> Terminus:
        """Where messages for an exchange go, on a link of their own."""
        return Terminus(exchange)

    def sieve(self, binding: Binding) -> Callable[[str], bool] | None:
        """Tells by its subject whether a message from `source` is for the binding; None when all of them are."""
        del binding
        return None


class Qpid(Dialect):
    """Apache qpidd and the embedded broker: exchanges are nodes, keys are filters.

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


class Artemis(Dialect):
    """Apache ActiveMQ Artemis: an exchange is an address that gives every link all messages (multicast).

    A selector over the subject, which JMS calls the type, keeps at the broker what does not begin like the binding's
    key. What it lets through is looked at here again.
    """

    def source(self, binding: Binding) -> Terminus:
        """See `Dialect`."""
        words = binding.key.split(".")
        known = list(itertools.takewhile(lambda word: word not in _WILD, words))
        if binding.kind is ExchangeKind.DIRECT or known == words:
            filters = _selector(f"JMSType = {_quoted(binding.key)}")
        elif known:
            filters = _selector(f"JMSType LIKE {_quoted(_pattern(known))} ESCAPE '\\'")
        else:
            filters = ()  # no selector is true of messages without a subject
        return Terminus(binding.exchange, filters=filters, capabilities=("topic",))

    def target(self, exchange: str) -> Terminus:
        """See `Dialect`."""
        return Terminus(exchange, capabilities=("topic",))

    def sieve(self, binding: Binding) -> Callable[[str], bool] | None:
        """See `Dialect`."""
        if binding.kind is ExchangeKind.DIRECT or _WILD.isdisjoint(binding.key.split(".")):
            return None
        table: TopicTable[None] = TopicTable()
        table.add(binding.key, None)
        return lambda subject: bool(table.match(subject))


class RabbitMq(Dialect):
    """RabbitMQ, whose addresses name exchange and key ("version 1" of its AMQP 1.0 addresses).

    Its administrator declares the exchanges ``qmf.default.topic`` and ``qmf.default.direct``; the protocol cannot.
    """

    relays = False

    def source(self, binding: Binding) -> Terminus:
        """See `Dialect`."""
        return Terminus(f"/exchange/{self._part(binding.exchange)}/{self._part(binding.key)}")

    def target(self, exchange: str) -> Terminus:
        """See `Dialect`."""
        return Terminus(f"/exchange/{self._part(exchange)}")

    @staticmethod
    def _part(text: str) -> str:
        """It takes a slash in this form, and all other characters as they are."""
        return text.replace("/", "%2F")


_KNOWN: dict[str, type[Dialect]] = {"apache-activemq-artemis": Artemis, "RabbitMQ": RabbitMq}


def dialect_of(product: str) -> Dialect:
    """What a broker understands that calls itself `product` in the properties of its connection."""
    return _KNOWN.get(product, Qpid)()


def _selector(text: str) -> tuple[Filter, ...]:
    return (Filter("jms-selector", "apache.org:selector-filter:string", text),)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _pattern(words: list[str]) -> str:
    """What SQL's ``LIKE`` takes for all that begins with these words."""
    return "".join(f"\\{char}" if char in "\\%_" else char for char in ".".join(words)) + "%"
