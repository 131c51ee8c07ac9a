"""Which mounts are filesystems."""

from __future__ import annotations

import psutil
import pytest
from hostagent.fakes import Partition, World

from qmf.hostagent.collectors.mounts import mounts, parse_options
from qmf.hostagent.machine import Machine

PROC = Partition("proc", "/proc", "proc")
OVERLAY = Partition("overlay", "/", "overlay", "rw,lowerdir=/a:/b,upperdir=/c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("rw,relatime", {"rw": True, "relatime": True}),
        ("ro,size=4k,mode=", {"ro": True, "size": "4k", "mode": ""}),
        ("opt=a=b,,", {"opt": "a=b"}),
        ("lowerdir=" + "x" * 1000, {"lowerdir": "x" * 255}),
    ],
)
def test_options(text: str, expected: dict[str, object]) -> None:
    assert parse_options(text) == expected


def found(world: World) -> list[tuple[str, str]]:
    return [(mount.mount_point, mount.device_name) for mount in mounts(world.machine)]


def test_pseudo_filesystems_stay_out(world: World) -> None:
    world.ps.pseudo = [PROC]
    world.ps.partitions = [Partition("/dev/sda1", "/"), Partition("/dev/mapper/home", "/home")]
    world.machine.links = {"/dev/mapper/home": "/dev/dm-0"}
    assert found(world) == [("/", "sda1"), ("/home", "dm-0")]


def test_a_containers_root_is_shown(world: World) -> None:
    world.ps.pseudo = [Partition("rootfs", "/", "rootfs"), PROC, OVERLAY]
    world.ps.partitions = [Partition("/dev/sda1", "/data")]
    assert found(world) == [("/data", "sda1"), ("/", "overlay")]


def test_single_files_stay_out(world: World) -> None:
    world.ps.pseudo = [OVERLAY]
    world.ps.partitions = [Partition("/dev/sda1", "/etc/hosts"), Partition("/dev/sda1", "/etc/resolv.conf")]
    world.machine.files = {"/etc/hosts", "/etc/resolv.conf"}
    assert found(world) == [("/", "overlay")]


def test_the_last_mount_hides_the_others(world: World) -> None:
    world.ps.partitions = [Partition("/dev/sda1", "/mnt"), Partition("/dev/sdb1", "/mnt")]
    world.ps.pseudo = [Partition("/dev/sda2", "/", "rootfs")]
    assert found(world) == [("/mnt", "sdb1")]


def test_read_only(world: World) -> None:
    world.ps.partitions = [Partition("/dev/sda1", "/", opts="ro"), Partition("/dev/sda2", "/b", opts="rw,errors=ro")]
    assert [mount.read_only for mount in mounts(world.machine)] == [True, False]


def test_the_real_machine() -> None:
    listed = {item.mountpoint for item in psutil.disk_partitions()}
    shown = {mount.mount_point for mount in mounts(Machine())}
    assert shown - {"/"} == {path for path in listed if Machine().is_directory(path)} - {"/"}
    assert "/" in shown
