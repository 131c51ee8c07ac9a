"""A scripted peer, a connection to it, and what its handler of errors is called with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from messaging.scripted_peer import ScriptedPeer, scripted_peer

from qmf.messaging import (
    Connection,
    Endpoint,
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
    """What the handlers of watched endpoints learn."""
    return []


@pytest.fixture
def watch(errors: list[MessagingError], failed: list[object]) -> Callable[..., None]:
    """Gives endpoints a handler, which appends to `failed` and `errors`."""

    def on_error(endpoint: object, error: MessagingError) -> None:
        failed.append(endpoint)
        errors.append(error)

    def watch(*endpoints: Endpoint[Any]) -> None:
        for endpoint in endpoints:
            endpoint.set_async_exception_notify_handler(on_error)

    return watch


@pytest.fixture
def connection(peer: ScriptedPeer, watch: Callable[..., None]) -> Iterator[Connection]:
    connection = Connection.establish(peer.url, timeout=10)
    watch(connection)
    yield connection
    try:
        connection.close(timeout=1)
    except MessagingError:
        assert not connection.opened()


@pytest.fixture
def session(connection: Connection, watch: Callable[..., None]) -> Session:
    session = connection.session()
    watch(session)
    return session


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
