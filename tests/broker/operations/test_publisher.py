"""Publishing asks the policy as seldom as it can."""

from __future__ import annotations

import gc
import weakref

import pytest
from broker.operations.rules import Rules

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import KeyCheck, OperationRefused
from qmf.broker.operations.principal import Principal

BOB = Principal("bob", "127.0.0.1:5", "AMQP 1.0")


def message(to: str | None = None, subject: str = "k") -> Message:
    return Message(b"x", to, subject, None, None)


def made(rules: Rules, *queues: str) -> Operations:
    return Operations(NodeRegistry(queues=queues), rules)


def queue(operations: Operations, name: str) -> Queue:
    found = operations.registry.find(name)
    assert isinstance(found, Queue)
    return found


def test_a_node_is_asked_for_once() -> None:
    rules = Rules()
    operations = made(rules, "q")
    q, topic = queue(operations, "q"), operations.registry.find("amq.topic")
    publisher = operations.publisher(BOB)
    for _ in range(2):
        for node in (q, topic):
            publisher.publish(node, message())
            publisher.publish_all(node, [message(), message()])
    assert [(str(operation), operation.properties.get("routingkey")) for _, operation in rules.asked] == [
        ("access queue 'q'", None),
        ("publish exchange ''", "q"),
        ("access exchange 'amq.topic'", None),
        ("publish exchange 'amq.topic'", None),
    ]
    assert len(q.contents) == 6


def test_with_rules_about_keys_each_message_to_an_exchange_is_asked_for() -> None:
    rules = Rules(lambda _, operation: operation.properties.get("routingkey") == "secret", has_key_rules=True)
    operations = made(rules, "q")
    topic = operations.registry.find("amq.topic")
    publisher = operations.publisher(BOB)
    publisher.publish(topic, message())
    with pytest.raises(OperationRefused):
        publisher.publish(topic, message(subject="secret"))
    with pytest.raises(OperationRefused):
        publisher.publish_all(topic, [message(subject="secret"), message(subject="secret")])
    publisher.publish(topic, message())
    assert [operation.properties["routingkey"] for _, operation in rules.asked[1:]] == ["k", "secret", "secret", "k"]
    rules.questions()
    for _ in range(2):
        publisher.publish(queue(operations, "q"), message())
    assert rules.questions() == ["access queue 'q'", "publish exchange ''"]


def test_keys_that_a_quick_check_allows_are_not_asked_for() -> None:
    class Checked(Rules):
        def key_check(self, principal: Principal, exchange: str) -> KeyCheck:
            assert (principal, exchange) == (BOB, "amq.topic")
            return KeyCheck("k".__eq__, ("free.", "a."))

    rules = Checked(lambda _, operation: operation.properties.get("routingkey") == "secret", has_key_rules=True)
    operations = made(rules, "q")
    topic = operations.registry.find("amq.topic")
    publisher = operations.publisher(BOB)
    for subject in ("k", "other", "free.1", "k", "a.b.c", "other", "free.$x", "free"):
        publisher.publish(topic, message(subject=subject))
        publisher.publish_all(topic, [message(subject=subject)])
    with pytest.raises(OperationRefused):
        publisher.admit(topic, message(subject="secret"))
    keys = [operation.properties["routingkey"] for _, operation in rules.asked[1:]]
    assert keys == [key for key in ("other", "other", "free.$x", "free") for _ in range(2)] + ["secret"]
    operations.policy = Rules(lambda *_: True, has_key_rules=True)
    with pytest.raises(OperationRefused):
        publisher.publish(topic, message(subject="k"))


def test_the_relay_asks_for_addresses_and_does_not_tell_what_is_there() -> None:
    rules = Rules()
    operations = made(rules, "q")
    publisher = operations.publisher(BOB, relay=True)
    for _ in range(2):
        publisher.publish(queue(operations, "q"), message("q"))
    assert rules.questions() == [
        "access exchange 'q'",
        "access queue 'q'",
        "access queue 'q'",
        "publish exchange ''",
    ]
    for _ in range(2):
        publisher.publish(None, message("none"))
    assert rules.questions() == ["access exchange 'none'", "access queue 'none'"] * 2
    operations.policy = Rules(lambda *_: True)
    for node, address in ((None, "none"), (queue(operations, "q"), "q")):
        with pytest.raises(OperationRefused):
            publisher.publish(node, message(address))
    assert len(queue(operations, "q").contents) == 2


@pytest.mark.parametrize("relay", [True, False])
def test_another_policy_is_asked_again(relay: bool) -> None:
    operations = made(Rules(), "q")
    publisher = operations.publisher(BOB, relay=relay)
    publisher.publish(queue(operations, "q"), message("q"))
    operations.policy = Rules(lambda *_: True)
    for _ in range(2):
        with pytest.raises(OperationRefused):
            publisher.publish(queue(operations, "q"), message("q"))
        with pytest.raises(OperationRefused):
            publisher.publish_all(queue(operations, "q"), [message("q")])
        with pytest.raises(OperationRefused):
            publisher.admit(queue(operations, "q"), message("q"))
    operations.policy = Rules()
    publisher.publish(queue(operations, "q"), message("q"))
    assert len(queue(operations, "q").contents) == 2


def test_a_right_ends_with_its_node() -> None:
    rules = Rules()
    operations = made(rules, "q", "other")
    publisher = operations.publisher(BOB, relay=True)
    publisher.publish(queue(operations, "q"), message("q"))
    gone = weakref.ref(queue(operations, "q"))
    operations.delete(BOB, queue(operations, "q"))
    publisher.publish(queue(operations, "other"), message("other"))
    gc.collect()
    assert gone() is None
    operations.create(BOB, "q", NodeDeclaration())
    rules.questions()
    publisher.publish(queue(operations, "q"), message("q"))
    assert "publish exchange ''" in rules.questions()


def test_what_was_admitted_is_published_though_the_policy_is_another_one() -> None:
    operations = made(Rules(), "q")
    publication = operations.publisher(BOB).admit(queue(operations, "q"), message())
    operations.policy = Rules(lambda *_: True)
    publication.publish()
    assert len(queue(operations, "q").contents) == 1
