"""Queues: bounded, in order, dispatched to the consumers that have credit.

A message in a queue is an entry: available, acquired by a consumer, or gone. A queue has its contents, entries in an
order, its delivery to consumers, a policy for when it is full, and observers of its contents, such as flow
control, alerts and the journal of a durable queue. A plain queue has none of the latter. This module knows nothing of
AMQP.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from qmf.broker.nodes.consumers import AlternateExchange
from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.counters import BrokerCounters, DurableCounts, PageCounts
from qmf.broker.nodes.delays import CallLater
from qmf.broker.nodes.delivery import QueueDelivery
from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.entries import AVAILABLE, Entry
from qmf.broker.nodes.flow_control import FlowControl
from qmf.broker.nodes.limits import overflow_of
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.recorder import Recorder
from qmf.broker.nodes.settings import OverflowPolicy, QueueSettings
from qmf.broker.nodes.traces import read_trace
from qmf.errors import DecodeError


class Queue:
    """A queue: takes messages into its contents, and has them delivered.

    Attributes:
        name: unique in the broker.
        settings: how it behaves.
        contents: its entries.
        delivery: gives them to consumers and browsers.
        counters: those of the contents: read them, but don't write.
        exclusive: only one consumer is allowed, or with an `owner` those of that; at first as the settings say.
        owner: the session that has the queue for itself: others may send and browse. None for no such session.
        flow: flow control of its senders; None where there is none.
        alternate: where messages go that are rejected, dropped or orphaned; None for nowhere.
        redirected: the queue that gets the messages of this one, and this one its messages; None for none.
        redirect_source: of the two, it is the one whose messages were to be redirected.
        filter: the messages that it keeps; None for all. Set by `exclude`.
        recorder: of a durable queue; None for any other.
        reserved: who alone puts messages into it, for people; empty for everybody.
        held: while a transaction is committed: gets the entries that come, which are not available before
            `QueueDelivery.offer`; else None.
    """

    def __init__(
        self,
        name: str,
        settings: QueueSettings,
        broker_counters: BrokerCounters,
        clock: Callable[[], float],
        *,
        call_later: CallLater | None = None,
        within: Depth | None = None,
        selector: Callable[[Message], bool] | None = None,
        alternate: AlternateExchange | None = None,
        delete: Callable[[Queue], None] = lambda _: None,
    ) -> None:
        """Make an empty queue.

        Args:
            broker_counters: totals of the broker, which are counted along.
            clock: returns seconds; for times to live and delivery times.
            call_later: calls a function after some seconds; None to leave messages with a delivery time delayed.
            within: counts the messages of all queues, against limits; None for no such limits.
            selector: the messages that it keeps; None for all.
            delete: deletes the queue when it is full, by the policy `SELF_DESTRUCT`.
        """
        self.name = name
        self.settings = settings
        self.contents = Contents(settings, broker_counters, clock, self._on_due, call_later=call_later, within=within)
        self.counters = self.contents.counters
        self.delivery = QueueDelivery(self.contents, settings, broker_counters, alternate)
        self.alternate = alternate
        self.exclusive = settings.exclusive
        self.owner: Hashable = None
        self.redirected: Queue | None = None
        self.redirect_source = False
        self.recorder: Recorder | None = None
        self.reserved = ""
        self.held: list[Entry] | None = None
        self.flow = FlowControl(name, settings, self.counters, self.contents.depth) if settings.flow_stop else None
        self._broker_counters = broker_counters
        self._overflow = overflow_of(name, settings, lambda: delete(self))
        self._sequence_key = settings.sequence_key
        self._selector = _without_traces(settings.excluded_traces, selector)
        self._rerouting = False
        self.filter = self._selector
        self.exclude(settings.excluded)
        durable = DurableCounts(self.counters) if settings.durable else None
        pages = PageCounts(self.counters) if settings.overflow is OverflowPolicy.FLOW_TO_DISK else None
        for observer in (self.flow, durable, pages):
            if observer is not None:
                self.contents.observers.add(observer)

    def exclude(self, container: str) -> None:
        """Keep no messages of the client with this container id; empty to keep those of all clients."""
        selector = self._selector
        if container:

            def keeps(message: Message) -> bool:
                own = message.origin is not None and message.origin.container == container
                return not own and (selector is None or selector(message))

            self.filter = keeps
        else:
            self.filter = selector

    def enqueue(self, message: Message) -> bool:
        """Append a message, or deliver it at once when none waits before it.

        Returns:
            False when the queue is full and refuses the message. A message that the queue's filter leaves out is not
            refused.
        """
        return self._put(message) if self.redirected is None else self.redirected._put(message)

    def enqueue_all(self, messages: Sequence[Message]) -> Mapping[int, str]:
        """As `enqueue`, for messages that come one after the other.

        Returns:
            why messages were refused, by their places in `messages`.
        """
        queue = self if self.redirected is None else self.redirected
        if queue._put_together(messages):
            return {}
        refused: dict[int, str] = {}
        for place, message in enumerate(messages):
            if not queue._put(message):
                refused[place] = queue._overflow.refusal(queue.contents, message)
        return refused

    def refusal(self, message: Message) -> str:
        """Why `enqueue` refused a message, in qpidd's words."""
        queue = self if self.redirected is None else self.redirected
        return queue._overflow.refusal(queue.contents, message)

    def has_room(self, count: int, size: int) -> bool:
        """True if so many messages, of so many bytes together, would be taken, whatever happens to others for that."""
        return self._overflow.has_room(self.contents, count, size)

    def recover(self, message: Message, record: int) -> None:
        """Put a message of a durable queue back that was recorded before the broker started; observers see it."""
        self._add(message, len(message.data), record)

    def _put_together(self, messages: Sequence[Message]) -> bool:
        """Put messages into this queue in one go; False if they have to be looked at one by one."""
        if (
            len(messages) == 1
            or not self.delivery.plain
            or self.filter is not None
            or self.held is not None
            or self._sequence_key
            or not self.contents.add_all(messages)
        ):
            return False
        self.delivery.dispatch()
        return True

    def _put(self, message: Message) -> bool:
        """Put a message into this queue, even if it is redirected; see `enqueue`."""
        if self.filter is not None and not self.filter(message):
            return True
        contents, size = self.contents, len(message.data)
        if not contents.depth.fits(1, size):
            admitted = self._overflow.admit(contents, message)
            if admitted is None:
                self._reroute_given_up()
                return self._drops(message)
            message = admitted
        delivery = self.delivery
        if self._sequence_key:
            self._add(message.with_annotation(self._sequence_key, (contents.position + 1) & 0xFFFFFFFF), size)
        elif (
            delivery.plain
            and not contents.observers.all
            and message.expires_at is None
            and message.deliver_at is None
            and self.held is None
            and not contents.order
            and (consumer := delivery.consumers.next_ready()) is not None
        ):
            self._broker_counters.delivered += 1
            consumer.deliver(contents.pass_through(message, size, None if consumer.presettled else consumer))
        else:
            self._add(message, size)
        if contents.given_up:
            self._reroute_given_up()
        return True

    def _add(self, message: Message, size: int, record: int | None = None) -> None:
        entry = self.contents.add(message, size, record)
        if self.held is not None:
            if entry is not None:
                self.contents.acquire(entry, None)
                self.held.append(entry)
            return
        delivery = self.delivery
        if entry is not None and entry.state is AVAILABLE:
            delivery.announce(entry)
        if delivery.consumers.all:
            delivery.dispatch()

    def _on_due(self, entries: Sequence[Entry]) -> None:
        """The time of some entries has come: they are available."""
        for entry in entries:
            self.delivery.announce(entry)
        self.delivery.dispatch()

    def _drops(self, message: Message) -> bool:
        """A message found no room: False, or True if that is no reason to refuse it."""
        dropped = self._overflow.drops(self.contents, message)
        if dropped:
            self.counters.dropped += 1
            self._broker_counters.dropped += 1
        else:
            self.counters.refused += 1
        return dropped

    def _reroute_given_up(self) -> None:
        """Send what was given up to the alternate exchange."""
        given_up, self.contents.given_up = self.contents.given_up, []
        # Where that routes to this queue again, there is no room either.
        if self.alternate is None or self._rerouting:
            return
        self._rerouting = True
        try:
            for message in given_up:
                self.alternate.reroute(message)
        finally:
            self._rerouting = False


def _without_traces(
    brokers: tuple[str, ...], selector: Callable[[Message], bool] | None
) -> Callable[[Message], bool] | None:
    """Which messages a queue keeps: those that a selector keeps, and that have left none of some brokers by a link."""
    if not brokers:
        return selector

    def keeps(message: Message) -> bool:
        try:
            ids = read_trace(message.data) if not message.message_format else ()
        except DecodeError:
            ids = ()  # whoever takes it decides
        return not any(id in brokers for id in ids) and (selector is None or selector(message))

    return keeps
