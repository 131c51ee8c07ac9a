"""Filesystems and their thresholds."""

from __future__ import annotations

import logging

import psutil
import pytest
from hostagent.fakes import GIB, DiskIo, Partition, World, usage

from qmf.agent import Event
from qmf.hostagent.collectors.base import CollectorContext
from qmf.hostagent.collectors.disks import DiskCollector
from qmf.hostagent.collectors.filesystems import FilesystemCollector
from qmf.hostagent.machine import Machine
from qmf.hostagent.settings import Settings
from qmf.models.host import agent as model


def make(context: CollectorContext) -> tuple[DiskCollector, FilesystemCollector]:
    disks = DiskCollector(context)
    return disks, FilesystemCollector(context, disks.objects)


@pytest.fixture
def collectors(world: World) -> tuple[DiskCollector, FilesystemCollector]:
    world.ps.partitions = [Partition("/dev/sda1", "/", opts="rw,size=4k")]
    return make(world.context())


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_what_a_filesystem_tells(world: World, collectors: tuple[DiskCollector, FilesystemCollector]) -> None:
    world.ps.disks = {"sda1": DiskIo()}
    world.machine.inode_counts = {"/": (1000, 750)}
    world.ps.usages = {"/": usage(40.0)}
    world.sample(*collectors)
    filesystem = world.agent.the(model.Filesystem)
    assert filesystem.mountPoint == "/"
    assert filesystem.device == "/dev/sda1"
    assert filesystem.diskRef == world.agent.ids[world.agent.the(model.Disk)]
    assert filesystem.type == "ext4"
    assert filesystem.options == {"rw": True, "size": "4k"}
    assert filesystem.readOnly is False
    assert filesystem.size == 100 * GIB
    assert (filesystem.used.value, filesystem.free.value) == (40 * GIB, 60 * GIB)
    assert filesystem.percent == 40.0
    assert filesystem.inodes == 1000
    assert filesystem.inodesUsed.value == 250
    assert filesystem.inodesPercent == 25.0
    assert filesystem.threshold == 90
    assert filesystem.aboveThreshold is False


def test_filesystems_come_and_go(world: World, collectors: tuple[DiskCollector, FilesystemCollector]) -> None:
    world.sample(*collectors)
    root = world.agent.the(model.Filesystem)
    world.ps.partitions.append(Partition("/dev/sdb1", "/data"))
    world.sample(*collectors)
    assert [item.mountPoint for item in world.agent.of(model.Filesystem)] == ["/", "/data"]
    del world.ps.partitions[1]
    world.sample(*collectors)
    assert world.agent.of(model.Filesystem) == [root]


def test_another_filesystem_on_the_same_mount_point_is_another_object(
    world: World, collectors: tuple[DiskCollector, FilesystemCollector]
) -> None:
    world.sample(*collectors)
    before = world.agent.the(model.Filesystem)
    world.ps.partitions = [Partition("/dev/sdb1", "/")]
    world.sample(*collectors)
    after = world.agent.the(model.Filesystem)
    assert after is not before
    assert after.device == "/dev/sdb1"


def test_unchanged_options_are_no_change(world: World, collectors: tuple[DiskCollector, FilesystemCollector]) -> None:
    world.sample(*collectors)
    filesystem = world.agent.the(model.Filesystem)
    options = filesystem.options
    world.sample(*collectors)
    # Assigning a map, which counts as a change, would copy it.
    assert filesystem.options is options


def test_a_threshold_is_reported_once_each_way(
    world: World, collectors: tuple[DiskCollector, FilesystemCollector]
) -> None:
    reported = []
    for percent in (50.0, 90.0, 90.1, 95.0, 90.1, 89.5, 90.1, 89.0, 50.0, 91.0):
        world.ps.usages = {"/": usage(percent)}
        world.sample(*collectors)
        reported.append(kinds(world.agent.take_events()))
    above, below = ["FilesystemAboveThreshold"], ["FilesystemBelowThreshold"]
    assert reported == [[], [], above, [], [], [], [], below, [], above]


def test_what_the_event_tells(world: World, collectors: tuple[DiskCollector, FilesystemCollector]) -> None:
    world.ps.usages = {"/": usage(96.0)}
    world.sample(*collectors)
    assert world.agent.events == [
        model.FilesystemAboveThreshold(
            mountPoint="/", device="/dev/sda1", percent=96.0, threshold=90, free=100 * GIB - 96 * GIB
        )
    ]
    assert world.agent.the(model.Filesystem).aboveThreshold is True


def test_a_console_can_move_the_threshold(world: World, collectors: tuple[DiskCollector, FilesystemCollector]) -> None:
    world.ps.usages = {"/": usage(60.0)}
    world.sample(*collectors)
    world.agent.the(model.Filesystem).threshold = 50
    world.sample(*collectors)
    assert kinds(world.agent.take_events()) == ["FilesystemAboveThreshold"]
    world.agent.the(model.Filesystem).threshold = 80
    world.sample(*collectors)
    assert kinds(world.agent.take_events()) == ["FilesystemBelowThreshold"]


def test_the_operators_threshold(world: World) -> None:
    world.settings = Settings(threshold=30)
    world.ps.partitions = [Partition("/dev/sda1", "/")]
    world.ps.usages = {"/": usage(31.0)}
    world.sample(*make(world.context()))
    assert kinds(world.agent.events) == ["FilesystemAboveThreshold"]


def test_what_can_only_be_read_never_warns(world: World) -> None:
    world.ps.partitions = [Partition("/dev/loop3", "/snap/core", "squashfs", "ro,nodev")]
    world.ps.usages = {"/snap/core": usage(100.0)}
    world.sample(*make(world.context()))
    assert world.agent.events == []
    assert world.agent.the(model.Filesystem).readOnly is True


def test_usage_that_may_not_be_read(
    world: World, collectors: tuple[DiskCollector, FilesystemCollector], caplog: pytest.LogCaptureFixture
) -> None:
    world.ps.partitions.append(Partition("/dev/sdb1", "/secret"))
    world.ps.usages = {"/secret": PermissionError("denied")}
    with caplog.at_level(logging.WARNING):
        world.sample(*collectors)
        world.sample(*collectors)
    assert [item.mountPoint for item in world.agent.of(model.Filesystem)] == ["/"]
    assert [record.getMessage() for record in caplog.records] == ["Cannot read the usage of /secret: denied"]


def test_usage_that_cannot_be_read_any_more_keeps_the_last(
    world: World, collectors: tuple[DiskCollector, FilesystemCollector]
) -> None:
    world.ps.usages = {"/": usage(60.0)}
    world.sample(*collectors)
    world.ps.usages = {"/": OSError("stale")}
    world.sample(*collectors)
    assert world.agent.the(model.Filesystem).percent == 60.0


def test_a_filesystem_without_a_number_of_inodes(
    world: World, collectors: tuple[DiskCollector, FilesystemCollector]
) -> None:
    world.machine.inode_counts = {"/": (10, 5)}
    world.sample(*collectors)
    world.machine.inode_counts = {}
    world.sample(*collectors)
    filesystem = world.agent.the(model.Filesystem)
    assert filesystem.inodes is None
    assert filesystem.inodesPercent == 0.0


def test_the_real_machine(world: World) -> None:
    for collector in make(world.context(Machine())):
        collector.apply(collector.read())  # type: ignore[arg-type]
    shown = {item.mountPoint: item for item in world.agent.of(model.Filesystem)}
    assert shown["/"].size == psutil.disk_usage("/").total
    listed = {item.mountpoint for item in psutil.disk_partitions() if Machine().is_directory(item.mountpoint)}
    assert len(shown) == len(listed | {"/"})
