"""The logical processors."""

from __future__ import annotations

import logging

import psutil
import pytest
from hostagent.fakes import Frequency, Times, World

from qmf.hostagent.collectors.cpu import CpuCollector
from qmf.hostagent.machine import Machine
from qmf.models.host import agent as model


@pytest.fixture
def collector(world: World) -> CpuCollector:
    return CpuCollector(world.context())


def test_one_object_per_processor(world: World, collector: CpuCollector) -> None:
    world.ps.frequencies = [Frequency(2599.6, 800.0, 3600.0)]
    world.sample(collector)
    first, second = world.agent.of(model.Cpu)
    assert (first.cpuId, second.cpuId) == (0, 1)
    assert first.frequency.value == 2600
    assert (first.minFrequency, first.maxFrequency) == (800, 3600)
    assert second.frequency.value == 0
    assert second.maxFrequency is None


def test_shares_are_of_the_time_since_the_sample_before(world: World, collector: CpuCollector) -> None:
    system = model.System(nodeName="box")
    context = world.context()
    context.system = system
    collector = CpuCollector(context)
    world.ps.times = [Times(user=1000, idle=1000), Times(idle=2000)]
    world.sample(collector)
    first, second = world.agent.of(model.Cpu)
    assert first.busyPercent == 0.0
    world.ps.times = [
        Times(user=1002, nice=1, system=2, irq=1, iowait=2, steal=1, idle=1001),
        Times(user=1, idle=2009),
    ]
    world.sample(collector)
    assert first.userPercent == 30.0
    assert first.systemPercent == 30.0
    assert first.busyPercent == 60.0
    assert first.waitPercent == 20.0
    assert first.stolenPercent == 10.0
    assert second.busyPercent == 10.0
    assert system.cpuPercent == 35.0
    assert first.userTime == 1003 * 10**9
    assert first.idleTime == 1003 * 10**9


def test_time_that_went_backwards_counts_as_none(world: World, collector: CpuCollector) -> None:
    world.ps.times = [Times(user=5, iowait=10, idle=10)]
    world.sample(collector)
    world.ps.times = [Times(user=6, iowait=9, idle=11)]
    world.sample(collector)
    cpu = world.agent.the(model.Cpu)
    assert cpu.waitPercent == 0.0
    assert cpu.busyPercent == 50.0


def test_processors_come_and_go(world: World, collector: CpuCollector) -> None:
    world.sample(collector)
    world.ps.times = [Times()]
    world.sample(collector)
    assert [cpu.cpuId for cpu in world.agent.of(model.Cpu)] == [0]
    world.ps.times = [Times()] * 3
    world.sample(collector)
    assert [cpu.cpuId for cpu in world.agent.of(model.Cpu)] == [0, 1, 2]


@pytest.mark.parametrize("error", [OSError("no"), NotImplementedError("no"), AttributeError("no")])
def test_a_machine_without_frequencies(
    world: World, collector: CpuCollector, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world.ps.errors["cpu_freq"] = error
    with caplog.at_level(logging.WARNING):
        world.sample(collector)
        world.sample(collector)
    assert len(world.agent.of(model.Cpu)) == 2
    assert len(caplog.records) == 1


def test_the_real_machine(world: World) -> None:
    collector = CpuCollector(world.context(Machine()))
    collector.apply(collector.read())
    assert len(world.agent.of(model.Cpu)) == psutil.cpu_count()
