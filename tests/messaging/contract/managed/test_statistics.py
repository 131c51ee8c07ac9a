"""What the broker's agent counts, with the numbers that Apache qpidd has."""

from __future__ import annotations

import uuid

import pytest

from qmf.client import BrokerAgent
from qmf.messaging import REJECTED, RELEASED, Connection, Disposition, Empty, Message, SendError, Session

pytestmark = pytest.mark.only("embedded", "qpidd")


@pytest.fixture
def name() -> str:
    return f"counted-{uuid.uuid4().hex[:8]}"


def test_messages_that_end_with_their_queue(connection: Connection, agent: BrokerAgent, name: str) -> None:
    for alternate, counter in (
        ("", "abandoned"),
        (", node: {x-declare: {alternate-exchange: amq.fanout}}", "abandonedViaAlt"),
    ):
        before = agent.getBroker()
        session = connection.session()
        sender = session.sender(f"{name}; {{create: always, delete: always{alternate}}}")
        receiver = session.receiver(name, capacity=2)
        for _ in range(5):
            sender.send("x")
        receiver.fetch(timeout=10)
        session.close()
        after = agent.getBroker()
        changes = {item: getattr(after, item) - getattr(before, item) for item in ("abandoned", "abandonedViaAlt")}
        assert changes == {"abandoned": 0, "abandonedViaAlt": 0} | {counter: 5}


def test_messages_of_a_queue(session: Session, agent: BrokerAgent, name: str) -> None:
    sender, receiver = session.sender(f"{name}; {{create: always, delete: always}}"), session.receiver(name)
    queue = agent.getQueue(name)
    assert queue is not None

    def counts() -> list[int]:
        queue.update()
        return [queue.msgTotalEnqueues, queue.msgTotalDequeues, queue.msgDepth, queue.acquires, queue.releases]

    assert counts() == [0, 0, 0, 0, 0]
    for _ in range(4):
        sender.send("x" * 10)
    assert counts() == [4, 0, 4, 0, 0]
    size = queue.byteTotalEnqueues
    assert size >= 40
    messages = [receiver.fetch(timeout=10) for _ in range(3)]
    session.acknowledge(messages[0])
    session.acknowledge(messages[1], Disposition(RELEASED))
    session.acknowledge(messages[2], Disposition(REJECTED))
    assert counts() == [4, 2, 2, 3, 1]
    assert (queue.discardsSubscriber, queue.byteDepth) == (1, size // 2)
    assert (queue.byteTotalDequeues, queue.byteTotalEnqueues) == (size // 2, size)


@pytest.mark.parametrize(
    ("arguments", "number", "counter", "depth"),
    [
        ("'qpid.max_count': 3, 'qpid.policy_type': ring", 5, "discardsRing", 3),
        ("'qpid.last_value_queue_key': key", 4, "discardsLvq", 1),
        ("'qpid.max_count': 3, 'qpid.flow_stop_count': 0", 4, "discardsOverflow", 3),
    ],
)
def test_messages_that_a_queue_discards(
    connection: Connection, agent: BrokerAgent, name: str, arguments: str, number: int, counter: str, depth: int
) -> None:
    before = agent.getBroker()
    sender = connection.session().sender(
        f"{name}; {{create: always, node: {{x-declare: {{arguments: {{{arguments}}}}}}}}}"
    )
    for item in range(number):
        try:
            sender.send(Message(str(item), properties={"key": "a"}))
        except SendError:  # of qpidd one that says less
            assert (counter, item) == ("discardsOverflow", 3)
    queue, after = agent.getQueue(name), agent.getBroker()
    assert queue is not None
    assert getattr(queue, counter) == getattr(after, counter) - getattr(before, counter) == number - depth
    assert queue.msgDepth == depth
    agent.delQueue(name, if_empty=False, if_unused=False)


@pytest.mark.slow
def test_messages_that_expire(session: Session, agent: BrokerAgent, name: str) -> None:
    before = agent.getBroker()
    sender = session.sender(f"{name}; {{create: always, delete: always}}")
    for _ in range(3):
        sender.send(Message("x", ttl=0.05))
    with pytest.raises(Empty):
        session.receiver("#").fetch(timeout=0.1)  # until they have expired
    with pytest.raises(Empty):
        session.receiver(name).fetch(timeout=0)
    queue = agent.getQueue(name)
    assert queue is not None
    assert (queue.discardsTtl, queue.msgTotalDequeues) == (3, 3)
    after = agent.getBroker()
    assert before is not None
    assert after is not None
    assert after.discardsTtl - before.discardsTtl == 3


def test_messages_that_are_moved_by_methods(session: Session, agent: BrokerAgent, name: str) -> None:
    sender = session.sender(f"{name}; {{create: always, delete: always}}")
    for _ in range(6):
        sender.send("x")
    queue = agent.getQueue(name)
    assert queue is not None
    queue.purge(3)
    queue.reroute(2, False, "amq.fanout")
    queue.update()
    assert (queue.discardsPurge, queue.reroutes, queue.msgTotalDequeues, queue.msgDepth) == (3, 2, 5, 1)


def test_messages_of_a_transaction(connection: Connection, agent: BrokerAgent, name: str) -> None:
    session = connection.session(transactional=True)
    sender = session.sender(f"{name}; {{create: always, delete: always}}")
    for _ in range(4):
        sender.send("x")
    queue = agent.getQueue(name)
    assert queue is not None

    def counts() -> list[int]:
        queue.update()
        return [queue.msgTotalEnqueues, queue.msgTxnEnqueues, queue.msgTotalDequeues, queue.msgTxnDequeues]

    assert counts() == [0, 0, 0, 0]
    session.commit(timeout=10)
    assert counts() == [4, 4, 0, 0]
    receiver = session.receiver(name)
    for _ in range(4):
        receiver.fetch(timeout=10)
    session.acknowledge()
    assert counts() == [4, 4, 0, 0]
    session.commit(timeout=10)
    assert counts() == [4, 4, 4, 4]


def test_messages_of_an_exchange(session: Session, agent: BrokerAgent, name: str) -> None:
    agent.addExchange("direct", name)
    kept, dropped, receiver = (session.sender(f"{name}/a"), session.sender(f"{name}/b"), session.receiver(f"{name}/a"))
    for _ in range(2):
        kept.send("x")
        dropped.send("x")
    exchange = agent.getExchange(name)
    assert exchange is not None
    assert (exchange.msgReceives, exchange.msgRoutes, exchange.msgDrops) == (4, 2, 2)
    assert exchange.byteReceives == exchange.byteRoutes + exchange.byteDrops == 2 * exchange.byteRoutes > 4
    receiver.close()
    agent.delExchange(name)


def test_bindings_of_a_queue(agent: BrokerAgent, name: str) -> None:
    """Those of exchanges that are deleted don't count any more."""
    agent.addQueue(name)
    queue = agent.getQueue(name)
    assert queue is not None

    def count() -> int:
        queue.update()
        return int(queue.bindingCount)

    assert count() == 1
    exchanges = {f"{name}-{kind}": kind for kind in ("direct", "fanout", "topic", "headers")}
    for exchange, kind in exchanges.items():
        agent.addExchange(kind, exchange)
        for key in ("key1", "key2"):
            if kind != "fanout" or key == "key1":
                agent.bind(exchange, name, key, {"x-match": "all", key: "value"} if kind == "headers" else {})
    assert count() == 8
    for exchange, kind in exchanges.items():
        if kind != "fanout":
            agent.unbind(exchange, name, "key2")
    assert count() == 5
    for exchange in exchanges:
        agent.delExchange(exchange)
    assert count() == 1
    agent.delQueue(name)


def test_messages_of_a_connection(connection: Connection, agent: BrokerAgent, broker: object, name: str) -> None:
    session = connection.session()
    session.sender(f"{name}; {{create: always, delete: always}}").send("x")
    session.receiver(name).fetch(timeout=10)
    session.acknowledge()
    own = [item for item in agent.getAllConnections() if item.msgsFromClient >= 1 and item.msgsToClient >= 1]
    assert own
