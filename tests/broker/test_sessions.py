"""The clients of a broker, and their end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable

import pytest
from broker.raw_clients import AMQP, OPEN, connect
from support.growth import growth
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.client_info import ClientInfo
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import Traffic
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.refusal import Reason
from qmf.broker.sessions import ClientSessions


class RecordingSession:
    """A client that remembers which nodes it was told of."""

    ended: asyncio.Future[None]

    def __init__(self) -> None:
        self.info = ClientInfo("unknown")
        self.deleted: list[str] = []
        self.closed: list[tuple[str, Reason | None]] = []

    def traffic(self) -> Traffic:
        return Traffic()

    def close(self, reason: str, cause: Reason | None = None) -> None:
        self.closed.append((reason, cause))

    def abort(self) -> None: ...

    def end_session(self, session: Hashable, reason: str) -> None: ...

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        self.deleted.append(node.name)

    def on_policy_changed(self) -> None: ...


def sessions_and_queues(count: int) -> tuple[ClientSessions, list[tuple[RecordingSession, Queue]]]:
    """Clients with a link at a queue each, and the queues."""
    registry = NodeRegistry()
    sessions = ClientSessions(Operations(registry), ConnectionLimits())
    clients = [(RecordingSession(), registry.declare_queue(f"queue-{number}")) for number in range(count)]
    for session, queue in clients:
        sessions.start(session)
        sessions.link_attached(session, queue)
    return sessions, clients


def test_clients_are_told_of_the_end_of_nodes_at_which_they_have_links() -> None:
    sessions, [(first, queue), (second, other)] = sessions_and_queues(2)
    sessions.link_attached(second, queue)
    sessions.link_attached(second, queue)
    sessions.link_detached(second, queue)
    sessions.on_node_deleted(queue)
    sessions.link_detached(second, queue)
    sessions.link_detached(second, other)
    sessions.on_node_deleted(queue)
    sessions.on_node_deleted(other)
    assert (first.deleted, second.deleted) == (["queue-0", "queue-0"], ["queue-0"])


async def test_a_connection_ends_with_its_access_token() -> None:
    sessions = ClientSessions(Operations(NodeRegistry()), ConnectionLimits())
    clients = [RecordingSession() for _ in range(3)]
    for client, end in zip(clients, (time.time() - 1, time.time() + 600, None), strict=True):
        client.info = ClientInfo("unknown", token_end=end)
        sessions.start(client)
        assert sessions.admit(client) is None
    await until(lambda: clients[0].closed, "the end of the first connection")
    for client in clients:
        sessions.end(client)
    assert [client.closed for client in clients] == [[("the access token has ended", Reason.UNAUTHORIZED)], [], []]


def test_a_node_that_is_deleted_costs_the_same_however_many_clients_there_are() -> None:
    def prepare(count: int) -> Callable[[], object]:
        sessions, clients = sessions_and_queues(count)

        def work() -> None:
            for _, queue in clients:
                sessions.on_node_deleted(queue)
            for session, queue in clients:
                sessions.link_detached(session, queue)

        return work

    assert growth(prepare) < 9


async def test_a_client_that_does_not_answer_delays_the_end_by_the_time_limit_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.broker.sessions.CLOSE_TIMEOUT", 0.05)
    broker = Broker(port=0)
    await broker.start()
    _, writer = await connect(broker)
    writer.write(AMQP + OPEN)
    await until(lambda: broker.connections == 1, "the connection")
    async with asyncio.timeout(2):
        await broker.close()
    assert broker.connections == 0
    writer.close()
