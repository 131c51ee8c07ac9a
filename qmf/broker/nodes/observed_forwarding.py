"""What forwards messages by itself, within a broker and to other domains, as observers see it."""

from __future__ import annotations

from typing import Protocol

from qmf.broker.nodes.counters import ExchangeCounters
from qmf.broker.nodes.observed_definitions import ObservedDefinition, ObservedState
from qmf.broker.nodes.queues import Queue


class MessageRelay(ObservedDefinition, ObservedState, Protocol):
    """What forwards messages to ``name@domain``. Compared by identity."""

    @property
    def domain_name(self) -> str:
        """Name of the domain (another broker); empty if that is looked up, or takes the messages itself."""

    @property
    def queue(self) -> Queue:
        """In which messages wait."""

    @property
    def dead_letters(self) -> str:
        """Name of the queue for messages that could not be forwarded."""

    @property
    def counters(self) -> ExchangeCounters:
        """Of the messages that came."""

    @property
    def forwarded(self) -> int:
        """Messages that the other broker has accepted."""

    @property
    def retried(self) -> int:
        """Messages that the other broker has refused for now."""

    @property
    def dead_lettered(self) -> int:
        """Messages that could not be forwarded."""


class NodeLink(ObservedDefinition, ObservedState, Protocol):
    """A link within the broker. Compared by identity."""

    @property
    def wanted(self) -> NodeLinkProperties:
        """What was asked for."""

    @property
    def passed(self) -> int:
        """Messages that it has passed on."""

    @property
    def octets(self) -> int:
        """Bytes of those since the broker started."""

    @property
    def skipped(self) -> int:
        """Messages that it has left."""


class NodeLinkProperties(Protocol):
    """What was asked for of a link within the broker."""

    @property
    def source(self) -> str:
        """Name of the queue from which it takes messages."""

    @property
    def target(self) -> str:
        """Name of the queue or exchange to which it sends them."""

    @property
    def mode_name(self) -> str:
        """``move`` or ``copy``."""

    @property
    def selector(self) -> str:
        """Which messages; empty for all."""

    @property
    def max_count(self) -> int:
        """Messages after which it ends; 0 for no limit."""

    @property
    def max_size(self) -> int:
        """Bytes of the largest message that it takes; 0 for no limit."""

    @property
    def max_rate(self) -> int:
        """Messages in a second; 0 for no limit."""

    @property
    def user(self) -> str:
        """With whose rights it acts."""
