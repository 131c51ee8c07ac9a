"""The nodes of links, as their termini describe them."""

from __future__ import annotations

from qmf.broker.nodes.node_declaration import DELETE_ON_CLOSE, NodeDeclaration, read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.protocols.amqp.link_nodes import describe_node
from qmf.bus.engine.values import DescribedProperty


def test_nodes_are_described_by_the_names_of_the_request() -> None:
    registry = NodeRegistry()
    declared = read_node_declaration((), {"qpid.max_count": 5, "auto-delete": True, "alternate-exchange": "amq.fanout"})
    queue = registry.create("q", declared)
    assert isinstance(queue, Queue)
    capabilities, properties = describe_node(queue, declared, temporary=True)
    assert capabilities == ("queue",)
    assert properties == {
        "supported-dist-modes": "move",
        "exclusive": False,
        "auto-delete": True,
        "alternate-exchange": "amq.fanout",
        "qpid.max_count": 5,
        "lifetime-policy": DescribedProperty(DELETE_ON_CLOSE, []),
    }
    exchange = registry.find("amq.direct")
    assert exchange is not None
    capabilities, properties = describe_node(exchange, NodeDeclaration(), temporary=False)
    assert (capabilities, properties) == (("topic",), {"supported-dist-modes": "copy", "exchange-type": "direct"})
