"""The machine as a whole: operating system, uptime, load."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

import attrs
import psutil

from qmf.hostagent.collectors.base import Collector, CollectorContext
from qmf.hostagent.conversions import clip, nanoseconds
from qmf.hostagent.machine import CpuStats, Machine
from qmf.models.host import agent as model

SampleFunction = Callable[[], Awaitable[model.SystemSampleResult]]


class SystemObject(model.System):
    """The managed object of the machine; its method takes a sample."""

    def __init__(self, *, nodeName: str, sample: SampleFunction) -> None:
        super().__init__(nodeName=nodeName)
        self._sample = sample

    def sample(self) -> Awaitable[model.SystemSampleResult]:
        return self._sample()


@attrs.frozen(kw_only=True)
class SystemReading:
    """Values of the machine as a whole."""

    machine_id: UUID | None
    cpus: int
    cores: int | None
    boot_time: float
    now: float
    load: tuple[float, float, float]
    processes: int
    threads: tuple[int, int] | None
    users: int
    stats: CpuStats
    temperatures: Mapping[str, float]


class SystemCollector(Collector[SystemReading]):
    """One object, from the first sample to the end."""

    what = "the system"

    def __init__(self, context: CollectorContext, sample: SampleFunction) -> None:
        super().__init__(context)
        self._sample = sample
        self._object: SystemObject | None = None

    def read(self) -> SystemReading:
        machine = self.context.machine
        ps = machine.ps
        return SystemReading(
            machine_id=machine.machine_id(),
            cpus=ps.cpu_count() or 1,
            cores=ps.cpu_count(logical=False),
            boot_time=ps.boot_time(),
            now=machine.time(),
            load=ps.getloadavg(),
            processes=len(ps.pids()),
            threads=machine.threads(),
            users=len(ps.users()),
            stats=ps.cpu_stats(),
            temperatures=self._temperatures(machine),
        )

    def _temperatures(self, machine: Machine) -> Mapping[str, float]:
        what = "temperature sensors"
        try:
            chips = machine.temperatures()
        except (OSError, psutil.Error) as error:
            self.context.failures.on_failure(what, error)
            return {}
        self.context.failures.on_success(what)
        return {
            f"{chip}/{sensor.label or number}": float(sensor.current)
            for chip, sensors in chips.items()
            for number, sensor in enumerate(sensors)
        }

    def apply(self, reading: SystemReading) -> None:
        obj = self._object or self._create()
        obj.machineId = reading.machine_id
        obj.cpus = reading.cpus
        obj.physicalCores = reading.cores
        obj.bootTime = nanoseconds(reading.boot_time)
        obj.uptime = nanoseconds(reading.now - reading.boot_time)
        obj.load1, obj.load5, obj.load15 = reading.load
        obj.processes.set(reading.processes)
        runnable, threads = reading.threads or (0, 0)
        obj.runnable.set(runnable)
        obj.threads.set(threads)
        obj.users.set(reading.users)
        obj.contextSwitches.set(reading.stats.ctx_switches)
        obj.interrupts.set(reading.stats.interrupts)
        obj.softInterrupts.set(reading.stats.soft_interrupts)
        # A map counts as changed whenever it is assigned.
        if obj.temperatures != reading.temperatures:
            obj.temperatures = reading.temperatures

    def _create(self) -> SystemObject:
        obj = SystemObject(nodeName=clip(platform.node() or "localhost"), sample=self._sample)
        obj.osName = clip(platform.system())
        obj.osRelease = clip(platform.release())
        obj.osVersion = clip(platform.version())
        obj.architecture = clip(platform.machine())
        self._object = obj
        self.context.system = obj
        self.context.agent.add(obj)
        return obj
