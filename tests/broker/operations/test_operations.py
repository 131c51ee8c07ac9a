"""Operations ask the policy, with what it has to know; what is refused changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from broker.operations.rules import REASON, Rules, state

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import ExchangeSettings, OverflowPolicy, QueueLimits, QueueSettings
from qmf.broker.nodes.topics import PolicyKind
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Action, ObjectType, Operation, OperationRefused
from qmf.broker.operations.principal import BROKER, Principal

BOB = Principal("bob", "127.0.0.1:5", "AMQP 1.0")

EXCHANGE = {"type": "topic", "alternate": "", "durable": False, "autodelete": False}
QUEUE = {
    "alternate": "",
    "durable": False,
    "exclusive": False,
    "autodelete": False,
    "policytype": "reject",
    "maxqueuesize": 100 * 1024 * 1024,
    "maxqueuecount": 0,
}
NEW_QUEUE = {**QUEUE, "paging": False}


def made(policy: Rules | None = None) -> Operations:
    """Two queues, of which one has messages and a binding, an exchange, a topic and a policy."""
    registry = NodeRegistry(queues=["q", "other"])
    registry.create("news", NodeDeclaration(ExchangeSettings("topic")))
    registry.bind(exchange(registry, "amq.topic"), queue(registry, "q"), BindingSpec("k"))
    for text in (b"a", b"b"):
        queue(registry, "q").enqueue(Message(text, None, "", None, None))
    registry.topics.create_topic("named", {"exchange": "news"})
    registry.topics.create_policy(PolicyKind.QUEUE, "^auto", {})
    return Operations(registry, policy or Rules())


def queue(registry: NodeRegistry, name: str) -> Queue:
    found = registry.find(name)
    assert isinstance(found, Queue)
    return found


def exchange(registry: NodeRegistry, name: str) -> Exchange:
    found = registry.find(name)
    assert isinstance(found, Exchange)
    return found


#: What is done, with the last question that the policy is asked for it.
CASES: Mapping[str, tuple[Callable[[Operations], object], Operation]] = {
    "create queue": (
        lambda it: it.create(
            BOB,
            "new",
            NodeDeclaration(
                queue=QueueSettings(
                    durable=True,
                    exclusive=True,
                    auto_delete=True,
                    alternate="amq.fanout",
                    limits=QueueLimits(5, 6),
                    overflow=OverflowPolicy.RING,
                )
            ),
        ),
        Operation(
            Action.CREATE,
            ObjectType.QUEUE,
            "new",
            {
                "alternate": "amq.fanout",
                "durable": True,
                "exclusive": True,
                "autodelete": True,
                "policytype": "ring",
                "maxqueuesize": 6,
                "maxqueuecount": 5,
                "paging": False,
            },
        ),
    ),
    "create exchange": (
        lambda it: it.create(BOB, "new", NodeDeclaration(ExchangeSettings("fanout", durable=True, alternate="news"))),
        Operation(
            Action.CREATE,
            ObjectType.EXCHANGE,
            "new",
            {"type": "fanout", "alternate": "news", "durable": True, "autodelete": False},
        ),
    ),
    "create by policy": (
        lambda it: it.create_by_policy(BOB, "auto.1"),
        Operation(Action.CREATE, ObjectType.QUEUE, "auto.1", {**NEW_QUEUE, "autodelete": True}),
    ),
    "delete queue": (
        lambda it: it.delete(BOB, queue(it.registry, "q")),
        Operation(Action.DELETE, ObjectType.QUEUE, "q", QUEUE),
    ),
    "delete exchange": (
        lambda it: it.delete(BOB, exchange(it.registry, "news")),
        Operation(Action.DELETE, ObjectType.EXCHANGE, "news", {"type": "topic", "alternate": "", "durable": False}),
    ),
    "bind": (
        lambda it: it.bind(BOB, exchange(it.registry, "news"), queue(it.registry, "q"), BindingSpec("key")),
        Operation(Action.BIND, ObjectType.EXCHANGE, "news", {"queuename": "q", "routingkey": "key"}),
    ),
    "unbind": (
        lambda it: it.unbind(BOB, exchange(it.registry, "amq.topic"), queue(it.registry, "q"), "k"),
        Operation(Action.UNBIND, ObjectType.EXCHANGE, "amq.topic", {"queuename": "q", "routingkey": "k"}),
    ),
    "subscribe": (
        lambda it: it.subscribe(BOB, exchange(it.registry, "news"), "sub", QueueSettings(), BindingSpec("#")),
        Operation(Action.CONSUME, ObjectType.QUEUE, "sub"),
    ),
    "purge": (lambda it: it.purge(BOB, queue(it.registry, "q")), Operation(Action.PURGE, ObjectType.QUEUE, "q")),
    "move": (
        lambda it: it.move(BOB, queue(it.registry, "q"), queue(it.registry, "other")),
        Operation(Action.MOVE, ObjectType.QUEUE, "q", {"queuename": "other"}),
    ),
    "reroute": (
        lambda it: it.reroute(BOB, queue(it.registry, "q"), exchange(it.registry, "news")),
        Operation(Action.REROUTE, ObjectType.QUEUE, "q", {"exchangename": "news"}),
    ),
    "redirect": (
        lambda it: it.redirect(BOB, queue(it.registry, "q"), queue(it.registry, "other")),
        Operation(Action.REDIRECT, ObjectType.QUEUE, "q", {"queuename": "other"}),
    ),
    "create topic": (
        lambda it: it.create_topic(BOB, "new", {"exchange": "news"}),
        Operation(Action.CREATE, ObjectType.TOPIC, "new", {"exchange": "news"}),
    ),
    "delete topic": (lambda it: it.delete_topic(BOB, "named"), Operation(Action.DELETE, ObjectType.TOPIC, "named")),
    "create policy": (
        lambda it: it.create_policy(BOB, PolicyKind.TOPIC, "^t", {}),
        Operation(Action.CREATE, ObjectType.TOPIC_POLICY, "^t"),
    ),
    "delete policy": (
        lambda it: it.delete_policy(BOB, PolicyKind.QUEUE, "^auto"),
        Operation(Action.DELETE, ObjectType.QUEUE_POLICY, "^auto"),
    ),
    "set timestamps": (
        lambda it: it.set_timestamps(BOB, receive=True),
        Operation(Action.UPDATE, ObjectType.BROKER),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_asked_for_and_changes_something(name: str) -> None:
    rules = Rules()
    operations, (run, expected) = made(rules), CASES[name]
    before = state(operations.registry)
    run(operations)
    assert rules.asked[-1] == (BOB, expected)
    assert state(operations.registry) != before


@pytest.mark.parametrize("name", CASES)
def test_a_refused_operation_changes_nothing(name: str) -> None:
    run, expected = CASES[name]
    operations = made(Rules(lambda _, operation: operation == expected))
    before = state(operations.registry)
    with pytest.raises(OperationRefused) as caught:
        run(operations)
    assert (caught.value.principal, caught.value.operation, caught.value.reason) == (BOB, expected, REASON)
    assert str(caught.value) == f"user 'bob' may not {expected}: {REASON}"
    assert state(operations.registry) == before


def test_ending_a_redirection_is_asked_for() -> None:
    rules = Rules()
    operations = made(rules)
    q = queue(operations.registry, "q")
    operations.redirect(BOB, q, queue(operations.registry, "other"))
    operations.end_redirection(BOB, q)
    assert rules.asked[-1] == (BOB, Operation(Action.REDIRECT, ObjectType.QUEUE, "q", {"queuename": "other"}))
    assert q.redirected is None


def test_a_subscription_is_asked_for_in_full_before_anything_is_made() -> None:
    rules = Rules()
    operations = made(rules)
    operations.subscribe(BOB, exchange(operations.registry, "news"), "sub", QueueSettings(), BindingSpec("#"))
    assert rules.questions() == [
        "access exchange 'news'",
        "create queue 'sub'",
        "bind exchange 'news'",
        "consume queue 'sub'",
    ]


def test_a_subscription_that_cannot_be_bound_leaves_no_queue() -> None:
    operations = made()
    headers = exchange(operations.registry, "amq.match")
    with pytest.raises(BindingRefused):
        operations.subscribe(BOB, headers, "sub", QueueSettings(), BindingSpec("k", {"x-match": "some"}))
    assert operations.registry.find("sub") is None


def test_consuming_and_browsing_are_different_rights() -> None:
    rules = Rules()
    operations = made(rules)
    operations.consume(BOB, queue(operations.registry, "q"))
    operations.browse(BOB, queue(operations.registry, "q"))
    assert rules.questions() == ["access queue 'q'", "consume queue 'q'", "access queue 'q'", "browse queue 'q'"]
    operations.ask_access(BOB, queue(operations.registry, "q"))
    operations.ask_access(BOB, exchange(operations.registry, "news"))
    assert [operation.properties for _, operation in rules.asked] == [QUEUE, EXCHANGE]


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ((), ["access exchange 'none'", "access queue 'none'"]),
        (("queue",), ["access queue 'none'"]),
        (("topic", "shared"), ["access exchange 'none'"]),
    ],
)
def test_an_address_is_asked_for_before_it_is_looked_up(capabilities: tuple[str, ...], expected: list[str]) -> None:
    rules = Rules()
    operations = made(rules)
    assert operations.resolve(BOB, "none", capabilities) is None
    assert rules.questions() == expected
    operations.policy = Rules(lambda *_: True)
    with pytest.raises(OperationRefused):
        operations.resolve(BOB, "none", capabilities)


def test_what_belongs_to_a_link_is_deleted_without_asking() -> None:
    rules = Rules(lambda *_: True)
    operations = made(rules)
    operations.delete_owned(BOB, queue(operations.registry, "q"))
    assert (rules.questions(), operations.registry.find("q")) == ([], None)


@pytest.mark.parametrize(
    ("ask", "operation", "text"),
    [
        (
            lambda it: it.ask_connection(BOB),
            Operation(Action.CREATE, ObjectType.CONNECTION, properties={"host": "127.0.0.1"}),
            "create connection",
        ),
        (
            lambda it: it.ask_method(BOB, "close", "org.apache.qpid.broker", "connection"),
            Operation(
                Action.ACCESS,
                ObjectType.METHOD,
                "close",
                {"schemapackage": "org.apache.qpid.broker", "schemaclass": "connection"},
            ),
            "access method 'close'",
        ),
        (
            lambda it: it.ask_query(BOB, "queue", "queue"),
            Operation(Action.ACCESS, ObjectType.QUERY, "queue", {"schemaclass": "queue"}),
            "access query 'queue'",
        ),
        (lambda it: it.timestamps(BOB), Operation(Action.ACCESS, ObjectType.BROKER), "access broker"),
    ],
)
def test_connections_and_management_are_asked_for(
    ask: Callable[[Operations], object], operation: Operation, text: str
) -> None:
    rules = Rules(lambda *_: True)
    with pytest.raises(OperationRefused, match=f"^user 'bob' may not {text}: "):
        ask(made(rules))
    assert rules.asked == [(BOB, operation)]


def test_a_principal_is_made_from_a_client() -> None:
    class Client:
        info = ClientInfo("10.0.0.1:99", user="bob", protocol="AMQP 1.0")

    client = Client()
    principal = Principal.of(client)
    assert principal == Principal("bob", "10.0.0.1:99", "AMQP 1.0")
    assert principal.client is client
    assert [str(one) for one in (principal, Principal(address="10.0.0.1:99"), BROKER)] == [
        "user 'bob'",
        "10.0.0.1:99",
        "the broker",
    ]
