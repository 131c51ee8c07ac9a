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

from qmf.broker.links.links import route
from qmf.broker.nodes.exchanges import BindingSpec, Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import OverflowPolicy, Queue
from qmf.broker.nodes.registry import NameInUse, NodeRegistry
from qmf.bus.base import (
    Binding,
    Bus,
    BusWatcher,
    Connected,
    MessageCallback,
    OutcomeCallback,
    ReceivedMessage,
    Subscription,
)
from qmf.bus.bus_state import BusState, BusTrigger, next_state
from qmf.bus.engine.values import Outcome
from qmf.bus.watchers import BusWatchers
from qmf.errors import DisconnectedError, LinkError

log = logging.getLogger("qmf.broker")


class LocalSubscription(Subscription):
    """A binding on a local bus; the `Consumer` of its queue."""

    def __init__(
        self, bus: LocalBus, binding: Binding, queue: Queue, on_message: MessageCallback, prefetch: int
    ) -> None:
        """Args:

        bus: whose it is.
        binding, on_message, prefetch: as of `Bus.subscribe`.
        queue: bound already.
        """
        self.binding = binding
        self.queue = queue
        self._bus = bus
        self._on_message = on_message
        self._window = max(1, prefetch)
        self._loop = asyncio.get_running_loop()
        #: Taken and not delivered yet; delivered and not done.
        self._arrived: deque[Message] = deque()
        self._undone: dict[Message, None] = {}
        self._scheduled = False
        queue.add(self)

    def ready(self) -> bool:
        """See `Consumer`."""
        return len(self._arrived) + len(self._undone) < self._window

    def take(self, message: Message) -> None:
        """See `Consumer`. Delivered in a later turn of the loop: now somebody's message is being routed."""
        self._arrived.append(message)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def held(self) -> tuple[int, int]:
        """See `Consumer`."""
        messages = [*self._arrived, *self._undone]
        return len(messages), sum(len(message.data) for message in messages)

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
            message = self._arrived.popleft()
            self._undone[message] = None
            received = ReceivedMessage(message.data, partial(self._finished, message))
            try:
                self._on_message(received)
            except Exception:
                log.exception("the receiver of %s %r failed; message dropped", self.binding.exchange, self.binding.key)
                received.settle()

    def _finished(self, message: Message) -> None:
        if message in self._undone:
            del self._undone[message]
            self.queue.dispatch()


class LocalBus(Bus):
    """A bus on a broker's registry. Belongs to the broker's loop; the connection lasts until `close`."""

    def __init__(self, registry: NodeRegistry, name: str) -> None:
        """Args:

        registry: of the broker.
        name: unique in the broker; what names of queues begin with.
        """
        self._registry = registry
        self._name = name
        self._state = BusState.NEW
        self._watchers = BusWatchers()
        self._subscriptions: dict[LocalSubscription, None] = {}
        self._number = 0

    @property
    def url(self) -> str:
        """See `Bus`."""
        return f"local://{self._name}"

    @property
    def connected(self) -> bool:
        """See `Bus`."""
        return self._state is BusState.UP

    async def open(self, timeout: float = 10.0) -> None:  # noqa: ARG002  # nothing takes time here
        """See `Bus`."""
        self._state = next_state(self._state, BusTrigger.CONNECT)
        self._state = next_state(self._state, BusTrigger.UP)
        self._watchers.tell(Connected(again=False, broker=self._name))

    async def close(self) -> None:
        """See `Bus`."""
        if self._state is not BusState.CLOSED:
            self._state = next_state(self._state, BusTrigger.END)
            for subscription in list(self._subscriptions):
                self.forget(subscription)

    async def subscribe(
        self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200
    ) -> LocalSubscription:
        """See `Bus`."""
        self._check()
        exchange = self._registry.find(binding.exchange)
        if not isinstance(exchange, Exchange):
            raise LinkError(binding.exchange, "amqp:not-found", f"no exchange {binding.exchange!r}")
        self._number += 1
        name = f"{self._name}_{binding.exchange}_{self._number}"
        try:
            queue = self._registry.declare(name, overflow=OverflowPolicy.DROP_OLDEST, exclusive=True)
        except NameInUse as error:
            raise LinkError(binding.exchange, "amqp:resource-locked", f"queue {name!r} exists") from error
        self._registry.bind(exchange, queue, BindingSpec(key=binding.key))
        subscription = LocalSubscription(self, binding, queue, on_message, prefetch)
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

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus`."""
        self._check()
        asyncio.get_running_loop().call_soon(on_outcome, self._route(data))
        return True

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus`."""
        return self._watchers.add(watcher)

    def forget(self, subscription: LocalSubscription) -> None:
        """A subscription was closed."""
        if subscription in self._subscriptions:
            del self._subscriptions[subscription]
            subscription.clear()
            self._registry.delete(subscription.queue)

    def _check(self) -> None:
        if self._state is not BusState.UP:
            raise DisconnectedError(self.url, "closed" if self._state is BusState.CLOSED else "not opened yet")

    def _route(self, data: bytes) -> LinkError | None:
        outcome, condition, description = route(self._registry, data, None, relay=True)
        return None if outcome is Outcome.ACCEPTED else LinkError("", condition, description)
