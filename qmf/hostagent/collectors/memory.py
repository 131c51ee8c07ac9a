"""The main memory and the swap space."""

from __future__ import annotations

from qmf.hostagent.collectors.base import Collector, CollectorContext, ObjectsByKey
from qmf.hostagent.machine import MainMemory, Swap, platform_field
from qmf.models.host import agent as model


class MemoryCollector(Collector[MainMemory]):
    """One object."""

    what = "the memory"

    def __init__(self, context: CollectorContext) -> None:
        super().__init__(context)
        self._objects: ObjectsByKey[str, model.Memory] = ObjectsByKey(context.agent)

    def read(self) -> MainMemory:
        return self.context.machine.ps.virtual_memory()

    def apply(self, reading: MainMemory) -> None:
        name = "physical"
        obj = self._objects.get(name) or self._objects.add(name, model.Memory(name=name, systemRef=self.context.system))
        obj.total = reading.total
        obj.used.set(reading.used)
        obj.available.set(reading.available)
        obj.free.set(reading.free)
        obj.cached = int(platform_field(reading, "cached"))
        obj.buffers = int(platform_field(reading, "buffers"))
        obj.shared = int(platform_field(reading, "shared"))
        obj.percent = reading.percent


class SwapCollector(Collector[Swap]):
    """One object, and none while there is no swap space."""

    what = "the swap space"

    def __init__(self, context: CollectorContext) -> None:
        super().__init__(context)
        self._objects: ObjectsByKey[str, model.Swap] = ObjectsByKey(context.agent)

    def read(self) -> Swap:
        return self.context.machine.ps.swap_memory()

    def apply(self, reading: Swap) -> None:
        name = "swap"
        if not reading.total:
            self._objects.keep([])
            return
        obj = self._objects.get(name) or self._objects.add(name, model.Swap(name=name, systemRef=self.context.system))
        obj.total = reading.total
        obj.used.set(reading.used)
        obj.free.set(reading.free)
        obj.percent = reading.percent
        obj.bytesIn.set(reading.sin)
        obj.bytesOut.set(reading.sout)
