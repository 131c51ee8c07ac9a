"""Options of queues and exchanges, used by clients: the manual's cheat sheets and its program for last values."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from qmf.broker import EmbeddedBroker
from qmf.broker.nodes.settings import Lifetime, OverflowPolicy, QueueLimits, SubscriptionSettings
from qmf.messaging import Connection, Message, Session
from qmf.messaging.exceptions import Empty, ResolutionError, SendError, TargetCapacityExceeded

WAIT_LIMIT = 30


@pytest.fixture
def session() -> Iterator[Session]:
    with EmbeddedBroker() as broker:
        connection = Connection(broker.url)
        connection.open()
        try:
            yield connection.session()
        finally:
            connection.close()


def queue(name: str, arguments: str, more: str = "") -> str:
    """The address of a queue that is created with arguments."""
    return f"{name}; {{create: always, node: {{x-declare: {{{more} arguments: {{{arguments}}}}}}}}}"


def exchange(name: str, kind: str, arguments: str) -> str:
    return f"{name}; {{create: always, node: {{type: topic, x-declare: {{type: {kind}, arguments: {{{arguments}}}}}}}}}"


def received(session: Session, address: str, count: int) -> list[Message]:
    receiver = session.receiver(address)
    try:
        return [receiver.fetch(timeout=WAIT_LIMIT) for _ in range(count)]
    finally:
        session.acknowledge()
        receiver.close()


def contents(session: Session, address: str, count: int) -> list[object]:
    """What comes first, and nothing more."""
    receiver = session.receiver(address)
    found = [receiver.fetch(timeout=WAIT_LIMIT).content for _ in range(count)]
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()
    receiver.close()
    return found


class LvqTest:
    """The program of the manual's chapter 6, whose options are the names of the methods."""

    def __init__(self, session: Session, arguments: str) -> None:
        self._session = session
        self._sender = session.sender(queue("LVQtester", arguments))

    def write(self, address: str) -> None:
        for key in ("key1", "key2", "key3", "key1"):
            message = Message(f"{key}.{address}", properties={"qpid.LVQ_key": key})
            self._sender.send(message, timeout=WAIT_LIMIT)
        self._sender.send(Message("last", properties={"qpid.LVQ_key": "last"}), timeout=WAIT_LIMIT)

    def browse(self, count: int) -> list[object]:
        return contents(self._session, "LVQtester; {mode: browse}", count)

    def consume(self, count: int) -> list[object]:
        return contents(self._session, "LVQtester", count)


def listing(address: str) -> list[object]:
    return [f"key1.{address}", f"key2.{address}", f"key3.{address}", "last"]


def test_the_listing_of_lvq(session: Session) -> None:
    lvqtest = LvqTest(session, "'qpid.last_value_queue': 1")
    lvqtest.write("one")
    assert lvqtest.browse(4) == listing("one")
    lvqtest.write("two")
    assert lvqtest.browse(4) == listing("two")
    assert lvqtest.consume(8) == listing("one") + listing("two")


def test_the_listing_of_lvq_no_browse(session: Session) -> None:
    lvqtest = LvqTest(session, "'qpid.last_value_queue_no_browse': 1")
    lvqtest.write("one")
    lvqtest.write("two")
    assert lvqtest.browse(4) == listing("two")
    assert lvqtest.browse(4) == listing("two")
    lvqtest.write("three")
    assert lvqtest.consume(4) == listing("three")


def test_a_queue_of_100_000_bytes_that_rejects(session: Session) -> None:
    sender = session.sender(queue("small", "'qpid.max_size': 100000, 'qpid.policy_type': reject"))
    for _ in range(9):
        sender.send("x" * 11_000, timeout=WAIT_LIMIT)
    with pytest.raises(TargetCapacityExceeded, match="Maximum depth exceeded on small"):
        sender.send("x" * 11_000, timeout=WAIT_LIMIT)


def test_a_ring_of_1000_messages(session: Session) -> None:
    sender = session.sender(queue("ring", "'qpid.max_count': 1000, 'qpid.policy_type': ring"))
    for number in range(1010):
        sender.send(str(number), sync=False)
    sender.sync(timeout=WAIT_LIMIT)
    assert contents(session, "ring; {mode: browse}", 1000)[0] == "10"


def test_messages_of_an_exchange_are_numbered(session: Session) -> None:
    sender = session.sender(exchange("numbered", "direct", "'qpid.msg_sequence': 1"))
    receiver = session.receiver("numbered/k")
    for _ in range(3):
        sender.send(Message("x", subject="k"), timeout=WAIT_LIMIT)
    found = [receiver.fetch(timeout=WAIT_LIMIT).properties["qpid.msg_sequence"] for _ in range(3)]
    assert found == [0, 1, 2]


def test_a_new_receiver_gets_the_initial_value(session: Session) -> None:
    sender = session.sender(exchange("prices", "topic", "'qpid.ive': 1"))
    for price in ("1", "2"):
        sender.send(Message(price, subject="stock.ibm"), timeout=WAIT_LIMIT)
    assert contents(session, "prices/stock.#", 1) == ["2"]
    assert contents(session, "prices/bond.#", 0) == []


def test_an_exclusive_binding_takes_a_key_over(session: Session) -> None:
    binding = "{exchange: 'amq.direct', key: k, arguments: {'qpid.exclusive-binding': 1}}"
    for name in ("one", "two"):
        session.sender(f"{name}; {{create: always, node: {{x-bindings: [{binding}]}}}}")
        session.sender("amq.direct/k").send(name, timeout=WAIT_LIMIT)
    assert (contents(session, "one", 1), contents(session, "two", 1)) == (["one"], ["two"])


def test_higher_priorities_are_received_first(session: Session) -> None:
    sender = session.sender(queue("urgent", "'qpid.priorities': 10"))
    for priority in (1, 9, 5, 9):
        sender.send(Message(str(priority), priority=priority), timeout=WAIT_LIMIT)
    assert contents(session, "urgent", 4) == ["9", "9", "5", "1"]


def test_senders_to_a_long_queue_wait_until_it_has_drained(session: Session) -> None:
    sender = session.sender(queue("slow", "'qpid.flow_stop_count': 300, 'qpid.flow_resume_count': 100"), capacity=2_000)
    for number in range(2_000):
        sender.send(str(number), sync=False)
    receiver = session.receiver("slow", capacity=10)
    found = []
    for _ in range(2_000):
        found.append(receiver.fetch(timeout=WAIT_LIMIT).content)
        session.acknowledge(sync=False)
    sender.sync(timeout=WAIT_LIMIT)
    assert found == [str(number) for number in range(2_000)]


def test_a_queue_to_browse_only_is_not_consumed(session: Session) -> None:
    session.sender(queue("shown", "'qpid.browse-only': True")).send("x", timeout=WAIT_LIMIT)
    assert contents(session, "shown; {mode: browse}", 1) == ["x"]
    with pytest.raises(ResolutionError, match="Queue shown is browse only"):
        session.receiver("shown")


def test_a_filter_decides_what_a_queue_keeps(session: Session) -> None:
    sender = session.sender(queue("red", "'qpid.filter': \"colour = 'red'\""))
    for colour in ("blue", "red"):
        sender.send(Message(colour, properties={"colour": colour}), timeout=WAIT_LIMIT)
    assert contents(session, "red", 1) == ["red"]


def test_wrong_arguments_are_named(session: Session) -> None:
    for arguments, error in (
        ("'qpid.max_count': many", r"qpid\.max_count: must be a number"),
        ("'qpid.policy_type': shrink", r"qpid\.policy_type: must be reject, ring, ring-strict"),
        ("'qpid.priorities': 11", r"qpid\.priorities: must be a number from 0 to 10"),
    ):
        with pytest.raises(ResolutionError, match=rf"{error}.*amqp:invalid-field"):
            session.sender(queue("wrong", arguments))
    assert issubclass(TargetCapacityExceeded, SendError)


def test_queues_drop_their_oldest_messages_and_may_go_with_their_link() -> None:
    settings = SubscriptionSettings(QueueLimits(7, 8))
    lasting = settings.lasting
    assert (lasting.exclusive, lasting.auto_delete, lasting.overflow) == (True, False, OverflowPolicy.RING)
    assert (lasting.limits, lasting.keeps_large) == (QueueLimits(7, 8), True)
    wanted = attrs.evolve(lasting, auto_delete=True, lifetime=Lifetime.ON_CLOSE)
    assert settings.until_close(lasting) == wanted
    assert settings.until_close(lasting) is settings.until_close(lasting)
    other = attrs.evolve(lasting, excluded="me")
    assert settings.until_close(other) == attrs.evolve(wanted, excluded="me")
