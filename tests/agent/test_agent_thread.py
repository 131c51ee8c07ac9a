"""Agents in a thread of their own, for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from agent.warehouse import Shelf, ShelfSpill, Site
from support.fake_bus import FakeBus
from support.waiting import wait_until

from qmf.agent import Agent, AgentThread, ObjectId
from qmf.broker import EmbeddedBroker
from qmf.bus import MemoryBus, MemoryExchange
from qmf.bus.base import Bus
from qmf.errors import CallerError, ConnectError, LinkError


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
def running(exchange: MemoryExchange) -> Iterator[AgentThread]:
    with Agent.run_in_thread(MemoryBus(exchange), vendor="v", product="p", interval=0.02) as running:
        yield running


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "qmf-agent"]


def test_it_runs_until_it_is_closed(running: AgentThread, exchange: MemoryExchange) -> None:
    assert running.agent.connected
    assert running.agent.name.startswith("v:p:")
    assert len(threads()) == 1
    before = exchange.received
    wait_until(lambda: exchange.received > before + 2)
    running.close()
    running.close()
    assert threads() == []
    assert not running.agent.connected


def test_what_the_program_does_is_published(running: AgentThread) -> None:
    agent = running.agent
    shelf = Shelf(number=1)
    agent.add(shelf)
    agent.raise_event(ShelfSpill(shelf=shelf, items=1, class_=""))
    wait_until(lambda: agent.statistics.objects_published == 1 and agent.statistics.events_sent == 1)
    shelf.in_.inc()
    wait_until(lambda: agent.statistics.objects_published == 2)
    agent.remove(shelf)
    wait_until(lambda: agent.statistics.objects_published == 3)


def test_closing_publishes_what_is_pending(exchange: MemoryExchange) -> None:
    with Agent.run_in_thread(MemoryBus(exchange), vendor="v", product="p", interval=1000) as running:
        for number in range(5):
            running.agent.add(Site(name=str(number)))
    # Heartbeat, objects, goodbye.
    assert exchange.received == 3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"vendor": ""}, CallerError, "the vendor of an agent must not be empty"),
        ({"bus": "amqp://127.0.0.1:1", "wait": False}, ConnectError, "cannot connect to amqp://127.0.0.1:1"),
        ({"nothing": 1}, TypeError, "nothing"),
    ],
)
def test_errors_of_the_start_are_the_callers(options: dict[str, Any], error: type[Exception], text: str) -> None:
    bus = options.pop("bus", None) or MemoryBus(MemoryExchange())
    with pytest.raises(error, match=text):
        Agent.run_in_thread(bus, **{"vendor": "v", "product": "p", **options})
    assert threads() == []


def test_a_start_that_fails_leaves_nothing_open() -> None:
    exchange = MemoryExchange()
    exchange.refuse("qmf.default.direct")
    bus = MemoryBus(exchange)
    with pytest.raises(LinkError, match="refused"):
        Agent.run_in_thread(bus, vendor="v", product="p")
    assert (threads(), bus.connected) == ([], False)


def test_publishing_never_blocks_the_program() -> None:
    """The bus accepts nothing, and the program continues without waiting."""

    class Stuck(FakeBus):
        held: threading.Event = threading.Event()

        async def send(self, data: bytes, *, confirm: bool = False) -> None:
            if not self.sent:
                await super().send(data, confirm=confirm)
                return
            self.held.set()
            await self.forever.wait()

        async def open(self, timeout: float = 10.0) -> None:
            self.loop = asyncio.get_running_loop()
            self.forever = asyncio.Event()
            await super().open(timeout)

    bus = Stuck(is_open=False)
    running = Agent.run_in_thread(bus, vendor="v", product="p", interval=0.01)
    agent = running.agent
    shelf = Shelf(number=1)
    agent.add(shelf)
    assert bus.held.wait(5)
    # None of these comes back if it waits for the bus.
    for number in range(200):
        shelf.in_.inc()
        shelf.limit = 5 + number % 2
        agent.raise_event(ShelfSpill(shelf=shelf, items=1, class_=""))
        agent.add(Site(name=str(number)))
    assert (agent.statistics.events_sent, len(agent.objects)) == (0, 201)
    bus.loop.call_soon_threadsafe(bus.forever.set)
    running.close()


def test_it_cannot_close_itself() -> None:
    class InLoop(FakeBus):
        async def open(self, timeout: float = 10.0) -> None:
            self.loop = asyncio.get_running_loop()
            await super().open(timeout)

    bus = InLoop(is_open=False)
    running = Agent.run_in_thread(bus, vendor="v", product="p")
    errors: list[Exception] = []
    done = threading.Event()

    def close() -> None:
        try:
            running.close()
        except CallerError as error:
            errors.append(error)
        done.set()

    bus.loop.call_soon_threadsafe(close)
    assert done.wait(5)
    assert [str(error) for error in errors] == ["a service in a thread cannot be closed by that thread"]
    running.close()


@pytest.mark.slow
def test_eight_threads_on_all_of_it_with_a_real_broker() -> None:
    with (
        EmbeddedBroker() as broker,
        Agent.run_in_thread(broker.url, vendor="v", product="p", interval=0.01) as running,
    ):
        agent = running.agent
        shelf = Shelf(number=1)
        agent.add(shelf)
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait()
            for n in range(500):
                shelf.in_.inc(2)
                shelf.out.inc()
                shelf.users.inc(n % 2)
                shelf.users.dec(n % 2)
                shelf.wait.sample(n)
                shelf.since = number
                if n % 50 == 0:
                    site = Site(name=f"{number}-{n}")
                    agent.add(site)
                    agent.raise_event(ShelfSpill(shelf=ObjectId("s"), items=1, class_=""))
                    agent.remove(site)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert (shelf.in_.value, shelf.out.value, shelf.users.value) == (8000, 4000, 0)
        wait_until(lambda: agent.statistics.events_sent == 80)
        assert len(agent.objects) == 1
        assert agent.statistics.deletions_dropped == 0


def test_a_bus_of_the_wrong_loop_is_the_programs_fault() -> None:
    """A bus that is handed in belongs to the thread from then on."""
    bus: Bus = MemoryBus(MemoryExchange())
    with Agent.run_in_thread(bus, vendor="v", product="p") as running:
        assert running.agent.connected
    assert not bus.connected
