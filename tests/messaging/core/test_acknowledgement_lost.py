"""Acknowledgements whose connection is cut: a call returns when they are confirmed, or says that this is not known."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.messaging import (
    REJECTED,
    RELEASED,
    AcknowledgementUnknown,
    Connection,
    ConnectionClosed,
    Disposition,
    Empty,
    Session,
    TransactionAborted,
)

QUICK = {"reconnect": True, "reconnect_interval_min": 0.01, "reconnect_interval_max": 0.05}
#: Nothing of the acknowledgement arrives; or only its confirmation does not.
UNSENT = Cut(Performative.DISPOSITION, to_broker=True, passed=False)
UNANSWERED = Cut(Performative.DISPOSITION, to_broker=False, passed=False)


@pytest.fixture
def cutter() -> Iterator[FrameCutter]:
    with EmbeddedBroker(queues=["q"]) as broker, FrameCutter(broker.url) as cutter:
        yield cutter


@pytest.fixture
def connection(cutter: FrameCutter) -> Iterator[Connection]:
    with Connection.establish(cutter.url, timeout=10, **QUICK) as connection:
        yield connection


@pytest.fixture
def session(connection: Connection) -> Session:
    """Of a connection that reconnects; three messages are in the queue."""
    session = connection.session()
    sender = session.sender("q")
    for text in "abc":
        sender.send(text)
    return session


def cut_and_reconnect(cutter: FrameCutter, connection: Connection) -> None:
    cutter.refuse(True)
    cutter.cut()
    wait_until(lambda: not connection.attached())
    cutter.refuse(False)
    wait_until(connection.attached)


@pytest.mark.parametrize("disposition", [None, Disposition(REJECTED)])
@pytest.mark.parametrize(("cut", "again"), [(UNSENT, True), (UNANSWERED, False)])
def test_what_was_not_confirmed_is_said(
    cutter: FrameCutter, session: Session, cut: Cut, again: bool, disposition: Disposition | None
) -> None:
    receiver = session.receiver("q", capacity=10)
    first = receiver.fetch(timeout=10)
    cutter.cut_at(attrs.evolve(cut))
    with pytest.raises(AcknowledgementUnknown, match=r"1 of 1 acknowledgements .* may come again"):
        session.acknowledge(first, disposition, timeout=20)
    expected = ["a", "b", "c"] if again else ["b", "c"]
    assert [receiver.fetch(timeout=10).content for _ in expected] == expected
    session.acknowledge()  # nothing is said twice


def test_what_comes_again_is_not_acknowledged_in_silence(
    cutter: FrameCutter, connection: Connection, session: Session
) -> None:
    receiver = session.receiver("q", capacity=10)
    first = receiver.fetch(timeout=10)
    receiver.fetch(timeout=10)
    cut_and_reconnect(cutter, connection)
    assert receiver.unsettled() == 0
    with pytest.raises(AcknowledgementUnknown, match="1 of 1"):
        session.acknowledge(first)
    again = receiver.fetch(timeout=10)
    assert again.content == "a"
    with pytest.raises(AcknowledgementUnknown, match="1 of 2"):
        session.acknowledge()
    cut_and_reconnect(cutter, connection)
    assert receiver.fetch(timeout=10).content == "b"  # of the two, the new one was acknowledged


def test_a_release_needs_no_confirmation(cutter: FrameCutter, connection: Connection, session: Session) -> None:
    receiver = session.receiver("q", capacity=10)
    receiver.fetch(timeout=10)
    cut_and_reconnect(cutter, connection)
    session.acknowledge(disposition=Disposition(RELEASED))
    assert receiver.fetch(timeout=10).content == "a"
    session.acknowledge()


def test_a_receiver_that_was_closed_has_returned_its_messages(session: Session) -> None:
    with session.receiver("q") as receiver:
        receiver.fetch(timeout=10)
    with pytest.raises(AcknowledgementUnknown):
        session.acknowledge()


def test_without_sync_nothing_is_said(cutter: FrameCutter, connection: Connection, session: Session) -> None:
    session.receiver("q").fetch(timeout=10)
    cut_and_reconnect(cutter, connection)
    session.acknowledge(sync=False)
    session.acknowledge()


def test_without_reconnecting_the_reason_is_said(cutter: FrameCutter, session: Session) -> None:
    with Connection.establish(cutter.url, timeout=10) as connection:
        own = connection.session()
        own.receiver("q").fetch(timeout=10)
        cutter.cut_at(attrs.evolve(UNSENT))
        with pytest.raises(ConnectionClosed):
            own.acknowledge(timeout=20)


@pytest.mark.parametrize("cut_late", [False, True])
def test_a_transaction_that_acknowledges_what_was_lost_is_not_committed(
    cutter: FrameCutter, connection: Connection, session: Session, cut_late: bool
) -> None:
    transaction = connection.session(transactional=True)
    receiver = transaction.receiver("q")
    sender = transaction.sender("copies; {create: always, node: {type: queue}}")
    receiver.fetch(timeout=10)
    if not cut_late:
        cut_and_reconnect(cutter, connection)
    sender.send("copy")
    transaction.acknowledge()
    if cut_late:
        cut_and_reconnect(cutter, connection)
    with pytest.raises(TransactionAborted):
        transaction.commit(timeout=20)
    assert receiver.fetch(timeout=10).content == "a"
    transaction.acknowledge()
    transaction.commit(timeout=20)
    with pytest.raises(Empty):
        session.receiver("copies").fetch(timeout=0)
