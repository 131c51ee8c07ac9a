"""Connections that are cut: what comes back, what is sent again, and what is reported."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from support.proxy import Proxy
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.messaging import (
    AcknowledgementUnknown,
    Connection,
    ConnectionClosed,
    ConnectionError,
    Detached,
    Empty,
    Message,
    MessagingError,
    Timeout,
    TransactionAborted,
)

QUEUE = "{create: always, node: {type: queue}}"
QUICK = {"reconnect": True, "reconnect_interval_min": 0.01, "reconnect_interval_max": 0.05}

#: Messages and cuts of the long test.
MESSAGES, CUTS = int(os.environ.get("QMF_SOAK_MESSAGES", "3000")), int(os.environ.get("QMF_SOAK_CUTS", "10"))


@pytest.fixture
def proxy(embedded: str) -> Iterator[Proxy]:
    with Proxy(embedded) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: Proxy) -> Iterator[Connection]:
    """A connection that reconnects."""
    with Connection.establish(proxy.url, timeout=10, **QUICK) as connection:
        yield connection


def cut(proxy: Proxy, connection: Connection) -> None:
    """End the connection, and wait until it is noticed and there is another."""
    proxy.refuse(True)
    proxy.cut()
    wait_until(lambda: not connection.attached())
    proxy.refuse(False)
    wait_until(connection.attached)


def test_sessions_and_links_come_back(proxy: Proxy, connection: Connection) -> None:
    session = connection.session()
    sender, receiver = session.sender(f"back; {QUEUE}"), session.receiver("back", capacity=5)
    for number in range(3):
        cut(proxy, connection)
        sender.send(str(number), timeout=10)
        assert receiver.fetch(timeout=10).content == str(number)
        session.acknowledge()
    assert proxy.cuts >= 3


def test_what_was_not_acknowledged_comes_again_and_what_was_does_not(proxy: Proxy, connection: Connection) -> None:
    session = connection.session()
    sender, receiver = session.sender(f"again; {QUEUE}"), session.receiver("again", capacity=5)
    sender.send("kept")
    sender.send("done")
    kept, done = receiver.fetch(timeout=10), receiver.fetch(timeout=10)
    session.acknowledge(done)
    cut(proxy, connection)
    with pytest.raises(AcknowledgementUnknown):
        session.acknowledge()  # the delivery of `kept` is gone with its link
    message = receiver.fetch(timeout=10)
    assert message.content == kept.content
    assert message.redelivered
    session.acknowledge()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)


def test_messages_wait_while_there_is_no_connection(proxy: Proxy, connection: Connection) -> None:
    session = connection.session()
    sender = session.sender(f"wait; {QUEUE}")
    proxy.refuse(True)
    proxy.cut()
    wait_until(lambda: not connection.attached())
    for number in range(10):
        sender.send(str(number), sync=False)
    assert sender.unsettled() == 10
    with pytest.raises(Timeout, match=r"within 0\.1 s"):
        sender.send("late", timeout=0.1)
    with pytest.raises(Timeout):
        sender.sync(timeout=0.1)
    proxy.refuse(False)
    sender.sync(timeout=20)
    receiver = session.receiver("wait")
    assert [receiver.fetch(timeout=10).content for _ in range(11)] == [*map(str, range(10)), "late"]
    session.acknowledge()


def test_an_open_transaction_is_reported_as_aborted(proxy: Proxy, connection: Connection) -> None:
    plain = connection.session()
    session = connection.session(transactional=True)
    sender = session.sender(f"aborted; {QUEUE}")
    watcher = plain.receiver("aborted")
    sender.send("lost")
    cut(proxy, connection)
    with pytest.raises(TransactionAborted, match="the connection was lost"):
        session.commit(timeout=10)
    sender.send("kept", timeout=10)
    session.commit(timeout=10)
    assert watcher.fetch(timeout=10).content == "kept"
    with pytest.raises(Empty):
        watcher.fetch(timeout=0)
    plain.acknowledge()


def test_a_transaction_without_use_is_not_aborted(proxy: Proxy, connection: Connection) -> None:
    session = connection.session(transactional=True)
    sender = session.sender(f"unused; {QUEUE}")
    cut(proxy, connection)
    sender.send("kept", timeout=10)
    session.commit(timeout=10)
    plain = connection.session()
    assert plain.receiver("unused").fetch(timeout=10).content == "kept"
    plain.acknowledge()


def test_without_reconnect_every_call_reports_the_loss(proxy: Proxy) -> None:
    seen: list[object] = []
    connection = Connection.establish(proxy.url, timeout=10)
    connection.set_async_exception_notify_handler(lambda endpoint, error: seen.append((endpoint, error)))
    session = connection.session()
    sender, receiver = session.sender(f"lost; {QUEUE}"), session.receiver("lost")
    caught: list[MessagingError] = []

    def fetch() -> None:
        try:
            receiver.fetch()
        except MessagingError as error:
            caught.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    wait_until(lambda: receiver.capacity == 0)
    proxy.cut()
    thread.join(20)
    assert len(caught) == 1
    assert isinstance(caught[0], ConnectionClosed)
    for call in (lambda: sender.send("x"), lambda: receiver.fetch(), session.acknowledge, lambda: session.sender("y")):
        with pytest.raises(ConnectionError, match="lost"):
            call()
    assert connection.get_error() is caught[0]
    assert seen
    connection.close()
    assert not connection.opened()


def test_reconnecting_ends_at_its_limit(proxy: Proxy) -> None:
    with Connection.establish(proxy.url, timeout=10, **QUICK, reconnect_limit=3) as connection:
        session = connection.session()
        sender = session.sender(f"limit; {QUEUE}")
        proxy.refuse(True)
        proxy.cut()
        wait_until(lambda: connection.get_error() is not None)
        with pytest.raises(ConnectionError):
            sender.send("x")


def test_a_connection_that_is_closed_while_it_reconnects_ends_at_once() -> None:
    """Whatever moment of an attempt is interrupted."""
    for _ in range(8):
        with EmbeddedBroker() as broker, Proxy(broker.url) as proxy:
            connection = Connection.establish(proxy.url, timeout=10, **QUICK)
            connection.session().sender(f"q; {QUEUE}")
            broker.close()
            started = time.monotonic()
            connection.close()
            assert time.monotonic() - started < 5


def test_other_urls_are_tried(proxy: Proxy, embedded: str) -> None:
    with Connection.establish("127.0.0.1:1", timeout=10, reconnect_urls=[proxy.url, embedded], **QUICK) as connection:
        assert connection.attached()
        proxy.refuse(True)
        proxy.cut()
        wait_until(lambda: connection.attached() and proxy.cuts == 1)
        session = connection.session()
        session.sender(f"others; {QUEUE}").send("x", timeout=10)


def test_a_detached_connection_is_not_reconnected(proxy: Proxy, connection: Connection) -> None:
    session = connection.session()
    sender = session.sender(f"detached; {QUEUE}")
    connection.detach()
    with pytest.raises(Detached):
        sender.send("x")
    connection.attach(timeout=10)
    sender.send("x", timeout=10)


@pytest.mark.slow
def test_at_least_once_loses_nothing(proxy: Proxy) -> None:
    """Both sides are cut off again and again, while messages flow."""
    chance = random.Random(7)
    received: set[int] = set()

    def send() -> None:
        with Connection.establish(proxy.url, timeout=20, **QUICK) as connection:
            sender = connection.session().sender(f"flow; {QUEUE}", capacity=200)
            for number in range(MESSAGES):
                if number % 1000 == 0:  # the queue has an end
                    wait_until(partial(has_come, received, number - 5000, Future()), timeout=120)
                sender.send({"n": number}, sync=False, timeout=60)
            sender.sync(timeout=60)

    def receive() -> None:
        with Connection.establish(proxy.url, timeout=20, **QUICK) as connection:
            session = connection.session()
            receiver = session.receiver(f"flow; {QUEUE}", capacity=100)
            while len(received) < MESSAGES:
                received.add(receiver.fetch(timeout=60).content["n"])
                session.acknowledge(sync=False)

    with ThreadPoolExecutor(2) as pool:
        sending, receiving = pool.submit(send), pool.submit(receive)
        step = MESSAGES // (CUTS + 2)
        for number in range(1, CUTS + 1):
            goal = number * step + chance.randrange(1 + step // 2)
            wait_until(partial(has_come, received, goal, receiving), timeout=120)
            wait_until(partial(has_cut, proxy, number, receiving), timeout=120)
        sending.result(300)
        receiving.result(300)
    assert received == set(range(MESSAGES))
    assert proxy.cuts >= CUTS


def has_cut(proxy: Proxy, number: int, receiving: Future[None]) -> bool:
    """Cut what is connected; True once so many connections were cut: there may be none while both connect again."""
    proxy.cut()
    return proxy.cuts >= number or receiving.done()


def has_come(received: set[int], goal: int, receiving: Future[None]) -> bool:
    return len(received) >= goal or receiving.done()


def test_redelivered_messages_say_so(proxy: Proxy, connection: Connection) -> None:
    session = connection.session()
    session.sender(f"redelivered; {QUEUE}").send(Message("x", durable=True, ttl=30.0))
    receiver = session.receiver("redelivered")
    assert not receiver.fetch(timeout=10).redelivered
    cut(proxy, connection)
    message = receiver.fetch(timeout=10)
    assert message.redelivered
    assert message.durable
    assert message.ttl is not None
    session.acknowledge(message)
