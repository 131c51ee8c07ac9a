"""The host agent over the embedded broker, as a console sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import attrs
import psutil
import pytest
from support.processes import running

from qmf.broker import Broker, EmbeddedBroker
from qmf.console.aio import Client, EventRaised, RemoteObject
from qmf.errors import RemoteError
from qmf.hostagent import HostAgent, ProcessSelection, Settings
from qmf.protocol import ObjectId

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from qmf.hostagent.cli import main; sys.exit(main())"


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with Broker(port=0) as broker:
        yield broker.url


@pytest.fixture
def settings() -> Settings:
    return Settings(interval=0.5, instance="e2e", selection=ProcessSelection.parse("none"))


@pytest.fixture
async def client(url: str, settings: Settings) -> AsyncIterator[Client]:
    agent = HostAgent(url, settings)
    await agent.start()
    try:
        async with Client(url) as client:
            yield client
    finally:
        await agent.close()


async def the(client: Client, name: str) -> RemoteObject:
    """The only object of a class."""
    (obj,) = await client.objects(name)
    return obj


def named(obj: RemoteObject) -> str:
    return obj.object_id.object_name


async def test_the_machine_is_as_psutil_says(client: Client) -> None:
    system = await the(client, "system")
    assert system["cpus"] == psutil.cpu_count()
    assert system["bootTime"] == round(psutil.boot_time()) * 10**9
    memory = await the(client, "memory")
    assert memory["total"] == psutil.virtual_memory().total
    assert len(await client.objects("cpu")) == psutil.cpu_count()
    interfaces = {item["name"] for item in await client.objects("networkinterface")}
    assert interfaces == set(psutil.net_if_stats()) | set(psutil.net_if_addrs())
    filesystems = {named(item) for item in await client.objects("filesystem")}
    assert "qmf.host:filesystem:/" in filesystems


async def test_calls_raise_events_if_enabled(url: str, settings: Settings) -> None:
    agent = HostAgent(url, attrs.evolve(settings, audit=True))
    await agent.start()
    try:
        async with Client(url) as client:
            feed = client.notifications(EventRaised)
            await (await the(client, "agent")).call("echo", 7, "hello")
            async with asyncio.timeout(10):
                reported = await anext(feed)
        assert isinstance(reported, EventRaised)
        assert reported.event.arguments["method"] == "echo"
        assert reported.event.arguments["arguments"] == {"sequence": 7, "body": "hello"}
    finally:
        await agent.close()


async def test_objects_refer_to_each_other(client: Client) -> None:
    agent = await the(client, "agent")
    system = await the(client, "system")
    process = await agent.follow("processRef")
    assert process is not None
    assert process["pid"] == os.getpid()
    assert named(process) == f"qmf.host:process:{os.getpid()}"
    assert await process.follow("systemRef") == system
    assert isinstance(agent["systemRef"], ObjectId)


async def test_methods(client: Client) -> None:
    agent = await the(client, "agent")
    assert dict(await agent.call("echo", 7, "hello")) == {"sequence": 7, "body": "hello"}
    result = await (await the(client, "system")).call("sample")
    duration = result["duration"]
    assert isinstance(duration, int)
    assert 0 < duration < 10 * 10**9
    before = agent["samples"]
    await agent.update()
    after = agent["samples"]
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after > before


async def test_a_threshold_is_set_and_checked(client: Client) -> None:
    root = next(item for item in await client.objects("filesystem") if item["mountPoint"] == "/")
    before = root["threshold"]
    await root.set(threshold=55)
    await root.update()
    assert (before, root["threshold"]) == (90, 55)


async def test_signals_are_refused_by_default(client: Client) -> None:
    (process,) = await client.objects("process")
    with pytest.raises(RemoteError, match="--allow-signals"):
        await process.call("signal", "TERM")


class TestSignals:
    """With the operator's leave."""

    @pytest.fixture
    def child(self) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
            yield child
            child.kill()

    @pytest.fixture
    def settings(self, child: subprocess.Popen[bytes]) -> Settings:
        return Settings(instance="e2e", selection=ProcessSelection.parse("all"), allow_signals=True)

    async def test_a_signal_ends_a_process(self, client: Client, child: subprocess.Popen[bytes]) -> None:
        (process,) = await client.objects("process", where={"pid": child.pid})
        await process.call("signal", "TERM")
        assert child.wait(10) == -signal.SIGTERM
        with pytest.raises(RemoteError, match="is gone"):
            await process.call("signal", "TERM")


def test_the_program_runs_until_sigterm() -> None:
    broker = EmbeddedBroker(port=0)
    broker.start()
    try:
        with running(sys.executable, "-c", PROGRAM, "-b", broker.url, "--instance", "box") as agent:
            assert agent.wait_for("Host agent") == f"Host agent qmf:host:box on {broker.url}"
            assert agent.end(signal.SIGTERM) == 0
    finally:
        broker.close()
