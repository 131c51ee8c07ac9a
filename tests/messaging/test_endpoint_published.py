"""Connections, sessions, senders and receivers, as programs for the published API use them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qmf.messaging import (
    UNLIMITED,
    Connection,
    ConnectionClosed,
    Detached,
    Empty,
    InsufficientCapacity,
    LinkClosed,
    MessagingError,
    Session,
    SessionClosed,
)

QUEUE = "{create: always, delete: always}"


@pytest.fixture
def connection(embedded: str) -> Iterator[Connection]:
    with Connection.establish(embedded, timeout=10) as connection:
        yield connection


def test_what_is_closed(connection: Connection) -> None:
    session = connection.session()
    sender, receiver = session.sender(f"closed; {QUEUE}"), session.receiver("closed")
    for endpoint in (connection, session, sender, receiver):
        endpoint.check_closed()
    assert (session.senders, session.receivers) == ([sender], [receiver])
    assert sender.linked
    receiver.close()
    assert session.receivers == []
    with pytest.raises(LinkClosed, match="receiver of 'closed' is closed"):
        receiver.check_closed()
    session.close()
    assert (sender.linked, sender.closed, session.senders) == (False, True, [])
    with pytest.raises(SessionClosed):
        session.check_closed()
    connection.close()
    with pytest.raises(ConnectionClosed):
        connection.check_closed()
    assert not connection.attached()


def test_a_connection_that_is_not_open() -> None:
    with pytest.raises(ConnectionClosed):
        Connection("nowhere").check_closed()


@pytest.mark.parametrize("close", [lambda session: session.close(), lambda session: session.connection.close()])
def test_what_is_used_after_the_session_was_closed(connection: Connection, close: Callable[[Session], None]) -> None:
    session = connection.session()
    sender, receiver = session.sender(f"used; {QUEUE}"), session.receiver("used")
    close(session)
    for call, kind in (
        (lambda: sender.send("x"), Detached),
        (lambda: receiver.fetch(timeout=10), LinkClosed),
        (lambda: receiver.fetch(timeout=0), LinkClosed),
        (session.acknowledge, SessionClosed),
        (session.next_receiver, SessionClosed),
    ):
        with pytest.raises(MessagingError) as caught:
            call()
        assert type(caught.value) is kind, call


def test_what_is_used_without_a_connection(connection: Connection) -> None:
    session = connection.session()
    sender = session.sender(f"detached; {QUEUE}")
    connection.detach()
    with pytest.raises(Detached):
        sender.send("x")
    with pytest.raises(ConnectionClosed):
        connection.check_closed()
    connection.attach(timeout=10)
    sender.send("x", timeout=10)
    fresh = Connection("nowhere").session().sender("x")
    with pytest.raises(Detached):
        fresh.send("x")


@pytest.mark.parametrize("close", [lambda receiver: receiver.close(), lambda receiver: receiver.session.close()])
def test_a_fetch_that_waits_ends_with_its_receiver(connection: Connection, close: Callable[[Any], None]) -> None:
    receiver = connection.session().receiver(f"waiting; {QUEUE.replace('delete: always', 'delete: never')}")
    caught: list[BaseException] = []

    begun = threading.Event()

    def fetch() -> None:
        begun.set()
        try:
            receiver.fetch(timeout=30)
        except MessagingError as error:
            caught.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    assert begun.wait(20)
    close(receiver)
    thread.join(10)
    assert [type(error) for error in caught] == [LinkClosed]


def test_a_sender_without_capacity(connection: Connection) -> None:
    session = connection.session()
    sender = session.sender(f"capacity; {QUEUE}", capacity=0)
    for sync in (False, True):
        with pytest.raises(InsufficientCapacity, match="capacity of the sender to 'capacity' is 0"):
            sender.send("x", sync=sync)
    sender.capacity = UNLIMITED
    sender.send("x", timeout=10)
    assert sender.available() is UNLIMITED
    assert (sender.threshold, sender.error) == (0.5, None)
    sender.threshold = 0.25


def test_acknowledgements_without_capacity(connection: Connection) -> None:
    session = connection.session()
    session.sender(f"ack; {QUEUE}").send("x")
    receiver = session.receiver("ack")
    message = receiver.fetch(timeout=10)
    assert session.ack_capacity is UNLIMITED
    session.ack_capacity = 0
    for sync in (False, True):
        for which in (None, message):
            with pytest.raises(InsufficientCapacity, match=r"ack_capacity of session .* is 0"):
                session.acknowledge(which, sync=sync)
    session.ack_capacity = 5
    session.acknowledge(message)
    session.ack_capacity = 0
    session.acknowledge()  # nothing to acknowledge
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
