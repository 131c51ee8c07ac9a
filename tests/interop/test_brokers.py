"""Our agent and console over every broker: the embedded one, and those that the environment names."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.brokers import EMBEDDED, NAMES, URLS
from support.recording import Notifications
from support.waiting import until

from qmf.broker import EmbeddedBroker
from qmf.console.aio import ChangeKind, Client, EventRaised, HeartbeatSeen
from qmf.errors import RemoteError
from qmf.schema import read_schema
from qmf.testing import FakeAgent

SCHEMA = read_schema(Path(__file__).with_name("things.xml"))
COUNT = 300

pytestmark = pytest.mark.slow


@pytest.fixture(params=NAMES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param != EMBEDDED:
        yield URLS[request.param]
    else:
        with EmbeddedBroker() as broker:
            yield broker.url


@pytest.fixture
async def fake(url: str) -> AsyncIterator[FakeAgent]:
    async with FakeAgent(url, SCHEMA, name=f"example.org:things:{uuid.uuid4()}", interval=1.0) as fake:
        for number in range(COUNT):
            fake.add("Thing", name=f"thing-{number}", large=number)
        fake.on("Thing", "add", lambda obj, one, two: {"sum": one + two})
        yield fake


@pytest.fixture
async def heard() -> Notifications:
    return Notifications()


@pytest.fixture
async def client(url: str, fake: FakeAgent, heard: Notifications) -> AsyncIterator[Client]:
    client = Client(url, timeout=20)
    client.listen(heard.append)
    async with client:
        await until(lambda: any(agent.name == fake.name for agent in client.agents))
        yield client


async def test_objects_and_methods(client: Client, fake: FakeAgent) -> None:
    things: Any = await client.objects("thing", agent=fake.name)
    assert sorted(thing.large for thing in things) == list(range(COUNT))
    answers = await asyncio.gather(*(thing.call("add", number, 2) for number, thing in enumerate(things[:50])))
    assert [answer["sum"] for answer in answers] == [number + 2 for number in range(50)]
    with pytest.raises(RemoteError):
        await things[0].call("refuse")


async def test_events_heartbeats_and_changes(client: Client, fake: FakeAgent, heard: Notifications) -> None:
    fake.raise_event("thingBroke", name="stove", level=99, options={})
    await until(lambda: any(news.event.arguments.get("name") == "stove" for news in heard.of(EventRaised)))
    await until(lambda: any(news.agent.name == fake.name for news in heard.of(HeartbeatSeen)))
    async with client.follow("thing", agent=fake.name, interval=0.2) as things:
        await until(lambda: len(things) == COUNT)
        fake.set(fake.agent.objects[7], large=4711)
        async with asyncio.timeout(20):
            async for change in things:
                if change.kind is ChangeKind.CHANGED and change.object.large == 4711:
                    break
    assert client.broken == 0
