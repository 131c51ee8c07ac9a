"""proton's own blocking client against the embedded broker in its thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from proton import ConnectionException, Data, Delivery, Described, Message, symbol, ulong
from proton.reactor import Container, Filter, LinkOption
from proton.utils import BlockingConnection, LinkDetached, SendException

from qmf.broker import EmbeddedBroker, QueueLimits

TOPIC = "apache.org:legacy-amqp-topic-binding:string"
DIRECT = "apache.org:legacy-amqp-direct-binding:string"
HEADERS = "apache.org:legacy-amqp-headers-binding:map"

WAIT_LIMIT = 10.0

#: Makes connections. Any: proton's blocking classes are only half annotated.
Connect = Callable[[], Any]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(queues=["jobs"], limits=QueueLimits(count=20)) as broker:
        yield broker


@pytest.fixture
def connect(broker: EmbeddedBroker) -> Iterator[Connect]:
    made: list[Any] = []

    def make() -> Any:
        made.append(BlockingConnection(broker.url, timeout=WAIT_LIMIT))
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def binding(descriptor: str | int, value: object) -> Filter:
    kind = symbol(descriptor) if isinstance(descriptor, str) else ulong(descriptor)
    return Filter({symbol("binding"): Described(kind, value)})  # type: ignore[arg-type]


def texts(receiver: Any, count: int) -> list[object]:
    """The bodies of the next messages, which are accepted."""
    found = []
    for _ in range(count):
        found.append(receiver.receive(WAIT_LIMIT).body)
        receiver.accept()
    return found


@pytest.mark.parametrize(
    ("exchange", "descriptor", "key", "matching", "other"),
    [
        ("qmf.default.topic", TOPIC, "a.#", "a.b", "b"),
        ("qmf.default.topic", 0x0000468C00000001, "a.*", "a.b", "a.b.c"),
        ("qpid.management", TOPIC, "a", "a", "b"),
        ("amq.topic", DIRECT, "a", "a", "b"),
        ("qmf.default.direct", DIRECT, "a", "a", "b"),
        ("amq.direct", 0x0000468C00000000, "a", "a", "b"),
        ("amq.direct", TOPIC, "#", "#", "a"),
    ],
)
@pytest.mark.parametrize("relay", [True, False])
def test_subscribing_and_both_ways_of_sending(
    connect: Connect, exchange: str, descriptor: str | int, key: str, matching: str, other: str, relay: bool
) -> None:
    receiver = connect().create_receiver(exchange, options=binding(descriptor, key), credit=10)
    sender = connect().create_sender(None if relay else exchange)
    to = exchange if relay else None
    sender.send(Message(address=to, subject=other, body="other"))
    sender.send(Message(address=to, subject=matching, body="matching"))
    assert texts(receiver, 1) == ["matching"]


def test_everybody_gets_everything_from_a_fanout_exchange(connect: Connect) -> None:
    receivers = [connect().create_receiver("amq.fanout", credit=5) for _ in range(3)]
    connect().create_sender("amq.fanout").send(Message(body="all"))
    assert [texts(receiver, 1) for receiver in receivers] == [["all"]] * 3


def test_a_headers_exchange_looks_at_application_properties(connect: Connect) -> None:
    connection = connect()
    both = connection.create_receiver("amq.match", name="all", options=binding(HEADERS, {"a": "1", "b": "2"}), credit=5)
    any_ = connection.create_receiver(
        "amq.match", name="any", options=binding(HEADERS, {"a": "1", "b": "2", "x-match": "any"}), credit=5
    )
    sender = connect().create_sender("amq.match")
    sender.send(Message(body="one", properties={"a": "1"}))
    sender.send(Message(body="two", properties={"a": "1", "b": "2"}))
    assert texts(any_, 2) == ["one", "two"]
    assert texts(both, 1) == ["two"]


@pytest.mark.parametrize(("kind", "received"), [("topic", ["keyed", "empty"]), ("direct", ["empty"])])
def test_without_a_filter_there_is_the_default_of_the_exchange(
    connect: Connect, kind: str, received: list[str]
) -> None:
    receiver = connect().create_receiver(f"qmf.default.{kind}", credit=5)
    sender = connect().create_sender(f"qmf.default.{kind}")
    sender.send(Message(subject="a", body="keyed"))
    sender.send(Message(subject="", body="empty"))
    assert texts(receiver, len(received)) == received


@pytest.mark.parametrize("form", ["{exchange}/{key}", "{dynamic}"])
def test_a_request_is_answered_to_its_reply_address(connect: Connect, form: str) -> None:
    """As QMF does it: reply-to is exchange/key or the address of a dynamic node (QMF2.md 1.3)."""
    server, client = connect(), connect()
    requests = server.create_receiver("qmf.default.direct", options=binding(DIRECT, "agent"), credit=5)
    answers = (
        client.create_receiver("qmf.default.topic", options=binding(TOPIC, "direct-console.1"), credit=5)
        if "key" in form
        else client.create_receiver(None, dynamic=True, credit=5)
    )
    reply_to = form.format(
        exchange="qmf.default.topic", key="direct-console.1", dynamic=answers.link.remote_source.address
    )
    client.create_sender(None).send(
        Message(address="qmf.default.direct", subject="agent", reply_to=reply_to, body="request")
    )
    request = requests.receive(WAIT_LIMIT)
    requests.accept()
    to, _, key = request.reply_to.partition("/")
    server.create_sender(None).send(Message(address=to, subject=key or None, body=f"answer to {request.body}"))
    assert texts(answers, 1) == ["answer to request"]


def test_dynamic_nodes_have_names_of_their_own_and_end_with_their_link(connect: Connect) -> None:
    connection = connect()
    first = connection.create_receiver(None, dynamic=True, name="first")
    second = connection.create_receiver(None, dynamic=True, name="second")
    address = first.link.remote_source.address
    assert address != second.link.remote_source.address
    assert address == f"{connection.container.container_id}_first"
    first.close()
    with pytest.raises(LinkDetached, match="not-found"):
        connect().create_sender(address)


def test_a_dynamic_target_is_a_queue_that_others_can_read(connect: Connect) -> None:
    class DynamicTarget(LinkOption):
        def apply(self, link: Any) -> None:
            link.target.dynamic = True
            link.target.address = None

    sender = connect().create_sender(None, options=DynamicTarget())
    address = sender.link.remote_target.address
    sender.send(Message(body="through"))
    assert texts(connect().create_receiver(address, credit=5), 1) == ["through"]


def test_a_temporary_topic_ends_with_the_link_that_created_it(connect: Connect) -> None:
    """As JMS clients create one: a capability, and the lifetime policy by its code."""

    class TemporaryTopic(LinkOption):
        def apply(self, link: Any) -> None:
            link.target.dynamic = True
            link.target.address = None
            link.target.capabilities.put_array(False, Data.SYMBOL)
            link.target.capabilities.enter()
            link.target.capabilities.put_symbol("temporary-topic")
            link.target.capabilities.exit()
            link.target.properties.put_object({symbol("lifetime-policy"): Described(ulong(0x2B), [])})

    sender = connect().create_sender(None, options=TemporaryTopic())
    address = sender.link.remote_target.address
    receivers = [connect().create_receiver(address, credit=5) for _ in range(2)]
    connect().create_sender(address).send(Message(subject="any", body="to all"))
    assert [texts(receiver, 1) for receiver in receivers] == [["to all"]] * 2
    sender.close()
    with pytest.raises(LinkDetached, match="not-found"):
        connect().create_sender(address)


def test_a_receiver_cannot_create_a_topic(connect: Connect) -> None:
    class Topic(LinkOption):
        def apply(self, link: Any) -> None:
            link.source.dynamic = True
            link.source.capabilities.put_array(False, Data.SYMBOL)
            link.source.capabilities.enter()
            link.source.capabilities.put_symbol("temporary-topic")
            link.source.capabilities.exit()

    with pytest.raises(LinkDetached, match="cannot create an exchange"):
        connect().create_receiver(None, options=Topic())


def test_a_named_queue_shares_its_messages_among_receivers(connect: Connect) -> None:
    first, second = (connect().create_receiver("jobs", credit=10) for _ in range(2))
    sender = connect().create_sender("jobs")
    for number in range(10):
        sender.send(Message(body=number))
    found = texts(first, 5) + texts(second, 5)
    assert sorted(found, key=str) == list(range(10))


@pytest.mark.parametrize("address", ["jobs", None, ""])
def test_ways_to_a_named_queue(connect: Connect, address: str | None) -> None:
    connect().create_sender(address).send(Message(address="jobs", subject="jobs", body="job"))
    assert texts(connect().create_receiver("jobs", credit=1), 1) == ["job"]


def test_messages_of_a_receiver_that_dies_go_to_the_next_in_order(connect: Connect) -> None:
    sender = connect().create_sender("jobs")
    for number in range(5):
        sender.send(Message(body=number))
    dying = connect()
    receiver = dying.create_receiver("jobs", credit=5)
    assert receiver.receive(WAIT_LIMIT).body == 0
    receiver.accept()
    assert receiver.receive(WAIT_LIMIT).body == 1
    dying.close()
    assert texts(connect().create_receiver("jobs", credit=5), 4) == [1, 2, 3, 4]


def test_a_released_message_comes_again_and_a_rejected_one_does_not(connect: Connect) -> None:
    sender = connect().create_sender("jobs")
    sender.send(Message(body="one"))
    receiver = connect().create_receiver("jobs", credit=0)
    assert receiver.receive(WAIT_LIMIT).body == "one"
    receiver.release(delivered=False)
    assert receiver.receive(WAIT_LIMIT).body == "one"
    receiver.release(delivered=True)
    assert receiver.receive(WAIT_LIMIT).body == "one"
    receiver.reject()
    sender.send(Message(body="two"))
    assert receiver.receive(WAIT_LIMIT).body == "two"
    receiver.accept()


def test_a_full_named_queue_rejects_with_a_reason(connect: Connect) -> None:
    sender = connect().create_sender("jobs")
    for number in range(20):
        sender.send(Message(body=number))
    with pytest.raises(SendException) as caught:
        sender.send(Message(body=20))
    assert caught.value.state == Delivery.REJECTED
    relay = connect().create_sender(None)
    delivery = relay.link.send(Message(address="jobs", body=21))
    relay.connection.wait(lambda: delivery.settled)
    assert delivery.remote.condition.name == "amqp:resource-limit-exceeded"
    assert delivery.remote.condition.description.startswith("Maximum depth exceeded on jobs: current=[count: 20,")
    assert len(texts(connect().create_receiver("jobs", credit=20), 20)) == 20


def test_messages_to_unknown_addresses_are_rejected_and_counted(connect: Connect, broker: EmbeddedBroker) -> None:
    relay = connect().create_sender(None)
    for to, reason in (
        ("nowhere", "no exchange or queue 'nowhere'"),
        ("qmf.default.topic/key", "no exchange or queue 'qmf.default.topic/key'"),
        (None, "the message has no address"),
    ):
        delivery = relay.link.send(Message(address=to, body="lost"))
        relay.connection.wait(lambda delivery=delivery: delivery.settled)
        assert delivery.remote_state == Delivery.REJECTED
        assert (delivery.remote.condition.name, delivery.remote.condition.description) == ("amqp:not-found", reason)
    assert broker.counters.discarded == 3
    # Nothing is bound there: like qpidd, the broker takes and forgets the message.
    assert relay.send(Message(address="amq.topic", body="for nobody")).remote_state == Delivery.ACCEPTED


@pytest.mark.parametrize("address", ["nowhere", "qmf.default.topic/key"])
def test_a_link_to_an_unknown_address_is_refused_with_words(connect: Connect, address: str) -> None:
    connection = connect()
    for attach in (connection.create_sender, connection.create_receiver):
        with pytest.raises(LinkDetached) as caught:
            attach(address)
        assert caught.value.condition == "amqp:not-found"
        assert f"no exchange or queue '{address}'" in str(caught.value)
    connection.create_sender("jobs").send(Message(body="still fine"))


def test_other_links_that_are_refused(connect: Connect) -> None:
    class Null(LinkOption):
        def __init__(self, end: str) -> None:
            self.end = end

        def apply(self, link: Any) -> None:
            getattr(link, self.end).type = 0

    connection = connect()
    cases: list[tuple[Callable[..., object], str | None, LinkOption, str]] = [
        (connection.create_sender, None, Null("target"), "needs a target"),
        (connection.create_receiver, "jobs", Null("source"), "there is no subscription"),
        (connection.create_receiver, "amq.topic", binding(TOPIC, 7), "needs a string"),
    ]
    for attach, address, option, reason in cases:
        with pytest.raises(LinkDetached, match=reason):
            attach(address, options=option)


def test_container_and_link_name_together_are_unique(connect: Connect, broker: EmbeddedBroker) -> None:
    first = connect()
    first.create_receiver("amq.topic", name="same", options=binding(TOPIC, "a"), credit=1)
    with pytest.raises(LinkDetached, match="belongs to another link"):
        connect().create_receiver(f"{first.container.container_id}_same")
    # A second connection with the container id of the first: what a client does that has not noticed its own end.
    container = Container()
    container.container_id = first.container.container_id
    second = BlockingConnection(broker.url, timeout=WAIT_LIMIT, container=container)
    with pytest.raises(LinkDetached, match="another link uses this"):
        second.create_receiver("amq.topic", name="same", options=binding(TOPIC, "a"))
    second.create_receiver("amq.topic", name="other", options=binding(TOPIC, "a"))
    second.close()


def test_time_to_live(connect: Connect, broker: EmbeddedBroker) -> None:
    sender = connect().create_sender("jobs")
    sender.send(Message(body="short", ttl=0.03))
    sender.send(Message(body="long", ttl=60))
    sender.send(Message(body="ever"))
    time.sleep(0.05)
    assert texts(connect().create_receiver("jobs", credit=5), 2) == ["long", "ever"]
    assert broker.counters.expired == 1


@pytest.mark.slow
def test_a_thousand_messages_in_order() -> None:
    with EmbeddedBroker() as broker:
        connection: Any = BlockingConnection(broker.url, timeout=WAIT_LIMIT)
        receiver = connection.create_receiver("amq.direct", options=binding(DIRECT, "k"), credit=100)
        sender = connection.create_sender("amq.direct")
        for number in range(1000):
            connection.wait(lambda: sender.link.credit > 0)
            sender.link.send(Message(subject="k", body=number))
        assert texts(receiver, 1000) == list(range(1000))
        connection.close()


@pytest.mark.slow
def test_a_fast_sender_gets_credit_in_windows(connect: Connect) -> None:
    sender = connect().create_sender("amq.topic")
    assert 0 < sender.link.credit <= 500
    for _ in range(700):
        sender.send(Message(subject="x", body="x"))
    assert 0 < sender.link.credit <= 500


def test_a_receiver_that_does_not_read_loses_its_oldest_and_slows_nobody(
    connect: Connect, broker: EmbeddedBroker
) -> None:
    slow = connect().create_receiver("amq.topic", options=binding(TOPIC, "#"), credit=0)
    quick = connect().create_receiver("amq.topic", options=binding(TOPIC, "#"), credit=100)
    sender = connect().create_sender("amq.topic")
    for number in range(100):
        sender.send(Message(subject="x", body=number))
    assert texts(quick, 100) == list(range(100))
    assert broker.counters.dropped == 80
    slow.flow(100)
    assert texts(slow, 20) == list(range(80, 100))


def test_closing_the_broker_tells_clients_why(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.sessions.CLOSE_TIMEOUT", 0.05)  # this client never answers
    connection = BlockingConnection(broker.url, timeout=WAIT_LIMIT)
    closer = threading.Thread(target=broker.close)
    closer.start()
    with pytest.raises(ConnectionException, match="shutting down"):
        connection.wait(lambda: False)
    with contextlib.suppress(ConnectionException):
        connection.close()
    closer.join()
    with pytest.raises(ConnectionException):
        BlockingConnection(broker.url, timeout=1)


def test_a_receiver_may_ask_for_messages_that_are_settled_at_once(connect: Connect) -> None:
    class Presettled(LinkOption):
        def apply(self, link: Any) -> None:
            link.snd_settle_mode = 1

    sender = connect().create_sender("jobs")
    sender.send(Message(body="one"))
    sender.send(Message(body="two"))
    dying = connect()
    receiver = dying.create_receiver("jobs", options=Presettled(), credit=0)
    assert receiver.link.remote_snd_settle_mode == 1
    assert receiver.receive(WAIT_LIMIT).body == "one"
    dying.close()
    assert texts(connect().create_receiver("jobs", credit=1), 1) == ["two"]
