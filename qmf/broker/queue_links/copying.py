"""Links that copy: each message of their source once, also over restarts and kills, whoever receives it meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from qmf.broker.nodes.entries import GONE, Entry, EntryObserver
from qmf.broker.nodes.message import Message
from qmf.broker.queue_links.link import LinkPlaces, QueueLink

#: Entries that have left the source, and may be remembered while the target has no room, besides as many as are there.
_SLACK = 1_000


class CopyingLink(QueueLink, EntryObserver):
    """A link that copies messages; it observes the entries of its source.

    An entry is copied as it is when its turn comes. One that leaves the source while the target has no room is not
    copied, and counted as skipped.
    """

    _pending: deque[tuple[Entry, Message]]
    _observes = False
    #: The last stored message of the unit that is made now.
    _next_cursor = 0

    def on_enqueued(self, entry: Entry) -> None:
        self._pending.append((entry, entry.message))
        if self.active:
            self._call_soon(self._copy_pending)
        elif self.places is not None and len(self._pending) > 2 * self.places.source.contents.depth.count + _SLACK:
            self._leave_gone()

    def record(self) -> None:
        before, self.cursor = self.cursor, max(self.cursor, self._next_cursor)
        try:
            super().record()
        finally:
            self.cursor = before

    def settle(self) -> None:
        self.cursor = max(self.cursor, self._next_cursor)
        super().settle()

    def _begin(self, places: LinkPlaces) -> None:
        contents = places.source.contents
        entries: Iterable[Entry] = contents.all_entries()
        if self.cursor:
            entries = [entry for entry in entries if (entry.record or 0) > self.cursor]
        else:
            before = set(self.wanted.start.passed_over(contents))
            self.cursor = max((entry.record or 0 for entry in before), default=0)
            entries = [entry for entry in entries if entry not in before]
        self._pending = deque((entry, entry.message) for entry in entries)
        self._observes = True
        contents.observers.add(self)
        self._call_soon(self._copy_pending)

    def _end(self) -> None:
        if self._observes and self.places is not None:
            self._observes = False
            self.places.source.contents.observers.remove(self)
            self._pending.clear()

    def _go_on(self) -> None:
        self._leave_gone()
        self._call_soon(self._copy_pending)

    def _leave_gone(self) -> None:
        """What has left the source while it could not be copied is not copied."""
        kept = deque(item for item in self._pending if item[0].state is not GONE)
        self.skipped += len(self._pending) - len(kept)
        self._pending = kept

    def _copy_pending(self) -> None:
        """Copy what has come, without waiting for earlier units of the store: these are written in their order, so that
        nobody's removal of a message is stored before its copy.
        """
        while self.places is not None and self.active and self._copy_some():
            pass

    def _copy_some(self) -> bool:
        """Copy a batch; False if there is none."""
        batch: list[tuple[Entry, Message]] = []
        last = 0
        while self._pending and len(batch) < self._batch_size and self._allowance.room(len(batch)):
            item = self._pending.popleft()
            last = max(last, item[0].record or 0)
            message = item[1]
            if message.is_expired(self._registry.clock()):
                continue
            if self.takes(message) and self.has_queue(message):
                self._allowance.take(1)
                batch.append(item)
            else:
                self.skipped += 1
        if not batch:
            if self._pending and (wait := self._allowance.wait()):
                self._call_later(wait)
            return False
        self._next_cursor = last

        def on_passed_on(problem: str) -> None:
            if problem and self._observes:
                self._pending.extendleft(reversed(batch))
                self._call_soon(self._copy_pending)

        self._pass_on([message for _, message in batch], [], on_passed_on)
        return True
