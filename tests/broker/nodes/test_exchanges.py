"""Exchanges, filters and the registry, without AMQP."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.links.filters import binding_from_filters
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.exchanges import (
    BindingSpec,
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    TopicExchange,
)
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.queues import OverflowPolicy, Queue, QueueLimits
from qmf.broker.nodes.registry import PREDECLARED_EXCHANGES, NameInUse, NodeRegistry, RoutingResult
from qmf.bus.engine.values import Filter
from qmf.codec import Message as CodecMessage
from qmf.codec import Section, decode_message, encode_message
from qmf.errors import DecodeError


def queue(name: str = "q") -> Queue:
    return Queue(name, QueueLimits(), OverflowPolicy.DROP_OLDEST, BrokerCounters(), lambda: 0.0)


def message(subject: str = "", to: str | None = None, **headers: object) -> Message:
    return Message(b"data", to, subject, CodecMessage(application_properties=headers), None)


@pytest.mark.parametrize(
    ("exchange", "match", "message", "expected"),
    [
        (DirectExchange("x"), BindingSpec("a.b"), message("a.b"), True),
        (DirectExchange("x"), BindingSpec("a.#"), message("a.b"), False),
        (DirectExchange("x"), BindingSpec(), message(), True),
        (TopicExchange("x"), BindingSpec("a.#"), message("a.b"), True),
        (TopicExchange("x"), BindingSpec("a.*"), message("a"), False),
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
def test_who_gets_what(exchange: Exchange, match: BindingSpec, message: Message, expected: bool) -> None:
    it = queue()
    exchange.bind(it, match)
    assert list(exchange.route(message)) == ([it] if expected else [])
    exchange.unbind(it)
    exchange.unbind(it)
    assert list(exchange.route(message)) == []


@pytest.mark.parametrize("kind", [DirectExchange, TopicExchange, FanoutExchange, HeadersExchange])
def test_every_queue_once(kind: type[Exchange]) -> None:
    exchange = kind("x")
    queues = [queue(str(number)) for number in range(5)]
    for it in queues:
        exchange.bind(it, BindingSpec("key"))
    assert sorted(it.name for it in exchange.route(message("key"))) == ["0", "1", "2", "3", "4"]
    exchange.unbind(queues[2])
    assert sorted(it.name for it in exchange.route(message("key"))) == ["0", "1", "3", "4"]


@pytest.mark.parametrize(
    ("descriptor", "value", "match"),
    [
        ("apache.org:legacy-amqp-topic-binding:string", "a.#", BindingSpec("a.#")),
        (0x0000468C00000001, "a.#", BindingSpec("a.#")),
        ("apache.org:legacy-amqp-direct-binding:string", "a", BindingSpec("a")),
        (0x0000468C00000000, "a", BindingSpec("a")),
        ("apache.org:legacy-amqp-headers-binding:map", {"a": b"x", "b": 1}, BindingSpec(headers={"a": "x", "b": 1})),
        (0x0000468C00000002, {"a": b"\xff"}, BindingSpec(headers={"a": b"\xff"})),
    ],
)
def test_filters_that_are_known(descriptor: str | int, value: object, match: BindingSpec) -> None:
    entry = Filter("any-name", descriptor, value)
    other = Filter("other", "apache.org:selector-filter:string", "a = 1")
    assert binding_from_filters([other, entry], "topic") == (match, (entry,))


@pytest.mark.parametrize(
    ("kind", "key", "value"), [("topic", "#", "#"), ("direct", "", ""), ("headers", "", {"x-match": "all"})]
)
def test_without_a_known_filter_there_is_the_default_of_the_exchange(kind: str, key: str, value: object) -> None:
    for filters in ([], [Filter("s", "apache.org:selector-filter:string", "a = 1")]):
        spec, (applied,) = binding_from_filters(filters, kind)
        assert spec == BindingSpec(key)
        assert applied.value == value
    assert binding_from_filters([], "fanout") == (BindingSpec(), ())


@pytest.mark.parametrize(
    ("descriptor", "value"),
    [
        ("apache.org:legacy-amqp-topic-binding:string", 7),
        (0x0000468C00000000, None),
        ("apache.org:legacy-amqp-headers-binding:map", "a"),
        ("apache.org:legacy-amqp-headers-binding:map", {1: 2}),
    ],
)
def test_filters_with_wrong_values_are_refused(descriptor: str | int, value: object) -> None:
    with pytest.raises(ValueError, match="filter name"):
        binding_from_filters([Filter("name", descriptor, value)], "topic")


def test_all_exchanges_of_qmf_are_there() -> None:
    registry = NodeRegistry(domains=["site"])
    for name, kind in PREDECLARED_EXCHANGES:
        assert isinstance(registry.find(name), kind)
    assert isinstance(registry.find("qmf.site.topic"), TopicExchange)
    assert isinstance(registry.find("qmf.site.direct"), DirectExchange)
    assert registry.find("nowhere") is None
    assert registry.find("qmf.default.topic/key") is None


def test_names_are_used_once() -> None:
    registry = NodeRegistry(queues=["mine"])
    for name in ("mine", "amq.topic"):
        with pytest.raises(NameInUse):
            registry.declare_queue(name, overflow=OverflowPolicy.REFUSE)
    it = registry.declare_queue("new", overflow=OverflowPolicy.REFUSE)
    registry.delete_queue(it)
    registry.delete_queue(it)
    assert registry.find("new") is None


def test_publishing() -> None:
    registry = NodeRegistry(queues=["mine"], limits=QueueLimits(count=1))
    mine = registry.find("mine")
    assert isinstance(mine, Queue)
    assert registry.publish(mine, message("any")) is RoutingResult.ROUTED
    assert registry.publish(registry.find(""), message("mine")) is RoutingResult.QUEUE_FULL
    assert registry.publish(registry.find(""), message("nobody")) is RoutingResult.DISCARDED
    assert registry.publish(None, message("x", to="nowhere")) is RoutingResult.DISCARDED
    topic = registry.find("amq.topic")
    assert isinstance(topic, TopicExchange)
    assert registry.publish(topic, message("x")) is RoutingResult.DISCARDED
    topic.bind(registry.declare_queue("sub", overflow=OverflowPolicy.DROP_OLDEST), BindingSpec("#"))
    assert registry.publish(topic, message("x")) is RoutingResult.ROUTED
    counters = registry.counters
    assert (counters.received, counters.discarded, counters.rejected) == (6, 3, 1)


def test_what_is_published_is_counted() -> None:
    registry = NodeRegistry(queues=["mine"], limits=QueueLimits(count=2))
    topic = registry.find("amq.topic")
    assert isinstance(topic, TopicExchange)
    for number in range(3):
        registry.bind(topic, registry.declare_queue(str(number), overflow=OverflowPolicy.DROP_OLDEST), BindingSpec("x"))
    for subject in ("x", "x", "y"):
        registry.publish(topic, message(subject))
    counts = topic.counters
    assert (counts.received, counts.routed, counts.discarded) == (3, 6, 1)
    assert (counts.received_bytes, counts.routed_bytes, counts.discarded_bytes) == (12, 24, 4)
    mine = registry.find("mine")
    assert isinstance(mine, Queue)
    registry.publish(mine, message())
    for subject in ("mine", "mine", "nobody"):
        registry.publish(registry.default_exchange, message(subject))
    assert (mine.counters.enqueues, mine.counters.by_name, mine.counters.by_default, mine.counters.refused) == (
        2,
        1,
        1,
        1,
    )
    counts = registry.default_exchange.counters
    assert (counts.received, counts.routed, counts.discarded) == (3, 1, 2)
    assert (topic.binding_count, registry.default_exchange.binding_count) == (3, 4)


def test_what_deleted_queues_counted_is_kept() -> None:
    registry = NodeRegistry()
    it = registry.declare_queue("q", overflow=OverflowPolicy.REFUSE)
    it.enqueue(message())
    it.enqueue(message())
    it.purge(1)
    registry.delete_queue(it)
    registry.delete_queue(it)
    assert (registry.deleted_queues.enqueues, registry.deleted_queues.purged, registry.deleted_queues.abandoned) == (
        2,
        1,
        1,
    )


def test_reading_a_message() -> None:
    data = encode_message(
        CodecMessage(
            to="x", subject="key", ttl=2.5, application_properties={"a": 1}, section=Section.DATA, body=b"body"
        )
    )
    it = read_message(data, 100.0)
    assert (it.data, it.to, it.subject, it.headers, it.expires_at) == (data, "x", "key", {"a": 1}, 102.5)
    bare = read_message(encode_message(CodecMessage()), 100.0)
    assert (bare.to, bare.subject, bare.expires_at) == (None, "", None)
    with pytest.raises(DecodeError):
        read_message(b"garbage", 0.0)


FIELDS = st.one_of(st.none(), st.text(max_size=300))


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Encoded messages with what routing looks at, and what stands around it."""
    headers = draw(st.dictionaries(st.text(max_size=5), st.integers(0, 9) | st.text(max_size=5), max_size=3))
    return encode_message(
        CodecMessage(
            ttl=draw(st.none() | st.integers(0, 2**32 - 1).map(lambda ms: ms / 1000)),
            durable=draw(st.booleans()),
            priority=draw(st.sampled_from([4, 9])),
            message_id=draw(st.one_of(FIELDS, st.integers(0, 2**64 - 1), st.uuids(), st.binary(max_size=9))),
            user_id=draw(st.none() | st.binary(max_size=9)),
            to=draw(FIELDS),
            subject=draw(FIELDS),
            reply_to=draw(FIELDS),
            application_properties=headers,
            section=Section.DATA,
            body=b"body",
        )
        if draw(st.booleans())
        else CodecMessage(
            to=draw(FIELDS), subject=draw(FIELDS), message_annotations={"x": 1}, section=Section.VALUE, body=1
        )
    )


def read(data: bytes) -> tuple[object, ...]:
    it = read_message(data, 100.0)
    return it.to, it.subject, it.expires_at, it.headers


@given(messages())
def test_a_message_is_read_as_the_codec_reads_it(data: bytes) -> None:
    whole = decode_message(data, body=False)
    expires = None if whole.ttl is None else 100.0 + whole.ttl
    assert read(data) == (whole.to, whole.subject or "", expires, whole.application_properties)


@given(messages(), st.data())
def test_a_damaged_message_is_refused_or_read_as_the_codec_reads_it(data: bytes, damage: st.DataObject) -> None:
    damaged = bytearray(data)
    damaged[damage.draw(st.integers(0, len(data) - 1))] = damage.draw(st.integers(0, 255))
    try:
        whole = decode_message(bytes(damaged), body=False)
    except DecodeError:
        # What routing does not need is not looked at, unless a headers exchange asks for it.
        with contextlib.suppress(DecodeError):
            read_message(bytes(damaged), 100.0)
        return
    expires = None if whole.ttl is None else 100.0 + whole.ttl
    assert read(bytes(damaged)) == (whole.to, whole.subject or "", expires, whole.application_properties)
