"""The registry of nodes, without AMQP."""

from __future__ import annotations

import pytest

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import DirectExchange, Exchange, TopicExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import PREDECLARED_EXCHANGES, AmbiguousNode, NameInUse, NodeRegistry
from qmf.broker.nodes.router import RoutingResult
from qmf.broker.nodes.settings import SUBSCRIPTION_LIMITS, QueueLimits
from qmf.codec import Message as CodecMessage


def message(subject: str = "", to: str | None = None, **headers: object) -> Message:
    return Message(b"data", to, subject, CodecMessage(application_properties=headers), None)


def test_all_exchanges_of_qmf_are_there() -> None:
    registry = NodeRegistry(domains=["site"])
    for name, kind in PREDECLARED_EXCHANGES:
        assert isinstance(registry.find(name), kind)
    assert isinstance(registry.find("qmf.site.topic"), TopicExchange)
    assert isinstance(registry.find("qmf.site.direct"), DirectExchange)
    assert registry.find("nowhere") is None
    assert registry.find("qmf.default.topic/key") is None


def test_names_are_used_once_by_nodes_of_a_kind(caplog: pytest.LogCaptureFixture) -> None:
    registry = NodeRegistry(queues=["mine"])
    with pytest.raises(NameInUse):
        registry.declare_queue("mine")
    exchange = registry.exchange("amq.topic")
    assert exchange is not None
    assert registry.resolve("amq.topic") is exchange
    queue = registry.declare_queue("amq.topic")
    assert "node amq.topic is ambiguous" in caplog.text
    assert (registry.queue("amq.topic"), registry.exchange("amq.topic")) == (queue, exchange)
    assert (registry.resolve("amq.topic", Queue), registry.resolve("amq.topic", Exchange)) == (queue, exchange)
    with pytest.raises(AmbiguousNode, match=r"'amq\.topic' is ambiguous: there are a queue and an exchange"):
        registry.resolve("amq.topic")
    assert registry.relay_target("amq.topic") is queue
    registry.delete_queue(queue)
    assert registry.has(exchange)
    assert not registry.has(queue)
    assert registry.relay_target("amq.topic") is exchange
    it = registry.declare_queue("new")
    registry.delete_queue(it)
    registry.delete_queue(it)
    assert registry.find("new") is None


def test_publishing() -> None:
    registry = NodeRegistry(queues=["mine"], limits=QueueLimits(count=1))
    mine = registry.find("mine")
    assert isinstance(mine, Queue)
    assert registry.publish(mine, message("any")) is RoutingResult.ROUTED
    assert registry.publish(registry.find(""), message("mine")) is RoutingResult.QUEUE_FULL
    assert registry.publish(registry.find(""), message("nobody")) is RoutingResult.DISCARDED
    assert registry.publish(None, message("x", to="nowhere")) is RoutingResult.DISCARDED
    topic = registry.find("amq.topic")
    assert isinstance(topic, TopicExchange)
    assert registry.publish(topic, message("x")) is RoutingResult.DISCARDED
    topic.bind(registry.declare_queue("sub"), BindingSpec("#"))
    assert registry.publish(topic, message("x")) is RoutingResult.ROUTED
    counters = registry.counters
    assert (counters.received, counters.discarded, counters.rejected) == (6, 3, 1)


def test_what_is_published_is_counted() -> None:
    registry = NodeRegistry(queues=["mine"], limits=QueueLimits(count=2))
    topic = registry.find("amq.topic")
    assert isinstance(topic, TopicExchange)
    for number in range(3):
        registry.bind(topic, registry.declare_queue(str(number)), BindingSpec("x"))
    for subject in ("x", "x", "y"):
        registry.publish(topic, message(subject))
    counts = topic.counters
    assert (counts.received, counts.routed, counts.discarded) == (3, 6, 1)
    assert (counts.received_bytes, counts.routed_bytes, counts.discarded_bytes) == (12, 24, 4)
    mine = registry.find("mine")
    assert isinstance(mine, Queue)
    registry.publish(mine, message())
    for subject in ("mine", "mine", "nobody"):
        registry.publish(registry.default_exchange, message(subject))
    assert (
        mine.counters.enqueues,
        mine.counters.by_name,
        registry.default_binding(mine).matched,
        mine.counters.refused,
    ) == (
        2,
        1,
        1,
        1,
    )
    counts = registry.default_exchange.counters
    assert (counts.received, counts.routed, counts.discarded) == (3, 1, 2)
    assert (topic.binding_count, registry.default_exchange.binding_count) == (3, 4)


def test_what_deleted_queues_counted_is_kept() -> None:
    registry = NodeRegistry()
    it = registry.declare_queue("q")
    it.enqueue(message())
    it.enqueue(message())
    it.contents.purge(1)
    registry.delete_queue(it)
    registry.delete_queue(it)
    assert (registry.deleted_queues.enqueues, registry.deleted_queues.purged, registry.counters.abandoned) == (
        2,
        1,
        1,
    )


def test_queues_of_subscriptions_have_limits_of_their_own_where_the_broker_has_the_usual_ones() -> None:
    for limits, expected in (
        (None, SUBSCRIPTION_LIMITS),
        (QueueLimits(), SUBSCRIPTION_LIMITS),
        (QueueLimits(count=5), QueueLimits(5, SUBSCRIPTION_LIMITS.size)),
        (QueueLimits(50_000, 1 << 30), QueueLimits(50_000, 1 << 30)),
    ):
        assert NodeRegistry(limits=limits).subscriptions.lasting.limits == expected
