"""Messages that are published, delivered or accepted together: the same happens as one by one."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest
from broker.nodes.parts import Clock, RecordingConsumer, depth_of, message, text_of

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.alerts import Alerts, Crossing
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.last_values import Replacement
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node, RoutingResult
from qmf.broker.nodes.settings import OverflowPolicy, QueueLimits, QueueSettings, Threshold

#: Queues of all kinds, by what is special.
SETTINGS = {
    "plain": QueueSettings(),
    "reject": QueueSettings(limits=QueueLimits(12, 200)),
    "reject bytes": QueueSettings(limits=QueueLimits(None, 60)),
    "ring": QueueSettings(overflow=OverflowPolicy.RING, limits=QueueLimits(7, None)),
    "priorities": QueueSettings(priorities=3),
    "last values": QueueSettings(value_key="key", replacement=Replacement.IN_PLACE),
    "groups": QueueSettings(group_key="key"),
    "flow": QueueSettings(flow_stop=Threshold(9, None), flow_resume=Threshold(4, None)),
    "excluded": QueueSettings(excluded="somebody"),
}


class Broker:
    """A broker with a queue that is bound to some exchanges, and its consumers."""

    def __init__(self, settings: QueueSettings, consumers: int, *, presettled: bool) -> None:
        self.clock = Clock()
        self.registry = NodeRegistry(clock=self.clock)
        self.queue = self.registry.declare_queue("q", settings)
        other = self.registry.declare_queue("other", QueueSettings(limits=QueueLimits(25, None)))
        for name in ("amq.fanout", "amq.direct", "amq.topic"):
            exchange = self.registry.find(name)
            assert isinstance(exchange, Exchange)
            self.registry.bind(exchange, self.queue, BindingSpec("key"))
            self.registry.bind(exchange, other, BindingSpec("key"))
        self.crossings: list[Crossing] = []
        self.queue.contents.observers.add(
            Alerts(Threshold(6, None), Threshold(), self.queue.contents.depth, self.crossings.append)
        )
        self.consumers = [RecordingConsumer(0, presettled) for _ in range(consumers)]
        self.other = RecordingConsumer(0)
        for consumer in self.consumers:
            self.queue.delivery.add_consumer(consumer)
        other.delivery.add_consumer(self.other)
        self.refused: list[str] = []
        self.accepted = [0] * consumers

    def publish(self, node: str, messages: list[Message], *, together: bool) -> None:
        target: Node | None = self.registry.find(node)
        if together:
            refused = self.registry.publish_all(target, messages)
            self.refused += [text_of(messages[place]) for place in sorted(refused)]
        else:
            for each in messages:
                if self.registry.publish(target, each) is RoutingResult.QUEUE_FULL:
                    self.refused.append(text_of(each))

    def give(self, credit: list[int]) -> None:
        for consumer, more in zip(self.consumers, credit, strict=True):
            consumer.credit += more
        self.queue.delivery.dispatch()

    def accept(self, counts: list[int], *, together: bool) -> None:
        for number, (consumer, count) in enumerate(zip(self.consumers, counts, strict=True)):
            begin = self.accepted[number]
            entries = consumer.entries[begin : begin + count]
            self.accepted[number] += len(entries)
            if together:
                self.queue.delivery.accept_all(entries)
            else:
                for entry in entries:
                    self.queue.delivery.accept(entry)
        self.queue.delivery.dispatch()

    def state(self) -> dict[str, Any]:
        def of(queue: Queue) -> list[Any]:
            waiting = [text_of(entry.message)[:4] for entry in queue.contents.waiting()]
            return [attrs.asdict(queue.counters), depth_of(queue), queue.contents.acquired_count, waiting]

        exchanges = [self.registry.find(name) for name in ("amq.fanout", "amq.direct", "amq.topic")]
        queues = [self.registry.find("q"), self.registry.find("other")]
        flow = self.queue.flow
        return {
            "broker": attrs.asdict(self.registry.counters),
            "queues": [of(queue) for queue in queues if isinstance(queue, Queue)],
            "exchanges": [attrs.asdict(each.counters) for each in exchanges if isinstance(each, Exchange)],
            "matched": [each.matched for one in exchanges if isinstance(one, Exchange) for each in one.all_bindings()],
            "delivered": [[entry.position for entry in consumer.entries] for consumer in self.consumers],
            "refused": self.refused,
            "crossings": [crossing.upward for crossing in self.crossings],
            "stopped": flow is not None and flow.stopped,
        }


def messages(chance: random.Random, number: int, subject: str) -> list[Message]:
    """Some messages with the same subject."""
    found = []
    for place in range(chance.choice((1, 2, 3, 9))):
        expires = chance.choice((None, None, None, 50.0)) if chance.random() < 0.3 else None
        text = f"{number:02}{place:02}" + "." * chance.randrange(6)
        one = message(text, expires, priority=chance.randrange(8), key=chance.choice("ab"))
        one.subject = subject
        one.origin = chance.choice((None, ClientInfo("address", "somebody")))
        found.append(one)
    return found


@pytest.mark.parametrize("presettled", [False, True])
@pytest.mark.parametrize("consumers", [0, 1, 3])
@pytest.mark.parametrize("kind", SETTINGS)
def test_the_same_as_one_by_one(kind: str, consumers: int, *, presettled: bool) -> None:
    for seed in range(12):
        chance = random.Random(f"{kind}{seed}")
        together, single = (Broker(SETTINGS[kind], consumers, presettled=presettled) for _ in range(2))
        for number in range(25):
            node = chance.choice(("q", "amq.fanout", "amq.direct", "amq.topic", "nowhere", "amq.match"))
            sent = messages(chance, number, chance.choice(("key", "key", "nobody")))
            credit = [chance.choice((0, 1, 5)) for _ in range(consumers)]
            accepted = [chance.choice((0, 2, 5)) for _ in range(consumers)]
            for broker in (together, single):
                broker.publish(node, sent, together=broker is together)
                broker.give(credit)
                broker.accept(accepted, together=broker is together)
                broker.clock.now += 1
            assert together.state() == single.state(), (seed, number)


def test_messages_are_given_to_consumers_in_turn() -> None:
    broker = Broker(QueueSettings(), 3, presettled=False)
    broker.give([2, 0, 9])
    sent = [message(str(number)) for number in range(6)]
    broker.publish("q", sent, together=True)
    assert [consumer.delivered for consumer in broker.consumers] == [["0", "2"], [], ["1", "3", "4", "5"]]
    broker.give([9, 9, 9])
    broker.publish("q", sent[:2], together=True)
    assert [consumer.delivered[-1] for consumer in broker.consumers] == ["0", "1", "5"]


def test_what_a_consumer_does_not_take_stays() -> None:
    class Slow(RecordingConsumer):
        """Takes less than it had room for."""

        def deliver_all(self, entries: Any) -> int:
            return super().deliver_all(entries[:2] if len(self.entries) < 2 else ())

    broker = Broker(QueueSettings(), 0, presettled=False)
    slow = Slow(100)
    broker.queue.delivery.add_consumer(slow)
    broker.publish("q", [message(str(number)) for number in range(5)], together=True)
    assert slow.delivered == ["0", "1"]
    assert [text_of(entry.message) for entry in broker.queue.contents.waiting()] == ["2", "3", "4"]
    assert (depth_of(broker.queue), broker.queue.contents.acquired_count) == ((5, 5), 2)
