"""How messages are published to nodes: routed by exchanges, put on queues, counted."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence

from qmf.broker.nodes.bindings import Binding
from qmf.broker.nodes.counters import BrokerCounters, ExchangeCounters
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.flow_control import FlowControl
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue

log = logging.getLogger("qmf.broker")


class RoutingResult(enum.Enum):
    """What became of a published message."""

    ROUTED = "routed"  #: all queues that it was for have it
    DISCARDED = "discarded"  #: nothing matched; like qpidd, the broker accepts such a message from its sender
    QUEUE_FULL = "queue full"  #: a queue that it was for refused it; others may have it


_ROUTED, _DISCARDED, _QUEUE_FULL = RoutingResult

#: What an address names.
Node = Exchange | Queue | DefaultExchange


class Router:
    """Publishes messages; the base of `NodeRegistry`.

    Attributes:
        counters: totals of the broker.
        flows: flow control of the queues that got the messages published last, or refused them; of those that have any.
        refusal: why the message published last was refused; only after `RoutingResult.QUEUE_FULL`.
    """

    def __init__(self, counters: BrokerCounters) -> None:
        self.counters = counters
        self.flows: Sequence[FlowControl] = ()
        self.refusal = ""

    @property
    def stopped(self) -> FlowControl | None:
        """The flow control of a queue that got the message published last, and is too long; None if none is."""
        return next((flow for flow in self.flows if flow.stopped), None)

    def targets(self, node: Node | None, message: Message) -> Sequence[Queue]:
        """The queues that a message to `node` would be put into now."""
        if node is None:
            return ()
        if isinstance(node, Queue):
            return (node,)
        return [binding.queue for binding in node.route(message)]

    def publish(self, node: Node | None, message: Message) -> RoutingResult:
        """Route a message that was sent to `node`; None means that its address names nothing."""
        self.counters.received += 1
        self.flows = ()
        if node is None:
            self.counters.discarded += 1
            log.debug("discarded a message to %r, which is neither an exchange nor a queue", message.to)
            return _DISCARDED
        if isinstance(node, Queue):
            if node.flow is not None:
                self.flows = (node.flow,)
            if node.enqueue(message):
                node.counters.by_name += 1
                return _ROUTED
            self.refusal = node.refusal(message)
            self.counters.rejected += 1
            return _QUEUE_FULL
        result = self._publish_to_exchange(node, message)
        if result is _ROUTED:
            return result
        if result is _QUEUE_FULL:
            self.counters.rejected += 1
        else:
            self.counters.discarded += 1
        return result

    def publish_all(self, node: Node | None, messages: Sequence[Message]) -> Mapping[int, str]:
        """Publish messages that came one after the other, and that have the same subject unless `node` is a queue.

        Returns:
            why messages were refused, by their places in `messages`.
        """
        if len(messages) == 1:
            return {0: self.refusal} if self.publish(node, messages[0]) is _QUEUE_FULL else {}
        self.flows = () if not isinstance(node, Queue) or node.flow is None else (node.flow,)
        if isinstance(node, Queue):
            self.counters.received += len(messages)
            refused = node.enqueue_all(messages)
            node.counters.by_name += len(messages) - len(refused)
            self.counters.rejected += len(refused)
            return refused
        found: Sequence[Binding] = ()
        if node is not None and node.by_subject and not node.prepares:
            found = node.route(messages[0])
        if found:
            assert node is not None
            return self._publish_to_bindings(node.counters, found, messages)
        flows: set[FlowControl] = set()
        one_by_one: dict[int, str] = {}
        for place, message in enumerate(messages):
            if self.publish(node, message) is _QUEUE_FULL:
                one_by_one[place] = self.refusal
            flows.update(self.flows)
        self.flows = tuple(flows)
        return one_by_one

    def _publish_to_bindings(
        self, counters: ExchangeCounters, found: Sequence[Binding], messages: Sequence[Message]
    ) -> Mapping[int, str]:
        """Publish messages to all queues of some bindings; see `publish_all`."""
        count = len(messages)
        size = sum([len(message.data) for message in messages])
        self.counters.received += count
        counters.received += count
        counters.received_bytes += size
        copies = len(found) - 1
        counters.copies += copies * count
        counters.copies_bytes += copies * size
        reasons: dict[int, str] = {}
        refusals: dict[int, int] = {}
        for binding in found:
            queue = binding.queue
            refused = queue.enqueue_all(messages)
            binding.matched += count - len(refused)
            if refused:
                reasons.update(refused)
                for place in refused:
                    refusals[place] = refusals.get(place, 0) + 1
            if queue.flow is not None:
                self.flows = (*self.flows, queue.flow)
        for place, times in refusals.items():
            size = len(messages[place].data)
            lost = min(times, copies)
            counters.copies -= lost
            counters.copies_bytes -= lost * size
            if times > copies:
                counters.discarded += 1
                counters.discarded_bytes += size
        self.counters.rejected += len(reasons)
        return reasons

    def _publish_to_exchange(self, exchange: Exchange | DefaultExchange, message: Message) -> RoutingResult:
        counters, size = exchange.counters, len(message.data)
        counters.received += 1
        counters.received_bytes += size
        if not isinstance(exchange, DefaultExchange) and exchange.prepares:
            message = exchange.prepare(message)
        found = exchange.route(message)
        copies = 0
        for binding in found:
            queue = binding.queue
            if queue.flow is not None:
                self.flows = (*self.flows, queue.flow)
            if queue.enqueue(message):
                binding.matched += 1
                copies += 1
            else:
                self.refusal = queue.refusal(message)
        if copies:
            if copies > 1:
                counters.copies += copies - 1
                counters.copies_bytes += (copies - 1) * size
            return _ROUTED if copies == len(found) else _QUEUE_FULL
        counters.discarded += 1
        counters.discarded_bytes += size
        if found:
            return _QUEUE_FULL
        if exchange.alternate is not None:
            return self._publish_to_alternate(exchange.alternate, message)
        return _DISCARDED

    def _publish_to_alternate(self, exchange: Exchange, message: Message) -> RoutingResult:
        """Publish what another exchange could not route; the alternate exchange of this one is not used then."""
        alternate, exchange.alternate = exchange.alternate, None
        try:
            return self._publish_to_exchange(exchange, message)
        finally:
            exchange.alternate = alternate

    def send_to_alternate(self, exchange: Exchange, message: Message) -> bool:
        """Publish a message that a queue does not keep; False if no queue has it."""
        return self._publish_to_exchange(exchange, message) is _ROUTED

    @staticmethod
    def _send_again(source: Queue, taken: Sequence[Entry], send: Callable[[Message], bool]) -> int:
        sent = 0
        for entry in taken:
            if send(entry.message):
                source.contents.remove(entry)
                sent += 1
        source.delivery.put_back(taken)
        return sent

    def move(
        self, source: Queue, target: Queue, count: int = 0, matches: Callable[[Message], bool] | None = None
    ) -> int:
        """Move available messages from one queue to another; what the other refuses stays. Returns their number.

        Args:
            source, target: from where to where.
            count: how many at most; 0 for all.
            matches: chooses the messages; None for all.
        """
        return self._send_again(source, source.contents.take(count, matches), target.enqueue)

    def reroute(
        self,
        queue: Queue,
        exchange: Exchange | DefaultExchange,
        count: int = 0,
        matches: Callable[[Message], bool] | None = None,
    ) -> int:
        """Publish available messages of a queue to an exchange, as new ones; what is refused stays.

        Returns:
            their number; other arguments as of `move`.
        """

        def send(message: Message) -> bool:
            return self.publish(exchange, message) is not RoutingResult.QUEUE_FULL

        moved = self._send_again(queue, queue.contents.take(count, matches), send)
        queue.counters.rerouted += moved
        return moved
