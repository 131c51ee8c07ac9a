"""The few files that psutil does not read."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from qmf.hostagent.machine import Machine


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.20 0.18 0.12 3/480 11206\n", (3, 480)), ("", None), ("0.20 0.18 0.12 x/y 1\n", None), ("1 2 3 4", None)],
)
def test_threads(tmp_path: Path, text: str, expected: tuple[int, int] | None) -> None:
    write(tmp_path / "proc/loadavg", text)
    assert Machine(root=tmp_path).threads() == expected


def test_threads_where_the_kernel_does_not_report_them(tmp_path: Path) -> None:
    assert Machine(root=tmp_path).threads() is None


def test_machine_id(tmp_path: Path) -> None:
    machine = Machine(root=tmp_path)
    assert machine.machine_id() is None
    write(tmp_path / "etc/machine-id", "uninitialized\n")
    assert machine.machine_id() is None
    write(tmp_path / "var/lib/dbus/machine-id", "3d1219c7c4c5404aaa1f6d2a48adfda4\n")
    assert machine.machine_id() == UUID("3d1219c7-c4c5-404a-aa1f-6d2a48adfda4")


def test_only_folders_are_folders(tmp_path: Path) -> None:
    write(tmp_path / "etc/hosts", "")
    machine = Machine(root=tmp_path)
    assert machine.is_directory("/etc")
    assert machine.is_directory("/")
    assert not machine.is_directory("/etc/hosts")


def test_devices_are_named_as_the_kernel_does(tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to(tmp_path / "dm-0")
    assert Machine().device_name(str(tmp_path / "root")) == "dm-0"


def test_inodes_of_a_real_filesystem() -> None:
    counted = Machine().inodes("/")
    if counted is not None:
        total, free = counted
        assert 0 <= free <= total
