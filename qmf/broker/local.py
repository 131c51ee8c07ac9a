"""`LocalBus`: a bus inside the broker, for what lives in its process. No sockets, no AMQP links, no users.

Messages go through the same exchanges, queues and limits as everybody's. A subscription has a queue of its own, which
drops its oldest messages when it is full.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from qmf.broker.exchanges import Exchange, Match
from qmf.broker.links import route
from qmf.broker.nodes import Directory, NameTaken
from qmf.broker.parcel import Parcel
from qmf.broker.queues import Overflow, Queue
from qmf.bus.base import Binding, Bus, Connected, Deliver, Received, Subscription, Told, Watcher
from qmf.bus.phase import Phase, Step, after
from qmf.bus.values import Outcome
from qmf.bus.watchers import Watchers
from qmf.errors import DisconnectedError, LinkError

log = logging.getLogger("qmf.broker")


class LocalSubscription(Subscription):
    """A binding on a local bus; the `Consumer` of its queue."""

    def __init__(self, bus: LocalBus, binding: Binding, queue: Queue, deliver: Deliver, prefetch: int) -> None:
        """Args:

        bus: whose it is.
        binding, deliver, prefetch: as of `Bus.subscribe`.
        queue: bound already.
        """
        self.binding = binding
        self.queue = queue
        self._bus = bus
        self._deliver = deliver
        self._window = max(1, prefetch)
        self._loop = asyncio.get_running_loop()
        #: Taken and not delivered yet; delivered and not done.
        self._arrived: deque[Parcel] = deque()
        self._undone: dict[Parcel, None] = {}
        self._scheduled = False
        queue.add(self)

    def ready(self) -> bool:
        """See `Consumer`."""
        return len(self._arrived) + len(self._undone) < self._window

    def take(self, parcel: Parcel) -> None:
        """See `Consumer`. Delivered in a later turn of the loop: now somebody's message is being routed."""
        self._arrived.append(parcel)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def held(self) -> tuple[int, int]:
        """See `Consumer`."""
        parcels = [*self._arrived, *self._undone]
        return len(parcels), sum(len(parcel.data) for parcel in parcels)

    async def close(self) -> None:
        """See `Subscription`."""
        self._bus.forget(self)

    def clear(self) -> None:
        """It is over: nothing is delivered any more."""
        self.queue.remove(self)
        self._arrived.clear()
        self._undone.clear()

    def _run(self) -> None:
        self._scheduled = False
        # What comes meanwhile has its own turn.
        for _ in range(len(self._arrived)):
            if not self._arrived:
                return  # closed by who got the message before
            parcel = self._arrived.popleft()
            self._undone[parcel] = None
            received = Received(parcel.data, partial(self._finished, parcel))
            try:
                self._deliver(received)
            except Exception:
                log.exception("the receiver of %s %r failed; message dropped", self.binding.exchange, self.binding.key)
                received.done()

    def _finished(self, parcel: Parcel) -> None:
        if parcel in self._undone:
            del self._undone[parcel]
            self.queue.dispatch()


class LocalBus(Bus):
    """A bus on a broker's directory. Belongs to the broker's loop; the connection lasts until `close`."""

    def __init__(self, directory: Directory, name: str) -> None:
        """Args:

        directory: of the broker.
        name: unique in the broker; what names of queues begin with.
        """
        self._directory = directory
        self._name = name
        self._phase = Phase.NEW
        self._watchers = Watchers()
        self._subscriptions: dict[LocalSubscription, None] = {}
        self._number = 0

    @property
    def url(self) -> str:
        """See `Bus`."""
        return f"local://{self._name}"

    @property
    def connected(self) -> bool:
        """See `Bus`."""
        return self._phase is Phase.UP

    async def open(self, timeout: float = 10.0) -> None:  # noqa: ARG002  # nothing takes time here
        """See `Bus`."""
        self._phase = after(self._phase, Step.CONNECT)
        self._phase = after(self._phase, Step.UP)
        self._watchers.tell(Connected(again=False, broker=self._name))

    async def close(self) -> None:
        """See `Bus`."""
        if self._phase is not Phase.CLOSED:
            self._phase = after(self._phase, Step.END)
            for subscription in list(self._subscriptions):
                self.forget(subscription)

    async def subscribe(self, binding: Binding, deliver: Deliver, *, prefetch: int = 200) -> LocalSubscription:
        """See `Bus`."""
        self._check()
        exchange = self._directory.find(binding.exchange)
        if not isinstance(exchange, Exchange):
            raise LinkError(binding.exchange, "amqp:not-found", f"no exchange {binding.exchange!r}")
        self._number += 1
        name = f"{self._name}_{binding.exchange}_{self._number}"
        try:
            queue = self._directory.declare(name, overflow=Overflow.DROP_OLDEST, exclusive=True)
        except NameTaken as error:
            raise LinkError(binding.exchange, "amqp:resource-locked", f"queue {name!r} exists") from error
        self._directory.bind(exchange, queue, Match(key=binding.key))
        subscription = LocalSubscription(self, binding, queue, deliver, prefetch)
        self._subscriptions[subscription] = None
        return subscription

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`."""
        self._check()
        refused = self._route(data)
        # Whoever sends a lot lets the broker's clients have their turns, too.
        await asyncio.sleep(0)
        if refused is not None:
            if confirm:
                raise refused
            log.warning("a message of %s was refused: %s", self._name, refused)

    def post(self, data: bytes, told: Told) -> bool:
        """See `Bus`."""
        self._check()
        asyncio.get_running_loop().call_soon(told, self._route(data))
        return True

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._watchers.add(watcher)

    def forget(self, subscription: LocalSubscription) -> None:
        """A subscription was closed."""
        if subscription in self._subscriptions:
            del self._subscriptions[subscription]
            subscription.clear()
            self._directory.delete(subscription.queue)

    def _check(self) -> None:
        if self._phase is not Phase.UP:
            raise DisconnectedError(self.url, "closed" if self._phase is Phase.CLOSED else "not opened yet")

    def _route(self, data: bytes) -> LinkError | None:
        outcome, condition, description = route(self._directory, data, None, relay=True)
        return None if outcome is Outcome.ACCEPTED else LinkError("", condition, description)
