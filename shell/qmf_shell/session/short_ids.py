"""Short ids of objects: 101, 102, ... in the order in which they are first listed, stable within a session.

An id belongs to an agent and an object name, so an object keeps it when its agent restarts. Ids are never reused.
Called from the commands' thread, from the completer and from callbacks: a lock guards it.
"""

from __future__ import annotations

import threading

import attrs

from qmf.views.cells import Cell, ReferenceCell
from qmf.views.objects import ObjectIdentity, ObjectKey
from qmf_shell.session.object_names import search_text

FIRST = 101


@attrs.frozen
class NumberedObject:
    """An object with a short id.

    Attributes:
        number: its short id.
        identity: its key, class and index as last received.
        deleted: when it was destroyed, in nanoseconds since 1970; 0 if it is not known to be destroyed.
        created: nanoseconds since 1970; 0 if unknown.
        search: all its names, see `object_names.search_text`.
    """

    number: int
    identity: ObjectIdentity
    deleted: int = 0
    created: int = 0
    search: str = ""


class ShortIds:
    """The short ids assigned in this session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[ObjectKey, int] = {}
        self._entries: dict[int, NumberedObject] = {}

    def assign(self, identity: ObjectIdentity, created: int = 0) -> int:
        """The short id of an existing object; a new one if it has none."""
        with self._lock:
            number = self._by_key.setdefault(identity.key, FIRST + len(self._by_key))
            before = self._entries.get(number)
            search = before.search if before is not None else search_text(identity, str(number))
            # The latest identity has the epoch that finds the object after its agent was restarted.
            self._entries[number] = NumberedObject(number, identity, 0, created, search)
            return number

    def number(self, key: ObjectKey) -> int | None:
        """The short id of `key`, or None."""
        return self._by_key.get(key)

    def entry(self, number: int) -> NumberedObject | None:
        """The object with this short id, or None."""
        return self._entries.get(number)

    def reference_cell(self, key: ObjectKey) -> Cell:
        """The cell of a reference: with the short id if the object has one. An empty name refers to nothing."""
        number = self.number(key)
        entry = None if number is None else self.entry(number)
        if entry is None:
            return key.object_name or None
        identity = entry.identity
        return ReferenceCell(entry.number, f"{identity.class_key.name} {identity.index}", key.object_name)

    def entries(self) -> tuple[NumberedObject, ...]:
        """All of them, ordered by short id."""
        with self._lock:
            # Ids are assigned in ascending order and never removed.
            return tuple(self._entries.values())

    def mark_deleted(self, key: ObjectKey, deleted: int) -> None:
        """Note that an object was destroyed, in nanoseconds since 1970; ignored if it has no short id."""
        with self._lock:
            number = self._by_key.get(key)
            if number is not None:
                self._entries[number] = attrs.evolve(self._entries[number], deleted=deleted)
