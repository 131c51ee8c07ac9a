"""What clients ask of new nodes."""

from __future__ import annotations

import logging

import pytest

from qmf.broker.nodes.exchanges import DirectExchange, TopicExchange
from qmf.broker.nodes.node_declaration import (
    DELETE_IF_UNUSED,
    DELETE_ON_CLOSE,
    NodeDeclaration,
    NodeDeclarationError,
    describe_node,
    read_node_declaration,
)
from qmf.broker.nodes.queues import OverflowPolicy, Queue, QueueLimits
from qmf.broker.nodes.registry import NodeRegistry
from qmf.bus.engine.values import DescribedProperty


@pytest.mark.parametrize(
    ("capabilities", "properties", "options"),
    [
        ((), {}, NodeDeclaration()),
        (("queue",), {"supported-dist-modes": "move"}, NodeDeclaration()),
        (("topic",), {}, NodeDeclaration(exchange=TopicExchange)),
        ((), {"supported-dist-modes": "copy"}, NodeDeclaration(exchange=TopicExchange)),
        (("topic",), {"exchange-type": "direct"}, NodeDeclaration(exchange=DirectExchange)),
        ((), {"exclusive": True, "auto-delete": True}, NodeDeclaration(exclusive=True, auto_delete=True)),
        ((), {"lifetime-policy": DescribedProperty(DELETE_ON_CLOSE, [])}, NodeDeclaration(delete_on_close=True)),
        ((), {"lifetime-policy": DescribedProperty(DELETE_IF_UNUSED, [])}, NodeDeclaration(auto_delete=True)),
        (
            (),
            {"qpid.max_count": 5, "qpid.max_size": 100, "qpid.policy_type": "ring"},
            NodeDeclaration(max_count=5, max_size=100, overflow=OverflowPolicy.DROP_OLDEST),
        ),
    ],
)
def test_options(capabilities: tuple[str, ...], properties: dict[str, object], options: NodeDeclaration) -> None:
    assert read_node_declaration(capabilities, properties) == options


@pytest.mark.parametrize(
    ("capabilities", "properties", "fault"),
    [
        (("durable",), {}, "durable: this broker keeps nothing"),
        ((), {"durable": True}, "durable: this broker keeps nothing"),
        ((), {"alternate-exchange": "amq.fanout"}, "alternate-exchange: this broker has none"),
        (("topic",), {"exchange-type": "xml"}, "exchange-type: must be direct, topic, fanout, headers, not 'xml'"),
        (
            (),
            {"lifetime-policy": DescribedProperty("amqp:delete-on-no-messages:list", [])},
            "lifetime-policy: this broker has",
        ),
        ((), {"exclusive": 1}, "exclusive: must be true or false, not 1"),
        ((), {"qpid.max_count": 0}, "qpid.max_count: must be a number above 0, not 0"),
        ((), {"qpid.max_size": "big"}, "qpid.max_size: must be a number"),
        ((), {"qpid.policy_type": "flow_to_disk"}, "qpid.policy_type: must be ring or reject"),
    ],
)
def test_what_cannot_be_is_refused(capabilities: tuple[str, ...], properties: dict[str, object], fault: str) -> None:
    with pytest.raises(NodeDeclarationError) as caught:
        read_node_declaration(capabilities, properties)
    assert fault in str(caught.value)


def test_properties_without_effect_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "qmf.broker"):
        assert read_node_declaration((), {"qpid.other": 1}) == NodeDeclaration()
    assert "property qpid.other of a new node has no effect" in caplog.text


def test_limits_are_those_of_the_broker_at_most() -> None:
    default = QueueLimits(100, 1000)
    assert NodeDeclaration(max_count=5).limits(default) == QueueLimits(5, 1000)
    assert NodeDeclaration(max_count=500, max_size=5000).limits(default) == default


def test_nodes_are_described_by_the_names_of_the_request() -> None:
    registry = NodeRegistry()
    options = NodeDeclaration(max_count=5, auto_delete=True)
    queue = registry.create("q", options)
    assert isinstance(queue, Queue)
    capabilities, properties = describe_node(queue, options, temporary=True)
    assert capabilities == ("queue",)
    assert properties == {
        "supported-dist-modes": "move",
        "exclusive": False,
        "auto-delete": True,
        "qpid.max_count": 5,
        "lifetime-policy": DescribedProperty(DELETE_ON_CLOSE, []),
    }
    capabilities, properties = describe_node(registry.find("amq.direct"), NodeDeclaration(), temporary=False)
    assert (capabilities, properties) == (("topic",), {"supported-dist-modes": "copy", "exchange-type": "direct"})
