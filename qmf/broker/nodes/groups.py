"""Groups of messages: while a consumer has a message of a group, no other consumer gets one of that group."""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs

from qmf.broker.nodes.entries import ACQUIRED, Entry, EntryObserver

#: The group of messages without one.
NO_GROUP = "qpid.no-group"


@attrs.define
class _Group:
    """The consumer that has messages of the group, how many it has, how many there are, and when the first came."""

    owner: object | None = None
    acquired: int = 0
    count: int = 0
    arrived: int = 0


class MessageGroups(EntryObserver):
    """The groups of a queue.

    A group belongs to the consumer that acquires one of its messages, and is free again when that consumer has none of
    them any more: all consumers share the groups, and messages of a group are processed in their order.
    """

    def __init__(self, key: str, *, timestamps: bool = False) -> None:
        """Make the groups of a queue, in which no message is yet.

        Args:
            key: the application property that holds the name of a message's group.
            timestamps: note when groups begin.
        """
        self.key = key
        self._timestamps = timestamps
        self._groups: dict[str, _Group] = {}

    def allows(self, entry: Entry, consumer: object) -> bool:
        """True if a consumer may acquire an entry."""
        owner = self._groups[self._name(entry)].owner
        return owner is None or owner is consumer

    def owners(self) -> Mapping[str, tuple[int, object | None]]:
        """The number of messages, and the consumer that has acquired some, by group."""
        return {name: (group.count, group.owner) for name, group in self._groups.items()}

    def began(self, name: str) -> int:
        """When the first message of a group came, in seconds since 1970; 0 if that is not noted."""
        return self._groups[name].arrived

    def on_enqueued(self, entry: Entry) -> None:
        name = self._name(entry)
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group(arrived=int(time.time()) if self._timestamps else 0)
        group.count += 1

    def on_acquired(self, entry: Entry) -> None:
        group = self._groups[self._name(entry)]
        group.acquired += 1
        group.owner = entry.acquirer

    def on_released(self, entry: Entry) -> None:
        self._leave(self._groups[self._name(entry)])

    def on_dequeued(self, entry: Entry) -> None:
        name = self._name(entry)
        group = self._groups[name]
        group.count -= 1
        if entry.state is ACQUIRED:
            self._leave(group)
        if not group.count:
            del self._groups[name]

    def _leave(self, group: _Group) -> None:
        group.acquired -= 1
        if not group.acquired:
            group.owner = None

    def _name(self, entry: Entry) -> str:
        return entry.message.header_text(self.key) or NO_GROUP
