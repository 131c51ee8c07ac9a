"""Questions to one agent: the classes that it knows, and properties with names that Python uses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from agent.warehouse import SHELF, SITE
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import ALARM, WIDGET

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.errors import NotFoundError
from qmf.schema import TYPES, Access, ClassSchema, Property
from qmf.testing import FakeAgent


async def test_classes_of_one_agent(exchange: MemoryExchange) -> None:
    one = FakeAgent(exchange, SITE, SHELF, WIDGET, name="example.org:one:1")
    two = FakeAgent(exchange, WIDGET, ALARM, name="example.org:two:1")
    async with one, two, Client(MemoryBus(exchange)) as client:
        assert list(await client.classes(agent=one.name)) == [SHELF.key, SITE.key, WIDGET.key]
        assert list(await client.classes(agent=client.agent(two.name))) == [WIDGET.key, ALARM.key]
        assert list(await client.classes(WIDGET.package, agent=one.name)) == [WIDGET.key]
        assert len(await client.classes()) == 4
        with pytest.raises(NotFoundError, match="did you mean"):
            await client.classes(agent="example.org:one")


async def test_an_agent_that_cannot_list_counts_with_what_was_seen(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(capability=0)
    client, _ = await make_client()
    assert list(await client.classes(agent=agent.info.name)) == []
    await agent.raise_event({"name": "w", "level": 1, "since": 1})
    await client.schema(ALARM.key)
    assert list(await client.classes(agent=agent.info.name)) == [ALARM.key]


async def test_a_property_called_self_can_be_set(exchange: MemoryExchange) -> None:
    schema = ClassSchema(
        package="p",
        name="thing",
        hash=UUID(int=1),
        properties=(Property(name="self", type=TYPES["uint8"], access=Access.RW),),
    )
    async with FakeAgent(exchange, schema) as fake, Client(MemoryBus(exchange)) as client:
        fake.add("thing")
        (remote,) = await client.objects("thing")
        values: dict[str, Any] = {"self": 5}
        await remote.set(**values)
        await remote.update()
        assert remote["self"] == 5
