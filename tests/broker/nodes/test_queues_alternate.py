"""What queues send to their alternate exchange."""

from __future__ import annotations

from broker.nodes.parts import RecordingConsumer, depth_of, encoded

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import OverflowPolicy, QueueLimits, QueueSettings


def message(text: str) -> Message:
    return read_message(encoded(text, text), 0.0)


def queues(registry: NodeRegistry, **settings: object) -> tuple[Queue, Queue]:
    """A queue with an alternate exchange, and the one that gets what goes there."""
    left = registry.declare_queue("left")
    fanout = registry.find("amq.fanout")
    assert isinstance(fanout, Exchange)
    registry.bind(fanout, left, BindingSpec())
    return registry.declare_queue("q", QueueSettings(alternate="amq.fanout", **settings)), left  # type: ignore[arg-type]


def delivered(it: Queue, count: int) -> RecordingConsumer:
    consumer = RecordingConsumer(credit=count)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    return consumer


def subjects(it: Queue) -> list[str]:
    return [entry.message.subject for entry in it.contents.waiting()]


def test_rejected_messages() -> None:
    registry = NodeRegistry()
    it, left = queues(registry)
    for text in "ab":
        registry.publish(it, message(text))
    consumer = delivered(it, 2)
    it.delivery.reject(consumer.entries[0])
    it.delivery.accept(consumer.entries[1])
    assert (subjects(left), it.counters.rejected, depth_of(it)) == (["a"], 1, (0, 0))


def test_messages_that_failed_too_often() -> None:
    registry = NodeRegistry()
    it, left = queues(registry, max_deliveries=2)
    registry.publish(it, message("a"))
    consumer = delivered(it, 9)
    for _ in range(5):
        it.delivery.release(consumer.entries[-1:], failed=True)
    assert (len(consumer.entries), subjects(left), it.counters.rejected) == (2, ["a"], 1)


def test_what_a_ring_gives_up() -> None:
    registry = NodeRegistry()
    it, left = queues(registry, limits=QueueLimits(2), overflow=OverflowPolicy.RING)
    for text in "abcd":
        registry.publish(it, message(text))
    assert (subjects(it), subjects(left)) == (["c", "d"], ["a", "b"])


def test_orphaned_messages_and_those_of_others_are_counted() -> None:
    registry = NodeRegistry()
    it, left = queues(registry)
    for text in "ab":
        registry.publish(it, message(text))
    delivered(it, 1)
    registry.delete_queue(it)
    assert (subjects(left), registry.counters.abandoned_to_alternate) == (["a", "b"], 2)
    registry.delete_queue(left)
    assert registry.counters.abandoned == 2


def test_rings_that_lead_to_each_other_lose_the_oldest() -> None:
    registry = NodeRegistry()
    limits = QueueLimits(1)
    settings = QueueSettings(alternate="amq.fanout", limits=limits, overflow=OverflowPolicy.RING)
    fanout = registry.find("amq.fanout")
    assert isinstance(fanout, Exchange)
    one, two = (registry.declare_queue(name, settings) for name in ("one", "two"))
    for it in (one, two):
        registry.bind(fanout, it, BindingSpec())
    for text in "abc":
        registry.publish(fanout, message(text))
    assert (one.contents.depth.count, two.contents.depth.count) == (1, 1)
