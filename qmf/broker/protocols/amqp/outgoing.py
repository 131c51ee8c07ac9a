"""Outgoing links: from a queue to a client that receives."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence

import attrs

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.broker.nodes.relay_addresses import data_to_forward
from qmf.broker.nodes.selectors import Selector
from qmf.broker.operations.grants import ConsumeGrant
from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

#: Messages that a client may hold unsettled per link, whatever credit it gives: they stay in the broker's memory, those
#: of queues that flow to disk as well. Programs that acknowledge once, at their end, need many.
MAX_UNSETTLED = 100_000


class OutgoingLink:
    """A link on which a client receives; the `Consumer` of a queue, and a `ClientLink` for observers.

    Attributes:
        queue: where the messages come from.
        link: the engine's.
        transfers: messages sent, repeated ones included.
        ends_subscription: the queue is a subscription that the client has asked for: closing the link ends it.
    """

    exchange = transactions = None  #: see `ClientLink`
    browsing = False  #: see `ClientLink`

    def __init__(self, transport: AmqpTransport, link: Link, queue: Queue, selector: Selector | None = None) -> None:
        self.queue = queue
        self.selector = selector
        self.link = link
        self.transfers = 0
        self.presettled = link.presettled
        self.ends_subscription = False
        self._contents, self._delivery = queue.contents, queue.delivery
        self._transport = transport
        self._unsettled: dict[int, Entry] = {}
        #: Messages with an outcome within a transaction.
        self._acquired: dict[LinkAcquisition, None] = {}
        #: The log has a line about annotations that could not be merged.
        self._warned = False

    @property
    def name(self) -> str:
        return self.link.name

    @property
    def session(self) -> Hashable:
        return self.link.session_id

    @property
    def source(self) -> str:
        """See `ClientLink`; of a queue that was created for the link its name."""
        return self.queue.name if self.link.source is None else self.link.source.address or self.queue.name

    @property
    def target(self) -> str:
        return "" if self.link.target is None else self.link.target.address or ""

    def attach(self, grant: ConsumeGrant) -> None:
        """Receive from the queue from now on."""
        # The client learns when its acknowledgements are on the disk.
        self.link.keeps_unsettled = self.queue.recorder is not None
        grant.begin(self)

    def begin(self) -> None:
        """The link is granted: deliver what waits."""
        self.link.count_available = self.count_waiting
        self.dispatch()

    def count_waiting(self) -> int:
        """Messages that the client could get with more credit."""
        return len(self._contents)

    def dispatch(self) -> None:
        """There is credit or room: deliver what waits."""
        if len(self._contents):
            self._delivery.dispatch()

    def ready(self) -> bool:
        return len(self._unsettled) < MAX_UNSETTLED and self._transport.can_send(self.link)

    def deliver(self, entry: Entry) -> None:
        self._send(entry, self._data_to_send(entry.message))

    def _data_to_send(self, message: Message) -> bytes:
        """A message with what is left of its time to live; in a transmission queue that ends by the relay."""
        return data_to_forward(message) if self.queue.reserved else self._contents.data_to_send(message)

    def _send(self, entry: Entry, data: bytes) -> None:
        """Send an entry, with data that may have changed."""
        delivery_tag = self._transport.engine.deliveries.send(
            self.link, data, message_format=entry.message.message_format
        )
        self._transport.flush_soon()
        self.transfers += 1
        if not self.presettled:
            self._unsettled[delivery_tag] = entry

    def room(self) -> int:
        most = MAX_UNSETTLED - len(self._unsettled)
        return min(most, self._transport.room(self.link)) if most > 0 else 0

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        if self.queue.reserved:
            return self._deliver_singly(entries)
        messages: list[bytes] = []
        for entry in entries:
            message = entry.message
            if message.message_format:
                return self._deliver_singly(entries)
            messages.append(message.data if message.expires_at is None else self._contents.data_to_send(message))
        return self._send_all(entries, messages)

    def _send_all(self, entries: Sequence[Entry], messages: list[bytes]) -> int:
        """Send entries without formats, with data that may have changed, while there is room; returns how many."""
        tags = self._transport.send_all(self.link, messages)
        self.transfers += len(tags)
        if not self.presettled:
            self._unsettled.update(zip(tags, entries, strict=False))
        return len(tags)

    def _deliver_singly(self, entries: Sequence[Entry]) -> int:
        """See `deliver_all`."""
        for place, entry in enumerate(entries):
            if not self.ready():
                return place
            self.deliver(entry)
        return len(entries)

    def count_unsettled(self) -> tuple[int, int]:
        entries = [*self._unsettled.values(), *(acquisition.entry for acquisition in self._acquired)]
        return len(entries), sum(entry.size for entry in entries)

    def on_outcome(self, event: OutcomeReceived) -> None:
        """The client settled a message. A released or modified one goes back to the queue, the others are done."""
        entry = self._unsettled.pop(event.delivery_tag, None)
        if entry is not None:
            self.settle(entry, event)
        else:
            self._delivery.dispatch()

    def on_accepted(self, delivery_tags: Iterable[int]) -> None:
        """The client accepted and settled messages: they are done."""
        pop = self._unsettled.pop
        self._delivery.accept_all([entry for tag in delivery_tags if (entry := pop(tag, None)) is not None])
        if len(self._contents):
            self._delivery.dispatch()

    def on_held(self, delivery_tags: list[int]) -> None:
        """The client accepts messages, and waits until they are settled: when that is stored, in one unit."""
        link, recorder = self.link, self.queue.recorder
        decisions = self._transport.engine.decisions
        transport = self._transport

        def settle(_: NotStored | None = None) -> None:
            decisions.settle_all_sent(link, delivery_tags)
            transport.flush_soon()

        if recorder is not None:
            recorder.flush()
        pop = self._unsettled.pop
        self._delivery.accept_all([entry for tag in delivery_tags if (entry := pop(tag, None)) is not None])
        if recorder is None or not recorder.close_unit(settle):
            settle()
        if len(self._contents):
            self._delivery.dispatch()

    def settle(self, entry: Entry, event: OutcomeReceived, *, transactional: bool = False) -> None:
        """Let the outcome of a message take effect."""
        delivery = self._delivery
        if event.outcome is Outcome.ACCEPTED:
            delivery.accept(entry, transactional=transactional)
            if len(self._contents):
                delivery.dispatch()
        elif event.outcome is Outcome.REJECTED:
            delivery.reject(entry)
            delivery.dispatch()
        else:
            if event.annotations:
                self._annotate(entry, event.annotations)
            if event.undeliverable:
                delivery.exclude(entry, self)
            delivery.release([entry], failed=event.outcome is Outcome.MODIFIED and event.failed)

    def _annotate(self, entry: Entry, annotations: bytes) -> None:
        """Merge the annotations of a modified message into its own; where that is not possible, it stays as it was."""
        try:
            if self._contents.annotate(entry, annotations):
                return
            reason = "the queue has no room for them"
        except DecodeError as error:
            reason = str(error)
        if not self._warned:
            self._warned = True
            log.warning(
                "queue %s: ignored the annotations of a modified message, and of others on this link if need be: %s",
                self.queue.name,
                reason,
            )

    def acquire(self, event: OutcomeReceived) -> LinkAcquisition | None:
        """The client gave a message an outcome within a transaction; None for a message that is not unsettled."""
        entry = self._unsettled.pop(event.delivery_tag, None)
        if entry is None:
            return None
        acquisition = LinkAcquisition(self, entry, event)
        self._acquired[acquisition] = None
        return acquisition

    def commit(self, acquisition: LinkAcquisition) -> None:
        """The outcome of a message takes effect."""
        del self._acquired[acquisition]
        event = acquisition.event
        if not event.final:
            self._transport.engine.decisions.settle_sent(self.link, event.delivery_tag, event.outcome)
            self._transport.flush_soon()
        self.settle(acquisition.entry, event, transactional=True)

    def roll_back(self, acquisition: LinkAcquisition) -> None:
        """A message is unsettled again or, if the client has settled it, goes back to the queue."""
        del self._acquired[acquisition]
        event = acquisition.event
        if event.final or self.link.detached:
            self._delivery.release([acquisition.entry], failed=True)
        else:
            self._transport.engine.decisions.reopen_sent(self.link, event.delivery_tag)
            self._unsettled[event.delivery_tag] = acquisition.entry

    def on_detached(self) -> None:
        """The link is gone: what was unsettled goes back to the queue, as delivered once more."""
        self._delivery.remove_consumer(self)
        entries = list(self._unsettled.values())
        self._unsettled.clear()
        # A queue of this link alone is about to be deleted.
        self._delivery.release(entries, failed=not self.queue.settings.exclusive)


@attrs.frozen(eq=False)
class LinkAcquisition:
    """The `Acquisition` of a message on a link."""

    link: OutgoingLink
    entry: Entry
    event: OutcomeReceived

    def record(self, recorder: Recorder) -> None:
        if self.event.outcome is Outcome.ACCEPTED:
            recorder.acknowledge(self.entry)

    def commit(self) -> None:
        self.link.commit(self)

    def roll_back(self) -> None:
        self.link.roll_back(self)
