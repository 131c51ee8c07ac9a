"""Last value queues: of the messages with the same key, the newest matters."""

from __future__ import annotations

import enum

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.orders import FifoOrder

#: Stands for the subject of a message where a key is named: qpidd's name for it in AMQP 0-10.
SUBJECT_KEY = "qpid.subject"


class Replacement(enum.Enum):
    """What a new message does with an available one of the same key. One that was acquired is left to its consumer."""

    IN_PLACE = "in place, unless it was browsed"  #: `qpid.last_value_queue`
    IN_PLACE_BROWSED = "in place, even if it was browsed"  #: `qpid.last_value_queue_no_browse`
    AT_END = "at the end"  #: `qpid.last_value_queue_key`


class LastValueOrder(FifoOrder):
    """First in, first out, where a new message replaces the one with the same key.

    A message that cannot be replaced stays, and the new one is added; browsers see the new one only. An entry that
    comes back while a newer one with its key waits is dropped; otherwise, with replacement in place, it is not replaced
    any more.
    """

    def __init__(self, key: str, replacement: Replacement) -> None:
        """Make the order of an empty queue.

        Args:
            key: the application property that holds a message's key, or `SUBJECT_KEY`. Messages without it have the
                same, empty key.
            replacement: how messages are replaced.
        """
        super().__init__()
        self._key = key
        self._by_subject = key == SUBJECT_KEY
        self._replacement = replacement
        #: The newest available entry of each key.
        self._latest: dict[str, Entry] = {}
        #: Those of them that are not replaced.
        self._kept: set[Entry] = set()

    def add(self, entry: Entry) -> tuple[Entry, Entry] | None:
        key = self._key_of(entry)
        old = self._latest.get(key)
        if old is None or old in self._kept or self._replacement is Replacement.AT_END:
            self._latest[key] = entry
            super().add(entry)
            if old is None or old in self._kept:
                self._kept.discard(old)
                return None
            return entry, old
        old.message, entry.message = entry.message, old.message
        old.size, entry.size = entry.size, old.size
        old.record, entry.record = entry.record, old.record
        return old, entry

    def restore(self, entry: Entry) -> bool:
        key = self._key_of(entry)
        if key in self._latest:
            return False
        self._latest[key] = entry
        if self._replacement is not Replacement.AT_END:
            self._kept.add(entry)
        return super().restore(entry)

    def take(self, entry: Entry) -> None:
        super().take(entry)
        key = self._key_of(entry)
        if self._latest.get(key) is entry:
            del self._latest[key]
            self._kept.discard(entry)

    def on_browsed(self, entry: Entry) -> None:
        if self._replacement is Replacement.IN_PLACE and self.is_current(entry):
            self._kept.add(entry)

    def _key_of(self, entry: Entry) -> str:
        return entry.message.subject if self._by_subject else entry.message.header_text(self._key)

    def is_current(self, entry: Entry) -> bool:
        return self._latest.get(self._key_of(entry)) is entry
