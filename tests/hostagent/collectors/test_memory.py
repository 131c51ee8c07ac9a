"""Main memory and swap space."""

from __future__ import annotations

import psutil
from hostagent.fakes import GIB, Memory, Swap, World

from qmf.hostagent.collectors.memory import MemoryCollector, SwapCollector
from qmf.hostagent.machine import Machine
from qmf.models.host import agent as model


def test_memory(world: World) -> None:
    collector = MemoryCollector(world.context())
    world.sample(collector)
    memory = world.agent.the(model.Memory)
    assert memory.name == "physical"
    assert memory.total == 16 * GIB
    assert memory.used.value == 3 * GIB
    assert memory.available.value == 12 * GIB
    assert memory.free.value == 8 * GIB
    assert (memory.cached, memory.buffers, memory.shared) == (4 * GIB, GIB, GIB // 2)
    assert memory.percent == 25.0


def test_a_platform_with_fewer_values(world: World) -> None:
    world.ps.memory = Memory(used=5)
    world.sample(MemoryCollector(world.context()))
    memory = world.agent.the(model.Memory)
    assert memory.used.value == 5
    assert memory.cached == 0


def test_memory_keeps_its_marks_between_samples(world: World) -> None:
    collector = MemoryCollector(world.context())
    for used in (5, 9, 7):
        world.ps.memory = Memory(used=used)
        world.sample(collector)
    used_memory = world.agent.the(model.Memory).used
    assert (used_memory.value, used_memory.high) == (7, 9)


def test_swap_is_there_while_there_is_any(world: World) -> None:
    collector = SwapCollector(world.context())
    world.sample(collector)
    assert world.agent.of(model.Swap) == []
    world.ps.swap = Swap(total=100, used=40, free=60, percent=40.0, sin=7, sout=8)
    world.sample(collector)
    swap = world.agent.the(model.Swap)
    assert (swap.total, swap.used.value, swap.free.value, swap.percent) == (100, 40, 60, 40.0)
    assert (swap.bytesIn.value, swap.bytesOut.value) == (7, 8)
    world.ps.swap = Swap()
    world.sample(collector)
    assert world.agent.of(model.Swap) == []


def test_the_real_machine(world: World) -> None:
    collector = MemoryCollector(world.context(Machine()))
    collector.apply(collector.read())
    memory = world.agent.the(model.Memory)
    assert memory.total == psutil.virtual_memory().total
    assert 0 < memory.used.value < memory.total
    swap = SwapCollector(world.context(Machine()))
    swap.apply(swap.read())
    assert len(world.agent.of(model.Swap)) == (1 if psutil.swap_memory().total else 0)
