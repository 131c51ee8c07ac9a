"""The client against scripted agents: finding, asking, calling, failing."""

from __future__ import annotations

import asyncio

import pytest
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import TOPIC, widget
from support.waiting import WAIT_LIMIT, until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import (
    AgentAdded,
    AgentRemoved,
    BrokerIdentified,
    BusConnected,
    BusDisconnected,
    Client,
    Removal,
)
from qmf.errors import (
    CallerError,
    ConnectError,
    DisconnectedError,
)
from qmf.protocol import (
    LocateRequest,
    QueryRequest,
)


async def test_agents_are_found_when_the_client_opens(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent()
    await make_agent("example.org:widgets:2")
    client, heard = await make_client()
    assert sorted(agent.name for agent in client.agents) == ["example.org:widgets:1", "example.org:widgets:2"]
    assert isinstance(heard[0], BusConnected)
    assert len(heard.of(AgentAdded)) == 2
    assert client.agent("example.org:widgets:2").epoch == 1
    assert client.broker is None


async def test_everything_is_bound_before_the_first_request(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, _ = await make_client()
    (request,) = [item for item in agent.asked if isinstance(item.content, LocateRequest)]
    assert request.reply_to == f"{TOPIC}/{client.reply_key}"
    assert client.reply_key.startswith("direct-console.")


async def test_a_later_agent_is_learned_from_its_heartbeat(make_agent: MakeAgent, make_client: MakeClient) -> None:
    client, heard = await make_client()
    agent = await make_agent()
    await agent.heartbeat()
    await until(lambda: heard.of(AgentAdded))
    assert client.agents[0].info == agent.info


async def test_a_lost_connection_fails_requests_and_agents_come_back(
    make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, heard = await make_client()
    (obj,) = await client.objects("widget")
    agent.mute = {QueryRequest}
    asking = asyncio.create_task(client.objects("widget"))
    await until(lambda: any(isinstance(item.content, QueryRequest) for item in agent.asked[-1:]))
    exchange.drop("cable cut")
    with pytest.raises(DisconnectedError, match="cable cut"):
        await asking
    assert [item.reason for item in heard.of(AgentRemoved)] == [Removal.DISCONNECTED]
    agent.mute = set()
    await until(lambda: len(heard.of(BusConnected)) == 2 and agent.bus.connected)
    await client.locate(settle=WAIT_LIMIT)
    assert [item.name for item in client.agents] == [agent.info.name]
    await obj.update()
    assert len(heard.of(BusDisconnected)) == 1


async def test_the_broker_is_known_by_its_alias_and_identified(make_agent: MakeAgent, make_client: MakeClient) -> None:
    qpidd = await make_agent(qpidd=True)
    qpidd.objects = [widget("w")]
    client, heard = await make_client()
    assert client.broker is not None
    assert client.agent("broker").name == qpidd.info.name
    (obj,) = await client.objects("widget", agent="broker")
    assert obj.agent == qpidd.info.name
    await until(lambda: heard.of(BrokerIdentified))
    assert heard.of(BrokerIdentified)[0].broker_id.int == 0xB


async def test_no_connection_is_an_error_with_the_reason(exchange: MemoryExchange) -> None:
    exchange.stop()
    client = Client(MemoryBus(exchange))
    with pytest.raises(ConnectError, match="the exchange is stopped"):
        await client.open()
    await client.close()


async def test_a_broker_that_accepts_no_message_is_no_connection(
    exchange: MemoryExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus(exchange)

    async def no_credit(data: bytes, *, confirm: bool = False) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bus, "send", no_credit)
    client = Client(target=bus)
    with pytest.raises(ConnectError, match=r"the broker accepted no message within 0\.1 s"):
        await client.open(0.1)
    assert not bus.connected


def test_a_client_can_be_made_before_there_is_a_loop(exchange: MemoryExchange) -> None:
    client = Client(MemoryBus(exchange))

    async def use() -> int:
        async with client:
            return len(await client.packages())

    assert asyncio.run(use()) == 0


async def test_a_client_is_opened_once(make_client: MakeClient) -> None:
    client, _ = await make_client()
    with pytest.raises(CallerError, match="opened once"):
        await client.open()


async def test_a_bus_that_was_open_stays_open(exchange: MemoryExchange) -> None:
    bus = MemoryBus(exchange)
    await bus.open()
    async with Client(bus, settle=0.0) as client:
        assert client.connected
    assert bus.connected
    await bus.close()
