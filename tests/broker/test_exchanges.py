"""Exchanges, filters and the directory, without AMQP."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.counters import Counters
from qmf.broker.exchanges import DirectExchange, Exchange, FanoutExchange, HeadersExchange, Match, TopicExchange
from qmf.broker.filters import read_filters
from qmf.broker.nodes import EXCHANGES, Directory, NameTaken, Routed
from qmf.broker.parcel import Parcel, read_parcel
from qmf.broker.queues import Limits, Overflow, Queue
from qmf.bus.values import Filter
from qmf.codec import Message, Section, decode_message, encode_message
from qmf.errors import DecodeError


def queue(name: str = "q") -> Queue:
    return Queue(name, Limits(), Overflow.DROP_OLDEST, Counters(), lambda: 0.0)


def parcel(subject: str = "", to: str | None = None, **headers: object) -> Parcel:
    return Parcel(b"data", to, subject, headers, None)


@pytest.mark.parametrize(
    ("exchange", "match", "message", "expected"),
    [
        (DirectExchange("x"), Match("a.b"), parcel("a.b"), True),
        (DirectExchange("x"), Match("a.#"), parcel("a.b"), False),
        (DirectExchange("x"), Match(), parcel(), True),
        (TopicExchange("x"), Match("a.#"), parcel("a.b"), True),
        (TopicExchange("x"), Match("a.*"), parcel("a"), False),
        (FanoutExchange("x"), Match("whatever"), parcel("a"), True),
        (HeadersExchange("x"), Match(), parcel("a"), True),
        (HeadersExchange("x"), Match(headers={"a": 1, "b": 2}), parcel(a=1, b=2, c=3), True),
        (HeadersExchange("x"), Match(headers={"a": 1, "b": 2}), parcel(a=1), False),
        (HeadersExchange("x"), Match(headers={"a": 1, "b": 2, "x-match": "all"}), parcel(a=1, b=3), False),
        (HeadersExchange("x"), Match(headers={"a": 1, "b": 2, "x-match": "any"}), parcel(b=2), True),
        (HeadersExchange("x"), Match(headers={"a": 1, "x-match": "any"}), parcel(b=2), False),
        (HeadersExchange("x"), Match(headers={"a": None}), parcel(a="anything"), True),
        (HeadersExchange("x"), Match(headers={"a": None}), parcel(b=1), False),
        (HeadersExchange("x"), Match(headers={"a": True}), parcel(a=1), False),
        (HeadersExchange("x"), Match(headers={"a": "1"}), parcel(a=1), False),
    ],
)
def test_who_gets_what(exchange: Exchange, match: Match, message: Parcel, expected: bool) -> None:
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
        exchange.bind(it, Match("key"))
    assert sorted(it.name for it in exchange.route(parcel("key"))) == ["0", "1", "2", "3", "4"]
    exchange.unbind(queues[2])
    assert sorted(it.name for it in exchange.route(parcel("key"))) == ["0", "1", "3", "4"]


@pytest.mark.parametrize(
    ("descriptor", "value", "match"),
    [
        ("apache.org:legacy-amqp-topic-binding:string", "a.#", Match("a.#")),
        (0x0000468C00000001, "a.#", Match("a.#")),
        ("apache.org:legacy-amqp-direct-binding:string", "a", Match("a")),
        (0x0000468C00000000, "a", Match("a")),
        ("apache.org:legacy-amqp-headers-binding:map", {"a": b"x", "b": 1}, Match(headers={"a": "x", "b": 1})),
        (0x0000468C00000002, {"a": b"\xff"}, Match(headers={"a": b"\xff"})),
    ],
)
def test_filters_that_are_known(descriptor: str | int, value: object, match: Match) -> None:
    entry = Filter("any-name", descriptor, value)
    other = Filter("other", "apache.org:selector-filter:string", "a = 1")
    assert read_filters([other, entry]) == (match, (entry,))


def test_without_a_known_filter_the_key_is_empty() -> None:
    assert read_filters([]) == (Match(), ())
    assert read_filters([Filter("s", "apache.org:selector-filter:string", "a = 1")]) == (Match(), ())


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
        read_filters([Filter("name", descriptor, value)])


def test_all_exchanges_of_qmf_are_there() -> None:
    directory = Directory(domains=["site"])
    for name, kind in EXCHANGES:
        assert isinstance(directory.find(name), kind)
    assert isinstance(directory.find("qmf.site.topic"), TopicExchange)
    assert isinstance(directory.find("qmf.site.direct"), DirectExchange)
    assert directory.find("nowhere") is None
    assert directory.find("qmf.default.topic/key") is None


def test_names_are_used_once() -> None:
    directory = Directory(queues=["mine"])
    for name in ("mine", "amq.topic"):
        with pytest.raises(NameTaken):
            directory.declare(name, overflow=Overflow.REFUSE)
    it = directory.declare("new", overflow=Overflow.REFUSE)
    directory.delete(it)
    directory.delete(it)
    assert directory.find("new") is None


def test_publishing() -> None:
    directory = Directory(queues=["mine"], limits=Limits(count=1))
    mine = directory.find("mine")
    assert isinstance(mine, Queue)
    assert directory.publish(mine, parcel("any")) is Routed.TAKEN
    assert directory.publish(directory.find(""), parcel("mine")) is Routed.FULL
    assert directory.publish(directory.find(""), parcel("nobody")) is Routed.DISCARDED
    assert directory.publish(None, parcel("x", to="nowhere")) is Routed.DISCARDED
    topic = directory.find("amq.topic")
    assert isinstance(topic, TopicExchange)
    assert directory.publish(topic, parcel("x")) is Routed.DISCARDED
    topic.bind(directory.declare("sub", overflow=Overflow.DROP_OLDEST), Match("#"))
    assert directory.publish(topic, parcel("x")) is Routed.TAKEN
    counters = directory.counters
    assert (counters.received, counters.discarded, counters.rejected) == (6, 3, 1)


def test_what_is_published_is_counted() -> None:
    directory = Directory(queues=["mine"], limits=Limits(count=2))
    topic = directory.find("amq.topic")
    assert isinstance(topic, TopicExchange)
    for number in range(3):
        directory.bind(topic, directory.declare(str(number), overflow=Overflow.DROP_OLDEST), Match("x"))
    for subject in ("x", "x", "y"):
        directory.publish(topic, parcel(subject))
    counts = topic.counts
    assert (counts.received, counts.routed, counts.discarded) == (3, 6, 1)
    assert (counts.received_bytes, counts.routed_bytes, counts.discarded_bytes) == (12, 24, 4)
    mine = directory.find("mine")
    assert isinstance(mine, Queue)
    directory.publish(mine, parcel())
    for subject in ("mine", "mine", "nobody"):
        directory.publish(directory.default, parcel(subject))
    assert (mine.counts.enqueues, mine.counts.by_name, mine.counts.by_default, mine.counts.refused) == (2, 1, 1, 1)
    counts = directory.default.counts
    assert (counts.received, counts.routed, counts.discarded) == (3, 1, 2)
    assert (topic.bindings, directory.default.bindings) == (3, 4)


def test_what_deleted_queues_counted_is_kept() -> None:
    directory = Directory()
    it = directory.declare("q", overflow=Overflow.REFUSE)
    it.put(parcel())
    it.put(parcel())
    it.purge(1)
    directory.delete(it)
    directory.delete(it)
    assert (directory.gone.enqueues, directory.gone.purged, directory.gone.abandoned) == (2, 1, 1)


def test_reading_a_parcel() -> None:
    data = encode_message(
        Message(to="x", subject="key", ttl=2.5, application_properties={"a": 1}, section=Section.DATA, body=b"body")
    )
    it = read_parcel(data, 100.0)
    assert (it.data, it.to, it.subject, it.headers, it.expires) == (data, "x", "key", {"a": 1}, 102.5)
    bare = read_parcel(encode_message(Message()), 100.0)
    assert (bare.to, bare.subject, bare.expires) == (None, "", None)
    with pytest.raises(DecodeError):
        read_parcel(b"garbage", 0.0)


FIELDS = st.one_of(st.none(), st.text(max_size=300))


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Encoded messages with what routing looks at, and what stands around it."""
    headers = draw(st.dictionaries(st.text(max_size=5), st.integers(0, 9) | st.text(max_size=5), max_size=3))
    return encode_message(
        Message(
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
        else Message(to=draw(FIELDS), subject=draw(FIELDS), message_annotations={"x": 1}, section=Section.VALUE, body=1)
    )


def read(data: bytes) -> tuple[object, ...]:
    it = read_parcel(data, 100.0)
    return it.to, it.subject, it.expires, it.headers


@given(messages())
def test_a_parcel_says_what_the_codec_says(data: bytes) -> None:
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
            read_parcel(bytes(damaged), 100.0)
        return
    expires = None if whole.ttl is None else 100.0 + whole.ttl
    assert read(bytes(damaged)) == (whole.to, whole.subject or "", expires, whole.application_properties)
