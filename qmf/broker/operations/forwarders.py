"""What forwards messages by itself, and consoles create and delete: what a broker has of each type."""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_definitions import ObservedDefinition
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.principal import Principal


class ForwardingError(Exception):
    """What forwards messages cannot be created, deleted or changed; says why."""


T = TypeVar("T", bound=ObservedDefinition)


class Forwarders(abc.ABC, Collection[T]):
    """All of one type: the domains of a broker, its links to them, its routes, its relays, or its links between queues.

    All methods belong to the thread of the broker's loop.
    """

    def __init__(self, registry: NodeRegistry, called: str, label: str = "") -> None:
        """Make those of a broker that has none.

        Args:
            called: what one is, for errors.
            label: the same for the log; empty where it is `called`.
        """
        self._registry = registry
        self._called = called
        self._label = label or called
        self._items: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._items.values()

    def has(self, name: str) -> bool:
        """There is one of that name."""
        return name in self._items

    def find(self, name: str) -> T:
        """The one of a name.

        Raises:
            ForwardingError: there is none.
        """
        found = self._items.get(name)
        if found is None:
            raise ForwardingError(f"No such {self._called}: {name}")
        return found

    @abc.abstractmethod
    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Add one, which works from now on.

        Args:
            principal: who creates it; it acts on its behalf.
            name: its name; of a relay the domain in addresses.
            properties: as consoles give them.
            strict: refuse properties that are not known.

        Raises:
            ForwardingError: there is one of that name, what it needs does not exist, messages would come back to where
                they come from, or a property is wrong.
            OperationRefused: the policy refuses to the principal what it does.
        """

    @abc.abstractmethod
    def remove(self, name: str) -> None:
        """Remove one. The routes on a link go with it; the messages of a relay stay in their queue.

        Raises:
            ForwardingError: there is none, or something needs it.
        """

    @abc.abstractmethod
    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        """Add one that the store has. If this broker cannot have it any more, its state says why.

        Raises:
            ForwardingError: a field is wrong, or what it needs is missing.
        """

    def on_node_deleted(self, node: Queue | Exchange) -> None:  # domains need no nodes
        """A node of the broker was deleted: what needs it ends."""

    def on_policy_changed(self) -> None:
        """Other rules apply: what its creator may not do any more ends."""

    # For subclasses

    @abc.abstractmethod
    def _report_declared(self, item: T) -> None:
        """Notify observers of one that is there."""

    @abc.abstractmethod
    def _report_deleted(self, item: T) -> None:
        """Notify observers of one that is about to go."""

    def _keep(self, item: T) -> None:
        """One is there."""
        if item.durable:
            self._registry.warn_durable(f"{self._label} {item.name}")
        self._items[item.name] = item
        self._registry.observer.on_forwarder_declared(item)
        self._report_declared(item)

    def _take(self, name: str) -> T:
        """One is not there any more.

        Raises:
            ForwardingError: there was none.
        """
        item = self.find(name)
        self._report_deleted(item)
        self._registry.observer.on_forwarder_deleted(item)
        del self._items[item.name]
        return item


class PausableForwarders(Forwarders[T]):
    """Those that can be paused."""

    @abc.abstractmethod
    def pause(self, name: str) -> None:
        """Let messages wait, until `resume`, or the next start of the broker.

        Raises:
            ForwardingError: there is none.
        """

    @abc.abstractmethod
    def resume(self, name: str) -> None:
        """Forward messages again.

        Raises:
            ForwardingError: there is none.
        """


class Relays(PausableForwarders[T]):
    """The relays of a broker: what forwards messages to ``name@domain``."""

    @abc.abstractmethod
    def retry(self, name: str, count: int) -> int:
        """Let dead letters of a relay wait for their transfer again.

        Args:
            count: how many at most; 0 for all.

        Returns:
            their number.

        Raises:
            ForwardingError: there is none.
        """
