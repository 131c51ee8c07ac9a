"""Which mounts are filesystems that store files on this machine.

psutil leaves out what has no device behind it, by the kernel's own list. Two things are wrong with that in containers:
the root may be an overlay, which has no device but is the one filesystem that fills up; and single files such as
`/etc/hosts` are mounts. Network filesystems stay out: asking a dead server for its usage hangs, and all sampling hangs
with it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.hostagent.source import Machine, Partition
from qmf.hostagent.values import clip

_ROOT = "/"


@attrs.frozen
class Mount:
    """A mounted filesystem.

    Attributes:
        mount_point: where.
        device: what is mounted.
        device_name: the kernel's name of the device; of no meaning where `device` is none.
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
        """It is mounted for reading only."""
        return "ro" in self.options


def parse_options(text: str) -> dict[str, object]:
    """Mount options as a map: ``rw,size=4k`` becomes ``{"rw": True, "size": "4k"}``.

    Values are cut at 255 bytes: an overlay's list of layers can have thousands.
    """
    options: dict[str, object] = {}
    for option in filter(None, text.split(",")):
        name, equals, value = option.partition("=")
        options[clip(name)] = clip(value) if equals else True
    return options


def mounts(machine: Machine) -> list[Mount]:
    """The filesystems of the machine, one per mount point: the last one mounted there, which hides the others.

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
