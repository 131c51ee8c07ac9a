"""An agent, its broker and consoles with as much as a large site has; small in each run, at full size in the soak."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator

import pytest
from agent.warehouse import PACKAGE, Shelf, ShelfMoveResult, Site
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.agent import Agent, SubscriptionLimits
from qmf.bus import Binding, MemoryBus, MemoryExchange, ReceivedMessage
from qmf.console.aio import Client, FollowMode
from qmf.errors import QmfError
from qmf.protocol import Envelope, SubscribeRequest, decode

#: Seconds for anything, so that a hang ends.
PATIENCE = 600.0


class Requests:
    """Notes what an agent is asked."""

    def __init__(self) -> None:
        self.subscriptions = 0

    def __call__(self, received: ReceivedMessage) -> None:
        message = decode(received.data)
        received.settle()
        self.subscriptions += isinstance(message, Envelope) and isinstance(message.content, SubscribeRequest)


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (SubscriptionLimits(max_matches=20), 21),
        pytest.param(SubscriptionLimits(), 100_001, marks=[pytest.mark.slow, pytest.mark.soak]),
    ],
    ids=["small", "full"],
)
async def test_a_class_too_large_for_a_subscription_is_followed_all_the_same(
    limits: SubscriptionLimits, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "qmf.console")
    exchange, requests = MemoryExchange(), Requests()
    agent = Agent(MemoryBus(exchange), vendor="v", product="p", instance="i", interval=0.2, subscription_limits=limits)
    sites = [Site(name=str(number)) for number in range(count)]
    for site in sites:
        agent.add(site)
    watching = MemoryBus(exchange)
    await watching.open()
    await watching.subscribe(Binding("qmf.default.topic", agent.info.direct_subject or ""), requests)
    async with agent, Client(MemoryBus(exchange), timeout=PATIENCE) as client:
        async with client.follow("site", package=PACKAGE, interval=0.2) as followed:
            assert followed.sources[agent.name] is not FollowMode.SUBSCRIPTION
            assert len(followed) == count
            assert (agent.statistics.subscriptions, requests.subscriptions) == (0, 1)
            agent.remove(sites[0])
            agent.add(Site(name="new"))
            await until(lambda: {"new"} <= {item.name for item in followed}, "the new one", PATIENCE)
            await until(lambda: len(followed) == count, "the end of the other", PATIENCE)
            assert followed.sources == {agent.name: FollowMode.INDICATIONS}
        assert (agent.statistics.subscriptions, requests.subscriptions) == (0, 1)
    (warning,) = [item.getMessage() for item in caplog.records if "no subscription" in item.getMessage()]
    assert f"more than {count - 1} objects match" in warning
    await watching.close()


class Busy(Shelf):
    """A shelf whose calls wait; it notes which have run, and which after their callers gave up."""

    def __init__(self) -> None:
        super().__init__(number=1)
        self.gate = asyncio.Event()
        self.ran: list[int] = []
        self.late: list[int] = []
        #: Times of the loop until which callers wait, by the numbers of their calls.
        self.deadlines: dict[int, float] = {}

    async def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        number = int(from_)
        self.ran.append(number)
        if asyncio.get_running_loop().time() > self.deadlines.get(number, math.inf):
            self.late.append(number)
        await self.gate.wait()
        return ShelfMoveResult(moved=items, note=from_)


@pytest.fixture
async def broker() -> AsyncIterator[VisibleBroker]:
    async with VisibleBroker(port=0) as broker:
        yield broker


@pytest.mark.slow
@pytest.mark.parametrize("count", [500, pytest.param(2_000, marks=pytest.mark.soak)])
async def test_no_call_runs_whose_caller_gave_up(broker: VisibleBroker, count: int) -> None:
    """Whether it waited at the agent or in the broker, or some of the time in each."""
    shelf, loop = Busy(), asyncio.get_running_loop()
    agent = Agent(broker.url, vendor="v", product="p", instance="i", max_calls=4, method_timeout=PATIENCE)
    agent.add(shelf)
    async with agent, Client(broker.url, timeout=PATIENCE) as client:
        (remote,) = await client.objects("shelf", package=PACKAGE)

        def call(number: int, timeout: float) -> asyncio.Future[object]:
            return asyncio.ensure_future(remote.call("move", 1, str(number), 1.0, _timeout=timeout))

        # These have all places from the first on that waits. What they take to come is what calls need on this machine.
        began, before = loop.time(), enqueued(broker)
        lasting = [call(number, PATIENCE) for number in range(0, count, 2)]
        await until(lambda: enqueued(broker) >= before + len(lasting), "the calls that last", PATIENCE)
        way = loop.time() - began
        patience = max(0.5, 5 * way)
        began = loop.time()
        short = [call(number, patience) for number in range(1, count, 2)]
        shelf.deadlines = dict.fromkeys(range(1, count, 2), began + patience + 2 * way)
        await until(lambda: loop.time() > began + 0.6 * patience, "some of their time", PATIENCE)
        # Places become free: calls that have waited in the broker come to the agent.
        shelf.gate.set()
        await until(lambda: len(shelf.ran) > len(lasting) // 2, "half of the calls", PATIENCE)
        shelf.gate.clear()
        results = await asyncio.gather(*short, return_exceptions=True)
        await until(lambda: loop.time() > began + 1.5 * patience, "the end of their time", PATIENCE)
        shelf.gate.set()
        await asyncio.gather(*lasting)
        assert shelf.late == []
        assert set(range(0, count, 2)) <= set(shelf.ran)
        given_up = [item for item in results if isinstance(item, QmfError)]
        assert len(given_up) > 0


def enqueued(broker: VisibleBroker) -> int:
    """Messages that have come to queues."""
    return sum(queue.counters.enqueues for queue in broker.registry.queues)
