"""The broker's directory: which exchanges and queues there are, and how a message gets into them."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Iterable

from qmf.broker.counters import Counters
from qmf.broker.exchanges import (
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    Match,
    TopicExchange,
)
from qmf.broker.parcel import Parcel
from qmf.broker.queues import Limits, Overflow, Queue

log = logging.getLogger("qmf.broker")

#: The exchanges that are always there: AMQP 0-10's own, and those of QMF in its default domain (QMF2.md 1).
EXCHANGES: tuple[tuple[str, type[Exchange]], ...] = (
    ("amq.topic", TopicExchange),
    ("amq.direct", DirectExchange),
    ("amq.fanout", FanoutExchange),
    ("amq.match", HeadersExchange),
    ("qmf.default.topic", TopicExchange),
    ("qmf.default.direct", DirectExchange),
    ("qpid.management", TopicExchange),
)


class Routed(enum.Enum):
    """What became of a message."""

    TAKEN = "taken"
    DISCARDED = "discarded"  #: nobody wants it; its sender is not told, as qpidd does it
    FULL = "full"


class DefaultExchange:
    """The nameless exchange: the routing key is the name of a queue."""


#: What an address can name.
Target = Exchange | Queue | DefaultExchange


class NameTaken(Exception):
    """A queue of this name exists already."""


class Directory:
    """All nodes of a broker."""

    def __init__(
        self,
        *,
        queues: Iterable[str] = (),
        domains: Iterable[str] = (),
        limits: Limits | None = None,
        counters: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:

        queues: names of queues that exist from the start.
        domains: QMF domains besides ``default`` whose exchanges exist.
        limits: of each queue.
        counters: where to count.
        clock: seconds; for times to live.
        """
        self.counters = counters if counters is not None else Counters()
        self.clock = clock
        self._limits = limits or Limits()
        self._exchanges = {name: kind(name) for name, kind in EXCHANGES}
        for domain in domains:
            for name, kind in ((f"qmf.{domain}.topic", TopicExchange), (f"qmf.{domain}.direct", DirectExchange)):
                self._exchanges.setdefault(name, kind(name))
        self._queues: dict[str, Queue] = {}
        self._default = DefaultExchange()
        for name in queues:
            self.declare(name, overflow=Overflow.REFUSE)

    def find(self, address: str) -> Target | None:
        """The node of that name. Exchanges come before queues; the empty name is the default exchange."""
        if not address:
            return self._default
        return self._exchanges.get(address) or self._queues.get(address)

    def declare(self, name: str, *, overflow: Overflow, exclusive: bool = False) -> Queue:
        """Make a queue.

        Raises:
            NameTaken: there is a node of that name.
        """
        if name in self._queues or name in self._exchanges:
            raise NameTaken(name)
        queue = self._queues[name] = Queue(name, self._limits, overflow, self.counters, self.clock, exclusive=exclusive)
        return queue

    def delete(self, queue: Queue) -> None:
        """Remove a queue with its bindings and messages."""
        if self._queues.get(queue.name) is queue:
            del self._queues[queue.name]
        for exchange in self._exchanges.values():
            exchange.unbind(queue)

    def publish(self, target: Target | None, parcel: Parcel) -> Routed:
        """Route a message that was sent to `target`; None stands for a name that nothing has."""
        self.counters.received += 1
        if isinstance(target, DefaultExchange):
            target = self._queues.get(parcel.subject)
        if isinstance(target, Queue):
            if target.put(parcel):
                return Routed.TAKEN
            self.counters.rejected += 1
            return Routed.FULL
        queues = target.route(parcel) if target is not None else ()
        taken = False
        for queue in queues:
            taken = queue.put(parcel) or taken
        if taken:
            return Routed.TAKEN
        self.counters.discarded += 1
        if target is None:
            log.debug("discarded a message to %r, which is no exchange or queue", parcel.to)
        return Routed.DISCARDED


__all__ = ["EXCHANGES", "DefaultExchange", "Directory", "Match", "NameTaken", "Routed", "Target"]
