"""A scripted peer, a connection to it, and what its handler of errors is called with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from messaging.scripted_peer import ScriptedPeer, scripted_peer

from qmf.messaging import (
    Connection,
    MessagingError,
    Session,
)


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


def end_session(raw: object, condition: str) -> None:
    import proton

    assert isinstance(raw, proton.Session)
    raw.condition = proton.Condition(condition, "out")
    raw.close()
