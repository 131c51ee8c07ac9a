"""The logical processors, and from them how busy the machine is."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import psutil

from qmf.hostagent.changes import Changes
from qmf.hostagent.collector import Collector, Context, Objects
from qmf.hostagent.source import CpuTimes, Frequency
from qmf.hostagent.values import nanoseconds, parts, percent
from qmf.models.host import agent as model


@attrs.frozen
class CpuReading:
    """Times of each processor; frequencies of as many as tell theirs."""

    now: float
    times: Sequence[CpuTimes]
    frequencies: Sequence[Frequency]


class CpuCollector(Collector[CpuReading]):
    """One object per logical processor; they may be switched on and off."""

    what = "the processors"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._objects: Objects[int, model.Cpu] = Objects(context.agent)
        self._changes: Changes[int] = Changes()

    def read(self) -> CpuReading:
        machine = self.context.machine
        return CpuReading(machine.monotonic(), machine.ps.cpu_times(percpu=True), self._frequencies())

    def _frequencies(self) -> Sequence[Frequency]:
        what = "processor frequencies"
        try:
            frequencies = self.context.machine.ps.cpu_freq(percpu=True) or []
        # Some kernels and platforms have no frequencies at all: psutil then lacks the function.
        except (OSError, psutil.Error, NotImplementedError, AttributeError) as error:
            self.context.failures.failed(what, error)
            return []
        self.context.failures.worked(what)
        return frequencies

    def apply(self, reading: CpuReading) -> None:
        self._objects.keep(range(len(reading.times)))
        self._changes.keep(range(len(reading.times)))
        busy = total = 0.0
        for number, times in enumerate(reading.times):
            obj = self._objects.get(number) or self._objects.add(
                number, model.Cpu(cpuId=number, systemRef=self.context.system)
            )
            working, passed = self._update(obj, number, times, reading.now)
            busy += working
            total += passed
            if number < len(reading.frequencies):
                _set_frequency(obj, reading.frequencies[number])
        if isinstance(self.context.system, model.System):
            self.context.system.cpuPercent = percent(busy, total)

    def _update(self, obj: model.Cpu, number: int, times: CpuTimes, now: float) -> tuple[float, float]:
        user, system, wait, stolen, idle = parts(times)
        obj.userTime = nanoseconds(user)
        obj.systemTime = nanoseconds(system)
        obj.idleTime = nanoseconds(idle + wait)
        step = self._changes.step(number, now, user, system, wait, stolen, idle)
        if step is None:
            return 0.0, 0.0
        user, system, wait, stolen, idle = step.gains
        # The kernel's clock ticks are coarse: shares are of the ticks that were counted, not of the time on the wall.
        total = user + system + wait + stolen + idle
        obj.busyPercent = percent(user + system, total)
        obj.userPercent = percent(user, total)
        obj.systemPercent = percent(system, total)
        obj.waitPercent = percent(wait, total)
        obj.stolenPercent = percent(stolen, total)
        return user + system, total


def _set_frequency(obj: model.Cpu, frequency: Frequency) -> None:
    obj.frequency.set(round(frequency.current))
    obj.minFrequency = round(frequency.min) or None
    obj.maxFrequency = round(frequency.max) or None
