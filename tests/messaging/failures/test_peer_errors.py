"""What a peer can do to links, sessions, connections and messages, and what programs learn of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest
from messaging.failures.conftest import end_session, is_usable
from messaging.scripted_peer import ScriptedPeer, scripted_peer
from support.waiting import wait_until

from qmf.bus.engine.values import Outcome
from qmf.messaging import (
    ConnectError,
    Connection,
    ConnectionClosed,
    LinkClosed,
    LinkError,
    MessagingError,
    NotFound,
    ResolutionError,
    SendError,
    ServerError,
    Session,
    TargetCapacityExceeded,
    Timeout,
    UnauthorizedAccess,
)

#: The error conditions of AMQP 1.0, parts 2.8.15 to 2.8.18.
CONDITIONS = [
    "amqp:internal-error",
    "amqp:not-found",
    "amqp:unauthorized-access",
    "amqp:decode-error",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:invalid-field",
    "amqp:not-implemented",
    "amqp:resource-locked",
    "amqp:precondition-failed",
    "amqp:resource-deleted",
    "amqp:illegal-state",
    "amqp:frame-size-too-small",
]
LINK_CONDITIONS = [
    "amqp:link:detach-forced",
    "amqp:link:transfer-limit-exceeded",
    "amqp:link:message-size-exceeded",
    "amqp:link:redirect",
    "amqp:link:stolen",
]
SESSION_CONDITIONS = ["amqp:session:window-violation", "amqp:session:errant-link", "amqp:session:handle-in-use"]
CONNECTION_CONDITIONS = ["amqp:connection:forced", "amqp:connection:framing-error", "amqp:connection:redirect"]


@pytest.mark.parametrize("condition", CONDITIONS + LINK_CONDITIONS)
def test_refused_links(peer: ScriptedPeer, session: Session, condition: str) -> None:
    kind = {
        "amqp:not-found": NotFound,
        "amqp:unauthorized-access": UnauthorizedAccess,
        "amqp:resource-locked": LinkError,
        "amqp:resource-limit-exceeded": LinkError,
    }.get(condition, ResolutionError)
    peer.refusal = (condition, "for this reason")
    for make in (session.sender, session.receiver):
        what = "no such queue: node; link" if kind is NotFound else "link to 'node'"
        with pytest.raises(kind, match=f"{what} refused by the broker: for this reason") as caught:
            make("node", timeout=10)
        assert type(caught.value) is kind
        assert caught.value.code == condition
    peer.refusal = None
    assert is_usable(peer, session)


@pytest.mark.parametrize("condition", CONDITIONS + LINK_CONDITIONS)
def test_links_that_the_peer_ends(
    peer: ScriptedPeer, session: Session, watch: Callable[..., None], errors: list[MessagingError], condition: str
) -> None:
    kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else LinkClosed
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    watch(sender, receiver)
    for link in list(peer.links):
        peer.do(lambda connected, link=link: connected.engine.links.detach(link, condition, "go away"))  # type: ignore[misc]
    wait_until(lambda: len(errors) == 2)
    for call in (lambda: sender.send("x", timeout=10), lambda: receiver.fetch(timeout=10), sender.check_error):
        with pytest.raises(kind, match="link to 'node' closed by the broker: go away") as caught:
            call()
        assert type(caught.value) is kind
        assert caught.value.code == condition
        assert caught.value in errors
    assert is_usable(peer, session)
    session.close(timeout=10)


@pytest.mark.parametrize("condition", CONDITIONS + SESSION_CONDITIONS)
def test_sessions_that_the_peer_ends(
    peer: ScriptedPeer, connection: Connection, session: Session, errors: list[MessagingError], condition: str
) -> None:
    kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else ServerError
    sender = session.sender("node", timeout=10)
    raw = peer.links[0].session
    peer.do(lambda _: end_session(raw, condition))
    wait_until(lambda: session.get_error() is not None)
    with pytest.raises(MessagingError, match="by the broker: out"):
        sender.send("x", timeout=10)
    for call in (lambda: session.receiver("y"), session.acknowledge, session.next_receiver):
        with pytest.raises(kind, match="ended by the broker: out") as caught:
            call()
        assert caught.value.code == condition
    assert session.get_error() in errors
    assert is_usable(peer, connection.session())


@pytest.mark.parametrize("condition", CONDITIONS + CONNECTION_CONDITIONS)
def test_connections_that_the_peer_closes(
    peer: ScriptedPeer, connection: Connection, session: Session, errors: list[MessagingError], condition: str
) -> None:
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    peer.do(lambda connected: connected.engine.close(condition, "maintenance"))
    wait_until(lambda: connection.get_error() is not None)
    for call in (lambda: sender.send("x"), lambda: receiver.fetch(), session.acknowledge, lambda: session.sender("y")):
        with pytest.raises(ConnectionClosed, match="maintenance") as caught:
            call()
        assert caught.value.code == condition
    assert connection.get_error() in errors
    connection.close()
    connection.open(timeout=10)
    assert is_usable(peer, connection.session())


@pytest.mark.parametrize(
    ("outcome", "condition", "kind", "text"),
    [
        (Outcome.REJECTED, "amqp:resource-limit-exceeded", TargetCapacityExceeded, "rejected by the broker: too bad"),
        (Outcome.REJECTED, "amqp:unauthorized-access", UnauthorizedAccess, "rejected by the broker: too bad"),
        (Outcome.REJECTED, "amqp:decode-error", SendError, "rejected by the broker: too bad"),
        (Outcome.REJECTED, "", SendError, "rejected by the broker"),
        (Outcome.RELEASED, "", SendError, "released by the broker"),
        (Outcome.MODIFIED, "", SendError, "modified by the broker"),
    ],
)
def test_messages_that_are_not_accepted(
    peer: ScriptedPeer,
    session: Session,
    watch: Callable[..., None],
    errors: list[MessagingError],
    outcome: Outcome,
    condition: str,
    kind: type[MessagingError],
    text: str,
) -> None:
    sender = session.sender("node", timeout=10)
    watch(sender)
    peer.modified = outcome is Outcome.MODIFIED
    peer.outcome, peer.error = outcome, (condition, "too bad" if condition else "")
    with pytest.raises(kind, match=f"message to 'node' {text}") as caught:
        sender.send("x", timeout=10)
    assert caught.value.code == (condition or None)
    assert errors == [caught.value]
    sender.send("x", sync=False)
    wait_until(lambda: len(errors) == 2)
    peer.outcome, peer.modified = Outcome.ACCEPTED, False
    with pytest.raises(kind, match=text) as late:
        sender.send("not sent", timeout=10)
    assert late.value is errors[1]
    assert peer.received == 2
    sender.send("sent", timeout=10)
    assert peer.received == 3


@pytest.mark.parametrize("close", [lambda session, _: session.close(), lambda _, sender: sender.close()])
def test_closing_reports_what_was_refused(
    peer: ScriptedPeer, connection: Connection, close: Callable[[Session, object], None]
) -> None:
    session = connection.session()
    sender = session.sender("node", timeout=10)
    peer.outcome, peer.error = Outcome.REJECTED, ("amqp:not-allowed", "no")
    sender.send("x", sync=False)
    with pytest.raises(SendError, match="rejected by the broker: no"):
        close(session, sender)
    assert sender.closed or session.closed


def test_messages_on_a_link_that_ends_are_reported(
    peer: ScriptedPeer, connection: Connection, watch: Callable[..., None], errors: list[MessagingError]
) -> None:
    session = connection.session()
    sender = session.sender("node", timeout=10)
    watch(sender)
    peer.silent = True
    sender.send("x", sync=False)
    wait_until(lambda: peer.received == 1)
    peer.do(lambda connected: connected.engine.links.detach(peer.links[0], "amqp:resource-deleted", "gone"))
    wait_until(lambda: bool(errors))
    with pytest.raises(LinkClosed, match="gone"):
        session.close()
    assert session.closed


def test_a_refusal_after_the_timeout_is_reported(
    peer: ScriptedPeer, session: Session, watch: Callable[..., None], errors: list[MessagingError]
) -> None:
    sender = session.sender("node", timeout=10)
    watch(sender)
    peer.silent = True
    with pytest.raises(Timeout, match=r"within 0\.1 s"):
        sender.send("x", timeout=0.1)
    (tag,) = peer.links[0].received
    peer.do(
        lambda connected: connected.engine.decisions.settle(
            peer.links[0], tag, Outcome.REJECTED, "amqp:not-allowed", "late"
        )
    )
    wait_until(lambda: bool(errors))
    with pytest.raises(SendError, match="late"):
        sender.sync(timeout=10)
    sender.sync(timeout=10)


def test_messages_above_the_limit() -> None:
    with scripted_peer(max_message=200) as peer, Connection.establish(peer.url, timeout=10) as connection:
        check_limit(peer, connection)


def check_limit(peer: ScriptedPeer, connection: Connection) -> None:
    errors: list[MessagingError] = []
    sender = connection.session().sender("node", timeout=10)
    sender.set_async_exception_notify_handler(lambda _, error: errors.append(error))
    with pytest.raises(SendError, match=r"message to 'node' is too large: it has \d+ bytes, the broker takes 200"):
        sender.send("x" * 200, timeout=10)
    sender.send("x" * 200, sync=False)
    wait_until(lambda: len(errors) == 2)
    with pytest.raises(SendError, match="too large"):
        sender.send("x")
    sender.send("x", timeout=10)
    assert peer.received == 1


def test_a_peer_that_refuses_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        with pytest.raises(ConnectError, match="cannot connect"):
            Connection.establish(f"127.0.0.1:{server.getsockname()[1]}", timeout=10)
        thread.join()
