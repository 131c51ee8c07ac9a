"""How other brokers are spoken to: their addresses, selectors and links."""

from __future__ import annotations

import re

import pytest
from bus.peer import Peer, serving
from hypothesis import given
from hypothesis import strategies as st
from support.recording import Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Binding, ExchangeKind
from qmf.bus.client.dialect import ArtemisDialect, EmbeddedDialect, QpidDialect, RabbitMqDialect, dialect_of
from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested
from qmf.bus.engine.values import Filter, Terminus
from qmf.bus.topics import TopicTable

TOPIC = "qmf.default.topic"

WORDS = st.sampled_from(["agent", "a_b", "100%", "x'y", "back\\slash", ""])
ROUTING_KEYS = st.lists(WORDS, min_size=1, max_size=4).map(".".join)
BINDING_KEYS = st.lists(WORDS | st.sampled_from(["*", "#"]), min_size=1, max_size=4).map(".".join)


def selector(binding: Binding) -> str:
    for entry in ArtemisDialect().source(binding).filters:
        assert entry.descriptor == "apache.org:selector-filter:string"
        return str(entry.value)
    return "TRUE"


def selects(text: str, subject: str) -> bool:
    """What a broker makes of a selector over the type of a message."""
    if text == "TRUE":
        return True
    equal = re.fullmatch(r"JMSType = '((?:[^']|'')*)'", text)
    if equal is not None:
        return subject == equal[1].replace("''", "'")
    like = re.fullmatch(r"JMSType LIKE '((?:[^']|'')*)' ESCAPE '\\'", text)
    assert like is not None, text
    signs = re.findall(r"\\.|.", like[1].replace("''", "'"), re.DOTALL)
    pattern = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign[-1])) for sign in signs)
    return re.fullmatch(pattern, subject, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("", QpidDialect),
        ("qpid-cpp", QpidDialect),
        ("qmf", QpidDialect),
        ("apache-activemq-artemis", ArtemisDialect),
        ("RabbitMQ", RabbitMqDialect),
        ("qmf-broker", EmbeddedDialect),
    ],
)
def test_brokers_are_identified_by_their_product(product: str, kind: type) -> None:
    assert type(dialect_of(product)) is kind


def test_exchanges_are_nodes_and_keys_filters_for_qpid() -> None:
    source = QpidDialect().source(Binding(TOPIC, "agent.#"))
    assert source == Terminus(
        TOPIC,
        filters=(Filter("legacy-amqp-topic-binding", "apache.org:legacy-amqp-topic-binding:string", "agent.#"),),
    )
    assert QpidDialect().target(TOPIC) == Terminus(TOPIC)


@given(BINDING_KEYS, ROUTING_KEYS)
def test_what_passes_both_selector_and_subject_filter_is_what_the_binding_matches(key: str, subject: str) -> None:
    table: TopicTable[None] = TopicTable()
    table.add(key, None)
    binding = Binding(TOPIC, key)
    subject_filter = ArtemisDialect().subject_filter(binding)
    arrives = selects(selector(binding), subject) and (subject_filter is None or subject_filter(subject))
    assert arrives is bool(table.match(subject))


@given(BINDING_KEYS, BINDING_KEYS)
def test_a_direct_key_is_compared_literally(key: str, subject: str) -> None:
    binding = Binding("qmf.default.direct", key, ExchangeKind.DIRECT)
    assert ArtemisDialect().subject_filter(binding) is None
    assert selects(selector(binding), subject) is (key == subject)


def test_rabbitmq_has_keys_in_addresses() -> None:
    source = RabbitMqDialect().source(Binding("a/b", "direct-console.x/y.#"))
    assert source.address == "/exchange/a%2Fb/direct-console.x%2Fy.#"
    assert RabbitMqDialect().target(TOPIC).address == "/exchange/qmf.default.topic"


class Broker:
    """Grants every link, accepts every message, and sends each subject in `subjects` to a receiver."""

    def __init__(self, *subjects: str) -> None:
        self.nodes: list[Terminus | None] = []
        self.bodies: list[bytes] = []
        self._subjects = subjects

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            self.nodes.append(event.link.source if event.link.is_sender else event.link.target)
            peer.grant(event.link)
            if event.link.is_sender:
                for subject in self._subjects:
                    peer.engine.deliveries.send(event.link, message(TOPIC, subject, subject))
        elif isinstance(event, Delivery):
            assert event.delivery_tag is not None
            peer.engine.decisions.settle(event.link, event.delivery_tag)
            self.bodies.append(event.data)


async def test_messages_for_rabbitmq_have_a_link_for_each_exchange() -> None:
    broker = Broker()
    async with serving(broker, properties={"product": "RabbitMQ"}) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.subscribe(Binding(TOPIC, "agent.#"), Inbox())
        for exchange in (TOPIC, "qmf.default.direct", TOPIC):
            await bus.send(message(exchange, "x", "hello"), confirm=True)
        await bus.close()
    addresses = [node.address for node in broker.nodes if node is not None]
    assert addresses == [
        "/exchange/qmf.default.topic/agent.#",
        "/exchange/qmf.default.topic",
        "/exchange/qmf.default.direct",
    ]
    assert len(broker.bodies) == 3


async def test_what_artemis_sends_beyond_the_binding_is_dropped_and_its_credit_given_back() -> None:
    subjects = [f"agent.{number}" for number in range(10)]
    broker = Broker(*(f"agent.x.{number}" for number in range(50)), *subjects)
    async with serving(broker, properties={"product": "apache-activemq-artemis"}) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        inbox = Inbox()
        await bus.subscribe(Binding(TOPIC, "agent.*"), inbox, prefetch=8)
        assert await inbox.wait(10) == subjects
        await bus.close()


async def test_malformed_messages_are_delivered_to_the_receiver() -> None:
    def garbles(peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            peer.grant(event.link)
            peer.engine.deliveries.send(event.link, b"no message")

    async with serving(garbles, properties={"product": "apache-activemq-artemis"}) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        arrived: list[bytes] = []
        await bus.subscribe(Binding(TOPIC, "agent.*"), lambda received: arrived.append(received.data))
        await until(lambda: arrived, "the garbled message")
        assert arrived == [b"no message"]
        await bus.close()


async def test_the_connection_properties_name_our_process() -> None:
    async with serving(Broker()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        (peer,) = peers.all
        assert any(getattr(event, "product", "") == "qmf" for event in peer.events)
        await bus.close()
