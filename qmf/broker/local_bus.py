"""`LocalBus`: a bus for programs in the broker's own process, without sockets, AMQP links and users.

Messages pass the same exchanges, queues and limits as those of clients. A subscription has a queue of its own, which
drops its oldest messages when it is full. Answers are not to be dropped: their sender waits until their queue has room.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial

from qmf._marks import receiving_link_name
from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.registry import NameInUse
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import LOCAL, Principal
from qmf.broker.operations.publishing import publish_message, read_and_resolve, reject
from qmf.broker.protocols.amqp.conditions import CONDITIONS, UNAUTHORIZED
from qmf.broker.refusal import Reason, Refusal
from qmf.broker.room import wait_for_room
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
from qmf.bus.connection_state import TRANSITIONS, ConnectionState, ConnectionTrigger
from qmf.bus.receiving import call_receiver
from qmf.bus.watchers import BusWatchers
from qmf.errors import DecodeError, DisconnectedError, LinkError

log = logging.getLogger("qmf.broker")

#: Seconds for which an answer waits for room in a queue from which its receiver takes nothing.
ANSWER_TIMEOUT = 30.0

_sender: ContextVar[ClientInfo | None] = ContextVar("qmf_sender", default=None)


def sender_of_message() -> ClientInfo | None:
    """The client whose message a `LocalBus` delivers, in callbacks and the tasks that they begin; None for a message
    from this process, and elsewhere.
    """
    return _sender.get()


class LocalSubscription(Subscription):
    """A binding on a local bus; the `Consumer` of its queue."""

    presettled = False  #: see `Consumer`

    def __init__(
        self, bus: LocalBus, binding: Binding, grant: ConsumeGrant, on_message: MessageCallback, prefetch: int
    ) -> None:
        """Begin to consume from the queue that the grant is for.

        Args:
            binding, on_message, prefetch: as of `Bus.subscribe`.
            grant: the right to its queue, which is bound already.
        """
        self.binding = binding
        self.queue = grant.queue
        self._bus = bus
        self._on_message = on_message
        self._window = max(1, prefetch)
        self._loop = asyncio.get_running_loop()
        #: Messages from the queue that `on_message` has not been called with yet.
        self._arrived: deque[Entry] = deque()
        #: Messages that it has been called with, and that are not settled yet.
        self._unsettled: dict[Entry, None] = {}
        self._scheduled = False
        self.selector: Callable[[Message], bool] | None = None
        grant.begin(self)

    def ready(self) -> bool:
        return len(self._arrived) + len(self._unsettled) < self._window

    def deliver(self, entry: Entry) -> None:
        """See `Consumer`. The callback is called in a later turn of the loop, since a sender is in the middle of a call
        now.
        """
        self._arrived.append(entry)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def room(self) -> int:
        return self._window - len(self._arrived) - len(self._unsettled)

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        for entry in entries:
            self.deliver(entry)
        return len(entries)

    async def close(self) -> None:
        self._bus.unsubscribe(self)

    def stop(self) -> None:
        """Call `on_message` no more, and forget the messages."""
        self.queue.delivery.remove_consumer(self)
        self._arrived.clear()
        self._unsettled.clear()

    def _run(self) -> None:
        self._scheduled = False
        # Messages that arrive meanwhile wait for the next turn of the loop.
        for _ in range(len(self._arrived)):
            if not self._arrived:
                return  # the callback of the message before has closed the subscription
            entry = self._arrived.popleft()
            self._unsettled[entry] = None
            if not self._bus.admits(entry.message):
                self._on_settled(entry)
                continue
            received = ReceivedMessage(entry.message.data, partial(self._on_settled, entry))
            token = _sender.set(entry.message.origin)
            try:
                call_receiver(self._on_message, received, self.binding)
            finally:
                _sender.reset(token)

    def _on_settled(self, entry: Entry) -> None:
        if entry in self._unsettled:
            del self._unsettled[entry]
            self.queue.delivery.accept(entry)
            self.queue.delivery.dispatch()


class LocalBus(Bus):
    """A bus on the nodes of a broker. It belongs to the broker's loop, and stays connected until `close`.

    It asks for what it does as a principal of its own, with its URL as address.
    """

    def __init__(self, operations: Operations, name: str, *, timeout: float = ANSWER_TIMEOUT) -> None:
        """Make a bus that is connected.

        Args:
            name: unique in the broker; the names of its queues start with it.
            timeout: seconds for which an answer waits for room in a queue from which its receiver takes nothing.
        """
        self._operations = operations
        self._registry = operations.registry
        self._name = name
        self._principal = Principal(address=self.url, protocol=LOCAL)
        self._publisher = operations.publisher(self._principal, relay=True)
        self._timeout = timeout
        self._state = ConnectionState.NEW
        self._watchers = BusWatchers()
        self._subscriptions: dict[LocalSubscription, None] = {}
        self._number = 0

    @property
    def url(self) -> str:
        return f"local://{self._name}"

    @property
    def connected(self) -> bool:
        return self._state is ConnectionState.CONNECTED

    async def open(self, timeout: float = 10.0) -> None:  # noqa: ARG002  # nothing takes time here
        self._state = TRANSITIONS.next(self._state, ConnectionTrigger.CONNECT)
        self._state = TRANSITIONS.next(self._state, ConnectionTrigger.CONNECTED)
        self._watchers.notify(Connected(again=False, broker=self._name))

    async def close(self) -> None:
        if self._state is not ConnectionState.CLOSED:
            self._state = TRANSITIONS.next(self._state, ConnectionTrigger.CLOSE)
            for subscription in list(self._subscriptions):
                self.unsubscribe(subscription)

    async def subscribe(
        self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200
    ) -> LocalSubscription:
        self._require_connection()
        exchange = self._registry.exchange(binding.exchange)
        if not isinstance(exchange, Exchange):
            raise LinkError(binding.exchange, "amqp:not-found", f"no exchange {binding.exchange!r}")
        self._number += 1
        name = f"{self._name}_{binding.exchange}_{receiving_link_name(self._number)}"
        try:
            settings, spec = self._registry.subscriptions.lasting, BindingSpec(key=binding.key)
            grant = self._operations.subscribe(self._principal, exchange, name, settings, spec)
        except NameInUse as error:
            raise LinkError(binding.exchange, "amqp:resource-locked", f"queue {name!r} exists") from error
        except OperationRefused as error:
            raise LinkError(binding.exchange, UNAUTHORIZED, str(error)) from error
        subscription = LocalSubscription(self, binding, grant, on_message, prefetch)
        self._subscriptions[subscription] = None
        return subscription

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`. A message with a correlation id is an answer, or a part of one: it waits for room in its queue.

        Raises:
            LinkError: also without `confirm`, an answer found no room, because its receiver takes nothing. What is
                left of that answer should not be sent: its receiver could not tell that a part is missing.
        """
        self._require_connection()
        refused = await self._publish_with_room(data)
        # A sender of many messages lets the broker's clients have their turns, too.
        await asyncio.sleep(0)
        if refused is not None:
            if confirm:
                raise refused
            log.warning("a message of %s was refused: %s", self._name, refused)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        self._require_connection()
        asyncio.get_running_loop().call_soon(on_outcome, self._publish(data))
        return True

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        return self._watchers.add(watcher)

    def admits(self, message: Message) -> bool:
        """Whether a message that has come may have an answer: its sender must not have one put where it may put none.

        Peers are not asked for that: they send with the rights of whoever has created the link to them.
        """
        origin = message.origin
        if origin is None or origin.domain:
            return True
        try:
            if address := message.fields.reply_to:
                principal = Principal(origin.user, origin.address, origin.protocol, groups=origin.groups)
                self._operations.ask_answer(principal, address)
        except OperationRefused as error:
            log.info("dropped a request whose answers would go to %r: %s", address, error)
            return False
        except DecodeError:
            pass  # nobody can read where an answer would go
        return True

    def unsubscribe(self, subscription: LocalSubscription) -> None:
        """End a subscription and delete its queue. A second call does nothing."""
        if subscription in self._subscriptions:
            del self._subscriptions[subscription]
            subscription.stop()
            self._operations.delete_owned(self._principal, subscription.queue)

    def _require_connection(self) -> None:
        if self._state is not ConnectionState.CONNECTED:
            raise DisconnectedError(self.url, "closed" if self._state is ConnectionState.CLOSED else "not opened yet")

    def _publish(self, data: bytes) -> LinkError | None:
        try:
            message, node = read_and_resolve(self._registry, data, None)
        except DecodeError as error:
            return _error(reject(self._registry, error))
        return _error(publish_message(self._publisher, message, node))

    async def _publish_with_room(self, data: bytes) -> LinkError | None:
        """As `_publish`; an answer is published when its queues have room for it.

        Raises:
            LinkError: an answer found no room.
        """
        registry = self._registry
        try:
            message, node = read_and_resolve(registry, data, None)
        except DecodeError as error:
            return _error(reject(registry, error))
        if message.correlated:
            for queue in registry.targets(node, message):
                if not await wait_for_room(queue, len(data), self._timeout):
                    raise LinkError(
                        message.to or "", "amqp:resource-limit-exceeded", f"no room for an answer in queue {queue.name}"
                    )
                self._require_connection()
            node = None if message.to is None else registry.relay_target(message.to)  # it may be gone now
        return _error(publish_message(self._publisher, message, node))


def _error(refusal: Refusal | None) -> LinkError | None:
    """The error for a message that was refused, with a condition of AMQP as every bus has them.

    One to a node that is not there is dropped, as by qpidd: consoles may be gone before they are answered.
    """
    if refusal is None or refusal.reason is Reason.NOT_FOUND:
        return None
    return LinkError("", CONDITIONS[refusal.reason], refusal.description)
