"""Exchanges without AMQP."""

from __future__ import annotations

import pytest
from broker.nodes.parts import plain

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import (
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    MqttExchange,
    TopicExchange,
)
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.codec import Message as CodecMessage


def message(subject: str = "", to: str | None = None, **headers: object) -> Message:
    return Message(b"data", to, subject, CodecMessage(application_properties=headers), None)


def routed(exchange: Exchange, message: Message) -> list[Queue]:
    return [binding.queue for binding in exchange.route(message)]


@pytest.mark.parametrize(
    ("exchange", "match", "message", "expected"),
    [
        (DirectExchange("x"), BindingSpec("a.b"), message("a.b"), True),
        (DirectExchange("x"), BindingSpec("a.#"), message("a.b"), False),
        (DirectExchange("x"), BindingSpec(), message(), True),
        (TopicExchange("x"), BindingSpec("a.#"), message("a.b"), True),
        (TopicExchange("x"), BindingSpec("a.*"), message("a"), False),
        (MqttExchange("x"), BindingSpec("a/#"), message("a"), True),
        (MqttExchange("x"), BindingSpec("a/+"), message("a.b/c"), False),
        (MqttExchange("x"), BindingSpec("+/c"), message("a.b/c"), True),
        (MqttExchange("x"), BindingSpec("a/*"), message("a/b"), False),
        (MqttExchange("x"), BindingSpec("#"), message("$SYS/x"), False),
        (FanoutExchange("x"), BindingSpec("whatever"), message("a"), True),
        (HeadersExchange("x"), BindingSpec(), message("a"), True),
        (HeadersExchange("x"), BindingSpec(headers={"a": 1, "b": 2}), message(a=1, b=2, c=3), True),
        (HeadersExchange("x"), BindingSpec(headers={"a": 1, "b": 2}), message(a=1), False),
        (HeadersExchange("x"), BindingSpec(headers={"a": 1, "b": 2, "x-match": "all"}), message(a=1, b=3), False),
        (HeadersExchange("x"), BindingSpec(headers={"a": 1, "b": 2, "x-match": "any"}), message(b=2), True),
        (HeadersExchange("x"), BindingSpec(headers={"a": 1, "x-match": "any"}), message(b=2), False),
        (HeadersExchange("x"), BindingSpec(headers={"a": None}), message(a="anything"), True),
        (HeadersExchange("x"), BindingSpec(headers={"a": None}), message(b=1), False),
        (HeadersExchange("x"), BindingSpec(headers={"a": True}), message(a=1), False),
        (HeadersExchange("x"), BindingSpec(headers={"a": "1"}), message(a=1), False),
    ],
)
def test_routing(exchange: Exchange, match: BindingSpec, message: Message, expected: bool) -> None:
    it = plain()
    exchange.bind(it, match)
    assert routed(exchange, message) == ([it] if expected else [])
    exchange.unbind(it, "no such key")
    exchange.unbind(it, match.key)
    exchange.unbind(it, match.key)
    assert routed(exchange, message) == []


@pytest.mark.parametrize("kind", [DirectExchange, TopicExchange, FanoutExchange, HeadersExchange])
def test_every_queue_once(kind: type[Exchange]) -> None:
    exchange = kind("x")
    queues = [plain(str(number)) for number in range(5)]
    for it in queues:
        exchange.bind(it, BindingSpec("key"))
    assert sorted(it.name for it in routed(exchange, message("key"))) == ["0", "1", "2", "3", "4"]
    exchange.unbind(queues[2], "key")
    assert sorted(it.name for it in routed(exchange, message("key"))) == ["0", "1", "3", "4"]


@pytest.mark.parametrize(
    ("exchange", "specs", "matching", "other"),
    [
        (DirectExchange("x"), [BindingSpec("a"), BindingSpec("b")], [message("a"), message("b")], message("c")),
        (TopicExchange("x"), [BindingSpec("a.#"), BindingSpec("*.b")], [message("a.b"), message("c.b")], message("c")),
        (
            HeadersExchange("x"),
            [BindingSpec("1", {"a": 1}), BindingSpec("2", {"b": 2})],
            [message(a=1), message(b=2), message(a=1, b=2)],
            message(b=1),
        ),
    ],
)
def test_several_bindings_of_a_queue(
    exchange: Exchange, specs: list[BindingSpec], matching: list[Message], other: Message
) -> None:
    it = plain()
    assert [exchange.bind(it, spec) for spec in [*specs, specs[0]]] == [True, True, False]
    assert (exchange.binding_count, [one.spec for one in exchange.bindings(it)]) == (2, specs)
    assert [routed(exchange, message) for message in [*matching, other]] == [*[[it]] * len(matching), []]
    for left, spec in enumerate(specs):
        assert exchange.binding_count == len(specs) - left
        exchange.unbind(it, spec.key)
    assert exchange.binding_count == 0
    assert not any(exchange.route(message) for message in matching)


@pytest.mark.parametrize("key", ["", "#/a", "a#", "##", "a+", "+a/b", "a/#/b"])
def test_a_key_that_is_no_topic_filter_is_refused(key: str) -> None:
    with pytest.raises(BindingRefused, match="no topic filter"):
        MqttExchange("x").bind(plain(), BindingSpec(key))
