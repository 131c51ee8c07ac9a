"""The host agent on a bus."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

import pytest
from hostagent.fakes import FakePsutil, NicStats, World
from support.waiting import until

from qmf.agent import ManagedObject
from qmf.agent.layout.object_state import object_id
from qmf.bus import Binding, MemoryBus, MemoryExchange, ReceivedMessage
from qmf.errors import CallerError, ConnectError
from qmf.hostagent import HostAgent, Settings
from qmf.models.host import agent as model
from qmf.protocol import Envelope, EventData, EventsIndication, decode
from qmf.testing import Recorder

T = TypeVar("T", bound=ManagedObject)


def the(agent: HostAgent, kind: type[T]) -> T:
    """The only object of a class."""
    (obj,) = [obj for obj in agent.agent.objects if isinstance(obj, kind)]
    return obj


class Listener:
    """A console's end of the bus: keeps every event."""

    def __init__(self) -> None:
        self.events: list[EventData] = []

    def deliver(self, message: ReceivedMessage) -> None:
        envelope = decode(message.data)
        if isinstance(envelope, Envelope) and isinstance(envelope.content, EventsIndication):
            self.events.extend(envelope.content.events)
        message.settle()

    @property
    def names(self) -> list[str]:
        """Names of the events, in order."""
        return [event.class_key.name for event in self.events if event.class_key is not None]


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
async def listener(exchange: MemoryExchange) -> AsyncIterator[Listener]:
    listener = Listener()
    bus = MemoryBus(exchange)
    await bus.open()
    await bus.subscribe(Binding("qmf.default.topic", "agent.ind.#"), listener.deliver)
    yield listener
    await bus.close()


async def test_its_objects_are_there_when_it_is_found(world: World, exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange), Settings(instance="box"), machine=world.machine)
    await agent.start()
    try:
        assert agent.name == agent.agent.name == "qmf:host:box"
        assert the(agent, model.System).nodeName == platform.node()
        agent_object = the(agent, model.Agent)
        assert agent_object.name == "box"
        assert agent_object.systemRef == object_id(the(agent, model.System))
        assert agent_object.samples.value == 1
        assert len([obj for obj in agent.agent.objects if isinstance(obj, model.Cpu)]) == 2
    finally:
        await agent.close()


async def test_the_instance_is_the_machines_name_by_default(world: World, exchange: MemoryExchange) -> None:
    assert HostAgent(MemoryBus(exchange), machine=world.machine).name == f"qmf:host:{platform.node()}"


async def test_an_empty_instance_is_refused(world: World, exchange: MemoryExchange) -> None:
    with pytest.raises(CallerError, match="instance"):
        HostAgent(MemoryBus(exchange), Settings(instance=""), machine=world.machine)


async def test_it_refers_to_its_own_process(exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange))
    try:
        await agent.sample()
        process = next(obj for obj in agent.agent.objects if object_id(obj) == the(agent, model.Agent).processRef)
        assert isinstance(process, model.Process)
        assert process.user
    finally:
        await agent.close()


async def test_it_samples_again_and_reports_what_happened(
    world: World, exchange: MemoryExchange, listener: Listener
) -> None:
    world.ps.nics = {"eth0": NicStats()}
    agent = HostAgent(MemoryBus(exchange), Settings(interval=0.02, instance="box"), machine=world.machine)
    await agent.start()
    try:
        world.ps.nics = {"eth0": NicStats(isup=False)}
        await until(lambda: "interfaceDown" in listener.names, "the event that eth0 is down")
    finally:
        await agent.close()
    assert listener.names[0] == "agentStarted"
    assert listener.events[0].severity == 6
    assert listener.events[0].values["agent"] == "box"
    down = listener.events[listener.names.index("interfaceDown")]
    assert down.severity == 4
    assert down.values == {"interface": "eth0"}


async def test_a_sample_on_demand(world: World, exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange), Settings(interval=3600), machine=world.machine)
    await agent.start()
    try:
        world.ps.nics = {"eth0": NicStats()}
        taking = the(agent, model.System).sample()
        assert not isinstance(taking, model.SystemSampleResult)
        result = await taking
        assert the(agent, model.NetworkInterface).name == "eth0"
        assert result.objects == len(agent.agent.objects)
        assert result.duration > 0
    finally:
        await agent.close()


async def test_samples_asked_for_at_once_come_one_after_the_other(world: World, exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange), machine=world.machine)
    await asyncio.gather(*(agent.sample() for _ in range(5)))
    assert the(agent, model.Agent).samples.value == 5
    await agent.close()


async def test_a_shorter_interval_holds_at_once(world: World, exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange), Settings(interval=3600), machine=world.machine)
    await agent.start()
    try:
        agent_object = the(agent, model.Agent)
        async with Recorder(exchange) as console:
            await console.set(agent_object, interval=0.02)
        await until(lambda: agent_object.samples.value >= 3, "two more samples")
    finally:
        await agent.close()


class SlowPsutil(FakePsutil):
    """Takes longer to read than from sample to sample."""

    def users(self) -> Sequence[object]:
        time.sleep(0.03)
        return []


async def test_samples_that_are_late_are_reported_once(exchange: MemoryExchange, listener: Listener) -> None:
    world = World(SlowPsutil())
    agent = HostAgent(MemoryBus(exchange), Settings(interval=0.01), machine=world.machine)
    await agent.start()
    try:
        await until(lambda: the(agent, model.Agent).lateSamples.value >= 3, "late samples")
        await until(lambda: "samplingLate" in listener.names, "the event")
    finally:
        await agent.close()
    assert listener.names.count("samplingLate") == 1


async def test_a_bug_in_a_sample_is_logged_and_the_next_one_follows(
    world: World, exchange: MemoryExchange, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = HostAgent(MemoryBus(exchange), Settings(interval=0.02), machine=world.machine)
    await agent.start()
    try:
        # A value of a kind that no platform gives.
        monkeypatch.setattr(world.ps, "counts", None)
        await until(lambda: "Sample failed" in caplog.text, "the line in the log")
        monkeypatch.undo()
        done = the(agent, model.Agent).samples.value
        await until(lambda: the(agent, model.Agent).samples.value > done, "another sample")
    finally:
        await agent.close()


async def test_nobody_there(world: World, exchange: MemoryExchange) -> None:
    exchange.stop()
    agent = HostAgent(MemoryBus(exchange), machine=world.machine, wait=False)
    with pytest.raises(ConnectError):
        await agent.start()


async def test_a_second_start_leaves_the_first(world: World, exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange), machine=world.machine)
    await agent.start()
    try:
        with pytest.raises(CallerError, match="started before"):
            await agent.start()
        assert agent.agent.connected
    finally:
        await agent.close()


async def test_closing_twice_and_without_start(world: World, exchange: MemoryExchange) -> None:
    agent = HostAgent(MemoryBus(exchange), machine=world.machine)
    await agent.close()
    await agent.close()
    assert agent.agent.objects == ()
