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
    """A link to a client that receives; the `Consumer` of a queue."""

    def __init__(self, wire: Wire, link: Link, queue: Queue) -> None:
        self.queue = queue
        self._wire = wire
        self._link = link
        self._unsettled: dict[int, Parcel] = {}

    def ready(self) -> bool:
        """See `Consumer`."""
        return len(self._unsettled) < UNSETTLED and self._wire.ready(self._link)

    def take(self, parcel: Parcel) -> None:
        """See `Consumer`."""
        token = self._wire.engine.send(self._link, parcel.data)
        self._wire.touch()
        if not self._link.settled:
            self._unsettled[token] = parcel

    def settled(self, event: Settled) -> None:
        """The client decided about a message. One that it gave back waits again; one that it could not read is gone."""
        parcel = self._unsettled.pop(event.token, None)
        if parcel is not None and event.outcome in (Outcome.RELEASED, Outcome.MODIFIED):
            self.queue.put_back([parcel])
        else:
            self.queue.dispatch()

    def end(self) -> None:
        """The link is gone; others may take what it held."""
        self.queue.remove(self)
        self.queue.put_back(self._unsettled.values())
        self._unsettled.clear()


class Intake:
    """A link from a client that sends."""

    def __init__(self, wire: Wire, link: Link, directory: Directory, target: Target | None, *, relay: bool) -> None:
        """Args:

        target: where everything goes; None when each message says so.
        relay: each message says so in its `to`.
        """
        self._wire = wire
        self._link = link
        self._directory = directory
        self._target = target
        self._relay = relay
        self._used = 0
        wire.engine.flow(link, WINDOW)

    def arrived(self, event: Incoming) -> None:
        """Route a message, answer for it, and give credit for the next ones."""
        outcome, condition, description = self._route(event.data)
        if event.token is not None:
            self._wire.engine.settle(self._link, event.token, outcome, condition, description)
        self._used += 1
        if self._used >= WINDOW // 2:
            self._wire.engine.flow(self._link, self._used)
            self._used = 0
        self._wire.touch()

    def _route(self, data: bytes) -> tuple[Outcome, str, str]:
        directory = self._directory
        try:
            parcel = read_parcel(data, directory.clock())
            target = self._target
            if self._relay and parcel.to is not None:
                target = directory.find(parcel.to)
            if isinstance(target, HeadersExchange):
                _ = parcel.headers  # read now: what is broken is refused
        except DecodeError as error:
            directory.counters.received += 1
            directory.counters.rejected += 1
            log.info("rejected a message on link %r: %s", self._link.name, error)
            return Outcome.REJECTED, "amqp:decode-error", str(error)
        if directory.publish(target, parcel) is Routed.FULL:
            name = parcel.to if self._relay else getattr(target, "name", "")
            return Outcome.REJECTED, "amqp:resource-limit-exceeded", f"queue {name!r} is full"
        return _TAKEN
