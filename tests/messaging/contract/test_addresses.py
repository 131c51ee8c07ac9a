"""What addresses select: nodes, subjects, messages; and addresses that are wrong."""

from __future__ import annotations

import uuid

import pytest
from messaging.conftest import MakeQueue, Target, qpid_addresses

from qmf.messaging import (
    Address,
    Connection,
    Empty,
    EncodeError,
    InvalidOption,
    MalformedAddress,
    Message,
    NotFound,
    ResolutionError,
    Session,
)


@qpid_addresses
def test_browsing_leaves_messages_in_the_queue(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender = session.sender(address)
    for text in "abc":
        sender.send(text)
    name = Address(address).name
    browser = session.receiver(f"{name}; {{mode: browse}}")
    assert [browser.fetch(timeout=10).content for _ in range(3)] == list("abc")
    with pytest.raises(Empty):
        browser.fetch(timeout=0)
    sender.send("d")
    assert browser.fetch(timeout=10).content == "d"
    receiver = session.receiver(name)
    assert [receiver.fetch(timeout=10).content for _ in range(4)] == list("abcd")
    session.acknowledge()


@qpid_addresses
def test_selectors(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender = session.sender(address)
    for number in range(6):
        sender.send(Message(str(number), properties={"n": number, "even": "yes" if number % 2 == 0 else "no"}))
    name = Address(address).name
    chosen = session.receiver(f"{name}; {{link: {{selector: \"even = 'yes' AND n > 0\"}}}}")
    assert [chosen.fetch(timeout=10).content for _ in range(2)] == ["2", "4"]
    with pytest.raises(Empty):
        chosen.fetch(timeout=0)
    others = session.receiver(name)
    assert [others.fetch(timeout=10).content for _ in range(4)] == ["0", "1", "3", "5"]
    session.acknowledge()


@qpid_addresses
@pytest.mark.parametrize(
    ("exchange", "subject", "received"),
    [
        ("amq.topic", "*.news", ["usa.news", "europe.news"]),
        ("amq.topic", "usa.#", ["usa.news", "usa.sports"]),
        ("amq.direct", "usa.news", ["usa.news"]),
        ("amq.fanout", "anything", ["usa.news", "usa.sports", "europe.news"]),
    ],
)
def test_topics(session: Session, exchange: str, subject: str, received: list[str]) -> None:
    receiver = session.receiver(f"{exchange}/{subject}", capacity=10)
    for item in ("usa.news", "usa.sports", "europe.news"):
        session.sender(f"{exchange}/{item}").send(item)
    assert [receiver.fetch(timeout=10).subject for _ in received] == received
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_topics_without_a_subject(session: Session) -> None:
    receivers = {name: session.receiver(name, capacity=10) for name in ("amq.topic", "amq.fanout")}
    for name, receiver in receivers.items():
        session.sender(f"{name}/a.b").send("with")
        session.sender(name).send("without")
        assert [receiver.fetch(timeout=10).content for _ in range(2)] == ["with", "without"]
    session.acknowledge()
    with pytest.raises(ResolutionError, match=r"'amq\.direct' is a direct exchange: its address needs a subject"):
        session.receiver("amq.direct")


@qpid_addresses
def test_the_subject_of_a_message_goes_before_that_of_the_address(session: Session) -> None:
    receiver = session.receiver("amq.topic/mine", capacity=10)
    session.sender("amq.topic/other").send(Message("x", subject="mine"))
    assert receiver.fetch(timeout=10).subject == "mine"
    session.acknowledge()


@pytest.mark.only("embedded", "qpidd", "artemis")
def test_the_anonymous_target(session: Session, queue: MakeQueue) -> None:
    one, two = queue(), queue()
    receivers = [session.receiver(address) for address in (one, two)]
    sender = session.sender("<null>")
    for address, text in ((one, "1"), (two, "2")):
        sender.send(Message(text, to=Address(address).name))
    assert [receiver.fetch(timeout=10).content for receiver in receivers] == ["1", "2"]
    session.acknowledge()


def test_an_unknown_node_is_not_found(broker: Target, connection: Connection) -> None:
    if broker.name == "artemis":
        pytest.skip("artemis creates addresses on demand")
    name = f"missing-{uuid.uuid4().hex[:8]}"
    session = connection.session()
    for sending in (True, False):
        with pytest.raises(NotFound, match=f"no such queue: {name}") as caught:
            session.sender(name) if sending else session.receiver(name)
        assert caught.value.code == "amqp:not-found"
        if broker.name == "rabbitmq":  # which ends the session as well
            session = connection.session()
    receiver = session.receiver(f"{name}; {{create: always}}")
    session.sender(name).send("x")
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()


def test_bad_addresses_leave_the_session_usable(session: Session, queue: MakeQueue) -> None:
    with pytest.raises(MalformedAddress, match="line:1,3:"):
        session.sender("q; create")
    with pytest.raises(InvalidOption, match="creat"):
        session.receiver("q; {creat: always}")
    with pytest.raises(InvalidOption, match="reliability"):
        session.sender("q; {link: {reliability: exactly}}")
    address = queue()
    sender = session.sender(address)
    for content in (object(), {"a": object()}, {1, 2}):
        with pytest.raises(EncodeError):
            sender.send(content)
    with pytest.raises(EncodeError, match="priority"):
        sender.send(Message("x", priority=1000))
    with pytest.raises(EncodeError, match="'set'"):
        sender.send(Message("x", properties={"set": {1}}))
    sender.send("good")
    assert session.receiver(address).fetch(timeout=10).content == "good"
    session.acknowledge()


@pytest.mark.only("qpidd", "artemis", "rabbitmq")
def test_exactly_once_is_refused_with_the_reason(session: Session, queue: MakeQueue) -> None:
    address = queue()
    session.sender(address).close()
    name = Address(address).name
    for make in (session.sender, session.receiver):
        with pytest.raises(InvalidOption, match=r"exactly-once is not supported by .*: it does not offer qmf\.link-"):
            make(f"{name}; {{link: {{reliability: exactly-once}}}}")
    session.receiver(name).close()


@pytest.mark.only("artemis", "rabbitmq")
@pytest.mark.parametrize(
    ("option", "brokers"),
    [
        ("assert: always", "artemis rabbitmq"),
        ("delete: always", "artemis rabbitmq"),
        ("node: {x-bindings: [{exchange: a}]}", "artemis rabbitmq"),
        ("node: {x-declare: {exclusive: True}}", "artemis rabbitmq"),
        ("node: {properties: {a: 1}}", "artemis rabbitmq"),
        ("node: {capabilities: [a]}", "rabbitmq"),
        ("mode: browse", "rabbitmq"),
        ("link: {selector: 'a = 1'}", "rabbitmq"),
        ("link: {durable: True}", "rabbitmq"),
        ("link: {x-subscribe: {exclusive: True}}", "artemis rabbitmq"),
    ],
)
def test_what_a_broker_cannot_provide_is_refused(
    broker: Target, session: Session, queue: MakeQueue, option: str, brokers: str
) -> None:
    address = queue()
    session.sender(address).close()
    name = Address(address).name
    product = {"artemis": "apache-activemq-artemis", "rabbitmq": "RabbitMQ"}[broker.name]
    if broker.name in brokers.split():
        with pytest.raises(InvalidOption, match=rf"{option.partition(':')[0]}\b.* is not supported by {product}$"):
            session.receiver(f"{name}; {{{option}}}")
    session.receiver(name).close()
