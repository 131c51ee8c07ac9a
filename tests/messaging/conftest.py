"""The brokers of the contract: the embedded one, and those that the environment names."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator

import attrs
import pytest
from support.brokers import EMBEDDED, NAMES, URLS

from qmf import _event_loop
from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, NotFound, Session, aio, loop
from qmf.testing import MemoryBroker

MakeQueue = Callable[[], str]

qpid_addresses = pytest.mark.only("embedded", "qpidd")
transactions = pytest.mark.only("embedded", "qpidd", "artemis")


@attrs.frozen
class Target:
    """A broker to test with.

    Attributes:
        name: ``embedded``, ``qpidd``, ``artemis`` or ``rabbitmq``.
        url: where it listens.
        Connection, AsyncConnection: the classes whose connections reach it.
    """

    name: str
    url: str
    Connection: type[Connection] = Connection
    AsyncConnection: type[aio.Connection] = aio.Connection


@pytest.fixture(scope="session")
def embedded() -> Iterator[str]:
    """URL of an embedded broker for the whole run."""
    with EmbeddedBroker() as broker:
        yield broker.url


#: The embedded broker, with the client's background thread on asyncio's own loop even where uvloop is installed, and
#: without a gate: other threads do not write to the connection.
ON_ASYNCIO = "embedded, asyncio"


#: The broker for tests of programs, which has no port.
IN_MEMORY = "embedded, in memory"


@pytest.fixture(scope="session")
def memory() -> Iterator[MemoryBroker]:
    """Such a broker for the whole run."""
    with MemoryBroker() as broker:
        yield broker


@pytest.fixture(params=[*NAMES, ON_ASYNCIO, IN_MEMORY])
def broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Each broker in turn; a test marked ``only`` is skipped on those that the mark does not name."""
    name: str = request.param
    in_memory = name == IN_MEMORY
    if in_memory:
        name = EMBEDDED
    if name == ON_ASYNCIO:
        monkeypatch.setattr(_event_loop, "new_event_loop", asyncio.new_event_loop)
        monkeypatch.setattr(loop, "new_gated_loop", lambda: None)
        name = EMBEDDED
    mark = request.node.get_closest_marker("only")
    if mark is not None and name not in mark.args:
        pytest.skip(f"not provided by {name}")
    if in_memory:
        memory: MemoryBroker = request.getfixturevalue("memory")
        return Target(name, "amqp://memory", memory.Connection, memory.AsyncConnection)
    return Target(name, request.getfixturevalue("embedded") if name == EMBEDDED else URLS[name])


@pytest.fixture
def connection(broker: Target) -> Iterator[Connection]:
    """An open connection."""
    with broker.Connection.establish(broker.url, timeout=10) as connection:
        yield connection


@pytest.fixture
def session(connection: Connection) -> Session:
    """A session."""
    return connection.session()


@pytest.fixture
def queue(broker: Target) -> MakeQueue:
    """Makes addresses of new queues, which are created by the first link."""

    def make() -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        node = "" if broker.name == "rabbitmq" else ", node: {type: queue}"
        return f"{name}; {{create: always{node}}}"

    return make


def is_gone(session: Session, address: str) -> bool:
    """True if the broker knows no such node."""
    try:
        session.sender(address).close()
    except NotFound:
        return True
    return False
