"""What a broker does with exclusive queues, times and numbers of messages, as Apache's own tests expect it."""

from __future__ import annotations

import uuid

import pytest

from qmf.client import BrokerAgent, EventHelper
from qmf.messaging import Connection, Message, Receiver, Session

pytestmark = pytest.mark.only("embedded", "qpidd")


@pytest.fixture
def name() -> str:
    return f"like-{uuid.uuid4().hex[:8]}"


def next_event(receiver: Receiver, name: str) -> object:
    """The next event that concerns a queue."""
    helper = EventHelper()
    while True:
        event = helper.event(receiver.fetch(timeout=20))
        if event.qName == name:
            return event


@pytest.mark.parametrize("exclusive", [False, True])
def test_queues_that_delete_themselves(
    connection: Connection, session: Session, agent: BrokerAgent, name: str, exclusive: bool
) -> None:
    """One that is exclusive does so with its session, and each raises an event."""
    deleted = session.receiver(EventHelper().eventAddress("org.apache.qpid.broker", "queueDelete"), capacity=100)
    declare = f"node: {{x-declare: {{auto-delete: True, exclusive: {exclusive}}}}}"
    if exclusive:
        own = connection.session()
        own.sender(f"{name}; {{create: always, {declare}}}").send("x")
        assert agent.getQueue(name) is not None
        own.close()
    else:
        session.receiver(f"{name}; {{create: always, {declare}}}").close()
    assert next_event(deleted, name)
    assert agent.getQueue(name) is None


def test_times_of_messages_are_switched_by_a_method(session: Session, agent: BrokerAgent, name: str) -> None:
    receiver = session.receiver(f"{name}; {{create: always, delete: always}}")

    def time_of_a_message() -> object:
        session.sender(name).send("x")  # qpidd looks when the link is attached
        properties = receiver.fetch(timeout=10).properties
        session.acknowledge()
        return properties.get("x-amqp-message-annotations", {}).get("x-opt-ingress-timestamp")

    assert agent.getTimestampConfig()["receive"] is False
    assert time_of_a_message() is None
    agent.setTimestampConfig(True)
    try:
        assert agent.getTimestampConfig()["receive"] is True
        assert time_of_a_message()
    finally:
        agent.setTimestampConfig(False)
    assert time_of_a_message() is None


def test_numbers_of_an_exchange(session: Session, agent: BrokerAgent, name: str) -> None:
    agent.addExchange("fanout", name, {"qpid.msg_sequence": 1})
    receiver, sender = session.receiver(name, capacity=10), session.sender(name)
    for _ in range(3):
        sender.send("x")
    numbers = [receiver.fetch(timeout=10).properties["qpid.msg_sequence"] for _ in range(3)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    receiver.close()
    sender.close()
    agent.delExchange(name)


def test_numbers_of_a_queue_show_what_was_dropped(session: Session, name: str) -> None:
    arguments = "{'qpid.queue_msg_sequence': number, 'qpid.policy_type': ring, 'qpid.max_count': 4}"
    address = f"{name}; {{create: always, delete: always, node: {{x-declare: {{arguments: {arguments}}}}}}}"
    sender, receiver = session.sender(address), session.receiver(name)
    sender.send(Message("x", properties={"own": 1}))
    properties = receiver.fetch(timeout=10).properties
    assert (properties["number"], properties["own"]) == (1, 1)
    session.acknowledge()
    for _ in range(5):
        sender.send("x")
    assert receiver.fetch(timeout=10).properties["number"] == 3
    session.acknowledge()
