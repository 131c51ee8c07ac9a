"""A subscription of a client: what its queue delivers becomes frames, and is acknowledged as the client has chosen."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import attrs

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import Recorder
from qmf.broker.protocols.stomp.mapping import read_stored


class AckMode(enum.Enum):
    """How a client acknowledges messages, by the header `ack`."""

    AUTO = "auto"  #: a message is done with when it is sent
    CLIENT = "client"  #: the messages before the one that is acknowledged are as well
    INDIVIDUAL = "client-individual"


class FrameSender(Protocol):
    """The connection of a client."""

    @property
    def has_room(self) -> bool:
        """More may be written."""

    def send_frame(self, command: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> None:
        """Send a frame in this turn of the loop."""


@attrs.frozen
class StompSubscriptionTerms:
    """What a client has subscribed to, and how.

    Attributes:
        id: that the client has chosen.
        destination: as the client has it.
        prefix: of the destination of messages, before their key; empty where it is the same for all.
        prefetch: messages that may be sent and not acknowledged.
        selector: the messages that it takes; None for all.
        with_type: see `read_stored`.
    """

    id: str
    destination: str
    prefix: str
    mode: AckMode
    prefetch: int
    selector: Callable[[Message], bool] | None
    with_type: bool


class StompSubscription:
    """A subscription: a `Consumer` of its queue, and a `ClientLink` for observers.

    Attributes:
        presettled: messages leave the queue as they are sent.
        transfers: messages sent so far.
        selector, queue, name, source, target: see `Consumer` and `ClientLink`.
    """

    exchange = None  #: see `ClientLink`
    browsing = False  #: see `ClientLink`
    transactions: TransactionCounts | None = None
    session: Hashable = 0

    def __init__(self, connection: FrameSender, queue: Queue, terms: StompSubscriptionTerms, number: int) -> None:
        """Make a subscription, which begins with a grant.

        Args:
            number: of the subscription among those of the connection, for the ids of messages.
        """
        self.terms = terms
        self.name = self.target = terms.id
        self.source = queue.name
        self.selector = terms.selector
        self.queue: Queue | None = queue
        self.presettled = terms.mode is AckMode.AUTO
        self.transfers = 0
        self._queue = queue
        self._connection = connection
        self._number = number
        #: Messages that are not acknowledged, by their ids, in the order in which they were sent.
        self._unsettled: dict[str, Entry] = {}
        #: Acknowledged in a transaction that has not ended.
        self._held: dict[str, Entry] = {}

    # ClientLink

    def count_unsettled(self) -> tuple[int, int]:
        entries = [*self._unsettled.values(), *self._held.values()]
        return len(entries), sum(entry.size for entry in entries)

    # Consumer

    def ready(self) -> bool:
        return self.room() > 0

    def room(self) -> int:
        if not self._connection.has_room:
            return 0
        return self.terms.prefetch if self.presettled else self.terms.prefetch - len(self._unsettled)

    def deliver(self, entry: Entry) -> None:
        terms, message = self.terms, entry.message
        self.transfers += 1
        id = f"{self._number}-{self.transfers}"
        headers = [
            ("subscription", terms.id),
            ("message-id", id),
            ("destination", f"{terms.prefix}{message.subject}" if terms.prefix else terms.destination),
        ]
        if not self.presettled:
            self._unsettled[id] = entry
            headers.append(("ack", id))
        if message.delivery_count:
            headers.append(("redelivered", "true"))
        more, body = read_stored(message, with_type=terms.with_type)
        self._connection.send_frame("MESSAGE", headers + more, body)

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        sent = 0
        for entry in entries:
            if not self.ready():
                break
            self.deliver(entry)
            sent += 1
        return sent

    # Acknowledgements

    def owns(self, id: str) -> bool:
        """Whether a message with this id waits for its acknowledgement here."""
        return id in self._unsettled

    def take(self, id: str) -> dict[str, Entry]:
        """The messages that an acknowledgement of one is about: it, and in mode `client` those before it."""
        if self.terms.mode is not AckMode.CLIENT:
            return {id: self._unsettled.pop(id)}
        found: dict[str, Entry] = {}
        for each in list(self._unsettled):
            found[each] = self._unsettled.pop(each)
            if each == id:
                break
        return found

    def settle(self, entries: Sequence[Entry], *, accepted: bool, transactional: bool = False) -> None:
        """Messages are acknowledged, or rejected."""
        delivery = self._queue.delivery
        for entry in entries:
            if accepted:
                delivery.accept(entry, transactional=transactional)
            else:
                delivery.reject(entry)
        delivery.dispatch()

    def hold(self, entries: dict[str, Entry], *, accepted: bool) -> StompAcquisition:
        """What was taken is settled when a transaction ends."""
        self._held.update(entries)
        return StompAcquisition(self, entries, accepted=accepted)

    def end_hold(self, entries: dict[str, Entry], *, accepted: bool, committed: bool) -> None:
        """Such a transaction has ended; without a commit, the messages can be acknowledged again."""
        for id in entries:
            self._held.pop(id, None)
        if committed:
            self.settle([*entries.values()], accepted=accepted, transactional=True)
        elif self.queue is None:
            self._queue.delivery.release(entries.values(), failed=True)
        else:
            self._unsettled = {**entries, **self._unsettled}

    def end(self) -> None:
        """Nothing more is received: what is not acknowledged goes back, as delivered once more."""
        self.queue = None
        self._queue.delivery.remove_consumer(self)
        entries, self._unsettled = list(self._unsettled.values()), {}
        self._queue.delivery.release(entries, failed=True)


class StompAcquisition:
    """Messages that are acknowledged or rejected with a transaction; see `Acquisition`."""

    def __init__(self, subscription: StompSubscription, entries: dict[str, Entry], *, accepted: bool) -> None:
        self._subscription = subscription
        self._entries = entries
        self._accepted = accepted

    def record(self, recorder: Recorder) -> None:
        if self._accepted:
            for entry in self._entries.values():
                recorder.acknowledge(entry)

    def commit(self) -> None:
        self._subscription.end_hold(self._entries, accepted=self._accepted, committed=True)

    def roll_back(self) -> None:
        self._subscription.end_hold(self._entries, accepted=self._accepted, committed=False)


class StompSender:
    """All that one client sends, to any destination; a `ClientLink`.

    Attributes:
        name: of the session that the broker has named to the client.
        source: what names the client.
        transfers: frames SEND so far.
        transactions: that the client has begun.
    """

    queue: Queue | None = None  #: see `ClientLink`
    exchange = None  #: see `ClientLink`
    browsing = presettled = False  #: see `ClientLink`
    target = ""  #: see `ClientLink`: each frame names its own
    session: Hashable = 0

    def __init__(self, session_id: str, container: str, transactions: TransactionCounts) -> None:
        self.name = session_id
        self.source = container
        self.transfers = 0
        self.transactions: TransactionCounts | None = transactions

    def count_unsettled(self) -> tuple[int, int]:
        """See `ClientLink`: none, the client only sends."""
        return 0, 0
