"""The two kinds of links that a client of the broker has: one feeds it from a queue, one takes in what it sends."""

from __future__ import annotations

import logging

from qmf.broker.exchanges import HeadersExchange
from qmf.broker.nodes import Directory, Routed, Target
from qmf.broker.parcel import Parcel, read_parcel
from qmf.broker.queues import Queue
from qmf.bus.link import Link
from qmf.bus.values import Incoming, Outcome, Settled
from qmf.bus.wire import Wire
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

#: Messages that a sending client may have on the way per link. They are routed as they arrive, so that the window only
#: has to cover the round trip of a fast sender.
WINDOW = 500
#: Messages that a receiving client may hold unsettled per link, whatever credit it gives: they stay in our memory.
UNSETTLED = 5_000

_TAKEN = (Outcome.ACCEPTED, "", "")


class Refusal(Exception):
    """A link cannot be granted.

    Attributes:
        condition, description: what the peer is told.
    """

    def __init__(self, condition: str, description: str) -> None:
        self.condition = condition
        self.description = description
        super().__init__(condition, description)


class Feed:
    """A link to a client that receives; the `Consumer` of a queue.

    Attributes:
        queue: where the messages come from.
        link: the engine's.
        transfers: messages sent, repeated ones included.
    """

    def __init__(self, wire: Wire, link: Link, queue: Queue) -> None:
        self.queue = queue
        self.link = link
        self.transfers = 0
        self._wire = wire
        self._unsettled: dict[int, Parcel] = {}

    def ready(self) -> bool:
        """See `Consumer`."""
        return len(self._unsettled) < UNSETTLED and self._wire.ready(self.link)

    def take(self, parcel: Parcel) -> None:
        """See `Consumer`."""
        token = self._wire.engine.send(self.link, parcel.data)
        self._wire.touch()
        self.transfers += 1
        if not self.link.settled:
            self._unsettled[token] = parcel

    def held(self) -> tuple[int, int]:
        """See `Consumer`."""
        return len(self._unsettled), sum(len(parcel.data) for parcel in self._unsettled.values())

    def settled(self, event: Settled) -> None:
        """The client decided about a message. One that it gave back waits again; one that it could not read is gone."""
        parcel = self._unsettled.pop(event.token, None)
        if parcel is not None and event.outcome in (Outcome.RELEASED, Outcome.MODIFIED):
            self.queue.put_back([parcel])
        else:
            if parcel is not None and event.outcome is Outcome.REJECTED:
                self.queue.counts.rejected += 1
            self.queue.dispatch()

    def end(self) -> None:
        """The link is gone; others may take what it held."""
        self.queue.remove(self)
        self.queue.put_back(self._unsettled.values())
        self._unsettled.clear()


class Intake:
    """A link from a client that sends.

    Attributes:
        link: the engine's.
        transfers: messages that came.
    """

    def __init__(self, wire: Wire, link: Link, directory: Directory, target: Target | None, *, relay: bool) -> None:
        """Args:

        target: where everything goes; None when each message says so.
        relay: each message says so in its `to`.
        """
        self.link = link
        self.transfers = 0
        self._wire = wire
        self._directory = directory
        self._target = target
        self._relay = relay
        #: Messages that the window is open for since it was opened last.
        self._paid = 0
        wire.engine.flow(link, WINDOW)

    def arrived(self, event: Incoming) -> None:
        """Route a message, answer for it, and give credit for the next ones."""
        outcome, condition, description = route(self._directory, event.data, self._target, relay=self._relay)
        if event.token is not None:
            self._wire.engine.settle(self.link, event.token, outcome, condition, description)
        self.transfers += 1
        used = self.transfers - self._paid
        if used >= WINDOW // 2:
            self._wire.engine.flow(self.link, used)
            self._paid = self.transfers
        self._wire.touch()


def route(directory: Directory, data: bytes, target: Target | None, *, relay: bool) -> tuple[Outcome, str, str]:
    """Put a message where it belongs.

    Args:
        directory: of the broker.
        data: the encoded message.
        target: where it goes unless it says so.
        relay: it may say so in its `to`.

    Returns:
        what its sender is told: outcome, condition and description.
    """
    try:
        parcel = read_parcel(data, directory.clock())
        if relay and parcel.to is not None:
            target = directory.find(parcel.to)
        if isinstance(target, HeadersExchange):
            _ = parcel.headers  # read now: what is broken is refused
    except DecodeError as error:
        directory.counters.received += 1
        directory.counters.rejected += 1
        log.info("rejected a message: %s", error)
        return Outcome.REJECTED, "amqp:decode-error", str(error)
    if directory.publish(target, parcel) is Routed.FULL:
        name = parcel.to if relay else getattr(target, "name", "")
        return Outcome.REJECTED, "amqp:resource-limit-exceeded", f"queue {name!r} is full"
    return _TAKEN
