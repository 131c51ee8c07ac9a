"""The queue of a subscription, as the options of the link ask for it."""

from __future__ import annotations

import uuid

import pytest
from messaging.conftest import Target

from qmf.client import BrokerAgent, EventHelper
from qmf.messaging import Connection, Empty, InvalidOption, Message, Receiver, ResolutionError, Session

pytestmark = pytest.mark.only("embedded", "qpidd")


@pytest.fixture
def name() -> str:
    return f"sub-{uuid.uuid4().hex[:8]}"


def subjects(receiver: Receiver) -> list[str | None]:
    """Of all messages that are there."""
    found = []
    while True:
        try:
            found.append(receiver.fetch(timeout=0).subject)
        except Empty:
            receiver.session.acknowledge()
            return found


def test_the_name_of_a_link_is_that_of_the_queue(session: Session, agent: BrokerAgent, name: str) -> None:
    receiver = session.receiver(f"amq.topic/{name}; {{link: {{name: {name}}}}}")
    session.sender(f"amq.topic/{name}").send("x")
    assert session.receiver(f"{name}; {{mode: browse}}").fetch(timeout=10).content == "x"
    queue = agent.getQueue(name)
    assert queue is not None
    assert queue.msgDepth == 1
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()
    session.close()
    assert agent.getQueue(name) is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("amq.topic; {link: {x-bindings: [{key: NAME.a}, {key: 'NAME.b.*'}]}}", ["topic NAME.a", "topic NAME.b.c"]),
        ("amq.direct; {link: {x-bindings: [{key: NAME.a}, {key: NAME.d}]}}", ["direct NAME.a"]),
        ("amq.topic/NAME.a; {link: {x-bindings: [{}, {exchange: amq.direct}]}}", ["topic NAME.a", "direct NAME.a"]),
        ("amq.topic/NAME.a; {node: {type: topic}, link: {x-bindings: [{}]}}", ["topic NAME.a"]),
        (
            "amq.topic/NAME.a; {link: {name: NAME, x-bindings: [{exchange: amq.direct, key: NAME.b}]}}",
            ["topic NAME.a", "direct NAME.b"],
        ),
    ],
)
def test_bindings_without_an_exchange_are_those_of_the_node(
    session: Session, name: str, address: str, expected: list[str]
) -> None:
    receiver = session.receiver(address.replace("NAME", name))
    for exchange in ("topic", "direct"):
        sender = session.sender(f"amq.{exchange}")
        for key in ("a", "b", "b.c"):
            sender.send(Message(f"{exchange} NAME.{key}", subject=f"{name}.{key}"))
    found = [receiver.fetch(timeout=10).content for _ in expected]
    assert found == expected
    assert subjects(receiver) == []


def test_bindings_by_headers(session: Session, name: str) -> None:
    bindings = f"[{{arguments: {{x-match: all, to: {name}}}}}, {{key: other, arguments: {{x-match: all, cc: {name}}}}}]"
    receiver = session.receiver(f"amq.match; {{link: {{x-bindings: {bindings}}}}}")
    sender = session.sender("amq.match")
    for subject, properties in (("1", {"to": name}), ("2", {"to": "x"}), ("3", {"cc": name}), ("4", {})):
        sender.send(Message("x", subject=subject, properties=properties))
    assert subjects(receiver) == ["1", "3"]


def test_own_messages_are_left_out(broker: Target, session: Session, name: str) -> None:
    receiver = session.receiver("amq.fanout; {link: {x-declare: {arguments: {no-local: True}}}}")
    session.sender("amq.fanout").send(Message("own", subject=name))
    with Connection.establish(broker.url, timeout=10) as other:
        other.session().sender("amq.fanout").send(Message("of another", subject=f"{name}-2"))
    assert [subject for subject in subjects(receiver) if name in str(subject)] == [f"{name}-2"]


def test_a_subscription_that_raises_alerts(broker: Target, session: Session, agent: BrokerAgent, name: str) -> None:
    address = f"amq.topic/{name}; {{link: {{name: {name}, x-declare: {{arguments: {{'qpid.alert_count': 2}}}}}}}}"
    if broker.name == "qpidd":
        with pytest.raises(InvalidOption, match=r"link\.x-declare: qpid\.alert_count is not supported by qpid-cpp"):
            session.receiver(address)
        return
    helper = EventHelper()
    events = session.receiver(helper.eventAddress("org.apache.qpid.broker", "queueThresholdCrossedUpward"), capacity=10)
    session.receiver(address)
    sender = session.sender(f"amq.topic/{name}")
    for _ in range(2):
        sender.send("x")
    event = helper.event(events.fetch(timeout=20))
    assert (event.qName, event.msgDepth) == (name, 2)
    queue = agent.getQueue(name)
    assert queue is not None
    assert queue.arguments["qpid.alert_count"] == 2


@pytest.mark.only("embedded")
def test_what_is_left_goes_to_the_alternate_exchange(connection: Connection, session: Session, name: str) -> None:
    alternate = session.receiver("amq.fanout", capacity=10)
    own = connection.session()
    receiver = own.receiver(
        f"amq.direct/{name}; {{link: {{reliability: at-least-once, x-declare: {{alternate-exchange: amq.fanout}}}}}}"
    )
    sender = own.sender(f"amq.direct/{name}")
    for number in range(5):
        sender.send(Message(str(number), subject=name))
    for _ in range(3):
        receiver.fetch(timeout=10)
    own.close()
    found = [alternate.fetch(timeout=10) for _ in range(5)]
    assert sorted(str(message.content) for message in found) == list("01234")
    session.acknowledge()


@pytest.mark.only("embedded")
def test_declarations_that_mean_nothing(session: Session, name: str) -> None:
    session.sender(f"{name}; {{create: always, delete: always}}")
    declare = "link: {x-declare: {auto-delete: True}}"
    with pytest.raises(InvalidOption, match=r"link\.x-declare: only a receiver has a subscription"):
        session.sender(f"amq.topic; {{{declare}}}")
    with pytest.raises(ResolutionError, match=f"qmf.link-declaration: '{name}' is a queue, no subscription"):
        session.receiver(f"{name}; {{{declare}}}")
    with pytest.raises(ResolutionError, match=r"qmf\.link-declaration: qpid\.max_count: "):
        session.receiver("amq.topic; {link: {x-declare: {arguments: {'qpid.max_count': many}}}}")
    with pytest.raises(InvalidOption, match=r"link\.x-subscribe is not supported"):
        session.receiver("amq.topic; {link: {x-subscribe: {exclusive: True}}}")
