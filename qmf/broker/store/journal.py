"""The journal: turns what happens to durable queues and persistent messages into units of the store.

Changes are collected until somebody closes the unit that they belong to: who publishes a message
(`Journal.close_unit`), who ends a transaction, or the end of the loop's turn. Units are submitted in the order of
what happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import attrs

from qmf.broker.nodes.entries import Entry, EntryObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, OnStored
from qmf.broker.store.store import Store
from qmf.broker.store.unit import Acceptances, Definition, StoredMessage, Unit

#: Seconds after which it is written that the outcome of a message is known to its sender, if nothing else is written.
FORGET_WITHIN = 1.0


@attrs.define(eq=False)
class JournalUnit:
    """Changes that become one unit of the store.

    Attributes:
        unit: what is written.
        entries: the messages of the unit in their queues.
        acknowledged: entries that leave their queues when the unit is written, with their ids in the store.
    """

    unit: Unit = attrs.field(factory=Unit)
    entries: list[tuple[Queue, Entry]] = attrs.field(factory=list)
    acknowledged: list[tuple[Entry, int]] = attrs.field(factory=list)


class Journal:
    """The journal of a broker; its `Recorder`. All methods belong to the thread of its loop."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """Make the journal of a broker; nothing is written yet.

        Args:
            clock: of the broker, in seconds; times to live end by it.
        """
        self._store = store
        #: What the broker's clock is behind the time of day, by which times to live end on the disk.
        self._offset = time.time() - clock()
        self._current = JournalUnit()
        self._handle: asyncio.Handle | None = None
        #: Records of remembered links whose senders know the outcomes: written with the next unit, or after a while.
        self._confirmed: list[tuple[int, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        #: All messages up to this id are on the disk, or will not be.
        self._stored = store.next_message_id()
        self._when_stored: list[Callable[[], None]] = []

    @property
    def offset(self) -> float:
        """Seconds from the broker's clock to the time of day."""
        return self._offset

    def attach(self, queue: Queue, definition: int) -> None:
        """Record what happens to a durable queue from now on."""
        queue.recorder = self
        queue.contents.observers.add(QueueJournal(self, queue, definition))

    def add_message(self, queue: Queue, definition: int, entry: Entry) -> None:
        """A persistent message is in a durable queue."""
        message = entry.message
        record = entry.record = self._store.next_message_id()
        expires = None if message.expires_at is None else message.expires_at + self._offset
        deliver = None if message.deliver_at is None else message.deliver_at + self._offset
        self._end_changes()
        stored = StoredMessage(
            record, definition, entry.position, expires, message.data, deliver, message.message_format
        )
        self._current.unit.messages.append(stored)
        self._current.entries.append((queue, entry))
        self._close_soon()

    def change_message(self, entry: Entry) -> None:
        """A message that was recorded has other contents. That is a unit of its own: it must neither fail with messages
        that come, nor take room on a full disk from acknowledgements.
        """
        if entry.record is not None:
            if not self._current.unit.only_changes:
                self.flush()
            self._current.unit.changed.append((entry.record, entry.message.data))
            self._close_soon()

    def remove_message(self, entry: Entry) -> None:
        """A message that was recorded has left its queue."""
        if entry.record is not None:
            self._end_changes()
            self._current.unit.removed.append(entry.record)
            entry.record = None
            self._close_soon()

    def acknowledge(self, entry: Entry) -> None:
        if entry.record is not None:
            self._end_changes()
            self._current.acknowledged.append((entry, entry.record))
            self.remove_message(entry)

    def remember(self, link: int, record: int, tags: Sequence[int]) -> bool:
        """As `MemoryKeeper.remember`."""
        if not self._current.unit.messages:
            return False
        self._current.unit.accepted.append(Acceptances(link, record, tags))
        return True

    def forget(self, link: int, records: Iterable[int]) -> None:
        """See `MemoryKeeper`. What is forgotten too late is only sent once more, and then forgotten."""
        self._confirmed.extend((link, record) for record in records)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FORGET_WITHIN, self._forget_now)

    def close(self) -> None:
        """Close the current unit, and write what was forgotten."""
        self._forget_now()
        self.flush()

    def _forget_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._confirmed:
            self._end_changes()
            self._current.unit.confirmed.extend(self._confirmed)
            self._confirmed.clear()
            self._close_soon()

    def define(self, definition: Definition) -> None:
        """Something durable was created."""
        self._end_changes()
        self._current.unit.defined.append(definition)
        self._close_soon()

    def undefine(self, id: int) -> None:
        """Something durable was deleted; what else happens until the end of the turn belongs to that."""
        self._end_changes()
        if any(each.id == id for each in self._current.unit.defined):
            self.flush()  # within a unit, what is defined is written last
        self._current.unit.undefined.append(id)
        self._close_soon()

    def is_stored(self, record: int) -> bool:
        """See `Recorder`. Units are written in their order."""
        return record <= self._stored

    def when_stored(self, callback: Callable[[], None]) -> None:
        self._when_stored.append(callback)

    def flush(self) -> None:
        self.close_unit(None)

    def close_unit(self, on_stored: OnStored | None) -> bool:
        current = self._current
        if not current.unit:
            return False
        self._current = JournalUnit()
        if self._confirmed and not current.unit.changed:
            current.unit.confirmed.extend(self._confirmed)
            self._confirmed.clear()
        # What was scheduled stays: there is at most one in a turn of the loop, however many units are closed.
        if not (current.unit.messages or current.acknowledged):
            current.unit.lasting = True
            self._store.submit(current.unit, on_stored)
        else:
            current.unit.lasting = on_stored is None
            self._store.submit(current.unit, lambda error: self._on_stored(current, on_stored, error))
        return True

    def _on_stored(self, closed: JournalUnit, on_stored: OnStored | None, error: NotStored | None) -> None:
        if error is not None and on_stored is not None:
            self._withdraw(closed)
        if closed.unit.messages:
            self._stored = max(self._stored, closed.unit.messages[-1].id)
            waiting, self._when_stored = self._when_stored, []
            for callback in waiting:
                callback()
        if on_stored is not None:
            on_stored(error)

    def _withdraw(self, failed: JournalUnit) -> None:
        """Messages that could not be stored leave their queues; what was removed with them still has to be written."""
        self.flush()
        for link, record in failed.unit.confirmed:
            self.forget(link, [record])
        for queue, entry in failed.entries:
            if entry.record is not None:
                entry.record = None
                queue.contents.remove(entry)
        for entry, record in failed.acknowledged:
            entry.record = record
        kept = {record for _, record in failed.acknowledged}
        if removed := [record for record in failed.unit.removed if record not in kept]:
            self._store.submit(Unit(removed=removed, lasting=True))

    def _end_changes(self) -> None:
        """What comes now does not belong to a unit of changed messages."""
        if self._current.unit.changed:
            self.flush()

    def _close_soon(self) -> None:
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._handle = None
        self.flush()


class QueueJournal(EntryObserver):
    """The journal of one durable queue."""

    def __init__(self, journal: Journal, queue: Queue, definition: int) -> None:
        self._journal = journal
        self._queue = queue
        self._definition = definition

    def on_enqueued(self, entry: Entry) -> None:
        """See `EntryObserver`. An entry that was recovered is recorded already."""
        if entry.message.durable and entry.record is None:
            self._journal.add_message(self._queue, self._definition, entry)

    def on_changed(self, entry: Entry, growth: int) -> None:  # noqa: ARG002
        self._journal.change_message(entry)

    def on_dequeued(self, entry: Entry) -> None:
        self._journal.remove_message(entry)
