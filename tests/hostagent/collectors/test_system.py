"""The machine as a whole."""

from __future__ import annotations

import logging
import platform
from uuid import UUID

import psutil
import pytest
from hostagent.fakes import FakeProcess, Sensor, World

from qmf.hostagent.collectors.system import SystemCollector
from qmf.hostagent.machine import Machine
from qmf.models.host import agent as model


async def sampled() -> model.SystemSampleResult:
    return model.SystemSampleResult(duration=5, objects=6)


@pytest.fixture
def collector(world: World) -> SystemCollector:
    return SystemCollector(world.context(), sampled)


def test_what_the_machine_tells(world: World, collector: SystemCollector) -> None:
    world.ps.processes = [FakeProcess(1), FakeProcess(2)]
    world.ps.sensors = {"coretemp": [Sensor("Core 0", 41.5), Sensor("", 40.0)]}
    world.sample(collector)
    system = world.agent.the(model.System)
    assert system.nodeName == platform.node()
    assert system.machineId == UUID(int=7)
    assert system.cpus == 2
    assert system.physicalCores is None
    assert system.bootTime == 1_600_000_000 * 10**9
    assert system.uptime == (100_000_110) * 10**9
    assert (system.load1, system.load5, system.load15) == (1.5, 1.0, 0.5)
    assert system.processes.value == 2
    assert (system.runnable.value, system.threads.value) == (2, 300)
    assert system.users.value == 1
    assert system.contextSwitches.value == 1000
    assert system.interrupts.value == 2000
    assert system.softInterrupts.value == 3000
    assert system.temperatures == {"coretemp/Core 0": 41.5, "coretemp/1": 40.0}


def test_the_object_stays_and_follows(world: World, collector: SystemCollector) -> None:
    world.sample(collector)
    system = world.agent.the(model.System)
    world.ps.processes = [FakeProcess(1)]
    world.machine.loadavg = None
    world.sample(collector)
    assert world.agent.the(model.System) is system
    assert system.processes.value == 1
    assert system.threads.value == 0


def test_sensors_that_fail_leave_the_rest(
    world: World, collector: SystemCollector, caplog: pytest.LogCaptureFixture
) -> None:
    world.ps.errors["sensors_temperatures"] = OSError("no such chip")
    with caplog.at_level(logging.WARNING):
        world.sample(collector)
        world.sample(collector)
    assert world.agent.the(model.System).temperatures == {}
    assert [record.getMessage() for record in caplog.records] == ["Cannot read temperature sensors: no such chip"]


async def test_its_method_takes_a_sample(world: World, collector: SystemCollector) -> None:
    world.sample(collector)
    result = world.agent.the(model.System).sample()
    assert not isinstance(result, model.SystemSampleResult)
    assert await result == model.SystemSampleResult(duration=5, objects=6)


def test_the_real_machine(world: World) -> None:
    collector = SystemCollector(world.context(Machine()), sampled)
    collector.apply(collector.read())
    system = world.agent.the(model.System)
    assert system.cpus == psutil.cpu_count()
    assert system.bootTime == round(psutil.boot_time()) * 10**9
    assert system.architecture == platform.machine()
    assert system.processes.value > 0
    assert system.contextSwitches.value > 0
