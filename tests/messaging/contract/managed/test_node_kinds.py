"""A queue and an exchange may have one name: the type of the node says which is meant."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from messaging.conftest import Target, is_gone

from qmf.client import BrokerAgent
from qmf.messaging import Empty, NotFound, Receiver, ResolutionError, Session

pytestmark = pytest.mark.only("embedded", "qpidd")


@pytest.fixture
def name(agent: BrokerAgent) -> Iterator[str]:
    """Of a queue and of an exchange."""
    name = f"both-{uuid.uuid4().hex[:8]}"
    agent.addQueue(name)
    agent.addExchange("fanout", name)
    yield name
    for delete in (agent.delExchange, lambda name: agent.delQueue(name, if_empty=False, if_unused=False)):
        if (agent.getExchange if delete == agent.delExchange else agent.getQueue)(name) is not None:
            delete(name)


def contents(receiver: Receiver) -> list[object]:
    found = []
    while True:
        try:
            found.append(receiver.fetch(timeout=0).content)
        except Empty:
            return found


def test_the_type_says_which(session: Session, name: str) -> None:
    topic, queue = (session.receiver(f"{name}; {{node: {{type: {kind}}}}}") for kind in ("topic", "queue"))
    session.sender(f"{name}; {{node: {{type: topic}}}}").send("to the exchange")
    session.sender(f"{name}; {{node: {{type: queue}}}}").send("to the queue")
    assert contents(topic) == ["to the exchange"]
    assert contents(queue) == ["to the queue"]
    session.acknowledge()


def test_without_a_type_the_address_is_ambiguous(broker: Target, session: Session, name: str) -> None:
    if broker.name == "qpidd":  # which takes the queue, and writes a warning to its log
        queue = session.receiver(f"{name}; {{node: {{type: queue}}}}")
        session.sender(name).send("x")
        assert contents(queue) == ["x"]
        session.acknowledge()
        return
    for make in (session.sender, session.receiver):
        with pytest.raises(
            ResolutionError, match=f"'{name}' is ambiguous: there are a queue and an exchange"
        ) as caught:
            make(name)
        assert caught.value.code == "amqp:precondition-failed"


@pytest.mark.parametrize("kinds", [("queue", "topic"), ("topic", "queue")])
def test_both_can_be_created_by_addresses(session: Session, agent: BrokerAgent, kinds: tuple[str, str]) -> None:
    name = f"both-{uuid.uuid4().hex[:8]}"
    for kind in kinds:
        session.receiver(f"{name}; {{create: always, node: {{type: {kind}}}}}").close()
    assert agent.getQueue(name) is not None
    assert agent.getExchange(name) is not None
    agent.delExchange(name)
    agent.delQueue(name)
    assert is_gone(session, name)


@pytest.mark.parametrize(("kind", "other"), [("queue", "topic"), ("topic", "queue")])
def test_the_type_says_which_is_deleted(session: Session, agent: BrokerAgent, name: str, kind: str, other: str) -> None:
    session.receiver(f"{name}; {{delete: receiver, node: {{type: {kind}}}}}").close()
    assert is_gone(session, f"{name}; {{node: {{type: {kind}}}}}")
    session.sender(f"{name}; {{node: {{type: {other}}}}}").close()
    assert (agent.getQueue(name) is None) == (kind == "queue")
    assert (agent.getExchange(name) is None) == (kind == "topic")


def test_a_node_of_the_other_kind_is_not_found(broker: Target, session: Session) -> None:
    with pytest.raises(NotFound) as caught:
        session.sender("amq.topic; {node: {type: queue}}")
    if broker.name == "embedded":
        assert "no queue 'amq.topic': it is an exchange" in str(caught.value)


def test_bindings_lead_to_the_queue(session: Session, agent: BrokerAgent, name: str) -> None:
    key = uuid.uuid4().hex
    agent.bind(name, name, key)
    session.sender(f"{name}; {{node: {{type: topic}}}}").send("through the exchange")
    receiver = session.receiver(f"{name}; {{node: {{type: queue}}}}")
    assert receiver.fetch(timeout=10).content == "through the exchange"
    session.acknowledge()
    agent.unbind(name, name, key)
