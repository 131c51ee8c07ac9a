"""Which bindings a dynamic route asks for, and what brokers ask each other for."""

from __future__ import annotations

import pytest
from broker.federation.routed import RoutedBroker
from broker.nodes.parts import plain

from qmf.broker.federation.dynamic_bindings import needed_bindings
from qmf.broker.nodes.bindings import BIND, HELLO, REORIGIN, UNBIND, BindingRefused, BindingSpec, origins_of
from qmf.broker.nodes.exchanges import Exchange, HeadersExchange, TopicExchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.principal import BROKER
from qmf.console.aio import Client
from qmf.models.broker import console as remote


def bound(exchange: Exchange, queue: Queue, key: str, *path: str, **arguments: object) -> None:
    """Bind a queue as another broker asks for it, through these brokers; without any for a client of this one."""
    peer = {"qpid.fed.op": BIND, "qpid.fed.tags": ",".join(path), "qpid.fed.origin": path[0]} if path else {}
    assert exchange.bind(queue, BindingSpec(key, {**arguments, **peer}))


def asked(exchange: Exchange, peer: str = "peer") -> dict[tuple[str, str], tuple[str, ...]]:
    return {key: item.tags for key, item in needed_bindings(exchange, "own", peer).items()}


def test_own_bindings_begin_here() -> None:
    exchange = TopicExchange("x")
    for name in ("one", "two"):
        bound(exchange, plain(name), "k")
    assert asked(exchange) == {("k", "own"): ("own",)}


def test_what_others_ask_for_is_passed_on_by_the_shortest_way_to_each_origin() -> None:
    exchange = TopicExchange("x")
    bound(exchange, plain("one"), "k", "a", "b", "c")
    bound(exchange, plain("two"), "k", "a", "d")
    bound(exchange, plain("three"), "k", "e")
    assert asked(exchange) == {("k", "a"): ("a", "d", "own"), ("k", "e"): ("e", "own")}


def test_a_broker_is_not_asked_for_what_came_through_it() -> None:
    exchange = TopicExchange("x")
    bound(exchange, plain("one"), "k", "a", "peer")
    bound(exchange, plain("two"), "k", "peer")
    bound(exchange, plain("three"), "k", "a", "own", "b")
    assert asked(exchange) == {}


def test_bindings_by_headers_are_told_apart_by_their_arguments() -> None:
    exchange = HeadersExchange("x")
    bound(exchange, plain("one"), "k", colour="red")
    bound(exchange, plain("two"), "k", colour="blue")
    bound(exchange, plain("three"), "k", colour="blue")
    found = needed_bindings(exchange, "own", "peer")
    assert sorted(str(item.arguments["colour"]) for item in found.values()) == ["blue", "red"]
    assert all(key.startswith("k#") for key, _ in found)
    assert {item.properties(UNBIND)["qpid.fed.op"] for item in found.values()} == {"U"}


def test_the_agents_of_brokers_are_asked_through_no_route() -> None:
    for name, passed in (("qmf.default.direct", False), ("qmf.default.topic", True)):
        exchange = TopicExchange(name)
        bound(exchange, plain("agent"), "broker")
        assert bool(asked(exchange)) is passed


async def test_origins_come_and_go() -> None:
    async with RoutedBroker(management=None, queues=["q"]) as broker:
        exchange, queue = broker.exchange("amq.topic"), broker.queue("q")

        def ask(operation: str, origin: str, *path: str) -> None:
            arguments = {"qpid.fed.op": operation, "qpid.fed.origin": origin, "qpid.fed.tags": ",".join(path)}
            broker.operations.bind_for_peer(BROKER, exchange, queue, BindingSpec("k", arguments))

        ask(BIND, "a", "a")
        ask(BIND, "b", "b", "c")
        ask(BIND, "b", "b")
        binding = exchange.binding(queue, "k")
        assert binding is not None
        assert origins_of(binding) == {"a": ("a",), "b": ("b",)}
        for operation in (REORIGIN, HELLO):
            ask(operation, "a")
        ask(UNBIND, "a")
        ask(UNBIND, "none")
        assert origins_of(binding) == {"b": ("b",)}
        ask(UNBIND, "b")
        assert exchange.binding(queue, "k") is None
        ask(UNBIND, "b")
        with pytest.raises(BindingRefused, match=r"qpid\.fed\.op: must be B, U, R or H, not 'X'"):
            ask("X", "a")


async def test_consoles_ask_by_the_arguments_of_bindings() -> None:
    async with RoutedBroker(queues=["q"]) as broker, Client(broker.url, settle=1.0) as client:
        (it,) = await client.objects(remote.Broker)
        peer = {"qpid.fed.origin": "a", "qpid.fed.tags": "a"}
        await it.create("binding", "amq.topic/q/a/b", {"qpid.fed.op": "B", **peer}, True)
        assert [item.spec.key for item in broker.exchange("amq.topic").all_bindings()] == ["a/b"]
        await it.create("binding", "amq.topic/q/a/b", {"qpid.fed.op": "U", **peer}, True)
        assert not broker.exchange("amq.topic").all_bindings()
