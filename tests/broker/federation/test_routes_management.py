"""A bus of management that spans brokers: a console at one broker, and an agent at another, by dynamic routes."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from broker.federation.routed import RoutedBroker
from broker.management.managed import knows_agent
from support.waiting import until

from qmf.agent import Agent
from qmf.console.aio import Client
from qmf.models.host import agent as model
from qmf.models.host import console as remote

EXCHANGES = ("qmf.default.direct", "qmf.default.topic")


@pytest.mark.slow
async def test_a_console_sees_an_agent_behind_another_broker() -> None:
    async with AsyncExitStack() as stack:
        near, middle, far = [await stack.enter_async_context(RoutedBroker()) for _ in range(3)]
        for one, two in ((near, middle), (middle, far)):
            for exchange in EXCHANGES:
                one.dynamic(two, exchange)
                two.dynamic(one, exchange)
        for broker in (near, middle, far):
            await broker.all_up()
        agent = await stack.enter_async_context(Agent(far.url, vendor="example.org", product="shop", interval=3600))
        agent.add(model.Process(pid=7, name="till"), "till")
        client = await stack.enter_async_context(Client(near.url, settle=0.0))
        await knows_agent(client)
        for broker in (middle, far):
            await until(lambda broker=broker: "console" in str(broker.keys(EXCHANGES[1])), "requests reach it")  # type: ignore[misc]

        async def look() -> bool:
            await client.locate(settle=0.0)
            return any(item.name == agent.name for item in client.agents)

        while not await look():
            await until(lambda: True)
        (found,) = await client.objects(remote.Process)
        assert (found.pid, found.name) == (7, "till")
        (known,) = [item for item in client.agents if item.name == agent.name]
        assert known.path == (middle.federation.tag, far.federation.tag)
        assert [item.path for item in client.agents if item.is_broker] == [()]
        assert client.broker is not None
        assert str(near.port) in client.broker.name  # not that of the brokers behind it


async def test_requests_to_brokers_stay_there() -> None:
    async with RoutedBroker() as there, RoutedBroker() as here:
        await here.up(here.dynamic(there, EXCHANGES[0]))
        assert "broker" not in there.keys(EXCHANGES[0])
