"""Bindings that clients ask for in the properties of links."""

from __future__ import annotations

import pytest

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.protocols.amqp.bindings import BindingError, BindingRequest, make_binding, read_bindings


def test_requests() -> None:
    assert read_bindings(None) == []
    assert read_bindings([{"exchange": "e", "key": "k"}, {"queue": "q", "arguments": {"x-match": "all"}}]) == [
        BindingRequest("e", None, BindingSpec("k")),
        BindingRequest(None, "q", BindingSpec("", {"x-match": "all"})),
    ]


@pytest.mark.parametrize("value", ["text", ["text"], {"exchange": "e"}, [{"key": 1}], [{"arguments": []}]])
def test_malformed_requests(value: object) -> None:
    with pytest.raises(BindingError) as caught:
        read_bindings(value)
    assert caught.value.condition == "amqp:invalid-field"


def test_bindings_of_a_queue() -> None:
    registry = NodeRegistry(queues=["q"])
    operations = Operations(registry)
    queue, exchange = registry.find("q"), registry.find("amq.direct")
    assert isinstance(exchange, Exchange)
    assert isinstance(queue, Queue)
    request = BindingRequest("amq.direct", None, BindingSpec("k"))
    for _ in range(2):
        make_binding(operations, BROKER, request, queue, queue)
        assert exchange.binding_count == 1
    make_binding(operations, BROKER, BindingRequest("amq.direct", "q", BindingSpec("other")), None, None)
    assert [binding.spec.key for binding in exchange.bindings(queue)] == ["k", "other"]


def test_a_binding_with_the_same_key_and_other_arguments_is_refused() -> None:
    operations = Operations(NodeRegistry(queues=["q"]))
    make_binding(operations, BROKER, BindingRequest("amq.match", "q", BindingSpec("k", {"a": 1})), None, None)
    with pytest.raises(BindingError, match="with the key 'k' and other arguments") as caught:
        make_binding(operations, BROKER, BindingRequest("amq.match", "q", BindingSpec("k", {"a": 2})), None, None)
    assert caught.value.condition == "amqp:not-allowed"


@pytest.mark.parametrize(
    ("request_", "missing"),
    [
        (BindingRequest("gone", None, BindingSpec()), "no exchange 'gone'"),
        (BindingRequest("amq.direct", "gone", BindingSpec()), "no queue 'gone'"),
        (BindingRequest(None, "q", BindingSpec()), "no exchange 'q'"),
    ],
)
def test_missing_nodes(request_: BindingRequest, missing: str) -> None:
    operations = Operations(NodeRegistry(queues=["q"]))
    with pytest.raises(BindingError, match=missing) as caught:
        make_binding(operations, BROKER, request_, operations.registry.find("q"), operations.registry.find("q"))
    assert caught.value.condition == "amqp:not-found"
