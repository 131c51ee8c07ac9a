"""Browsing links: from a queue to a client that reads its messages and leaves them there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.selectors import Selector
from qmf.broker.nodes.start_positions import StartPosition
from qmf.broker.operations.grants import BrowseGrant
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport


class BrowsingLink(OutgoingLink):
    """A link on which a client browses: the `Browser` of a queue, and a `ClientLink` for observers.

    It sends what waits when it is attached and what is stored later, each message once. One that was consumed before
    its turn is left out.
    """

    browsing = True  #: see `ClientLink`

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        queue: Queue,
        selector: Selector | None = None,
        start: StartPosition | None = None,
    ) -> None:
        """Make the link; `start` is where it begins, at the head of the queue without it."""
        super().__init__(transport, link, queue, selector)
        before = set() if start is None else set(start.passed_over(queue.contents))
        self._ahead: deque[Entry] = deque(entry for entry in queue.contents.waiting() if entry not in before)

    def browse(self, grant: BrowseGrant) -> None:
        """Read the messages of the queue from now on; takes the place of `attach`."""
        grant.begin(self)

    def count_waiting(self) -> int:
        return len(self._ahead)

    def on_stored(self, entry: Entry) -> None:
        self._ahead.append(entry)
        self.dispatch()

    def dispatch(self) -> None:
        contents = self.queue.contents
        while self._ahead and self.ready():
            entry = self._ahead.popleft()
            if contents.is_readable(entry) and (self.selector is None or self.selector(entry.message)):
                contents.order.on_browsed(entry)
                self.deliver(entry)

    def on_outcome(self, event: OutcomeReceived) -> None:
        """The client settled a message, which changes nothing."""
        self._unsettled.pop(event.delivery_tag, None)
        self.dispatch()

    def on_accepted(self, delivery_tags: Iterable[int]) -> None:
        """See `OutgoingLink`; it changes nothing."""
        for delivery_tag in delivery_tags:
            self._unsettled.pop(delivery_tag, None)
        self.dispatch()

    def on_detached(self) -> None:
        self.queue.delivery.remove_browser(self)
        self._ahead.clear()
        self._unsettled.clear()
