"""Brokers and agents that are killed, paused and started again, as real processes."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from support.processes import Process, command
from support.recording import Notifications, RecordingConsole
from support.waiting import WAIT_LIMIT, until, wait_until

from qmf.bus import AmqpBus, Backoff
from qmf.console import Session
from qmf.console.aio import (
    AgentAdded,
    AgentLost,
    AgentRemoved,
    AgentRestarted,
    BusConnected,
    BusDisconnected,
    ChangeKind,
    Client,
    EventRaised,
    ObjectUpdated,
    RemoteObject,
    Removal,
)
from qmf.console.broker_connection import BrokerConnection
from qmf.errors import CallerError, DisconnectedError, NetworkError, QmfError, RequestTimeout

pytestmark = pytest.mark.slow

AGENT = "qmf:host:"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents here announce an interval of one second, the shortest possible."""
    monkeypatch.setattr("qmf.console.aio.agents.MIN_SILENCE", 0.0)
    monkeypatch.setattr("qmf.console.aio.agents.MISSED_HEARTBEATS", 2)
    monkeypatch.setattr("qmf.console.broker_connection.FIRST_DELAY", 0.05)
    monkeypatch.setattr("qmf.bus.client.amqp_bus.Backoff", lambda: Backoff(first=0.05, limit=0.2))


class Peers:
    """A broker and the host agents on it, each a process."""

    def __init__(self) -> None:
        self.broker = self._start_broker("0")
        self.url = self.broker.lines[-1].removeprefix("Listening on ")
        self.agents: dict[str, Process] = {}

    def _start_broker(self, port: str) -> Process:
        # Without an agent of its own: the only agents are those that the tests start.
        broker = Process(command("qmf-broker"), "--port", port, "--no-management")
        broker.wait_for("Listening on ")
        return broker

    def restart_broker(self) -> None:
        self.broker = self._start_broker(self.url.rpartition(":")[2])

    def start_agent(self, name: str = "one") -> Process:
        agent = Process(command("qmf-host-agent"), "-b", self.url, "--interval", "0.5", "--instance", name)
        agent.wait_for("Host agent")
        self.agents[name] = agent
        return agent

    def close(self) -> None:
        for process in [*self.agents.values(), self.broker]:
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
                process.end(signal.SIGKILL)
            else:
                process.end()


@pytest.fixture
def peers() -> Iterator[Peers]:
    made = Peers()
    yield made
    made.close()


@contextmanager
def paused(process: Process) -> Iterator[None]:
    process.popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.popen.send_signal(signal.SIGCONT)


@pytest.fixture
async def client(peers: Peers) -> AsyncIterator[tuple[Client, Notifications]]:
    peers.start_agent()
    bus = AmqpBus(peers.url, backoff=Backoff(first=0.05, limit=0.2))
    client = Client(bus, timeout=10, settle=5)
    heard = Notifications()
    client.listen(heard.append)
    async with client:
        yield client, heard


async def agent_object(client: Client) -> RemoteObject:
    (found,) = await client.objects("agent", package="qmf.host")
    return found


# -- agents


async def test_a_killed_agent_is_noticed_and_its_next_start_is_found(
    peers: Peers, client: tuple[Client, Notifications]
) -> None:
    asking, heard = client
    obj = await agent_object(asking)
    peers.agents["one"].end(signal.SIGKILL)
    with pytest.raises(RequestTimeout) as caught:
        await obj.call("echo", 1, "x", _timeout=0.2)
    assert obj.agent in str(caught.value)
    assert "method echo of agent" in str(caught.value)
    await until(lambda: heard.of(AgentRemoved))
    assert heard.of(AgentRemoved)[0].reason is Removal.SILENT
    assert asking.agents == []
    heard.clear()
    peers.start_agent()
    await until(lambda: heard.of(AgentAdded))
    again = await agent_object(asking)
    assert dict(await again.call("echo", 2, "y")) == {"sequence": 2, "body": "y"}


async def test_an_agent_killed_and_started_at_once_was_restarted(
    peers: Peers, client: tuple[Client, Notifications], monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long its start takes.
    monkeypatch.setattr("qmf.console.aio.agents.MIN_SILENCE", WAIT_LIMIT)
    asking, heard = client
    obj = await agent_object(asking)
    process = peers.agents["one"]
    process.popen.send_signal(signal.SIGSTOP)
    calling = asyncio.create_task(obj.call("echo", 1, "x"))
    await until(lambda: asking.counts.pending == 1)
    process.end(signal.SIGKILL)
    await asyncio.to_thread(peers.start_agent)
    with pytest.raises(AgentLost, match=r"restarted .* before it answered method echo"):
        await calling
    assert len(heard.of(AgentRestarted)) == 1
    assert heard.of(AgentRemoved) == []
    obj = await agent_object(asking)
    assert dict(await obj.call("echo", 2, "y")) == {"sequence": 2, "body": "y"}


async def test_the_late_answer_of_a_paused_agent_is_ignored(peers: Peers, client: tuple[Client, Notifications]) -> None:
    asking, heard = client
    obj = await agent_object(asking)
    for key in await asking.classes("qmf.host"):
        await asking.schema(key)  # what comes by itself asks for nothing more
    with paused(peers.agents["one"]):
        for number in range(3):
            with pytest.raises(RequestTimeout):
                await obj.call("echo", number, "late", _timeout=0.1)
        await until(lambda: heard.of(AgentRemoved))
    await until(lambda: asking.counts.late >= 3)
    await until(lambda: asking.agents)
    assert dict(await obj.call("echo", 99, "now")) == {"sequence": 99, "body": "now"}
    assert (asking.counts.expired, asking.counts.late) == (3, 3)


async def test_what_is_followed_follows_a_killed_agent(peers: Peers, client: tuple[Client, Notifications]) -> None:
    asking, _ = client
    async with asking.follow("agent", package="qmf.host", interval=0.5) as agents:
        (change,) = [await anext(agents)]
        assert change.kind is ChangeKind.ADDED
        peers.agents["one"].end(signal.SIGKILL)
        async with asyncio.timeout(15):
            while (change := await anext(agents)).kind is not ChangeKind.LOST:
                assert change.kind is ChangeKind.CHANGED
        assert len(agents) == 0
        peers.start_agent()
        async with asyncio.timeout(15):
            assert (await anext(agents)).kind is ChangeKind.ADDED
        assert len(agents) == 1


# -- brokers


async def test_a_killed_broker_fails_what_is_outstanding_and_comes_back(
    peers: Peers, client: tuple[Client, Notifications]
) -> None:
    asking, heard = client
    obj = await agent_object(asking)
    with paused(peers.agents["one"]):
        calling = asyncio.create_task(obj.call("echo", 1, "x"))
        await until(lambda: asking.counts.pending == 1)
        peers.broker.end(signal.SIGKILL)
        with pytest.raises(DisconnectedError):
            await calling
    await until(lambda: heard.of(BusDisconnected))
    assert (asking.connected, asking.agents) == (False, [])
    with pytest.raises(DisconnectedError):
        await obj.update()
    heard.clear()
    await asyncio.to_thread(peers.restart_broker)
    await until(lambda: heard.of(BusConnected))
    await until(lambda: asking.agents)
    assert dict(await obj.call("echo", 2, "y")) == {"sequence": 2, "body": "y"}
    await until(lambda: heard.of(ObjectUpdated))  # everything is subscribed again


async def test_a_paused_broker_is_no_loss(peers: Peers, client: tuple[Client, Notifications]) -> None:
    asking, heard = client
    obj = await agent_object(asking)
    with paused(peers.broker), pytest.raises(RequestTimeout):
        await obj.call("echo", 1, "x", _timeout=0.2)
    await until(lambda: asking.counts.late == 1)
    assert dict(await obj.call("echo", 2, "y")) == {"sequence": 2, "body": "y"}
    assert heard.of(BusDisconnected) == []


async def test_what_is_followed_comes_back_with_the_broker(peers: Peers, client: tuple[Client, Notifications]) -> None:
    asking, _ = client
    async with asking.follow("cpu", package="qmf.host", interval=0.5) as cpus:
        before = {obj.object_id.object_name for obj in cpus}
        assert before
        peers.broker.end(signal.SIGKILL)
        await until(lambda: len(cpus) == 0)
        await asyncio.to_thread(peers.restart_broker)
        await until(lambda: {obj.object_id.object_name for obj in cpus} == before)


def test_a_managed_connection_is_restored_and_reported(peers: Peers) -> None:
    peers.start_agent()
    console = RecordingConsole()
    with Session(console, manageConnections=True) as session:
        broker = session.addBroker(peers.url)
        console.wait("brokerConnected")
        console.wait("newAgent")
        console.wait("objectStats")
        peers.broker.end(signal.SIGKILL)
        console.wait("brokerDisconnected")
        assert not broker.isConnected()
        assert re.search("closed|reset|broken pipe", broker.getError() or "")
        with pytest.raises(CallerError, match="not connected"):
            session.getObjects(_class="agent")
        peers.restart_broker()
        console.wait("brokerConnected", 2)
        console.wait("newAgent", 2)
        (obj,) = session.getObjects(_class="agent", _package="qmf.host")
        assert obj.echo(1, "x").body == "x"
        before = len(console.of("objectStats"))
        console.wait("objectStats", before + 1)
    assert [name for name, _ in console.calls if name.startswith("broker")] == [
        "brokerConnected",
        "brokerDisconnected",
        "brokerConnected",
        "brokerDisconnected",
    ]


def test_a_managed_connection_waits_for_a_broker_that_is_not_there_yet(peers: Peers) -> None:
    peers.broker.end(signal.SIGKILL)
    console = RecordingConsole()
    with Session(console, manageConnections=True) as session:
        broker = session.addBroker(peers.url)
        console.wait("brokerConnectionFailed", 2)
        assert "refused" in str(broker.getError())
        peers.restart_broker()
        console.wait("brokerConnected")
        assert broker.getError() is None


def test_an_unmanaged_connection_stays_lost_and_calls_raise(peers: Peers) -> None:
    peers.start_agent()
    with Session() as session:
        broker = session.addBroker(peers.url)
        (obj,) = session.getObjects(_class="agent", _package="qmf.host")
        peers.broker.end(signal.SIGKILL)
        wait_until(lambda: not broker.isConnected())
        peers.restart_broker()
        with pytest.raises((NetworkError, CallerError)):
            obj.echo(1, "x")
        with pytest.raises(CallerError, match="not connected"):
            session.getObjects(_class="agent")
        session.delBroker(broker)
        assert session.addBroker(peers.url).isConnected()


def test_two_brokers_in_one_session_fail_one_by_one(peers: Peers) -> None:
    others = Peers()
    try:
        peers.start_agent("here")
        others.start_agent("there")
        console = RecordingConsole()
        with Session(console, manageConnections=True) as session:
            first, second = session.addBroker(peers.url), session.addBroker(others.url)
            console.wait("newAgent", 2)
            assert len(session.getObjects(_class="agent", _package="qmf.host")) == 2
            assert len(session.getObjects(_class="agent", _package="qmf.host", _broker=second)) == 1
            others.broker.end(signal.SIGKILL)
            console.wait("brokerDisconnected")
            (left,) = session.getObjects(_class="agent", _package="qmf.host")
            assert left.getBroker() is first
            assert [agent.getBroker() for agent in session.getAgents()] == [first]
            others.restart_broker()
            console.wait("newAgent", 3)
            assert {obj.getBroker() for obj in session.getObjects(_class="agent", _package="qmf.host")} == {
                first,
                second,
            }
    finally:
        others.close()


# -- the program's side


def test_a_session_is_closed_during_a_call(peers: Peers) -> None:
    agent = peers.start_agent()
    session = Session()
    session.addBroker(peers.url)
    (obj,) = session.getObjects(_class="agent", _package="qmf.host")
    ended: list[BaseException] = []
    calling = threading.Event()

    def call() -> None:
        calling.set()
        try:
            obj.echo(1, "x")
        except QmfError as error:
            ended.append(error)

    with paused(agent):
        thread = threading.Thread(target=call)
        thread.start()
        calling.wait()
        connection = session.brokers[0].connection
        assert isinstance(connection, BrokerConnection)
        wait_until(lambda: connection.client.counts.pending)
        session.close()
        thread.join(10)
    assert not thread.is_alive()
    assert len(ended) == 1
    assert "closed" in str(ended[0])


async def test_events_go_on_after_an_agent_was_paused(peers: Peers, client: tuple[Client, Notifications]) -> None:
    asking, heard = client
    (obj,) = await asking.objects("agent", package="qmf.host")
    with paused(peers.agents["one"]):
        await until(lambda: heard.of(AgentRemoved))
    await until(lambda: len(heard.of(AgentAdded)) == 2)
    await until(lambda: [item for item in heard.of(EventRaised) if "Late" in str(item.event.class_key)])
    await obj.update()
