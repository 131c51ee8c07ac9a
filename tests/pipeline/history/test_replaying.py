"""A recording that is published again: consoles see what was there, in its order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
from pipeline.lakes import Shop
from pipeline.shop import ROBBED, TILL
from support.recording import Notifications
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import AgentRemoved, AgentRestarted, Client, EventRaised, ObjectUpdated
from qmf.errors import RemoteError
from qmf.pipeline.history.reader import LakeReader
from qmf.pipeline.history.replaying import Replay
from qmf.pipeline.lake.columns import ClassVersion
from qmf.schema import Method, Schema, to_xml

T = 1_700_000_000
SECOND = 10**9
AGENT = "example.org:shop:1"
FAST = 1e6
SELLING = attrs.evolve(TILL, methods=(Method(name="sell"),))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A lake with one till from the beginning, and what happens then."""
    shop = Shop(tmp_path)
    shop.add_schema(ClassVersion.from_schema(TILL), to_xml(Schema(package=TILL.package, classes=(SELLING,), events=())))
    shop.add_schema(
        ClassVersion.from_schema(ROBBED), to_xml(Schema(package=TILL.package, classes=(), events=(ROBBED,)))
    )
    shop.agent(T, "added", agent=AGENT)
    shop.put((T + 1, 10), object="till:one", agent=AGENT, properties=True, name="one", limit=5, nextRef="till:two")
    shop.put((T + 10, 20), object="till:one", agent=AGENT)
    shop.events((T + 11, {"till": "one", "amount": 7}), agent=AGENT)
    shop.put((T + 12, 1), object="till:two", agent=AGENT, properties=True, name="two")
    shop.put((T + 13, 2), object="till:two", agent=AGENT, properties=True, name="two", delete=T + 13)
    return shop


@contextlib.asynccontextmanager
async def replayed(
    shop: Shop, exchange: MemoryExchange, first: float = 5, last: float = 60, speed: float = FAST
) -> AsyncIterator[Replay]:
    """A replay that is prepared."""
    bus = MemoryBus(exchange)
    await bus.open()
    with LakeReader(shop.root) as reader:
        reader.refresh()
        replay = Replay(reader, bus, int((T + first) * SECOND), int((T + last) * SECOND), speed=speed)
        await replay.prepare()
        try:
            yield replay
        finally:
            await replay.close()
            await bus.close()


@contextlib.asynccontextmanager
async def console(exchange: MemoryExchange) -> AsyncIterator[tuple[Client, Notifications]]:
    """A console that knows the agent."""
    heard = Notifications()
    client = Client(MemoryBus(exchange), settle=0.0)
    client.listen(heard.append)
    async with client:
        await until(lambda: [agent.name for agent in client.agents] == [AGENT])
        yield client, heard


async def test_the_state_at_the_beginning_can_be_queried(shop: Shop) -> None:
    exchange = MemoryExchange()
    async with replayed(shop, exchange), console(exchange) as (client, _):
        (till,) = await client.objects("till")
        assert (till["name"], till["sales"], till["limit"]) == ("one", 10, 5)
        assert till["nextRef"].object_name == "till:two"
        assert list(await client.objects("till", where={"name": "none"})) == []
        assert {key.name for key in await client.classes()} == {"till", "tillRobbed"}
        assert len(await client.objects(object_id=till.object_id)) == 1


async def test_publications_come_in_their_order_with_their_times(shop: Shop) -> None:
    exchange = MemoryExchange()
    async with replayed(shop, exchange) as replay, console(exchange) as (client, heard):
        await replay.run()
        await until(lambda: len(heard.of(ObjectUpdated)) == 3 and heard.of(EventRaised))
        await until(lambda: heard.of(ObjectUpdated)[-1].object.is_deleted)
        assert [item.object.object_id.object_name for item in heard.of(ObjectUpdated)] == [
            "till:one",
            "till:two",
            "till:two",
        ]
        (event,) = heard.of(EventRaised)
        assert (event.event.arguments["amount"], event.event.timestamp) == (7, (T + 11) * SECOND)
        (till,) = await client.objects("till")
        assert (till["name"], till["sales"]) == ("one", 20)
        progress = replay.progress
        assert (progress.objects, progress.events, progress.agents) == (3, 1, 1)


async def test_agents_restart_and_end_as_they_did(shop: Shop) -> None:
    shop.agent(T + 20, "restarted", agent=AGENT, epoch=2)
    shop.put((T + 21, 1), object="till:one", agent=AGENT, epoch=2, properties=True, name="one")
    shop.agent(T + 30, "removed", agent=AGENT, epoch=2, reason="goodbye")
    exchange = MemoryExchange()
    async with replayed(shop, exchange) as replay, console(exchange) as (_, heard):
        await replay.run()
        await until(lambda: heard.of(AgentRemoved))
        assert [item.agent.epoch for item in heard.of(AgentRestarted)] == [2]
        assert replay.progress.agents == 0


async def test_methods_are_refused(shop: Shop) -> None:
    exchange = MemoryExchange()
    async with replayed(shop, exchange), console(exchange) as (client, _):
        (till,) = await client.objects("till")
        with pytest.raises(RemoteError, match="replays a recording"):
            await till.call("sell")


async def test_a_console_that_asks_is_noticed(shop: Shop) -> None:
    exchange = MemoryExchange()
    async with replayed(shop, exchange) as replay:
        assert not replay.asked.is_set()
        async with console(exchange):
            await until(replay.asked.is_set)


async def test_rows_are_not_published_before_their_time(shop: Shop) -> None:
    exchange = MemoryExchange()
    # Five seconds of the recording until the first row, in a quarter of a second at least.
    async with replayed(shop, exchange, speed=20) as replay, console(exchange) as (_, heard):
        began = time.monotonic()
        task = asyncio.create_task(replay.run())
        await until(lambda: heard.of(ObjectUpdated))
        assert time.monotonic() - began >= 0.25
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_cancelled_replay_ends_its_agents(shop: Shop) -> None:
    exchange = MemoryExchange()
    async with console_after(exchange, shop) as heard:
        await until(lambda: heard.of(AgentRemoved))


@contextlib.asynccontextmanager
async def console_after(exchange: MemoryExchange, shop: Shop) -> AsyncIterator[Notifications]:
    """A console on a bus from which a replay has just gone."""
    async with contextlib.AsyncExitStack() as stack:
        replay = await stack.enter_async_context(replayed(shop, exchange, speed=1.0))
        rest = stack.pop_all()
        async with console(exchange) as (_, heard):
            task = asyncio.create_task(replay.run())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await rest.aclose()
            yield heard
