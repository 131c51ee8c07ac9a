"""What a peer can do to links, sessions, connections and messages, and what programs learn of it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from bus.peer import Peer
from messaging.scripted_peer import ScriptedPeer, scripted_peer
from support.waiting import wait_until

from qmf.bus.engine.values import Outcome
from qmf.messaging import (
    ConnectError,
    Connection,
    ConnectionClosed,
    Empty,
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
    TransactionUnknown,
    UnauthorizedAccess,
)
from qmf.messaging.aio import sender as sender_module

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


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    with scripted_peer() as peer:
        yield peer


@pytest.fixture
def failed() -> list[object]:
    """What `errors` are of."""
    return []


@pytest.fixture
def errors() -> list[MessagingError]:
    """What the handler of `connection` learns."""
    return []


@pytest.fixture
def connection(peer: ScriptedPeer, errors: list[MessagingError], failed: list[object]) -> Iterator[Connection]:
    connection = Connection.establish(peer.url, timeout=10)

    def on_error(endpoint: object, error: MessagingError) -> None:
        failed.append(endpoint)
        errors.append(error)

    connection.set_async_exception_notify_handler(on_error)
    yield connection
    try:
        connection.close(timeout=1)
    except MessagingError:
        assert not connection.opened()


@pytest.fixture
def session(connection: Connection) -> Session:
    return connection.session()


def is_usable(peer: ScriptedPeer, session: Session) -> bool:
    """Send and fetch with new links."""
    session.sender("other", timeout=10).send("x", timeout=10)
    receiver = session.receiver("other", timeout=10)
    peer.to_send.append("y")
    return bool(receiver.fetch(timeout=10).content == b"y")


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
        with pytest.raises(kind, match="link to 'node' refused by the broker: for this reason") as caught:
            make("node", timeout=10)
        assert type(caught.value) is kind
        assert caught.value.code == condition
    peer.refusal = None
    assert is_usable(peer, session)


@pytest.mark.parametrize("condition", CONDITIONS + LINK_CONDITIONS)
def test_links_that_the_peer_ends(
    peer: ScriptedPeer, session: Session, errors: list[MessagingError], condition: str
) -> None:
    kind = UnauthorizedAccess if condition == "amqp:unauthorized-access" else LinkClosed
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    for link in list(peer.links):
        peer.do(lambda connected, link=link: connected.engine.detach(link, condition, "go away"))  # type: ignore[misc]
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


def end_session(raw: object, condition: str) -> None:
    import proton

    assert isinstance(raw, proton.Session)
    raw.condition = proton.Condition(condition, "out")
    raw.close()


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
    errors: list[MessagingError],
    outcome: Outcome,
    condition: str,
    kind: type[MessagingError],
    text: str,
) -> None:
    sender = session.sender("node", timeout=10)
    peer.modified = outcome is Outcome.MODIFIED
    peer.outcome, peer.error = outcome, (condition, "too bad" if condition else "")
    with pytest.raises(kind, match=f"message to 'node' {text}") as caught:
        sender.send("x", timeout=10)
    assert caught.value.code == (condition or None)
    assert not errors
    sender.send("x", sync=False)
    wait_until(lambda: bool(errors))
    peer.outcome, peer.modified = Outcome.ACCEPTED, False
    with pytest.raises(kind, match=text) as late:
        sender.send("not sent", timeout=10)
    assert [late.value] == errors
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
    peer: ScriptedPeer, connection: Connection, errors: list[MessagingError]
) -> None:
    session = connection.session()
    sender = session.sender("node", timeout=10)
    peer.silent = True
    sender.send("x", sync=False)
    wait_until(lambda: peer.received == 1)
    peer.do(lambda connected: connected.engine.detach(peer.links[0], "amqp:resource-deleted", "gone"))
    wait_until(lambda: bool(errors))
    with pytest.raises(LinkClosed, match="gone"):
        session.close()
    assert session.closed


def test_a_refusal_after_the_timeout_is_reported(
    peer: ScriptedPeer, session: Session, errors: list[MessagingError]
) -> None:
    sender = session.sender("node", timeout=10)
    peer.silent = True
    with pytest.raises(Timeout, match=r"within 0\.1 s"):
        sender.send("x", timeout=0.1)
    (tag,) = peer.links[0].received
    peer.do(lambda connected: connected.engine.settle(peer.links[0], tag, Outcome.REJECTED, "amqp:not-allowed", "late"))
    wait_until(lambda: bool(errors))
    with pytest.raises(SendError, match="late"):
        sender.sync(timeout=10)
    sender.sync(timeout=10)


def test_a_handler_learns_what_failed(peer: ScriptedPeer, connection: Connection, failed: list[object]) -> None:
    session = connection.session()
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
    for endpoint, link in ((receiver, peer.links[1]), (sender, peer.links[0])):
        peer.do(lambda connected, link=link: connected.engine.detach(link, "amqp:resource-deleted", "gone"))  # type: ignore[misc]
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


def test_messages_above_the_limit() -> None:
    with scripted_peer(max_message=200) as peer, Connection.establish(peer.url, timeout=10) as connection:
        check_limit(peer, connection)


def check_limit(peer: ScriptedPeer, connection: Connection) -> None:
    errors: list[MessagingError] = []
    connection.set_async_exception_notify_handler(lambda _, error: errors.append(error))
    sender = connection.session().sender("node", timeout=10)
    with pytest.raises(SendError, match=r"message to 'node' is too large: it has \d+ bytes, the broker takes 200"):
        sender.send("x" * 200, timeout=10)
    sender.send("x" * 200, sync=False)
    wait_until(lambda: len(errors) == 1)
    with pytest.raises(SendError, match="too large"):
        sender.send("x")
    sender.send("x", timeout=10)
    assert peer.received == 1


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
    monkeypatch.setattr(sender_module, "CLOSE_PATIENCE", 0.2)
    session = connection.session()
    sender = session.sender("node", timeout=10)
    peer.silent = True
    sender.send("x", sync=False)
    with pytest.raises(Timeout, match=r"no answer to 1 messages to 'node' for 0\.2 s"):
        connection.close()
    assert session.closed
    assert not connection.opened()


def test_opening_ends_at_its_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = time.monotonic()
        with pytest.raises(Timeout, match=r"within 0\.2 s"):
            Connection.establish(f"127.0.0.1:{server.getsockname()[1]}", timeout=0.2)
        assert time.monotonic() - started < 5


def test_a_peer_that_refuses_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        with pytest.raises(ConnectError, match="cannot connect"):
            Connection.establish(f"127.0.0.1:{server.getsockname()[1]}", timeout=10)
        thread.join()


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
        wait_until(lambda: receiver.unsettled() == 0)
        ends: dict[str, Callable[[Peer], object]] = {
            "link": lambda connected: connected.engine.detach(peer.links[0], "amqp:resource-deleted", "gone"),
            "session": lambda _: end_session(peer.links[0].session, "amqp:internal-error"),
            "connection": lambda connected: connected.transport.abort(),
        }
        peer.do(ends[end])
        thread.join(10)
        assert not thread.is_alive()
        assert end == "connection" or caught
        connection.close(timeout=1)


INTERRUPTED = """
import sys, threading, time
from qmf.messaging import Connection

called = threading.Event()

def report_wait():
    called.wait()
    while sys._current_frames()[threading.main_thread().ident].f_code.co_name != "wait":
        time.sleep(0.001)
    print("waiting", flush=True)

connection = Connection.establish(sys.argv[1], timeout=10)
session = connection.session()
sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
calls = {"fetch": receiver.fetch, "send": lambda: sender.send("x"), "next": session.next_receiver}
threading.Thread(target=report_wait, daemon=True).start()
called.set()
try:
    calls[sys.argv[2]]()
except KeyboardInterrupt:
    print("interrupted", connection.attached(), flush=True)
connection.close(timeout=0.1) if sys.argv[2] != "send" else connection.detach()
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fetch", "send", "next"])
def test_an_interrupt_ends_a_blocking_call(peer: ScriptedPeer, call: str) -> None:
    peer.silent = True
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED, peer.url, call], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting\n"
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=20)
    assert output == "interrupted True\n"
    assert program.returncode == 0


FORKED = """
import os, sys
from qmf.messaging import Connection, ConnectionClosed
connection = Connection.establish(sys.argv[1], timeout=10)
session = connection.session()
sender, receiver = session.sender("node", timeout=10), session.receiver("node", capacity=1, timeout=10)
child = os.fork()
if child == 0:
    calls = [lambda: sender.send("x"), lambda: sender.send("x", sync=False), receiver.fetch, session.acknowledge,
             lambda: session.sender("y"), connection.session, connection.close]
    for call in calls:
        try:
            call()
        except ConnectionClosed as error:
            assert "made by another process" in str(error), error
        else:
            print("no error", flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
sender.send("from the parent", timeout=10)
print(status, connection.attached(), flush=True)
connection.close(timeout=10)
"""


@pytest.mark.slow
def test_a_forked_process_cannot_use_the_connection(peer: ScriptedPeer) -> None:
    program = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, peer.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (program.stdout, program.stderr) == ("0 True\n", "")
    assert peer.received == 1
