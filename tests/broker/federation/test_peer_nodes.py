"""Nodes of other brokers, as a terminus names them."""

from __future__ import annotations

import pytest

from qmf.broker.federation.definitions import LinkDefinition, read_link
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_nodes import ARTEMIS, RABBITMQ, remote_relay, remote_source, remote_target
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import BROKER
from qmf.bus.engine.values import Durability, ExpiryPolicy


def incoming(source: str, **properties: object) -> LinkDefinition:
    wanted = {"domain": "d", "source": source, "target": "here", **properties}
    return read_link(LinkDirection.INCOMING, "link", wanted, BROKER, strict=True)


def outgoing(target: str, **properties: object) -> LinkDefinition:
    wanted = {"domain": "d", "source": "here", "target": target, **properties}
    return read_link(LinkDirection.OUTGOING, "link", wanted, BROKER, strict=True)


@pytest.mark.parametrize(
    ("definition", "address"),
    [
        (incoming("q"), "/amq/queue/q"),
        (incoming("a/b"), "/amq/queue/a%2Fb"),
        (incoming("amq.topic"), "/exchange/amq.topic/#"),
        (incoming("news", peer_type="topic", key="a/b.*"), "/exchange/news/a%2Fb.*"),
        (incoming("/exchange/news/k", peer_type="topic"), "/exchange/news/k"),
        (incoming("amq.q", peer_type="queue"), "/amq/queue/amq.q"),
    ],
)
def test_sources_of_rabbitmq(definition: LinkDefinition, address: str) -> None:
    assert remote_source(definition, RABBITMQ).address == address


@pytest.mark.parametrize(
    ("definition", "address"),
    [
        (outgoing("q"), "/queue/q"),
        (outgoing("amq.topic"), "/exchange/amq.topic"),
        (outgoing("news", peer_type="topic"), "/exchange/news"),
        (outgoing("/amq/queue/q"), "/amq/queue/q"),
    ],
)
def test_targets_of_rabbitmq(definition: LinkDefinition, address: str) -> None:
    assert remote_target(definition, RABBITMQ).address == address


@pytest.mark.parametrize(
    ("definition", "product", "reason"),
    [
        (incoming("q", selector="a = 1"), RABBITMQ, "selector: RabbitMQ has none"),
        (incoming("q", key="k"), RABBITMQ, "key: RabbitMQ chooses no messages"),
        (incoming("q", key="k.*"), ARTEMIS, "key 'k.*': Artemis has no wildcards"),
    ],
)
def test_what_a_broker_does_not_have(definition: LinkDefinition, product: str, reason: str) -> None:
    with pytest.raises(NodeUnusable) as refused:
        remote_source(definition, product)
    assert str(refused.value).startswith(reason)


def test_artemis_is_told_what_a_node_is() -> None:
    queue = remote_source(incoming("q", key="it's", selector="a = 1", durable=True), ARTEMIS)
    assert (queue.capabilities, queue.durability) == (("queue",), Durability.NONE)
    assert [item.value for item in queue.filters] == ["(a = 1) AND JMSType = 'it''s'"]
    topic = remote_source(incoming("q", peer_type="topic", durable=True), ARTEMIS)
    assert (topic.capabilities, topic.durability) == (("topic",), Durability.UNSETTLED_STATE)
    assert (topic.expiry, topic.filters) == (ExpiryPolicy.NEVER, ())
    assert remote_target(outgoing("q"), ARTEMIS).capabilities == ("queue",)
    assert remote_target(outgoing("q", peer_type="topic"), ARTEMIS).capabilities == ("topic",)


def test_other_brokers_know_what_a_name_is() -> None:
    assert remote_target(outgoing("q", peer_type="topic"), "qpid-cpp").capabilities == ()
    assert remote_source(incoming("amq.topic", key="k.*"), "").filters[0].name == "legacy-amqp-topic-binding"


def test_a_type_is_one_of_two() -> None:
    with pytest.raises(ForwardingError, match="peer_type: must be queue or topic, not 'exchange'"):
        incoming("q", peer_type="exchange")


def test_a_relay_needs_a_target_whose_messages_name_their_nodes() -> None:
    assert remote_relay(ARTEMIS).address is None
    with pytest.raises(NodeUnusable, match="RabbitMQ has no target"):
        remote_relay(RABBITMQ)
