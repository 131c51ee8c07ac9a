"""Senders, receivers, sessions and connections: capacity, order of arrival, threads, and what is closed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from messaging.conftest import MakeQueue, Target
from support.waiting import wait_until

from qmf.messaging import (
    UNLIMITED,
    AuthenticationFailure,
    Connection,
    ConnectionClosed,
    Empty,
    LinkClosed,
    Session,
    SessionClosed,
)


def test_capacity_of_a_sender(session: Session, queue: MakeQueue) -> None:
    sender = session.sender(queue(), capacity=2)
    for number in range(20):
        sender.send(str(number), sync=False, timeout=10)
        assert sender.unsettled() <= 2
    sender.sync(timeout=10)
    assert sender.available() == 2
    sender.capacity = UNLIMITED
    assert sender.available() is UNLIMITED


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads are interrupted at many more places than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("capacity", [50, 1000])
def test_threads_that_send_at_the_same_time(session: Session, queue: MakeQueue, capacity: int) -> None:
    address, count = queue(), 1500
    sender = session.sender(address, capacity=capacity)

    def send(name: str) -> None:
        for number in range(count):
            sender.send([name, number], sync=False, timeout=30)

    with ThreadPoolExecutor(3) as pool:
        for task in [pool.submit(send, name) for name in "abc"]:
            task.result()
    session.sync(timeout=30)
    assert (sender.unsettled(), sender.available()) == (0, capacity)
    receiver = session.receiver(address, capacity=100)
    found = [receiver.fetch(timeout=30).content for _ in range(3 * count)]
    for name in "abc":
        assert [number for by, number in found if by == name] == list(range(count))
    session.acknowledge()


@pytest.mark.parametrize("lowered", [0, 2])
def test_a_capacity_that_is_lowered_returns_what_was_not_fetched(
    broker: Target, session: Session, queue: MakeQueue, lowered: int
) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=10)
    for text in "abcde":
        sender.send(text)
    assert receiver.fetch(timeout=10).content == "a"
    wait_until(lambda: receiver.available() == 4)
    receiver.capacity = lowered
    assert receiver.capacity == lowered
    wait_until(lambda: receiver.available() == lowered)
    with broker.Connection.establish(broker.url, timeout=10) as connection:
        own = connection.session()
        other = own.receiver(address, capacity=10)
        sender.send("f")
        left = "abcdef"[1 + lowered :]
        assert [other.fetch(timeout=10).content for _ in left] == [*left]
        own.acknowledge()
    found = [receiver.fetch(timeout=10).content for _ in range(lowered)]
    assert found == [*"bc"][:lowered]
    sender.send("g")
    assert receiver.fetch(timeout=10).content == "g"
    session.acknowledge()
    receiver.capacity = 10
    for text in "hij":
        sender.send(text)
    wait_until(lambda: receiver.available() == 3)
    assert [receiver.fetch(timeout=10).content for _ in range(3)] == [*"hij"]
    session.acknowledge()


def test_capacity_of_a_receiver(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    for number in range(5):
        sender.send(str(number))
    assert receiver.available() == 0
    receiver.capacity = 3
    wait_until(lambda: receiver.available() == 3)
    assert [receiver.fetch(timeout=10).content for _ in range(5)] == list("01234")
    assert receiver.unsettled() == 0
    session.acknowledge()
    assert receiver.unsettled() == 0


def test_the_bytes_of_a_fetched_message_are_kept_once(session: Session, queue: MakeQueue) -> None:
    address = queue()
    session.sender(address).send(b"x" * 1000)
    message = session.receiver(address).fetch(timeout=10)
    assert message.content == b"x" * 1000
    assert message.delivery.data == b""
    session.acknowledge(message)


@pytest.mark.parametrize("capacity", [0, 1])
def test_messages_for_a_fetch_that_waits_are_beyond_the_capacity(
    session: Session, queue: MakeQueue, capacity: int
) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=capacity)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(receiver.fetch(timeout=20).content))
    thread.start()
    for number in range(5):
        sender.send(str(number))
    thread.join()
    wait_until(lambda: receiver.available() == capacity)
    other = session.receiver(address, capacity=10)
    found += [other.fetch(timeout=10).content for _ in range(4 - capacity)]
    with pytest.raises(Empty):
        other.fetch(timeout=0)
    assert receiver.available() == capacity
    found += [receiver.fetch(timeout=10).content for _ in range(capacity)]
    assert sorted(found) == list("01234")
    session.acknowledge()


def test_next_receiver_follows_the_order_of_arrival(session: Session, queue: MakeQueue) -> None:
    one, two = queue(), queue()
    first, second = session.receiver(one, capacity=5), session.receiver(two, capacity=5)
    session.sender(two).send("2")
    wait_until(lambda: second.available() == 1)
    session.sender(one).send("1")
    wait_until(lambda: first.available() == 1)
    assert session.next_receiver(timeout=10) is second
    second.fetch(timeout=10)
    assert session.next_receiver(timeout=10) is first
    first.fetch(timeout=10)
    with pytest.raises(Empty, match=r"no message within 0\.1 s"):
        session.next_receiver(timeout=0.1)
    session.acknowledge()


def test_a_handler_learns_of_messages(session: Session, queue: MakeQueue) -> None:
    address = queue()
    arrived = threading.Event()
    seen: list[Session] = []

    def handler(which: Session) -> None:
        seen.append(which)
        arrived.set()

    session.set_message_received_handler(handler)
    receiver = session.receiver(address, capacity=1)
    session.sender(address).send("x")
    assert arrived.wait(10)
    assert seen == [session]
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()


@pytest.mark.parametrize("reliability", ["unreliable", "at-most-once", "at-least-once"])
def test_reliability(session: Session, queue: MakeQueue, reliability: str) -> None:
    address = queue().replace("{create", f"{{link: {{reliability: {reliability}}}, create")
    sender = session.sender(address)
    sender.send("x")
    sender.sync(timeout=10)
    assert sender.unsettled() == 0
    assert session.receiver(address).fetch(timeout=10).content == "x"
    session.acknowledge()


def test_any_thread_may_use_a_session(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=20)
    found: list[int] = []

    def send(first: int) -> None:
        for number in range(first, first + 50):
            sender.send({"n": number})

    def fetch() -> None:
        for _ in range(50):
            found.append(receiver.fetch(timeout=20).content["n"])

    threads = [threading.Thread(target=send, args=(first,)) for first in (0, 50, 100)]
    threads += [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.acknowledge()
    assert sorted(found) == list(range(150))


def test_closed_things_say_so(connection: Connection, queue: MakeQueue) -> None:
    session = connection.session()
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.close()
    sender.close()
    assert sender.closed
    with pytest.raises(LinkClosed, match="sender of"):
        sender.send("x")
    receiver.close()
    with pytest.raises(LinkClosed, match="receiver of"):
        receiver.fetch()
    session.close()
    with pytest.raises(SessionClosed):
        session.sender(address)
    connection.close()
    assert not connection.opened()
    with pytest.raises(ConnectionClosed):
        connection.session().sender(address).send("x")


def test_detach_and_attach_keep_sessions_and_links(broker: Target, queue: MakeQueue) -> None:
    with broker.Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session("mine")
        address = queue()
        sender, receiver = session.sender(address), session.receiver(address)
        connection.detach()
        assert connection.opened()
        assert not connection.attached()
        connection.attach(timeout=10)
        assert connection.session("mine") is session
        sender.send("after")
        assert receiver.fetch(timeout=10).content == "after"
        session.acknowledge()


@pytest.mark.only("rabbitmq")
def test_a_wrong_password(broker: Target) -> None:
    with pytest.raises(AuthenticationFailure, match="user 'guest' was refused"):
        broker.Connection.establish(broker.url, timeout=10, username="guest", password="wrong")
