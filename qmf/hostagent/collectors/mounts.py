"""The mounts that are filesystems with files on this machine.

psutil leaves out filesystems without a device, by the kernel's own list. In containers that is wrong in two ways: the
root may be an overlay, which has no device but can fill up; and single files such as `/etc/hosts` are mounts. Network
filesystems are left out: reading their usage hangs when the server is down, and all sampling with it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.hostagent.conversions import clip
from qmf.hostagent.machine import Machine, Partition

_ROOT = "/"


@attrs.frozen
class Mount:
    """A mounted filesystem.

    Attributes:
        mount_point: path that it is mounted on.
        device: path or name of what is mounted.
        device_name: the kernel's name of the device; without meaning if `device` is not a device.
        type: type of filesystem.
        options: by name; True for options without a value.
    """

    mount_point: str
    device: str
    device_name: str
    type: str
    options: Mapping[str, object]

    @property
    def read_only(self) -> bool:
        """True if it is mounted read-only."""
        return "ro" in self.options


def parse_options(text: str) -> dict[str, object]:
    """Mount options as a map: ``rw,size=4k`` becomes ``{"rw": True, "size": "4k"}``.

    Values are cut to 255 bytes: an overlay's list of layers can have thousands.
    """
    options: dict[str, object] = {}
    for option in filter(None, text.split(",")):
        name, equals, value = option.partition("=")
        options[clip(name)] = clip(value) if equals else True
    return options


def mounts(machine: Machine) -> list[Mount]:
    """The filesystems of the machine, one per mount point: the last one mounted there hides the others.

    Raises:
        OSError, psutil.Error: the mounts could not be read.
    """
    found: dict[str, Partition] = {item.mountpoint: item for item in machine.ps.disk_partitions(all=False)}
    if _ROOT not in found:
        roots = [item for item in machine.ps.disk_partitions(all=True) if item.mountpoint == _ROOT]
        found.update((item.mountpoint, item) for item in roots if item.fstype != "rootfs")
    return [
        Mount(
            mount_point=item.mountpoint,
            device=item.device,
            device_name=machine.device_name(item.device),
            type=item.fstype,
            options=parse_options(item.opts),
        )
        for item in found.values()
        if machine.is_directory(item.mountpoint)
    ]
