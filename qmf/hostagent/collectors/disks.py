"""Block devices: those that had an operation, and those that hold a filesystem.

Many loop devices, RAM disks and empty drives are never used; they appear with their first operation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from qmf.hostagent.collectors.base import Collector, CollectorContext, ObjectsByKey
from qmf.hostagent.collectors.counters import CounterChanges
from qmf.hostagent.collectors.mounts import mounts
from qmf.hostagent.conversions import clip, milliseconds, percent
from qmf.hostagent.machine import DiskIo, platform_field
from qmf.models.host import agent as model


@attrs.frozen
class DiskReading:
    """Counters of every device to be shown, by name."""

    now: float
    disks: Mapping[str, DiskIo]


class DiskCollector(Collector[DiskReading]):
    """One object per block device.

    Attributes:
        objects: the devices shown, by name.
    """

    what = "the disks"

    def __init__(self, context: CollectorContext) -> None:
        super().__init__(context)
        self.objects: ObjectsByKey[str, model.Disk] = ObjectsByKey(context.agent)
        self._changes: CounterChanges[str] = CounterChanges()

    def read(self) -> DiskReading:
        machine = self.context.machine
        counters = machine.ps.disk_io_counters(perdisk=True) or {}
        mounted = {mount.device_name for mount in mounts(machine)}
        shown = {name: io for name, io in counters.items() if name in mounted or io.read_count or io.write_count}
        return DiskReading(machine.monotonic(), shown)

    def apply(self, reading: DiskReading) -> None:
        self.objects.keep(reading.disks)
        self._changes.keep(reading.disks)
        for name, io in reading.disks.items():
            with self.context.reporting_invalid_values(f"disk {name}"):
                self._update(name, io, reading.now)
        for name in reading.disks:
            if (partition := self.objects.get(name)) is not None:
                partition.partitionOf = self.objects.get(whole_disk(name, reading.disks.keys()) or "")

    def _update(self, name: str, io: DiskIo, now: float) -> None:
        obj = self.objects.get(name)
        if obj is None:
            obj = self.objects.add(name, model.Disk(name=clip(name), systemRef=self.context.system))
        busy = int(platform_field(io, "busy_time"))
        obj.reads.set(io.read_count)
        obj.writes.set(io.write_count)
        obj.mergedReads.set(int(platform_field(io, "read_merged_count")))
        obj.mergedWrites.set(int(platform_field(io, "write_merged_count")))
        obj.bytesRead.set(io.read_bytes)
        obj.bytesWritten.set(io.write_bytes)
        obj.readTime = milliseconds(io.read_time)
        obj.writeTime = milliseconds(io.write_time)
        obj.busyTime = milliseconds(busy)
        change = self._changes.record(name, now, io.read_count + io.write_count, io.read_time + io.write_time, busy)
        if change is None:
            return
        operations, spent, worked = change.increases
        obj.busyPercent = percent(worked / 1000, change.seconds)
        if operations:
            obj.latency.sample(milliseconds(1) * round(spent) // round(operations))


def whole_disk(name: str, names: Collection[str]) -> str | None:
    """The disk that `name` is a partition of, or None for whole disks.

    The kernel appends the partition's number to the disk's name, with a `p` between if that ends in a digit: `sda1`,
    `nvme0n1p2`.
    """
    stem = name.rstrip("0123456789")
    if stem == name:
        return None
    if stem in names and not stem[-1:].isdigit():
        return stem
    disk = stem.removesuffix("p")
    return disk if disk != stem and disk[-1:].isdigit() and disk in names else None
