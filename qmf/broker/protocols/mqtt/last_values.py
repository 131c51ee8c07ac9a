"""A queue of the broker's own that holds the last message of each subject: seen by every tool, kept over a restart."""

from __future__ import annotations

from collections.abc import Iterator

from qmf.broker.nodes.entries import Entry, EntryObserver
from qmf.broker.nodes.last_values import SUBJECT_KEY
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.refusal import Reason, Refusal


class SubjectQueue(EntryObserver):
    """The queue, with an index of its messages by subject."""

    def __init__(self, name: str, operations: Operations, reserved: str = "") -> None:
        """Find the queue, or create it.

        Raises:
            NodeDeclarationError: it cannot be created.
        """
        self._name = name
        self._reserved = reserved
        self._operations = operations
        self._registry = operations.registry
        self._publisher = operations.publisher(BROKER)
        self._entries: dict[str, Entry] = {}
        self._queue = self._open()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Message]:
        """All messages, the oldest first."""
        return iter([entry.message for entry in self._entries.values()])

    def get(self, subject: str) -> Message | None:
        """The message of a subject, unless its time has ended."""
        entry = self._entries.get(subject)
        if entry is None or entry.message.is_expired(self._registry.clock()):
            return None
        return entry.message

    def has_room(self, message: Message) -> bool:
        """True if `put` will keep a message."""
        return self._queue.has_room(1, len(message.data))

    def put(self, message: Message) -> Refusal | None:
        """Keep a message in place of the one with its subject.

        Returns:
            why it has no room; None if it is kept.
        """
        if self._registry.queue(self._name) is not self._queue:  # somebody has deleted it
            self._entries.clear()
            self._queue = self._open()
        if self._publisher.publish(self._queue, message).name == "QUEUE_FULL":
            return Refusal(Reason.FULL, self._registry.refusal)
        return None

    def remove(self, subject: str) -> None:
        """Drop the message of a subject, if there is one."""
        if (entry := self._entries.get(subject)) is not None:
            self._queue.contents.remove(entry)

    def on_enqueued(self, entry: Entry) -> None:
        self._entries.pop(entry.message.subject, None)
        self._entries[entry.message.subject] = entry

    def on_dequeued(self, entry: Entry) -> None:
        if self._entries.get(entry.message.subject) is entry:
            del self._entries[entry.message.subject]

    def _open(self) -> Queue:
        queue = self._registry.queue(self._name)
        if queue is None:
            properties = {
                "durable": self._registry.recorder is not None,
                "qpid.last_value_queue_key": SUBJECT_KEY,
                "qpid.browse-only": True,
            }
            declaration = read_node_declaration(("queue",), properties, limits=self._registry.limits)
            created = self._operations.create(BROKER, self._name, declaration)
            assert isinstance(created, Queue)
            queue = created
        queue.reserved = self._reserved
        queue.contents.observers.add(self)
        for entry in queue.contents.waiting():
            self.on_enqueued(entry)
        return queue
