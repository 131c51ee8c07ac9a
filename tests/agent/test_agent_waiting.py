"""Agents that wait for their broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent.warehouse import Site
from support.proxy import Proxy
from support.waiting import until, wait_until

from qmf.agent import Agent
from qmf.broker import Broker
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.errors import AuthenticationError, CallerError, ConnectError, LinkError


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_an_agent_is_there_as_soon_as_its_broker_is(caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    exchange.stop()
    agent = Agent(MemoryBus(exchange), vendor="v", product="p", instance="1", interval=0.05)
    await agent.start()
    before = agent.connected
    agent.add(Site(name="early"))
    await until(lambda: messages(caplog), "the warning")
    assert "the exchange is stopped; trying again in" in messages(caplog)[0]
    exchange.start()
    await agent.wait_connected()
    assert (before, agent.connected) == (False, True)
    async with Client(MemoryBus(exchange)) as client:
        found = await client.objects("Site", agent="v:p:1")
        assert [item["name"] for item in found] == ["early"]
    await agent.close()


async def test_a_real_broker_that_comes_later_and_again(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=0) as broker:
        with Proxy(broker.url) as proxy:
            proxy.refuse(True)
            agent = Agent(proxy.url, vendor="v", product="p")
            await agent.start()
            assert not agent.connected
            await until(lambda: messages(caplog), "the warning")
            assert f"cannot connect to {proxy.url}: " in messages(caplog)[0]
            proxy.refuse(False)
            await agent.wait_connected()
            assert messages(caplog)[-1] == f"connected to {proxy.url}"
            proxy.cut()
            await until(lambda: not agent.connected, "the loss")
            await until(lambda: agent.connected, "the second connection")
            assert messages(caplog)[-1].startswith(f"connected to {proxy.url} again")
            await agent.close()


async def test_an_agent_that_waits_is_closed_at_once() -> None:
    exchange = MemoryExchange()
    exchange.stop()
    agent = Agent(MemoryBus(exchange), vendor="v", product="p")
    with pytest.raises(CallerError, match="is not started, or closed"):
        await agent.wait_connected()
    await agent.start()
    waiting = asyncio.create_task(agent.wait_connected())
    await asyncio.sleep(0)
    await agent.close()
    with pytest.raises(CallerError, match="was closed"):
        await waiting
    exchange.start()
    assert exchange.received == 0


async def test_a_refused_password_is_an_error_at_once() -> None:
    async with Broker(port=0, users={"ann": "secret"}) as broker:
        with pytest.raises(AuthenticationError):
            await Agent(broker.url, vendor="v", product="p").start()


async def test_a_broker_that_refuses_at_first_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    class Shy(MemoryBus):
        refusals = 1

        async def subscribe(self, *args: Any, **named: Any) -> Any:
            if self.refusals:
                self.refusals -= 1
                raise LinkError("qmf.default.direct", "amqp:not-allowed", "not yet")
            return await super().subscribe(*args, **named)

    exchange = MemoryExchange()
    exchange.stop()
    agent = Agent(Shy(exchange), vendor="v", product="p")
    await agent.start()
    exchange.start()
    await agent.wait_connected()
    assert any("not yet; trying again in" in text for text in messages(caplog))
    await agent.close()


def test_a_program_without_a_loop_does_not_wait() -> None:
    exchange = MemoryExchange()
    exchange.stop()
    with Agent.run_in_thread(MemoryBus(exchange), vendor="v", product="p") as running:
        assert not running.agent.connected
        exchange.start()
        wait_until(lambda: running.agent.connected, "the connection")


async def test_a_console_that_waits(caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    exchange.stop()
    with pytest.raises(ConnectError):
        await Client(MemoryBus(exchange)).open()
    client = Client(MemoryBus(exchange), wait=True)
    opening = asyncio.create_task(client.open())
    await until(lambda: messages(caplog), "the first attempt")
    assert not opening.done()
    exchange.start()
    await opening
    assert client.connected
    await client.close()


async def test_waiting_can_be_cancelled() -> None:
    exchange = MemoryExchange()
    exchange.stop()
    bus = MemoryBus(exchange)
    opening = asyncio.create_task(Client(bus, wait=True).open())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not bus.connected
