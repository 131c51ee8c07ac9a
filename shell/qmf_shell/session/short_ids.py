"""Short numbers for objects: 101, 102, ... in the order in which they are first listed, stable within a session.

A number belongs to agent and object name, so an object keeps it when its agent restarts. Numbers are never used again.
Called from the commands' thread, from the completer and from callbacks: a lock guards it.
"""

from __future__ import annotations

import threading

import attrs

from qmf_shell.session.backend import ObjectIdentity, ObjectKey
from qmf_shell.session.object_names import search_text

FIRST = 101


@attrs.frozen
class NumberedObject:
    """An object with a number.

    Attributes:
        number: its short id.
        identity: its name, class and key text as last seen.
        deleted: nanoseconds since 1970 when it was destroyed; 0 as far as we know it lives.
        created: nanoseconds since 1970, or 0 where not told.
        search: what it is found by, see `names.search_text`.
    """

    number: int
    identity: ObjectIdentity
    deleted: int = 0
    created: int = 0
    search: str = ""


class ShortIds:
    """The numbers given in this session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[ObjectKey, int] = {}
        self._entries: dict[int, NumberedObject] = {}

    def assign(self, identity: ObjectIdentity, created: int = 0) -> int:
        """The number of a living object; a new one if it has none."""
        with self._lock:
            number = self._by_key.setdefault(identity.key, FIRST + len(self._by_key))
            before = self._entries.get(number)
            search = before.search if before is not None else search_text(identity, str(number))
            # The latest `known` has the epoch that finds the object after its agent was restarted.
            self._entries[number] = NumberedObject(number, identity, 0, created, search)
            return number

    def number(self, key: ObjectKey) -> int | None:
        """The number that `key` has, or None."""
        return self._by_key.get(key)

    def entry(self, number: int) -> NumberedObject | None:
        """The object with this number, or None."""
        return self._entries.get(number)

    def entries(self) -> tuple[NumberedObject, ...]:
        """All of them, by number."""
        with self._lock:
            # Numbers are given in rising order and never taken back.
            return tuple(self._entries.values())

    def mark_deleted(self, key: ObjectKey, deleted: int) -> None:
        """Note that an object was destroyed; without a number it is nobody's concern."""
        with self._lock:
            number = self._by_key.get(key)
            if number is not None:
                self._entries[number] = attrs.evolve(self._entries[number], deleted=deleted)
