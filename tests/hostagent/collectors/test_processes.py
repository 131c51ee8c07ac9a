"""The objects of processes, and what is reported of watched ones."""

from __future__ import annotations

import os
import re

import psutil
import pytest
from hostagent.fakes import GIB, FakeProcess, Times, World

from qmf.hostagent.collectors.processes import ProcessCollector
from qmf.hostagent.machine import Machine
from qmf.hostagent.settings import ProcessSelection, Settings
from qmf.models.host import agent as model

STARTED = 1_700_000_000 * 10**9


@pytest.fixture
def collector(world: World) -> ProcessCollector:
    world.settings = Settings(selection=ProcessSelection.parse("all"), command_lines=True)
    return ProcessCollector(world.context())


def watching(world: World, pattern: str) -> ProcessCollector:
    world.settings = Settings(watch=(re.compile(pattern),))
    return ProcessCollector(world.context())


def test_the_values_of_a_process(world: World, collector: ProcessCollector) -> None:
    world.ps.processes = [
        FakeProcess(1, parent=0),
        FakeProcess(7, "nginx", ["-g", "x"], rss=GIB, cpu=Times(user=1.5, system=2)),
    ]
    world.sample(collector)
    first, process = world.agent.of(model.Process)
    assert process.pid == 7
    assert process.parentPid == 1
    assert process.parentProcess == world.agent.ids[first]
    assert first.parentProcess is None
    assert process.name == "nginx"
    assert process.commandLine == "nginx -g x"
    assert process.user == "alice"
    assert process.started == STARTED
    assert process.watched is False
    assert process.state == "sleeping"
    assert process.nice == -5
    assert (process.residentMemory.value, process.virtualMemory.value) == (GIB, 4 * GIB)
    assert process.memoryPercent == 6.25
    assert process.cpuPercent == 0.0
    assert (process.userTime, process.systemTime) == (1_500_000_000, 2_000_000_000)
    assert process.threads.value == 3
    assert process.openFiles.value == 9
    assert (process.bytesRead.value, process.bytesWritten.value) == (100, 200)
    assert (process.voluntarySwitches.value, process.involuntarySwitches.value) == (7, 8)


def test_processor_time_since_the_sample_before(world: World, collector: ProcessCollector) -> None:
    process = FakeProcess(7, cpu=Times(user=1))
    world.ps.processes = [process]
    world.sample(collector)
    process.cpu = Times(user=10, system=6)
    world.sample(collector, seconds=10.0)
    assert world.agent.the(model.Process).cpuPercent == 150.0


def test_command_lines_are_not_shown_unless_asked_for(world: World) -> None:
    world.settings = Settings(selection=ProcessSelection.parse("all"))
    world.ps.processes = [FakeProcess(7, "mysql", ["--password=secret"])]
    world.sample(ProcessCollector(world.context()))
    assert world.agent.the(model.Process).commandLine is None


def test_a_long_command_line_is_cut(world: World, collector: ProcessCollector) -> None:
    world.ps.processes = [FakeProcess(7, "java", ["x" * 10_000])]
    world.sample(collector)
    command_line = world.agent.the(model.Process).commandLine
    assert command_line is not None
    assert len(command_line) == 4096


def test_what_may_not_be_read_stays_empty(world: World, collector: ProcessCollector) -> None:
    fields = (
        "cmdline cpu_times io_counters memory_info name nice num_ctx_switches num_fds num_threads ppid status username"
    )
    world.ps.processes = [FakeProcess(7, denied=frozenset(fields.split()))]
    world.sample(collector)
    process = world.agent.the(model.Process)
    assert (process.user, process.commandLine) == (None, None)
    assert (process.openFiles.value, process.bytesRead.value, process.residentMemory.value) == (0, 0, 0)
    assert (process.name, process.state) == ("", "")


def test_processes_come_and_go_without_a_word(world: World, collector: ProcessCollector) -> None:
    world.ps.processes = [FakeProcess(1), FakeProcess(2)]
    world.sample(collector)
    world.ps.processes = [FakeProcess(2), FakeProcess(3)]
    world.sample(collector)
    assert [process.pid for process in world.agent.of(model.Process)] == [2, 3]
    assert world.agent.events == []


def test_a_number_that_is_used_again_is_another_process(world: World, collector: ProcessCollector) -> None:
    world.ps.processes = [FakeProcess(7, cpu=Times(user=100))]
    world.sample(collector)
    before = world.agent.the(model.Process)
    world.ps.processes = [FakeProcess(7, created=1_700_000_105.0)]
    world.sample(collector)
    after = world.agent.the(model.Process)
    assert after is not before
    assert after.cpuPercent == 0.0


def test_a_parent_that_is_gone_is_not_referred_to(world: World, collector: ProcessCollector) -> None:
    world.ps.processes = [FakeProcess(1), FakeProcess(7)]
    world.sample(collector)
    world.ps.processes = [FakeProcess(7)]
    world.sample(collector)
    assert world.agent.the(model.Process).parentProcess is None


def test_watched_processes_raise_events(world: World) -> None:
    collector = watching(world, "nginx")
    world.ps.processes = [FakeProcess(1, "nginx"), FakeProcess(2, "bash")]
    world.sample(collector)
    assert world.agent.take_events() == []
    assert world.agent.the(model.Process).watched is True
    world.ps.processes.append(FakeProcess(3, "nginx"))
    world.sample(collector)
    world.sample(collector)
    assert world.agent.take_events() == [model.ProcessStarted(pid=3, processName="nginx", started=STARTED)]
    del world.ps.processes[0]
    world.sample(collector)
    world.sample(collector)
    assert world.agent.take_events() == [model.ProcessGone(pid=1, processName="nginx", started=STARTED)]
    assert [process.pid for process in world.agent.of(model.Process)] == [3]


def test_a_watched_zombie_is_gone(world: World) -> None:
    collector = watching(world, "nginx")
    process = FakeProcess(1, "nginx")
    world.ps.processes = [process]
    world.sample(collector)
    process.state = psutil.STATUS_ZOMBIE
    world.sample(collector)
    assert world.agent.take_events() == [model.ProcessGone(pid=1, processName="nginx", started=STARTED)]


def test_a_watched_process_with_a_number_used_again_is_gone_and_started(world: World) -> None:
    collector = watching(world, "nginx")
    world.ps.processes = [FakeProcess(1, "nginx")]
    world.sample(collector)
    world.ps.processes = [FakeProcess(1, "nginx", created=1_700_000_105.0)]
    world.sample(collector)
    later = STARTED + 105 * 10**9
    assert world.agent.take_events() == [
        model.ProcessGone(pid=1, processName="nginx", started=STARTED),
        model.ProcessStarted(pid=1, processName="nginx", started=later),
    ]


def test_find(world: World, collector: ProcessCollector) -> None:
    world.ps.processes = [FakeProcess(1), FakeProcess(7)]
    world.sample(collector)
    assert collector.find(7) is world.agent.of(model.Process)[1]
    assert collector.find(8) is None


def test_the_real_machine(world: World) -> None:
    world.settings = Settings(selection=ProcessSelection.parse("none"))
    collector = ProcessCollector(world.context(Machine()))
    collector.apply(collector.read())
    process = world.agent.the(model.Process)
    own = psutil.Process()
    assert process.pid == os.getpid()
    assert process.user == own.username()
    assert process.started == round(own.create_time() * 1e6) * 1000
    assert process.residentMemory.value > 0
