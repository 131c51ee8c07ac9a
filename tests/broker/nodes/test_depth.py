"""Limits of all queues together."""

from __future__ import annotations

import pytest
from broker.nodes.parts import RecordingConsumer, drain, message, put, waiting

from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import RoutingResult
from qmf.broker.nodes.settings import OverflowPolicy, QueueLimits, QueueSettings
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.transactions.transaction import Transaction, TransactionFull


def registry(count: int | None = 4, size: int | None = None) -> NodeRegistry:
    return NodeRegistry(total_limits=QueueLimits(count, size))


def queue(nodes: NodeRegistry, name: str, overflow: OverflowPolicy = OverflowPolicy.REJECT) -> Queue:
    return nodes.declare_queue(name, QueueSettings(overflow=overflow))


def test_a_message_that_no_memory_is_left_for_is_refused_until_there_is_room() -> None:
    nodes = registry()
    one, two = queue(nodes, "one"), queue(nodes, "two")
    put(one, "abc")
    put(two, "d")
    assert nodes.publish(two, message("e")) is RoutingResult.QUEUE_FULL
    assert nodes.refusal == (
        "Maximum depth of all queues exceeded: current=[count: 4, size: 4], max=[count: 4], "
        "increment=[count: 1, size: 1]"
    )
    one.contents.purge(1)
    put(two, "e")
    assert not one.enqueue(message("f"))
    nodes.delete_queue(two)
    put(one, "fg")


def test_bytes_are_limited() -> None:
    nodes = registry(None, 10)
    one = queue(nodes, "one")
    assert one.enqueue(message("a" * 8))
    assert not one.enqueue(message("b" * 3))
    assert one.enqueue(message("b" * 2))


def test_a_ring_gives_up_its_own_messages_only_and_only_where_that_helps() -> None:
    nodes = registry()
    ring, other = queue(nodes, "ring", OverflowPolicy.RING), queue(nodes, "other")
    put(ring, "ab")
    put(other, "xy")
    put(ring, "cd")
    assert (waiting(ring), waiting(other)) == (["c", "d"], ["x", "y"])
    ring.contents.purge()
    put(other, "zu")
    assert not ring.enqueue(message("e"))
    assert waiting(other) == ["x", "y", "z", "u"]


def test_a_queue_that_deletes_itself_when_it_is_full_is_not_deleted_for_others() -> None:
    nodes = registry()
    bomb, other = queue(nodes, "bomb", OverflowPolicy.SELF_DESTRUCT), queue(nodes, "other")
    put(other, "abcd")
    assert not bomb.enqueue(message("e"))
    assert nodes.find("bomb") is bomb


def test_what_consumers_have_counts_until_it_is_settled() -> None:
    nodes = registry(2)
    one = queue(nodes, "one")
    consumer = RecordingConsumer()
    one.delivery.add_consumer(consumer)
    put(one, "ab")
    assert not one.enqueue(message("c"))
    one.delivery.accept(consumer.entries[0])
    put(one, "c")
    assert nodes.depth is not None
    for entry in consumer.entries:
        one.delivery.accept(entry)
    assert (nodes.depth.count, nodes.depth.size) == (0, 0)


@pytest.mark.parametrize("settled", [False, True])
def test_nothing_is_counted_twice(settled: bool) -> None:
    nodes = registry()
    one = queue(nodes, "one")
    one.delivery.add_consumer(RecordingConsumer(credit=1, presettled=settled))
    put(one, "abc")
    assert nodes.depth is not None
    assert nodes.depth.count == one.contents.depth.count
    drain(one)
    assert nodes.depth.count == one.contents.depth.count == (0 if settled else 1)


def test_a_transaction_that_has_no_room_in_all_queues_together_takes_no_effect() -> None:
    nodes = registry()
    one, two = queue(nodes, "one"), queue(nodes, "two")
    put(one, "a")
    transaction, publisher = Transaction(b"1"), Operations(nodes).publisher(BROKER)
    for node, text in ((one, "b"), (two, "c"), (one, "d"), (two, "e")):
        transaction.add(publisher.admit(node, message(text)), None)
    with pytest.raises(TransactionFull, match="the queues of the broker are full"):
        transaction.commit(nodes, lambda _: None)
    assert (waiting(one), waiting(two)) == (["a"], [])


def test_a_queue_that_flows_to_disk_does_not_count() -> None:
    nodes = registry(1)

    class Recording:
        """Stands for a store, without which no queue flows to disk."""

    nodes.recorder = Recording()  # type: ignore[assignment]
    paging = queue(nodes, "paging", OverflowPolicy.FLOW_TO_DISK)
    put(paging, "abc")
    assert nodes.depth is not None
    assert nodes.depth.count == 0
