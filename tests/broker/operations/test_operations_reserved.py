"""Queues into which one part of the broker alone puts messages: no way leads others into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from broker.operations.rules import state

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import BROKER, Principal

BOB = Principal("bob", "127.0.0.1:5", "AMQP 1.0")


def message(subject: str = "own") -> Message:
    return Message(b"x", None, subject, None, None)


def made() -> Operations:
    operations = Operations(NodeRegistry(queues=["own", "q", "other"]))
    queue(operations, "own").reserved = "the test"
    operations.publisher(BOB).publish(queue(operations, "q"), message())
    return operations


def queue(operations: Operations, name: str) -> Queue:
    found = operations.registry.queue(name)
    assert found is not None
    return found


def bind(operations: Operations) -> None:
    exchange = operations.registry.exchange("amq.topic")
    assert isinstance(exchange, Exchange)
    operations.bind(BOB, exchange, queue(operations, "own"), BindingSpec("#"))


def publish_by_key(operations: Operations) -> None:
    publisher, default = operations.publisher(BOB), operations.registry.exchange("")
    publisher.publish(default, message("other"))
    queue(operations, "other").contents.purge()
    publisher.publish(default, message())


#: What bob tries, and what there is to hear.
WAYS: Mapping[str, Callable[[Operations], object]] = {
    "publish": lambda it: it.publisher(BOB).publish(queue(it, "own"), message()),
    "publish by key": publish_by_key,
    "publish all": lambda it: it.publisher(BOB).publish_all(it.registry.exchange(""), [message(), message()]),
    "publish later": lambda it: it.publisher(BOB).admit(it.registry.exchange(""), message()),
    "bind": bind,
    "move": lambda it: it.move(BOB, queue(it, "q"), queue(it, "own")),
    "redirect": lambda it: it.redirect(BOB, queue(it, "q"), queue(it, "own")),
    "redirect it": lambda it: it.redirect(BOB, queue(it, "own"), queue(it, "q")),
}


@pytest.mark.parametrize("way", WAYS)
def test_others_put_nothing_into_it(way: str) -> None:
    operations = made()
    before = state(operations.registry)
    with pytest.raises((OperationRefused, BindingRefused), match="only the test puts messages into"):
        WAYS[way](operations)
    assert state(operations.registry) == before


def test_rerouting_leaves_such_messages_where_they_are() -> None:
    operations = made()
    q, default = queue(operations, "q"), operations.registry.exchange("")
    operations.publisher(BOB).publish(q, message("other"))
    assert isinstance(default, DefaultExchange)
    assert operations.reroute(BOB, q, default) == 1
    depths = [queue(operations, name).contents.depth.count for name in ("q", "other", "own")]
    assert depths == [1, 1, 0]


def test_the_broker_puts_its_messages_there() -> None:
    operations = made()
    operations.publisher(BROKER).publish(queue(operations, "own"), message())
    assert queue(operations, "own").contents.depth.count == 1
