"""Exactly-once: connections that are cut at every point of a transfer, and links that are resumed."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import attrs
import pytest
from support.flow import BACKLOG, Flow
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import wait_until

from qmf.broker import AmqpOptions, EmbeddedBroker
from qmf.messaging import (
    REJECTED,
    RELEASED,
    Connection,
    Disposition,
    Empty,
    InvalidOption,
    LinkError,
    ResolutionError,
    SendError,
    Session,
)

ONCE = "{create: always, node: {type: queue}, link: {reliability: exactly-once}}"
QUEUE = "{create: always, node: {type: queue}}"
QUICK = {"reconnect": True, "reconnect_interval_min": 0.01, "reconnect_interval_max": 0.05}
TRANSFER, DISPOSITION, ATTACH, FLOW = (
    Performative.TRANSFER,
    Performative.DISPOSITION,
    Performative.ATTACH,
    Performative.FLOW,
)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def cutter(broker: EmbeddedBroker) -> Iterator[FrameCutter]:
    with FrameCutter(broker.url) as cutter:
        yield cutter


@pytest.fixture
def session(cutter: FrameCutter) -> Iterator[Session]:
    """Of a connection that reconnects, and is cut."""
    with Connection.establish(cutter.url, timeout=10, **QUICK) as connection:
        yield connection.session()


@pytest.fixture
def safe(broker: EmbeddedBroker) -> Iterator[Session]:
    """Of a connection that is never cut."""
    with Connection.establish(broker.url, timeout=10) as connection:
        yield connection.session()


def drain(session: Session, name: str) -> list[object]:
    receiver = session.receiver(name)
    found = []
    while True:
        try:
            found.append(receiver.fetch(timeout=0).content)
        except Empty:
            session.acknowledge()
            receiver.close()
            return found


#: Where a sender's connection is cut, while it sends five messages; some twice in a row.
SENDER_CUTS = [
    *[[Cut(TRANSFER, True, count, passed)] for count in (1, 3, 5) for passed in (True, False)],
    *[[Cut(TRANSFER, True, count, late=True)] for count in (1, 3)],
    *[[Cut(DISPOSITION, False, 1, passed)] for passed in (True, False)],
    *[[Cut(DISPOSITION, True, 1, passed)] for passed in (True, False)],
    *[[Cut(FLOW, False, 1, passed)] for passed in (True, False)],
    [Cut(TRANSFER, True, 2), Cut(ATTACH, True, 1, False)],
    [Cut(TRANSFER, True, 2), Cut(ATTACH, True, 1)],
    [Cut(TRANSFER, True, 2), Cut(ATTACH, True, 1, late=True)],
    [Cut(TRANSFER, True, 2), Cut(ATTACH, False, 1, False)],
    [Cut(TRANSFER, True, 2), Cut(ATTACH, False, 1)],
    [Cut(TRANSFER, True, 2), Cut(TRANSFER, True, 3), Cut(TRANSFER, True, 4)],
]


@pytest.mark.parametrize("cuts", SENDER_CUTS, ids=str)
def test_a_sender_that_is_cut_off(cutter: FrameCutter, session: Session, safe: Session, cuts: list[Cut]) -> None:
    sender = session.sender(f"q; {ONCE}")
    for cut in cuts:
        cutter.cut_at(attrs.evolve(cut))
    for number in range(5):
        sender.send(str(number), sync=False)
    sender.sync(timeout=20)
    sender.send("last", timeout=20)
    assert drain(safe, "q") == [*"01234", "last"]
    assert cutter.pending == 0 or cuts[0].performative is FLOW


#: Where a receiver's connection is cut, while it receives and acknowledges five messages.
RECEIVER_CUTS = [
    *[[Cut(TRANSFER, False, count, passed)] for count in (1, 3, 5) for passed in (True, False)],
    *[[Cut(DISPOSITION, True, count, passed)] for count in (1, 3) for passed in (True, False)],
    *[[Cut(DISPOSITION, True, count, late=True)] for count in (1, 3)],
    *[[Cut(DISPOSITION, False, count, passed)] for count in (1, 3) for passed in (True, False)],
    *[[Cut(FLOW, True, 1, passed)] for passed in (True, False)],
    [Cut(TRANSFER, False, 3), Cut(ATTACH, True, 1, False)],
    [Cut(TRANSFER, False, 3), Cut(ATTACH, True, 1)],
    [Cut(TRANSFER, False, 3), Cut(ATTACH, True, 1, late=True)],
    [Cut(TRANSFER, False, 3), Cut(ATTACH, False, 1, False)],
    [Cut(TRANSFER, False, 3), Cut(ATTACH, False, 1)],
    [Cut(DISPOSITION, True, 1), Cut(ATTACH, False, 1, False)],
    [Cut(DISPOSITION, True, 1, False), Cut(ATTACH, True, 1)],
    [Cut(DISPOSITION, False, 1, False), Cut(ATTACH, False, 1), Cut(TRANSFER, False, 5, False)],
]


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("capacity", [0, 3, 10])
@pytest.mark.parametrize("cuts", RECEIVER_CUTS, ids=str)
def test_a_receiver_that_is_cut_off(
    cutter: FrameCutter, session: Session, safe: Session, cuts: list[Cut], capacity: int, sync: bool
) -> None:
    sender = safe.sender(f"q; {QUEUE}")
    for number in range(5):
        sender.send(str(number))
    receiver = session.receiver(f"q; {ONCE}", capacity=0)
    for cut in cuts:
        cutter.cut_at(attrs.evolve(cut))
    receiver.capacity = capacity
    seen = []
    for _ in range(5):
        message = receiver.fetch(timeout=20)
        seen.append((message.content, message.redelivered))
        session.acknowledge(sync=sync, timeout=20 if sync else None)
    receiver.close(timeout=20)
    assert seen == [(text, False) for text in "01234"]
    assert drain(safe, "q") == []


def test_fetched_messages_are_acknowledged_after_a_reconnect(
    cutter: FrameCutter, session: Session, safe: Session
) -> None:
    """Those that were not fetched stay with the receiver, too."""
    sender, receiver = safe.sender(f"q; {QUEUE}"), session.receiver(f"q; {ONCE}", capacity=10)
    for text in "abcdef":
        sender.send(text)
    wait_until(lambda: receiver.available() == 6)
    fetched = [receiver.fetch() for _ in range(4)]
    cutter.refuse(True)
    cutter.cut()
    session.acknowledge(fetched[0], sync=False)
    session.acknowledge(fetched[1], Disposition(REJECTED), sync=False)
    session.acknowledge(fetched[2], Disposition(RELEASED), sync=False)
    assert drain(safe, "q") == []
    assert receiver.unsettled() == 3
    cutter.refuse(False)
    session.acknowledge(fetched[3], timeout=20)
    rest = [receiver.fetch(timeout=20).content for _ in range(3)]
    session.acknowledge(timeout=20)
    assert rest == ["e", "f", "c"]
    receiver.close(timeout=20)
    assert drain(safe, "q") == []


def test_what_was_not_fetched_returns_when_the_receiver_is_closed(
    cutter: FrameCutter, session: Session, safe: Session
) -> None:
    sender, receiver = safe.sender(f"q; {QUEUE}"), session.receiver(f"q; {ONCE}", capacity=10)
    for text in "abc":
        sender.send(text)
    assert receiver.fetch(timeout=20).content == "a"
    wait_until(lambda: receiver.available() == 2)
    cutter.cut()
    session.acknowledge(sync=False)
    receiver.close(timeout=20)
    assert sorted(map(str, drain(safe, "q"))) == ["b", "c"]


def test_a_detached_connection_resumes_its_links(broker: EmbeddedBroker, safe: Session) -> None:
    with Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session()
        sender, receiver = session.sender(f"q; {ONCE}"), session.receiver(f"q; {ONCE}", capacity=5)
        for text in "abc":
            sender.send(text)
        assert receiver.fetch(timeout=10).content == "a"
        connection.detach()
        assert drain(safe, "q") == []
        connection.attach(timeout=10)
        session.acknowledge(timeout=10)
        assert [receiver.fetch(timeout=10).content for _ in range(2)] == ["b", "c"]
        session.acknowledge(timeout=10)


@pytest.mark.parametrize("what", ["endpoints", "session", "connection"])
def test_what_is_closed_is_not_kept(what: str) -> None:
    """Messages that were not acknowledged are there for others at once."""
    with EmbeddedBroker() as broker, Connection.establish(broker.url, timeout=10) as connection:
        other = Connection.establish(broker.url, timeout=10)
        session = other.session()
        sender, receiver = session.sender(f"q; {ONCE}"), session.receiver(f"q; {ONCE}", capacity=5)
        sender.send("x")
        receiver.fetch(timeout=10)
        if what == "endpoints":
            sender.close()
            receiver.close()
        elif what == "session":
            session.close()
        else:
            other.close()
        assert connection.session().receiver("q").fetch(timeout=10).content == "x"
        other.close()


def test_a_message_that_the_broker_refuses(cutter: FrameCutter, session: Session, safe: Session) -> None:
    limited = "{create: always, node: {type: queue, x-declare: {arguments: {'qpid.max_count': 2}}}, link: {LINK}}"
    sender = session.sender(f"small; {limited.replace('LINK', 'reliability: exactly-once')}")
    sender.send("1")
    sender.send("2")
    cutter.cut_at(Cut(TRANSFER, True))
    with pytest.raises(SendError, match="Maximum depth exceeded on small"):
        sender.send("3", timeout=20)
    assert drain(safe, "small") == ["1", "2"]
    sender.send("4", timeout=20)
    assert drain(safe, "small") == ["4"]


def test_a_topic_is_published_to_once(cutter: FrameCutter, session: Session, safe: Session) -> None:
    receiver = safe.receiver("amq.topic/news", capacity=10)
    sender = session.sender("amq.topic/news; {link: {reliability: exactly-once}}")
    cutter.cut_at(Cut(DISPOSITION, False, passed=False))
    sender.send("x", timeout=20)
    assert receiver.fetch(timeout=5).content == "x"
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("q; {mode: browse, create: always, link: {reliability: exactly-once}}", "mode: browse"),
        ("#; {link: {reliability: exactly-once}}", "temporary node"),
    ],
)
def test_what_is_refused_by_the_client(safe: Session, address: str, reason: str) -> None:
    with pytest.raises(InvalidOption, match=reason):
        safe.receiver(address)


def test_a_subscription_is_refused_by_the_broker(safe: Session) -> None:
    with pytest.raises(ResolutionError, match="only a link that consumes from a named queue can be resumed"):
        safe.receiver("amq.topic; {link: {reliability: exactly-once}}")


def test_not_in_a_transaction(broker: EmbeddedBroker) -> None:
    with Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session(transactional=True)
        for make in (session.sender, session.receiver):
            with pytest.raises(InvalidOption, match="in a transaction"):
                make(f"q; {ONCE}")


# The broker has forgotten the link


def restart(broker: EmbeddedBroker) -> EmbeddedBroker:
    """Another broker in the same place, which knows nothing of the first one's links."""
    broker.close()
    again = EmbeddedBroker(port=broker.port)
    again.start()
    return again


def test_a_sender_reports_messages_whose_fate_is_unknown() -> None:
    with (
        EmbeddedBroker() as broker,
        FrameCutter(broker.url) as cutter,
        Connection.establish(cutter.url, timeout=10, **QUICK) as connection,
    ):
        sender = connection.session().sender(f"q; {ONCE}")
        cutter.cut_at(Cut(DISPOSITION, False, passed=False, refuse=True))
        sender.send("x", sync=False)
        wait_until(lambda: cutter.cuts == 1)
        with restart(broker):
            cutter.refuse(False)
            with pytest.raises(LinkError, match="what became of 1 messages is unknown"):
                sender.sync(timeout=20)
            assert sender.get_error() is not None


def test_a_sender_that_waits_for_nothing_goes_on() -> None:
    with (
        EmbeddedBroker() as broker,
        FrameCutter(broker.url) as cutter,
        Connection.establish(cutter.url, timeout=10, **QUICK) as connection,
    ):
        session = connection.session()
        sender, receiver = session.sender(f"q; {ONCE}"), session.receiver(f"q; {ONCE}", capacity=5)
        sender.send("x", timeout=10)
        assert receiver.fetch(timeout=10).content == "x"
        session.acknowledge(timeout=10)
        sender.send("not fetched", timeout=10)
        wait_until(lambda: receiver.available() == 1)
        cutter.refuse(True)
        cutter.cut()
        wait_until(lambda: not connection.attached())
        with restart(broker):
            cutter.refuse(False)
            sender.send("y", timeout=20)
            assert receiver.fetch(timeout=10).content == "y"
            session.acknowledge(timeout=10)


def test_a_receiver_reports_acknowledgements_whose_fate_is_unknown() -> None:
    with (
        EmbeddedBroker() as broker,
        FrameCutter(broker.url) as cutter,
        Connection.establish(cutter.url, timeout=10, **QUICK) as connection,
    ):
        session = connection.session()
        sender, receiver = session.sender(f"q; {QUEUE}"), session.receiver(f"q; {ONCE}", capacity=5)
        sender.send("x")
        receiver.fetch(timeout=10)
        cutter.refuse(True)
        cutter.cut()
        with restart(broker):
            cutter.refuse(False)
            with pytest.raises(LinkError, match="what became of 1 messages is unknown"):
                session.acknowledge(timeout=20)


# At random


def announce(cutter: FrameCutter, chance: random.Random) -> None:
    """Have the cutter cut a connection at a random frame."""
    kind, most = chance.choice([(None, 30), (TRANSFER, 20), (TRANSFER, 2), (DISPOSITION, 1), (FLOW, 1), (ATTACH, 1)])
    if kind is ATTACH:  # the next reconnect is cut off as well
        cutter.cut_at(Cut(ATTACH, chance.random() < 0.5, 1, chance.random() < 0.5))
        kind, most = TRANSFER, 10
    to_broker = chance.random() < 0.5
    late = to_broker and chance.random() < 0.3
    cutter.cut_at(Cut(kind, to_broker, chance.randrange(most) + 1, late or chance.random() < 0.5, late))


def cut_flow(
    cutter: FrameCutter,
    chance: random.Random,
    *,
    address: str,
    count: int,
    cuts: int,
    capacity: int,
    backlog: int = BACKLOG,
) -> Counter[int]:
    """Send and receive so many messages with so many cuts; how often each message was received."""
    flow = Flow(
        cutter.url,
        address,
        count,
        interruptions=cuts,
        interrupt=partial(announce, cutter, chance),
        ready=lambda: cutter.pending == 0,
        capacity=capacity,
        backlog=backlog,
    )
    flow.run()
    return flow.seen


#: Messages and cuts of the long test.
MESSAGES, CUTS = int(os.environ.get("QMF_SOAK_MESSAGES", "100000")), int(os.environ.get("QMF_SOAK_CUTS", "100"))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "max_frame"), [(1, 65536), (2, 65536), (3, 2048)])
def test_nothing_is_lost_and_nothing_comes_twice(seed: int, max_frame: int) -> None:
    count = 3000
    with EmbeddedBroker(amqp=AmqpOptions(max_frame=max_frame)) as broker, FrameCutter(broker.url) as cutter:
        # The sender does not get far ahead: a cut that is due at a frame of the receiver comes while it still sends.
        seen = cut_flow(
            cutter, random.Random(seed), address=f"q; {ONCE}", count=count, cuts=40, capacity=50, backlog=200
        )
        assert seen == Counter(range(count))
        assert cutter.cuts >= 4
        with Connection.establish(broker.url, timeout=10) as connection:
            assert drain(connection.session(), "q") == []


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("reliability", ["exactly-once", "at-least-once"])
def test_soak(cutter: FrameCutter, safe: Session, reliability: str) -> None:
    """Connections of sender and receiver are cut at random points, again and again."""
    address = f"q; {ONCE.replace('exactly-once', reliability)}"
    seen = cut_flow(cutter, random.Random(11), address=address, count=MESSAGES, cuts=CUTS, capacity=300)
    duplicates = seen.total() - len(seen)
    print(f"{reliability}: {MESSAGES} messages, {cutter.cuts} cuts, {duplicates} duplicates")
    assert seen.keys() == set(range(MESSAGES))
    assert cutter.cuts >= CUTS
    if reliability == "exactly-once":
        assert duplicates == 0
        assert drain(safe, "q") == []
