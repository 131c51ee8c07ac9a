"""The handlers of errors and of messages, which run on the thread of the connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from messaging.failures.conftest import end_session
from messaging.scripted_peer import ScriptedPeer
from support.waiting import wait_until

from qmf.bus.engine.values import Outcome
from qmf.messaging import (
    ConnectError,
    Connection,
    LinkClosed,
    NotFound,
    SendError,
    Session,
    TransactionAborted,
)


def test_a_handler_learns_what_failed(
    peer: ScriptedPeer, connection: Connection, watch: Callable[..., None], failed: list[object]
) -> None:
    session = connection.session()
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    watch(session, sender, receiver)
    for endpoint, link in ((receiver, peer.links[1]), (sender, peer.links[0])):
        peer.do(lambda connected, link=link: connected.engine.links.detach(link, "amqp:resource-deleted", "gone"))  # type: ignore[misc]
        wait_until(lambda: bool(failed))
        assert failed == [endpoint]
        failed.clear()
    refused = session.sender("refused", timeout=10)
    watch(refused)
    peer.outcome = Outcome.REJECTED
    refused.send("x", sync=False)
    wait_until(lambda: bool(failed))
    assert failed == [refused]
    failed.clear()
    with pytest.raises(SendError):
        refused.sync(timeout=10)
    with pytest.raises(SendError):
        refused.send("x", timeout=10)
    assert failed == [refused]
    failed.clear()
    raw = peer.links[2].session
    peer.do(lambda _: end_session(raw, "amqp:internal-error"))
    wait_until(lambda: session in failed)
    assert set(failed) <= {session, refused}  # the peer may end its links first
    failed.clear()
    peer.do(lambda connected: connected.engine.close("amqp:connection:forced", "maintenance"))
    wait_until(lambda: bool(failed))
    assert failed == [connection]
    assert connection.error is connection.get_error() is not None


def test_the_message_handler_may_fetch(peer: ScriptedPeer, connection: Connection) -> None:
    session = connection.session()
    receiver = session.receiver("node", capacity=10, timeout=10)
    fetched: list[object] = []

    def on_message(which: Session) -> None:
        assert which is session
        fetched.append(receiver.fetch().content)
        which.acknowledge(sync=False)

    session.set_message_received_handler(on_message)
    peer.to_send += ["a", "b"]
    peer.do(lambda connected: peer.send(connected, peer.links[0]))
    wait_until(lambda: fetched == [b"a", b"b"])
    assert receiver.unsettled() == 0


def test_the_handler_of_a_parent_is_not_called_for_its_parts(
    peer: ScriptedPeer, connection: Connection, watch: Callable[..., None], failed: list[object]
) -> None:
    session = connection.session()
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    assert (sender.session, receiver.session, session.connection) == (session, session, connection)
    watch(session, sender)
    for link in (peer.links[1], peer.links[0]):
        peer.do(lambda connected, link=link: connected.engine.links.detach(link, "amqp:resource-deleted", "gone"))  # type: ignore[misc]
    wait_until(lambda: bool(failed))
    assert failed == [sender]
    assert isinstance(receiver.error, LinkClosed)


def test_a_link_that_is_refused_when_the_connection_opens(
    embedded: str, watch: Callable[..., None], failed: list[object]
) -> None:
    connection = Connection(embedded)
    session = connection.session()
    sender, receiver = session.sender("no-such-queue"), session.receiver("no-such-queue")
    watch(connection, session, sender, receiver)
    connection.open(timeout=10)
    for call in (lambda: sender.send("x", timeout=10), lambda: receiver.fetch(timeout=10)):
        with pytest.raises(NotFound):
            call()
    assert failed == [sender, receiver]
    connection.close()


def test_a_connection_that_cannot_be_made(watch: Callable[..., None], failed: list[object]) -> None:
    connection = Connection("127.0.0.1:1")
    watch(connection)
    with pytest.raises(ConnectError) as caught:
        connection.open(timeout=10)
    assert failed == [connection]
    assert connection.get_error() is caught.value
    connection.close()


def test_a_transaction_that_is_lost_with_its_connection(
    embedded: str, watch: Callable[..., None], failed: list[object]
) -> None:
    with Connection.establish(embedded, timeout=10) as connection:
        session = connection.session(transactional=True)
        watch(connection, session)
        session.sender("lost; {create: always}").send("x")
        connection.detach()
        assert failed == [session]
        connection.attach(timeout=10)
        with pytest.raises(TransactionAborted):
            session.commit(timeout=10)
