"""Links that move: consumers of their source, so that receivers and links get its messages in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_definitions import LinkMode
from qmf.broker.queue_links.link import LinkPlaces, NodeLinkState, QueueLink
from qmf.broker.transactions.transaction import TakenEntry


class MovingLink(QueueLink):
    """A link that moves messages; the `Consumer` of its source."""

    presettled = False  #: see `Consumer`
    selector: Callable[[Message], bool] | None = None  #: see `Consumer`

    #: Entries that the source has given it, until they are passed on.
    _taken: list[Entry]
    #: The source gives it messages.
    _consumes = False

    # Consumer

    def room(self) -> int:
        if not self.active or self._writing:
            return 0
        taken = len(self._taken)
        room = min(self._batch_size - taken, self._allowance.room(taken))
        if room <= 0 and not taken and (wait := self._allowance.wait()):
            self._call_later(wait)
        return max(room, 0)

    def ready(self) -> bool:
        return self.room() > 0

    def deliver(self, entry: Entry) -> None:
        self._allowance.take(1)
        self._taken.append(entry)
        self._call_soon(self._move_later)

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        count = 0
        for entry in entries:
            if not self.ready():
                break
            self.deliver(entry)
            count += 1
        return count

    # QueueLink

    def _begin(self, places: LinkPlaces) -> None:
        assert self.wanted.mode is LinkMode.MOVE
        self._taken = []
        wanted = self.wanted
        self.selector = self.takes if wanted.matches is not None or wanted.max_size else None
        self._consumes = True
        source = places.source
        before = [
            entry for entry in source.contents.all_entries() if self.cursor and (entry.record or 0) <= self.cursor
        ]
        if not self.cursor:
            before = list(self.wanted.start.passed_over(source.contents))
            self.cursor = max((entry.record or 0 for entry in before), default=0)
        source.delivery.bar(before, self)
        self._operations.consume(self.wanted.principal, source).begin(self)
        self._loop.call_soon(source.delivery.dispatch)

    def _end(self) -> None:
        if self._consumes and self.places is not None:
            self._consumes = False
            source = self.places.source
            source.delivery.remove_consumer(self)
            if not self._writing:
                taken, self._taken = self._taken, []
                source.delivery.put_back(taken)

    def _go_on(self) -> None:
        if self.places is not None:
            self.places.source.delivery.dispatch()

    # Details

    def _move_later(self) -> None:
        """Pass on what was taken so far when links that copy, and that learned of it before, have copied it."""
        count = len(self._taken)
        self._call_soon(lambda: self._move_taken(count))

    def _move_taken(self, count: int) -> None:
        """Pass on what was taken first."""
        if self.places is None or self._writing or not self._taken:
            return
        source, delivery = self.places.source, self.places.source.delivery
        taken, self._taken = self._taken[:count], self._taken[count:]
        if self._taken:
            self._call_soon(self._move_later)
        unrouted = [entry for entry in taken if not self.has_queue(entry.message)]
        if unrouted:
            delivery.bar(unrouted, self)
            self.skipped += len(unrouted)
            delivery.put_back(unrouted)
            taken = [entry for entry in taken if entry not in unrouted]
        if not taken:
            return

        def on_passed_on(_: str) -> None:
            if self._taken:
                self._call_soon(self._move_later)
            if self.state is not NodeLinkState.FAILED:
                self._loop.call_soon(delivery.dispatch)

        messages = [entry.message for entry in taken]
        self._pass_on(messages, [TakenEntry(source, entry) for entry in taken], on_passed_on)
