"""The handlers of errors and of messages, which run on the thread of the connection."""

from __future__ import annotations

from messaging.failures.conftest import end_session
from messaging.scripted_peer import ScriptedPeer
from support.waiting import wait_until

from qmf.bus.engine.values import Outcome
from qmf.messaging import (
    Connection,
    Session,
)


def test_a_handler_learns_what_failed(peer: ScriptedPeer, connection: Connection, failed: list[object]) -> None:
    session = connection.session()
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    for endpoint, link in ((receiver, peer.links[1]), (sender, peer.links[0])):
        peer.do(lambda connected, link=link: connected.engine.links.detach(link, "amqp:resource-deleted", "gone"))  # type: ignore[misc]
        wait_until(lambda: bool(failed))
        assert failed == [endpoint]
        failed.clear()
    refused = session.sender("refused", timeout=10)
    peer.outcome = Outcome.REJECTED
    refused.send("x", sync=False)
    wait_until(lambda: bool(failed))
    assert failed == [refused]
    failed.clear()
    raw = peer.links[2].session
    peer.do(lambda _: end_session(raw, "amqp:internal-error"))
    wait_until(lambda: session in failed)
    assert set(failed) <= {session, refused}
    failed.clear()
    peer.do(lambda connected: connected.engine.close("amqp:connection:forced", "maintenance"))
    wait_until(lambda: connection in failed)


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


def test_an_endpoint_has_its_own_handler_or_that_of_its_connection(
    peer: ScriptedPeer, connection: Connection, failed: list[object]
) -> None:
    session = connection.session()
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    assert (sender.session, receiver.session, session.connection) == (session, session, connection)
    own: list[object] = []
    sender.set_async_exception_notify_handler(lambda endpoint, _: own.append(endpoint))
    for link in peer.links[:2]:
        peer.do(lambda connected, link=link: connected.engine.links.detach(link, "amqp:resource-deleted", "gone"))  # type: ignore[misc]
    wait_until(lambda: own == [sender] and failed == [receiver])
