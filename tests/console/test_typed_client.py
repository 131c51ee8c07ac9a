"""Generated proxies through the client: what mypy knows of them, and what they do, at a host agent on a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import assert_type

import pytest
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import widget

from qmf.broker import Broker
from qmf.console.aio import Answers, ChangeKind, Client, Follow, FollowMode, ObjectChange, RemoteObject
from qmf.console.typed import object_id
from qmf.errors import CallerError
from qmf.hostagent.agent import HostAgent
from qmf.hostagent.settings import Settings
from qmf.models.host.console import Agent, Cpu, Filesystem
from qmf.models.host.schema import CPU

pytestmark = pytest.mark.slow


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Broker(port=0) as broker:
        agent = HostAgent(broker.url, Settings(interval=0.5, instance="typed"))
        await agent.start()
        async with Client(broker.url, settle=5) as client:
            yield client
        await agent.close()


async def test_objects_of_a_generated_class(client: Client) -> None:
    found = await client.objects(Filesystem, where={"mountPoint": "/"})
    assert_type(found, Answers[Filesystem])
    (root,) = found
    assert_type(root.mountPoint, str)
    assert (root.mountPoint, found.failures) == ("/", {})
    assert root.used.low <= root.used.value <= root.used.high
    plain = await client.objects("filesystem", package="qmf.host")
    assert_type(plain, Answers[RemoteObject])
    assert {object_id(item) for item in await client.objects(Filesystem)} == {obj.object_id for obj in plain}


async def test_methods_and_settings_of_a_generated_class(client: Client) -> None:
    (agent,) = await client.objects(Agent)
    result = await agent.echo(sequence=3, body="x")
    assert_type(result.body, str)
    assert (result.sequence, result.body) == (3, "x")
    (root,) = await client.objects(Filesystem, where={"mountPoint": "/"})
    await root.set(threshold=77)
    (again,) = await client.objects(Filesystem, where=["eq", "threshold", ["quote", 77]])
    assert again == root


async def test_objects_of_a_generated_class_as_they_come(client: Client) -> None:
    async for cpu in client.each(Cpu):
        assert_type(cpu, Cpu)
        assert cpu.userTime >= 0


async def test_following_a_generated_class(client: Client) -> None:
    async with client.follow(Cpu, interval=0.5) as cpus:
        assert_type(cpus, Follow[Cpu])
        assert list(cpus.sources.values()) == [FollowMode.SUBSCRIPTION]
        assert [cpu.cpuId for cpu in cpus] == [cpu.cpuId for cpu in cpus.objects]
        async with asyncio.timeout(10):
            async for change in cpus:
                assert_type(change, ObjectChange[Cpu])
                assert isinstance(change.object, Cpu)
                if change.kind is ChangeKind.CHANGED:
                    assert change.statistics
                    break
        known = cpus.get(object_id(cpus.objects[0]))
        assert_type(known, Cpu | None)
        assert known == cpus.objects[0]


async def test_a_generated_class_needs_no_other_argument(client: Client) -> None:
    with pytest.raises(CallerError, match="Cpu is a class already"):
        await client.objects(Cpu, package="other")  # type: ignore[call-overload]
    with pytest.raises(CallerError):
        client.follow(Cpu, class_key=CPU.key)  # type: ignore[call-overload]


async def test_an_agent_without_the_class_has_none_of_it(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    asking, _ = await make_client()
    assert list(await asking.objects(Filesystem)) == []
