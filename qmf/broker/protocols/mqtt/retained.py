"""Retained messages: the last one of each topic, found by filters with wildcards. They are in a queue, `RETAINED`."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.mqtt.last_values import SubjectQueue
from qmf.broker.refusal import Refusal

#: Name of the queue.
RETAINED = "mqtt.retained"


class _Level:
    """One level of topics, with those below.

    Attributes:
        below: by name.
        entry: the message of the topic that ends here; None for none.
    """

    __slots__ = ("below", "entry")

    def __init__(self) -> None:
        self.below: dict[str, _Level] = {}
        self.entry: Entry | None = None


class RetainedMessages(SubjectQueue):
    """The retained messages of a broker."""

    def __init__(self, operations: Operations) -> None:
        self._root = _Level()
        super().__init__(RETAINED, operations)

    def retain(self, message: Message, payload: bytes) -> Refusal | None:
        """Keep a publication in place of the one with its topic, or with an empty payload none; returns as `put`."""
        if payload:
            return self.put(message)
        self.remove(message.subject)
        return None

    def matching(self, pattern: str) -> Sequence[Message]:
        """The messages whose topics a filter matches, without ``$share``; the oldest first."""
        now = self._registry.clock()
        found = [entry for entry in self._search(pattern.split("/")) if not entry.message.is_expired(now)]
        return [entry.message for entry in sorted(found, key=_position)]

    def on_enqueued(self, entry: Entry) -> None:
        super().on_enqueued(entry)
        level = self._root
        for word in entry.message.subject.split("/"):
            if (below := level.below.get(word)) is None:
                below = level.below[word] = _Level()
            level = below
        level.entry = entry

    def on_dequeued(self, entry: Entry) -> None:
        super().on_dequeued(entry)
        words = entry.message.subject.split("/")
        path = [self._root]
        for word in words:
            below = path[-1].below.get(word)
            if below is None:
                return
            path.append(below)
        if path[-1].entry is not entry:
            return
        path[-1].entry = None
        for word in reversed(words):
            level = path.pop()
            if level.below or level.entry is not None:
                return
            del path[-1].below[word]

    def _search(self, words: Sequence[str]) -> list[Entry]:
        found: list[Entry] = []
        todo = [(self._root, 0)]
        while todo:
            level, place = todo.pop()
            if place == len(words):
                if level.entry is not None:
                    found.append(level.entry)
                continue
            word = words[place]
            if word not in ("+", "#"):
                if (below := level.below.get(word)) is not None:
                    todo.append((below, place + 1))
                continue
            if word == "#" and level.entry is not None:
                found.append(level.entry)
            following = place + (word == "+")
            # Wildcards in the first level leave out topics that begin with $.
            todo += [
                (below, following)
                for name, below in level.below.items()
                if place or level is not self._root or not name.startswith("$")
            ]
        return found


def _position(entry: Entry) -> int:
    return entry.position
