"""No call waits for longer than its timeout, or for what cannot come any more."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable

import pytest
from bus.peer import Peer
from messaging.failures.conftest import end_session
from messaging.scripted_peer import ScriptedPeer, scripted_peer
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.messaging import (
    Connection,
    Empty,
    InsufficientCapacity,
    MessagingError,
    Session,
    Timeout,
    TransactionUnknown,
    aio,
)
from qmf.messaging.core import outgoing_link


def test_every_call_ends_at_its_timeout(peer: ScriptedPeer, connection: Connection, session: Session) -> None:
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    peer.to_send.append("hello")
    receiver.fetch(timeout=10)
    peer.silent = peer.silent_links = True
    calls: list[Callable[[], object]] = [
        lambda: connection.session(transactional=True, timeout=0.1),
        lambda: session.sender("other", timeout=0.1),
        lambda: session.receiver("other", timeout=0.1),
        lambda: sender.send("x", timeout=0.1),
        lambda: sender.sync(timeout=0.1),
        lambda: session.sync(timeout=0.1),
        lambda: session.next_receiver(timeout=0.1),
        lambda: receiver.fetch(timeout=0.1),
        lambda: session.close(timeout=0.1),
    ]
    for call in calls:
        started = time.monotonic()
        with pytest.raises((Timeout, Empty)):
            call()
        assert time.monotonic() - started < 6
    assert session.closed


@pytest.mark.parametrize("operation", ["commit", "rollback"])
def test_a_transaction_whose_end_is_not_confirmed(peer: ScriptedPeer, connection: Connection, operation: str) -> None:
    session = connection.session(transactional=True, timeout=10)
    sender = session.sender("node", timeout=10)
    sender.send("x", timeout=10)
    session.commit(timeout=10)
    sender.send("y", timeout=10)
    peer.silent = True
    with pytest.raises(Timeout, match=f"no answer to {operation} within 0.1 s"):
        getattr(session, operation)(timeout=0.1)
    calls: list[Callable[[], object]] = [session.commit, session.rollback, lambda: sender.send("z")]
    for call in calls:
        with pytest.raises(TransactionUnknown, match=f"has not answered {operation}"):
            call()
    session.close()


@pytest.mark.parametrize("operation", ["commit", "rollback"])
def test_a_transaction_with_messages_that_are_not_answered(
    peer: ScriptedPeer, connection: Connection, operation: str
) -> None:
    session = connection.session(transactional=True, timeout=10)
    sender = session.sender("node", timeout=10)
    peer.silent = True
    sender.send("x", sync=False)
    with pytest.raises(Timeout, match=f"no answer to {operation} within 0.1 s"):
        getattr(session, operation)(timeout=0.1)
    assert session.get_error() is None


def test_closing_without_a_timeout_ends(
    peer: ScriptedPeer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_link, "CLOSE_TIMEOUT", 0.2)
    session = connection.session()
    sender = session.sender("node", timeout=10)
    peer.silent = True
    sender.send("x", sync=False)
    with pytest.raises(Timeout, match=r"no answer to 1 messages to 'node' for 0\.2 s"):
        connection.close()
    assert session.closed
    assert not connection.opened()


def test_closing_while_a_queue_takes_no_more() -> None:
    """Just what the queue may take is accepted, and closing says how many are not."""
    arguments = "'qpid.flow_stop_count': 5, 'qpid.flow_resume_count': 3"
    with EmbeddedBroker() as broker:
        connection = Connection.establish(broker.url, timeout=10)
        sender = connection.session().sender(
            f"jobs; {{create: always, node: {{x-declare: {{arguments: {{{arguments}}}}}}}}}"
        )
        for _ in range(5):
            sender.send("x", timeout=10)
        sender.send("y", sync=False)
        with pytest.raises(Timeout, match=r"1 messages to 'jobs' not answered within 0\.2 s"):
            connection.close(timeout=0.2)
        with Connection.establish(broker.url, timeout=10) as other:
            receiver = other.session().receiver("jobs")
            assert [receiver.fetch(timeout=10).content for _ in range(5)] == ["x"] * 5
            with pytest.raises(Empty):
                receiver.fetch(timeout=0)


def test_opening_ends_at_its_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = time.monotonic()
        with pytest.raises(Timeout, match=r"within 0\.2 s"):
            Connection.establish(f"127.0.0.1:{server.getsockname()[1]}", timeout=0.2)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("end", ["link", "session", "connection"])
def test_a_wait_for_a_confirmation_ends_with_what_it_waits_for(end: str) -> None:
    with scripted_peer(properties={"product": "qpid-cpp"}) as peer:
        connection = Connection.establish(peer.url, timeout=10)
        session = connection.session()
        receiver = session.receiver("node", timeout=10)
        peer.to_send += ["a", "b"]
        receiver.fetch(timeout=10)
        first = receiver.fetch(timeout=10)
        peer.stop_reading()
        with pytest.raises(Timeout, match=r"not confirmed within 0\.1 s"):
            session.acknowledge(first, timeout=0.1)
        caught: list[MessagingError] = []

        def acknowledge() -> None:
            try:
                session.acknowledge()
            except MessagingError as error:
                caught.append(error)

        thread = threading.Thread(target=acknowledge)
        thread.start()
        wait_until(lambda: receiver.unsettled() == 2)
        ends: dict[str, Callable[[Peer], object]] = {
            "link": lambda connected: connected.engine.links.detach(peer.links[0], "amqp:resource-deleted", "gone"),
            "session": lambda _: end_session(peer.links[0].session, "amqp:internal-error"),
            "connection": lambda connected: connected.transport.abort(),
        }
        peer.do(ends[end])
        thread.join(10)
        assert not thread.is_alive()
        assert end == "connection" or caught
        connection.close(timeout=1)


@pytest.mark.parametrize("sync", [True, False])
def test_a_message_for_which_there_is_no_capacity_in_time_is_not_sent(
    peer: ScriptedPeer, session: Session, sync: bool
) -> None:
    sender = session.sender("node", capacity=2, timeout=10)
    peer.silent = True
    for text in "ab":
        sender.send(text, sync=False)
    for timeout in (0, 0.1):
        text = f"capacity 2 is used up: 2 messages to 'node' without an answer after {timeout:g} s"
        with pytest.raises(InsufficientCapacity, match=text):
            sender.send("c", sync=sync, timeout=timeout)
    assert (sender.unsettled(), sender.available()) == (2, 0)
    wait_until(lambda: peer.received == 2)
    sender.capacity = 3
    sender.send("d", sync=False, timeout=10)
    wait_until(lambda: peer.received == 3)
    with pytest.raises(Timeout):
        sender.close(timeout=0.01)


def test_there_is_capacity_once_the_broker_has_answered(connection: Connection, session: Session) -> None:
    sender = session.sender("node", capacity=1, timeout=10)
    for number in range(20):
        sender.send(str(number), sync=False, timeout=10)
    sender.sync(timeout=10)
    assert (sender.unsettled(), sender.available()) == (0, 1)
    assert connection.opened()


def test_with_asyncio_no_capacity_in_time_is_the_same_error(peer: ScriptedPeer) -> None:
    async def check() -> None:
        async with aio.Connection(peer.url) as connection, connection.session() as session:
            sender = await session.sender("node", capacity=1, timeout=10)
            peer.silent = True
            await sender.send("a", sync=False)
            for sync in (True, False):
                with pytest.raises(InsufficientCapacity, match=r"1 messages to 'node' without an answer after 0\.05 s"):
                    await sender.send("b", sync=sync, timeout=0.05)
            assert sender.unsettled() == 1
            peer.silent = False
            with pytest.raises(Timeout):
                await sender.close(timeout=0.05)

    asyncio.run(check())
