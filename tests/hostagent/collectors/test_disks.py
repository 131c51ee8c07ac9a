"""Block devices."""

from __future__ import annotations

import psutil
import pytest
from hostagent.fakes import DiskIo, Partition, World

from qmf.hostagent.collectors.disks import DiskCollector, whole_disk
from qmf.hostagent.machine import Machine
from qmf.models.host import agent as model

SECOND = 10**9


@pytest.fixture
def collector(world: World) -> DiskCollector:
    return DiskCollector(world.context())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sda", None),
        ("sda1", "sda"),
        ("sda12", "sda"),
        ("nvme0n1", None),
        ("nvme0n1p3", "nvme0n1"),
        ("mmcblk0p1", "mmcblk0"),
        ("dm-1", None),
        ("dm-10", None),
        ("sdb1", None),
        ("loop0", None),
        ("1", None),
        ("", None),
    ],
)
def test_partitions_know_their_disk(name: str, expected: str | None) -> None:
    assert whole_disk(name, {"sda", "nvme0n1", "mmcblk0", "dm-1", "dm-10"}) == expected


def test_devices_appear_with_their_first_operation_or_filesystem(world: World, collector: DiskCollector) -> None:
    world.ps.disks = {"sda": DiskIo(read_count=1), "sdb": DiskIo(), "loop0": DiskIo(), "sdc": DiskIo(write_count=1)}
    world.ps.partitions = [Partition("/dev/sdb", "/data")]
    world.sample(collector)
    assert [disk.name for disk in world.agent.of(model.Disk)] == ["sda", "sdb", "sdc"]
    world.ps.disks["loop0"] = DiskIo(read_count=1)
    del world.ps.disks["sdc"]
    world.sample(collector)
    assert [disk.name for disk in world.agent.of(model.Disk)] == ["sda", "sdb", "loop0"]


def test_a_machine_without_disks(world: World, collector: DiskCollector) -> None:
    world.sample(collector)
    assert world.agent.of(model.Disk) == []


def test_counters_times_and_latency(world: World, collector: DiskCollector) -> None:
    world.ps.disks = {"sda": DiskIo(10, 20, 1000, 2000, 30, 40, 50, 6, 7)}
    world.sample(collector)
    disk = world.agent.the(model.Disk)
    assert (disk.reads.value, disk.writes.value) == (10, 20)
    assert (disk.bytesRead.value, disk.bytesWritten.value) == (1000, 2000)
    assert (disk.mergedReads.value, disk.mergedWrites.value) == (6, 7)
    assert (disk.readTime, disk.writeTime, disk.busyTime) == (30_000_000, 40_000_000, 50_000_000)
    assert disk.latency.samples == 0
    world.ps.disks = {"sda": DiskIo(12, 22, 1000, 2000, 50, 60, 2550)}
    world.sample(collector)
    assert disk.busyPercent == 25.0
    assert disk.latency.samples == 1
    assert disk.latency.max == 10_000_000


def test_an_idle_disk_has_no_latency(world: World, collector: DiskCollector) -> None:
    world.ps.disks = {"sda": DiskIo(1)}
    world.sample(collector)
    world.sample(collector)
    assert world.agent.the(model.Disk).latency.samples == 0


def test_counters_that_were_reset(world: World, collector: DiskCollector) -> None:
    world.ps.disks = {"sda": DiskIo(1000, 0, 9000, 0, 500, 0, 800)}
    world.sample(collector)
    world.ps.disks = {"sda": DiskIo(1, 0, 10, 0, 5, 0, 8)}
    world.sample(collector)
    disk = world.agent.the(model.Disk)
    assert disk.bytesRead.value == 10
    assert disk.busyPercent == 0.0
    assert disk.latency.samples == 0


def test_partitions_refer_to_their_disk(world: World, collector: DiskCollector) -> None:
    # The partition comes first: its disk's object is not there yet when it is made.
    world.ps.disks = {"sda1": DiskIo(1), "sda": DiskIo(1)}
    world.sample(collector)
    partition, disk = world.agent.of(model.Disk)
    assert partition.partitionOf == world.agent.ids[disk]
    assert partition.partitionOf is not None
    assert disk.partitionOf is None


def test_the_real_machine(world: World) -> None:
    collector = DiskCollector(world.context(Machine()))
    collector.apply(collector.read())
    names = {disk.name for disk in world.agent.of(model.Disk)}
    assert names <= set(psutil.disk_io_counters(perdisk=True))
