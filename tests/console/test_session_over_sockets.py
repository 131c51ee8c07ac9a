"""Life on the bus over real sockets: answers late, twice and never; many threads, callbacks and calls at once; TLS."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agent.warehouse import Shelf, ShelfSpill
from console.test_session_end_to_end import Running, make_agent
from support.recording import RecordingConsole
from support.scripted_agent import ScriptedAgent, widget
from support.waiting import until, wait_until

from qmf.broker import Broker, EmbeddedBroker, QueueLimits
from qmf.bus import AmqpBus
from qmf.console import Console, LoopThread, MethodResult, Object, Session
from qmf.console.aio import AgentRemoved, Client, Missed, Notification, ObjectUpdated, Removal
from qmf.errors import AuthenticationError, ConnectError, QmfError, RequestTimeout
from qmf.protocol import LocateRequest, MethodRequest, MethodResponse, QueryRequest

pytestmark = pytest.mark.slow

TLS = Path(__file__).resolve().parents[1] / "bus" / "tls"
CALLS = 1000


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running()
    yield made
    made.close()


@pytest.fixture
async def scripted() -> AsyncIterator[tuple[Client, ScriptedAgent]]:
    """A client and a scripted agent on a broker."""
    async with Broker(port=0) as broker:
        agent = await ScriptedAgent(AmqpBus(broker.url)).start()
        agent.objects = [widget("w")]
        async with Client(broker.url, settle=5) as client:
            yield client, agent
        await agent.bus.close()


# -- answers


async def test_a_late_answer_is_counted_and_ignored(scripted: tuple[Client, ScriptedAgent]) -> None:
    client, agent = scripted
    (obj,) = await client.objects("widget")
    agent.mute = {MethodRequest}
    with pytest.raises(RequestTimeout) as caught:
        await obj.call("echo", 1, "late", _timeout=0.05)
    for word in (agent.info.name, "method echo of widget w"):
        assert word in str(caught.value)
    await until(lambda: isinstance(agent.asked[-1].content, MethodRequest))
    request = agent.asked[-1]
    agent.mute = set()
    calling = asyncio.create_task(obj.call("echo", 2, "in time"))
    await agent.reply(request, MethodResponse(arguments={"sequence": 1, "body": "late"}))
    assert dict(await calling) == {"sequence": 2, "body": "in time"}
    await until(lambda: client.counts.late == 1)


async def test_the_second_of_two_answers_is_counted_and_ignored(
    scripted: tuple[Client, ScriptedAgent],
) -> None:
    client, agent = scripted
    (obj,) = await client.objects("widget")
    answer = agent.answer
    agent.answer = lambda content: answer(content) * (1 if isinstance(content, LocateRequest) else 2)  # type: ignore[method-assign]
    for number in range(50):
        assert dict(await obj.call("echo", number, str(number))) == {"sequence": number, "body": str(number)}
    await until(lambda: client.counts.late == 50)


async def test_a_message_far_larger_than_a_frame_comes_whole(scripted: tuple[Client, ScriptedAgent]) -> None:
    client, agent = scripted
    (obj,) = await client.objects("widget")
    agent.methods["echo"] = lambda _: MethodResponse(arguments={"body": "x" * 60_000})
    assert len((await obj.call("echo", 1, "x")).body) == 60_000
    agent.part = 7
    agent.objects = [widget(f"w{number}") for number in range(500)]
    assert len(await client.objects("widget")) == 500


# -- many at once


def test_a_thousand_asynchronous_calls_are_all_answered(running: Running) -> None:
    class Answers(Console):
        def __init__(self) -> None:
            self.results: dict[int, MethodResult] = {}
            self.done = threading.Event()

        def methodResponse(self, broker: object, seq: int, response: MethodResult) -> None:
            self.results[seq] = response
            if len(self.results) == CALLS:
                self.done.set()

    console = Answers()
    with Session(console, rcvObjects=False, rcvEvents=False) as session:
        session.addBroker(running.broker.url)
        (shelf,) = session.getObjects(_class="shelf")
        numbers = {shelf.move(number, "x", 2.0, _async=True): number for number in range(CALLS)}
        assert len(numbers) == CALLS
        assert console.done.wait(60)
    assert {seq: result.moved for seq, result in console.results.items()} == {
        seq: number * 2 for seq, number in numbers.items()
    }


def test_many_threads_share_a_session(running: Running) -> None:
    with Session() as session:
        session.addBroker(running.broker.url)

        def work(thread: int) -> list[int]:
            (shelf,) = session.getObjects(_class="shelf")
            results = []
            for number in range(20):
                results.append(shelf.move(thread * 20 + number, "x", 1.0).moved)
                shelf.update()
                assert session.getPackages()
                assert session.getSchema(shelf.getClassKey()).getKey() == shelf.getClassKey()
            return results

        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(work, range(16)))
    assert [number for numbers in found for number in numbers] == list(range(320))


def test_callbacks_call_back(running: Running) -> None:
    """Every call that blocks, from within a callback, while others do the same outside."""
    did: list[Any] = []
    done = threading.Event()

    class Busy(Console):
        def event(self, broker: Any, event: Any) -> None:
            session = event.session
            (shelf,) = session.getObjects(_class="shelf")
            did.append(shelf.move(1, "x", 5.0).moved)
            did.append(shelf._siteRef_.name)
            shelf.update()
            did.append(len(session.getClasses(shelf.getClassKey().getPackageName())))
            did.append(shelf.move(2, "x", 5.0, _async=True))

        def methodResponse(self, broker: Any, seq: int, response: MethodResult) -> None:
            did.append((seq, response.moved))
            done.set()

    with Session(Busy()) as session:
        session.addBroker(running.broker.url)
        running.agent.raise_event(ShelfSpill(shelf=running.shelf, items=3, class_="oil"))
        while not done.is_set():
            assert session.getObjects(_class="shelf")
        assert done.wait(10)
    assert did == [5, "north", 4, 1, (1, 10)]


def test_a_callback_closes_the_session_in_the_middle_of_everything(running: Running) -> None:
    closed = threading.Event()

    class Closing(Console):
        def heartbeat(self, agent: Any, timestamp: int) -> None:
            agent.session.close()
            closed.set()

    session = Session(Closing())
    session.addBroker(running.broker.url)
    with pytest.raises(QmfError, match=r"close|no broker"):
        [session.getObjects(_class="shelf") for _ in iter(int, 1)]
    assert closed.wait(10)


def test_all_waiting_threads_get_an_error_when_the_session_closes(running: Running) -> None:
    class Stuck(Shelf):
        async def move(self, items: int, from_: str, factor: float) -> Any:
            started.release()
            await asyncio.Event().wait()

    started = threading.Semaphore(0)
    ended: list[str] = []
    running.agent.add(Stuck(number=9))
    session = Session()
    session.addBroker(running.broker.url)
    (shelf,) = session.getObjects(_class="shelf", number=9)

    def call() -> None:
        try:
            shelf.move(1, "x", 1.0)
        except QmfError as error:
            ended.append(str(error))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert started.acquire(timeout=10)
    session.close()
    for thread in threads:
        thread.join(10)
    assert len(ended) == 8
    assert all("closed" in text for text in ended)


# -- brokers


def test_two_brokers_at_once(running: Running) -> None:
    other = EmbeddedBroker()
    other.start()
    loop = LoopThread("other-agent")
    agent, _ = make_agent(other.url, "two")
    loop.run(agent.start())
    console = RecordingConsole()
    try:
        with Session(console) as session:
            first, second = session.addBroker(running.broker.url), session.addBroker(other.url)
            console.wait("newAgent", 2)
            shelves = session.getObjects(_class="shelf")
            assert {shelf.getBroker() for shelf in shelves} == {first, second}
            assert [shelf.getBroker() for shelf in session.getObjects(_class="shelf", _broker=second)] == [second]
            assert [item.move(1, "x", 3.0).moved for item in shelves] == [3, 3]
            assert len(console.of("newPackage")) == 1
            session.delBroker(first)
            assert [shelf.getBroker() for shelf in session.getObjects(_class="shelf")] == [second]
            assert [agent.getBroker() for agent in session.getAgents()] == [second]
            console.wait("brokerDisconnected")
    finally:
        loop.run(agent.close())
        loop.stop()
        other.close()


def test_a_user_with_a_password() -> None:
    broker = EmbeddedBroker(users={"operator": "s/e:c@ret"})
    broker.start()
    try:
        with Session() as session:
            made = session.addBroker(broker.url, username="operator", password="s/e:c@ret")
            assert made.isConnected()
            for wrong in ({}, {"username": "operator", "password": "wrong"}, {"mechanisms": "ANONYMOUS"}):
                with pytest.raises(AuthenticationError):
                    session.addBroker(broker.url, **wrong)  # type: ignore[arg-type]
        broker.close()
    finally:
        broker.close()


def test_tls_with_and_without_trust() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    broker = EmbeddedBroker(ssl_context=context)
    broker.start()
    url = f"amqps://127.0.0.1:{broker.port}"
    try:
        with Session() as session:
            made = session.addBroker(url, ssl_trustfile=str(TLS / "cert.pem"), ssl_skip_hostname_check=True)
            assert made.isConnected()
            assert made.getFullUrl().startswith("amqps://")
            with pytest.raises(ConnectError, match="certificate"):
                session.addBroker(url)
            with pytest.raises(ConnectError):
                session.addBroker(f"amqp://127.0.0.1:{broker.port}", timeout=5)
    finally:
        broker.close()


# -- our agents


def test_an_object_created_and_deleted_within_an_interval_is_reported_once(running: Running) -> None:
    console = RecordingConsole()
    with Session(console) as session:
        session.addBroker(running.broker.url)
        console.wait("newAgent")
        brief = Shelf(number=77)
        running.agent.add(brief)
        running.agent.remove(brief)

        def received() -> list[Object]:
            return [record for _, record in console.of("objectProps") if record.getIndex().endswith(",77")]

        wait_until(received)
        console.wait("heartbeat", len(console.of("heartbeat")) + 3)
        (record,) = received()
        assert record.isDeleted()
        assert record.getTimestamps()[2] > 0


def test_properties_and_statistics_that_change_apart_arrive_apart(running: Running) -> None:
    console = RecordingConsole()

    def of(name: str) -> list[Object]:
        return [item for _, item in console.of(name) if item.getClassKey().getClassName() == "shelf"]

    with Session(console) as session:
        session.addBroker(running.broker.url)
        console.wait("newAgent")
        running.shelf.label = "changed"
        running.shelf.in_.inc()
        wait_until(lambda: of("objectProps") and of("objectStats"))
        console.wait("heartbeat", len(console.of("heartbeat")) + 2)
        console.calls.clear()
        running.shelf.in_.inc(3)
        console.wait("objectStats")
        assert of("objectProps") == []
        assert of("objectStats")[-1].depth == 4
        console.calls.clear()
        running.shelf.label = "new"
        console.wait("objectProps")
        assert of("objectStats") == []
        assert (of("objectProps")[-1].label, of("objectProps")[-1].depth) == ("new", 4)


async def test_an_agent_that_closes_is_gone_at_once() -> None:
    async with Broker(port=0) as broker, Client(broker.url, settle=0) as client:
        gone: list[AgentRemoved] = []
        client.listen(lambda item: gone.append(item) if isinstance(item, AgentRemoved) else None)
        agent, _ = make_agent(broker.url)
        await agent.start()
        await until(lambda: client.agents)
        await agent.close()
        await until(lambda: gone)
        assert gone[0].reason is Removal.GOODBYE
        await asyncio.sleep(0.2)
        assert client.agents == []


async def test_what_a_slow_console_misses_is_counted() -> None:
    """The embedded broker drops the oldest of a full queue; the numbers on the messages show how many."""
    sent = 2000
    async with Broker(port=0, limits=QueueLimits(50, 10_000_000)) as broker:
        agent = await ScriptedAgent(AmqpBus(broker.url)).start()
        async with Client(broker.url, settle=5) as client:
            received: list[ObjectUpdated] = []
            missed: list[Missed] = []

            def listener(item: Notification) -> None:
                if isinstance(item, ObjectUpdated):
                    received.append(item)
                elif isinstance(item, Missed):
                    missed.append(item)

            client.listen(listener)
            # As long as the schema is not here, indications are held back, and with them the credit of the link.
            agent.mute = {QueryRequest}
            for number in range(1, sent + 1):
                await agent.publish(widget("w", turns=number), sequence=number)
            await until(lambda: broker.counters.dropped > 0)
            (request,) = [item for item in agent.asked if isinstance(item.content, QueryRequest)]
            await agent.reply(request, agent.answer(request.content)[0][0])
            await until(lambda: received and received[-1].object["turns"] == sent)
            assert len(received) < sent
            assert len(received) + sum(item.count for item in missed) == sent
        await agent.bus.close()
