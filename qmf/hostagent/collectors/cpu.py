"""The logical processors, and the load of the whole machine computed from them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import psutil

from qmf.hostagent.collectors.base import Collector, CollectorContext, ObjectsByKey
from qmf.hostagent.collectors.counters import CounterChanges
from qmf.hostagent.conversions import cpu_time_parts, nanoseconds, percent
from qmf.hostagent.machine import CpuTimes, Frequency
from qmf.models.host import agent as model


@attrs.frozen
class CpuReading:
    """Times of each processor; frequencies of the first ones, as many as are known."""

    now: float
    times: Sequence[CpuTimes]
    frequencies: Sequence[Frequency]


class CpuCollector(Collector[CpuReading]):
    """One object per logical processor; processors may be switched on and off."""

    what = "the processors"

    def __init__(self, context: CollectorContext) -> None:
        super().__init__(context)
        self._objects: ObjectsByKey[int, model.Cpu] = ObjectsByKey(context.agent)
        self._changes: CounterChanges[int] = CounterChanges()

    def read(self) -> CpuReading:
        machine = self.context.machine
        return CpuReading(machine.monotonic(), machine.ps.cpu_times(percpu=True), self._frequencies())

    def _frequencies(self) -> Sequence[Frequency]:
        what = "processor frequencies"
        try:
            frequencies = self.context.machine.ps.cpu_freq(percpu=True) or []
        # On kernels and platforms without frequencies psutil lacks the function.
        except (OSError, psutil.Error, NotImplementedError, AttributeError) as error:
            self.context.failures.on_failure(what, error)
            return []
        self.context.failures.on_success(what)
        return frequencies

    def apply(self, reading: CpuReading) -> None:
        self._objects.keep(range(len(reading.times)))
        self._changes.keep(range(len(reading.times)))
        busy = total = 0.0
        for number, times in enumerate(reading.times):
            obj = self._objects.get(number) or self._objects.add(
                number, model.Cpu(cpuId=number, systemRef=self.context.system)
            )
            working, elapsed = self._update(obj, number, times, reading.now)
            busy += working
            total += elapsed
            if number < len(reading.frequencies):
                _set_frequency(obj, reading.frequencies[number])
        if isinstance(self.context.system, model.System):
            self.context.system.cpuPercent = percent(busy, total)

    def _update(self, obj: model.Cpu, number: int, times: CpuTimes, now: float) -> tuple[float, float]:
        user, system, wait, stolen, idle = cpu_time_parts(times)
        obj.userTime = nanoseconds(user)
        obj.systemTime = nanoseconds(system)
        obj.idleTime = nanoseconds(idle + wait)
        change = self._changes.record(number, now, user, system, wait, stolen, idle)
        if change is None:
            return 0.0, 0.0
        user, system, wait, stolen, idle = change.increases
        # The kernel's clock ticks are coarse: shares relate to the counted ticks, not to elapsed time.
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
