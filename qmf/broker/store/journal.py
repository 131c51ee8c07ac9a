"""The journal: turns what happens to durable queues and persistent messages into units of the store.

Changes are collected until somebody closes the unit that they belong to: who publishes a message (`Journal.close_unit`),
who ends a transaction, or the end of the loop's turn. Units are submitted in the order of what happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import attrs

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.queues import Queue
from qmf.broker.store.errors import StoreError
from qmf.broker.store.store import OnStored, Store
from qmf.broker.store.unit import StoredMessage, Unit


@attrs.define(eq=False)
class JournalUnit:
    """Changes that become one unit of the store.

    Attributes:
        unit: what is written.
        entries: the messages of the unit in their queues.
    """

    unit: Unit = attrs.field(factory=Unit)
    entries: list[tuple[Queue, Entry]] = attrs.field(factory=list)


class Journal:
    """The journal of a broker. All methods belong to the thread of its loop."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """Args:

        store: to write to.
        clock: of the broker, in seconds; times to live end by it.
        """
        self._store = store
        #: What the broker's clock is behind the time of day, by which times to live end on the disk.
        self._offset = time.time() - clock()
        self._current = JournalUnit()
        self._handle: asyncio.Handle | None = None

    @property
    def offset(self) -> float:
        """Seconds from the broker's clock to the time of day."""
        return self._offset

    def attach(self, queue: Queue, definition: int) -> None:
        """Record what happens to a durable queue from now on."""
        queue.observe(QueueJournal(self, queue, definition))

    def add_message(self, queue: Queue, definition: int, entry: Entry) -> None:
        """A persistent message is in a durable queue."""
        message = entry.message
        record = entry.record = self._store.next_message_id()
        expires = None if message.expires_at is None else message.expires_at + self._offset
        self._current.unit.messages.append(StoredMessage(record, definition, entry.position, expires, message.data))
        self._current.entries.append((queue, entry))
        self._close_soon()

    def remove_message(self, entry: Entry) -> None:
        """A message that was recorded has left its queue."""
        if entry.record is not None:
            self._current.unit.removed.append(entry.record)
            entry.record = None
            self._close_soon()

    def submit(self, unit: Unit) -> None:
        """Write definitions: after what happened so far, and until it succeeds."""
        self.flush()
        unit.lasting = True
        self._store.submit(unit)

    def flush(self) -> None:
        """Close the current unit on behalf of nobody: it is written, however long that takes."""
        self.close_unit(None)

    def close_unit(self, on_stored: OnStored | None) -> bool:
        """Close the current unit and submit it. Who waits for it calls `flush` before the changes that belong to it.

        Args:
            on_stored: called when the unit is on the disk, or has failed: the messages that it brought have left
                their queues then. None where nobody waits.

        Returns:
            False if there is nothing to write: `on_stored` is not called.
        """
        current = self._current
        if not current.unit:
            return False
        self._current = JournalUnit()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if on_stored is None or not current.unit.messages:
            current.unit.lasting = True
            self._store.submit(current.unit, on_stored)
        else:
            self._store.submit(current.unit, lambda error: self._on_stored(current, on_stored, error))
        return True

    def _on_stored(self, closed: JournalUnit, on_stored: OnStored, error: StoreError | None) -> None:
        if error is not None:
            self._withdraw(closed)
        on_stored(error)

    def _withdraw(self, failed: JournalUnit) -> None:
        """Messages that could not be stored leave their queues; what was removed with them still has to be written."""
        self.flush()
        for queue, entry in failed.entries:
            if entry.record is not None:
                entry.record = None
                queue.dequeue(entry)
        if failed.unit.removed:
            self._store.submit(Unit(removed=failed.unit.removed, lasting=True))

    def _close_soon(self) -> None:
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._handle = None
        self.flush()


class QueueJournal:
    """The journal of one durable queue; an `EntryObserver`."""

    def __init__(self, journal: Journal, queue: Queue, definition: int) -> None:
        self._journal = journal
        self._queue = queue
        self._definition = definition

    def on_enqueued(self, entry: Entry) -> None:
        """See `EntryObserver`. An entry that was recovered is recorded already."""
        if entry.message.durable and entry.record is None:
            self._journal.add_message(self._queue, self._definition, entry)

    def on_acquired(self, entry: Entry) -> None:
        """See `EntryObserver`: an acquired message is still stored."""

    def on_released(self, entry: Entry) -> None:
        """See `EntryObserver`."""

    def on_dequeued(self, entry: Entry) -> None:
        """See `EntryObserver`."""
        self._journal.remove_message(entry)
