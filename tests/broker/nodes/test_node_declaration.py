"""What clients ask of new nodes."""

from __future__ import annotations

import logging

import pytest

from qmf.broker.nodes.last_values import Replacement
from qmf.broker.nodes.node_declaration import (
    NodeDeclaration,
    NodeDeclarationError,
    read_node_declaration,
)
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import (
    ExchangeSettings,
    Lifetime,
    OverflowPolicy,
    QueueLimits,
    QueueSettings,
    Threshold,
)
from qmf.broker.nodes.topics import PolicyKind


def lifetime(policy: str) -> dict[str, object]:
    return {"lifetime-policy": f"amqp:delete-on-{policy}:list"}


@pytest.mark.parametrize(
    ("capabilities", "properties", "expected"),
    [
        ((), {}, NodeDeclaration()),
        (("queue",), {"supported-dist-modes": "move"}, NodeDeclaration()),
        (("topic",), {}, NodeDeclaration(exchange=ExchangeSettings("topic"))),
        ((), {"supported-dist-modes": "copy"}, NodeDeclaration(exchange=ExchangeSettings("topic"))),
        (("topic",), {"exchange-type": "direct"}, NodeDeclaration(exchange=ExchangeSettings("direct"))),
        (
            (),
            {"exclusive": True, "auto-delete": True, "alternate-exchange": "a", "durable": 1},
            NodeDeclaration(queue=QueueSettings(exclusive=True, auto_delete=True, alternate="a", durable=True)),
        ),
        (
            (),
            lifetime("close"),
            NodeDeclaration(queue=QueueSettings(auto_delete=True, lifetime=Lifetime.ON_CLOSE), delete_on_close=True),
        ),
        ((), lifetime("no-links"), NodeDeclaration(queue=QueueSettings(auto_delete=True))),
        (("topic",), lifetime("no-links"), NodeDeclaration(exchange=ExchangeSettings(auto_delete=True))),
        (
            (),
            lifetime("no-links-or-messages"),
            NodeDeclaration(queue=QueueSettings(auto_delete=True, lifetime=Lifetime.UNUSED_AND_EMPTY)),
        ),
    ],
)
def test_capabilities_and_properties(
    capabilities: tuple[str, ...], properties: dict[str, object], expected: NodeDeclaration
) -> None:
    assert read_node_declaration(capabilities, properties) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"qpid.max_count": 5, "qpid.max_size": "100", "qpid.policy_type": "ring"},
            {"limits": QueueLimits(5, 100), "overflow": OverflowPolicy.RING},
        ),
        ({"qpid.max_count": 0, "qpid.max_size": 0}, {"limits": QueueLimits(None, None)}),
        ({"qpid.policy_type": "ring_strict"}, {"overflow": OverflowPolicy.RING_STRICT}),
        ({"qpid.policy_type": "flow_to_disk"}, {"overflow": OverflowPolicy.FLOW_TO_DISK}),
        ({"qpid.policy_type": "self-destruct"}, {"overflow": OverflowPolicy.SELF_DESTRUCT}),
        ({"qpid.paging": True}, {"overflow": OverflowPolicy.FLOW_TO_DISK}),
        ({"qpid.last_value_queue": 1}, {"value_key": "qpid.LVQ_key", "replacement": Replacement.IN_PLACE}),
        (
            {"qpid.last_value_queue_no_browse": 1},
            {"value_key": "qpid.LVQ_key", "replacement": Replacement.IN_PLACE_BROWSED},
        ),
        ({"qpid.last_value_queue": 1, "qpid.LVQ_key": "k"}, {"value_key": "k", "replacement": Replacement.IN_PLACE}),
        ({"qpid.last_value_queue_key": "k"}, {"value_key": "k", "replacement": Replacement.AT_END}),
        (
            {"x-qpid-priorities": 10, "qpid.fairshare": 5, "qpid.fairshare-3": 1},
            {"priorities": 10, "fairshare": 5, "shares": {3: 1}},
        ),
        ({"qpid.auto_delete_timeout": 30}, {"auto_delete": True, "delete_delay": 30}),
        (
            {"qpid.lifetime-policy": "delete-if-unused-and-empty"},
            {"auto_delete": True, "lifetime": Lifetime.UNUSED_AND_EMPTY},
        ),
        (
            {"qpid.group_header_key": "g", "qpid.shared_msg_group": 1, "qpid.group_timestamp": True},
            {"group_key": "g", "group_timestamp": True},
        ),
        (
            {"qpid.flow_stop_count": 8, "qpid.flow_resume_count": 4, "qpid.flow_stop_size": 800},
            {"flow_stop": Threshold(8, 800), "flow_resume": Threshold(4, None)},
        ),
        (
            {"qpid.alert_count": 8, "x-qpid-maximum-message-size": 80, "qpid.alert_count_down": 2},
            {"alert_up": Threshold(8, 80), "alert_down": Threshold(2, None)},
        ),
        ({"qpid.alert_repeat_gap": 5, "qpid.file_count": 8}, {}),
        ({"x-qpid-maximum-delivery-count": 3}, {"max_deliveries": 3}),
        ({"qpid.browse-only": True, "no-local": "true"}, {"browse_only": True, "no_local": True}),
        ({"qpid.filter": "a = 1", "qpid.queue_msg_sequence": "s"}, {"filter": "a = 1", "sequence_key": "s"}),
        ({"qpid.queue_event_generation": 2}, {"event_generation": 2}),
    ],
)
def test_arguments_of_queues(arguments: dict[str, object], expected: dict[str, object]) -> None:
    declared = read_node_declaration(("queue",), arguments, strict=True)
    assert declared.queue == QueueSettings(arguments=arguments, **expected)  # type: ignore[arg-type]


def test_arguments_of_exchanges() -> None:
    arguments = {"qpid.msg_sequence": 1, "qpid.ive": 1}
    assert read_node_declaration(("topic",), arguments, strict=True).exchange == ExchangeSettings(
        sequence=True, initial_value=True, arguments=arguments
    )


@pytest.mark.parametrize(
    ("capabilities", "properties", "fault"),
    [
        (
            ("topic",),
            {"exchange-type": "lamp"},
            "exchange-type: must be direct, topic, fanout, headers, xml, mqtt, not 'lamp'",
        ),
        ((), lifetime("sundays"), "lifetime-policy: this broker has"),
        (("topic",), lifetime("no-messages"), "lifetime-policy: an exchange holds no messages"),
        ((), {"exclusive": 2}, "exclusive: must be true or false, not 2"),
        ((), {"alternate-exchange": 2}, "alternate-exchange: must be text, not 2"),
        ((), {"qpid.max_count": -1}, "qpid.max_count: must be a number from 0, not -1"),
        ((), {"qpid.max_size": "big"}, "qpid.max_size: must be a number"),
        ((), {"qpid.priorities": 11}, "qpid.priorities: must be a number from 0 to 10, not 11"),
        ((), {"qpid.policy_type": "shrink"}, "qpid.policy_type: must be reject, ring"),
        ((), {"qpid.lifetime-policy": "long"}, "qpid.lifetime-policy: must be manual, delete-if-unused"),
        (
            (),
            {"qpid.last_value_queue_key": "k", "qpid.priorities": 2},
            "Cannot specify qpid.last_value_queue_key and qpid.priorities for the same queue",
        ),
        (
            (),
            {"qpid.group_header_key": "k", "qpid.shared_msg_group": 1, "qpid.paging": 1},
            "Cannot specify qpid.group_header_key and qpid.paging for the same queue",
        ),
        ((), {"qpid.fairshare": 2}, "Cannot specify fairshare settings when queue is not enabled for priorities"),
        (
            (),
            {"qpid.priorities": 2, "qpid.fairshare-2": 1},
            "Cannot have fairshare set for priority levels greater than 2",
        ),
        ((), {"qpid.shared_msg_group": 1}, "Can only specify qpid.shared_msg_group if qpid.group_header_key is set"),
        ((), {"qpid.group_header_key": "k"}, "Only shared groups are supported at present"),
        (
            (),
            {"qpid.flow_stop_count": 5, "qpid.flow_resume_count": 6},
            "qpid.flow_resume_count=6 must be less or equal to qpid.flow_stop_count=5",
        ),
        (
            (),
            {"qpid.flow_stop_size": 50, "qpid.max_size": 40},
            "qpid.flow_stop_size=50 must be less than qpid.max_size=40",
        ),
    ],
)
def test_what_cannot_be_is_refused(capabilities: tuple[str, ...], properties: dict[str, object], fault: str) -> None:
    with pytest.raises(NodeDeclarationError) as caught:
        read_node_declaration(capabilities, properties)
    assert fault in str(caught.value)


def test_an_unknown_argument_is_kept_and_logged_or_refused_if_strict(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "qmf.broker"):
        declared = read_node_declaration((), {"qpid.other": 1})
    assert declared.queue.arguments == {"qpid.other": 1}
    assert "property qpid.other of a new node has no effect" in caplog.text
    with pytest.raises(NodeDeclarationError, match=r"qpid\.other: unknown"):
        read_node_declaration((), {"qpid.other": 1}, strict=True)


def test_limits_are_those_of_the_broker_where_none_are_asked_for() -> None:
    default = QueueLimits(100, 1000)
    declared = read_node_declaration((), {"qpid.max_count": 500}, limits=default)
    assert declared.queue.limits == QueueLimits(500, 1000)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (QueueSettings(overflow=OverflowPolicy.FLOW_TO_DISK), "flow-to-disk needs a data directory"),
        (QueueSettings(filter="a ="), r"qpid\.filter: "),
    ],
)
def test_what_this_broker_cannot_have_is_refused(settings: QueueSettings, fault: str) -> None:
    registry = NodeRegistry()
    with pytest.raises(NodeDeclarationError, match=fault):
        registry.create("q", NodeDeclaration(queue=settings))
    assert registry.find("q") is None


def test_without_a_store_nodes_are_durable_by_name_alone_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = NodeRegistry()
    with caplog.at_level(logging.WARNING, "qmf.broker"):
        registry.create("q", NodeDeclaration(queue=QueueSettings(durable=True)))
        registry.create("e", NodeDeclaration(ExchangeSettings("direct", durable=True)))
        registry.topics.create_topic("t", {"exchange": "e", "durable": True})
        registry.topics.create_policy(PolicyKind.QUEUE, "p", {"durable": True})
        registry.create("plain", NodeDeclaration())
    reason = "durable, but gone at a restart, as all here: this broker has no data directory"
    assert caplog.messages == [f"{what}: {reason}" for what in ("queue q", "exchange e", "topic t", "QueuePolicy p")]
