"""Topics and policies: names for exchanges, and nodes that are created by pattern."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclaration, NodeDeclarationError
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import ExchangeSettings, Lifetime
from qmf.broker.nodes.topics import PolicyKind, TopicError


@pytest.fixture
def registry() -> NodeRegistry:
    return NodeRegistry()


def test_a_topic_is_a_name_of_its_exchange(registry: NodeRegistry) -> None:
    topic = registry.topics.create_topic("news", {"exchange": "amq.fanout", "qpid.max_count": 5})
    assert registry.resolve("news") is registry.find("amq.fanout")
    assert registry.find("news") is None
    assert (topic.settings.limits.count, topic.has_limits, topic.durable) == (5, True, False)
    assert topic.properties == {"qpid.max_count": 5}
    assert registry.topics.delete_topic("news")
    assert not registry.topics.delete_topic("news")
    assert registry.resolve("news") is None


def test_a_topic_takes_precedence_over_a_queue(registry: NodeRegistry) -> None:
    registry.declare_queue("news")
    registry.topics.create_topic("news", {"exchange": "amq.fanout"})
    assert registry.resolve("news") is registry.find("amq.fanout")


def test_a_topic_goes_with_its_exchange(registry: NodeRegistry) -> None:
    exchange = registry.create("own", NodeDeclaration(exchange=ExchangeSettings("fanout")))
    for name in ("one", "two"):
        registry.topics.create_topic(name, {"exchange": "own"})
    registry.topics.create_topic("three", {"exchange": "amq.fanout"})
    registry.delete(exchange)
    assert [topic.name for topic in registry.topics.topics] == ["three"]


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({}, "Exchange must be specified."),
        ({"exchange": "none"}, "not-found: Exchange not found: none"),
        ({"exchange": "amq.topic"}, "A topic named old already exists"),
    ],
)
def test_a_topic_that_cannot_be(registry: NodeRegistry, properties: Mapping[str, object], error: str) -> None:
    registry.topics.create_topic("old", {"exchange": "amq.topic"})
    with pytest.raises(TopicError, match=f"^{error}$"):
        registry.topics.create_topic("old", properties)


@pytest.mark.parametrize(
    "properties",
    [{"qpid.max_count": "many"}, {"durable": "x"}, {"qpid.priorities": 3, "qpid.last_value_queue_key": "k"}],
)
def test_settings_of_a_topic_are_checked(registry: NodeRegistry, properties: Mapping[str, object]) -> None:
    with pytest.raises(NodeDeclarationError):
        registry.topics.create_topic("news", {"exchange": "amq.topic", **properties})
    with pytest.raises(NodeDeclarationError, match="colour: unknown"):
        registry.topics.create_topic("news", {"exchange": "amq.topic", "colour": 1}, strict=True)
    assert not registry.topics.topics


def test_queues_are_created_by_the_longest_pattern(registry: NodeRegistry) -> None:
    registry.topics.create_policy(PolicyKind.QUEUE, "t.*", {"qpid.max_count": 1})
    registry.topics.create_policy(PolicyKind.QUEUE, "temp-.*", {"qpid.max_count": 2, "auto-delete": False})
    registry.topics.create_policy(PolicyKind.TOPIC, "news-.+", {})
    one, two = (registry.topics.create_by_policy(name, None) for name in ("tea", "temp-1"))
    assert isinstance(one, Queue)
    assert isinstance(two, Queue)
    assert (one.settings.limits.count, two.settings.limits.count) == (1, 2)
    assert (one.settings.auto_delete, one.settings.lifetime) == (True, Lifetime.UNUSED_AND_EMPTY)
    assert not two.settings.auto_delete
    assert registry.topics.create_by_policy("queue", None) is None
    assert registry.topics.create_by_policy("news-", None) is None
    # As with qpidd, any part of an address may match, unless the pattern says something else.
    other = registry.topics.create_by_policy("my tea", None)
    assert isinstance(other, Queue)


def test_topics_are_created_by_a_pattern(registry: NodeRegistry) -> None:
    properties = {"exchange-type": "fanout", "qpid.max_count": 7, "qpid.msg_sequence": 1}
    registry.topics.create_policy(PolicyKind.TOPIC, "news-.*", properties)
    made = registry.topics.create_by_policy("news-1", None)
    assert isinstance(made, Exchange)
    assert (made.kind, made.settings.sequence, made.settings.auto_delete) == ("fanout", True, True)
    topic = registry.topics.get("news-1")
    assert topic is not None
    assert topic.exchange is made
    assert topic.settings.limits.count == 7


@pytest.mark.parametrize(
    ("properties", "auto_delete"),
    [({"qpid.lifetime-policy": "manual"}, False), ({"auto-delete": False}, False), ({"auto-delete": True}, True)],
)
def test_exchanges_of_a_policy_may_stay(
    registry: NodeRegistry, properties: Mapping[str, object], auto_delete: bool
) -> None:
    policy = registry.topics.create_policy(PolicyKind.TOPIC, "n.*", properties)
    assert policy.declaration.exchange is not None
    assert policy.declaration.exchange.auto_delete is auto_delete


def test_policies_that_cannot_be(registry: NodeRegistry) -> None:
    topics = registry.topics
    topics.create_policy(PolicyKind.QUEUE, "t.*", {})
    with pytest.raises(TopicError, match=r"An object of type QueuePolicy with key t\.\* already exists"):
        topics.create_policy(PolicyKind.QUEUE, "t.*", {})
    with pytest.raises(
        TopicError, match=r"Cannot create object of type TopicPolicy .* of type QueuePolicy already exists"
    ):
        topics.create_policy(PolicyKind.TOPIC, "t.*", {})
    with pytest.raises(TopicError, match=r"'\(' is no regular expression"):
        topics.create_policy(PolicyKind.TOPIC, "(", {})
    for properties in ({"durable": "x"}, {"qpid.max_count": "x"}):
        for kind in PolicyKind:
            with pytest.raises(NodeDeclarationError):
                topics.create_policy(kind, "x", properties)
    with pytest.raises(TopicError, match="is of type QueuePolicy not TopicPolicy"):
        topics.delete_policy(PolicyKind.TOPIC, "t.*")
    topics.delete_policy(PolicyKind.QUEUE, "t.*")
    with pytest.raises(TopicError, match="not-found: no QueuePolicy has the pattern"):
        topics.delete_policy(PolicyKind.QUEUE, "t.*")
    assert not topics.policies
