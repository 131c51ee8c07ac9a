"""Mounted filesystems and their thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import psutil

from qmf.hostagent.collectors.base import Collector, CollectorContext, ObjectsByKey
from qmf.hostagent.collectors.mounts import Mount, mounts
from qmf.hostagent.conversions import clip, percent
from qmf.hostagent.machine import Usage
from qmf.models.host import agent as model

#: Percentage points below the threshold at which a filesystem counts as below it again, so that a usage that varies
#: around the threshold raises one event, not one at every sample.
HYSTERESIS = 1.0

_LSTR = 65_535


@attrs.frozen
class FilesystemReading:
    """One filesystem.

    Attributes:
        mount: the mount.
        usage: its used and free space; None if that could not be read.
        inodes: total and free inodes; None if their number is not fixed.
    """

    mount: Mount
    usage: Usage | None
    inodes: tuple[int, int] | None


class FilesystemCollector(Collector[Sequence[FilesystemReading]]):
    """One object per mount point."""

    what = "the filesystems"

    def __init__(self, context: CollectorContext, disks: ObjectsByKey[str, model.Disk]) -> None:
        super().__init__(context)
        self._disks = disks
        self._objects: ObjectsByKey[tuple[str, str, str], model.Filesystem] = ObjectsByKey(context.agent)

    def read(self) -> Sequence[FilesystemReading]:
        return [self._read(mount) for mount in mounts(self.context.machine)]

    def _read(self, mount: Mount) -> FilesystemReading:
        machine, failures = self.context.machine, self.context.failures
        what = f"the usage of {mount.mount_point}"
        try:
            usage = machine.ps.disk_usage(mount.mount_point)
            inodes = machine.inodes(mount.mount_point)
        except (OSError, psutil.Error) as error:
            failures.on_failure(what, error)
            return FilesystemReading(mount, None, None)
        failures.on_success(what)
        return FilesystemReading(mount, usage, inodes)

    def apply(self, reading: Sequence[FilesystemReading]) -> None:
        self._objects.keep(_key(item.mount) for item in reading)
        for item in reading:
            with self.context.reporting_invalid_values(f"filesystem {item.mount.mount_point}"):
                self._update(item)

    def _update(self, item: FilesystemReading) -> None:
        # Without its usage there is nothing to publish: a new filesystem gets no object, a known one is not updated.
        if item.usage is None:
            return
        obj = self._objects.get(_key(item.mount)) or self._create(item.mount)
        obj.diskRef = self._disks.get(item.mount.device_name)
        # A map counts as changed whenever it is assigned.
        if obj.options != item.mount.options:
            obj.options = item.mount.options
        obj.readOnly = item.mount.read_only
        _set_usage(obj, item.usage, item.inodes)
        self._check_threshold(obj)

    def _create(self, mount: Mount) -> model.Filesystem:
        obj = model.Filesystem(mountPoint=clip(mount.mount_point, _LSTR), systemRef=self.context.system)
        obj.device = clip(mount.device, _LSTR)
        obj.type = clip(mount.type)
        obj.threshold = self.context.settings.threshold
        return self._objects.add(_key(mount), obj)

    def _check_threshold(self, obj: model.Filesystem) -> None:
        above = _is_above(obj)
        if above == obj.aboveThreshold:
            return
        obj.aboveThreshold = above
        event = model.FilesystemAboveThreshold if above else model.FilesystemBelowThreshold
        self.context.agent.raise_event(
            event(
                mountPoint=obj.mountPoint,
                device=obj.device,
                percent=obj.percent,
                threshold=obj.threshold,
                free=obj.free.value,
            )
        )


def _key(mount: Mount) -> tuple[str, str, str]:
    # Another filesystem on the same mount point is another object, with new statistics and the default threshold.
    return mount.mount_point, mount.device, mount.type


def _set_usage(obj: model.Filesystem, usage: Usage, inodes: tuple[int, int] | None) -> None:
    obj.size = usage.total
    obj.used.set(usage.used)
    obj.free.set(usage.free)
    obj.percent = usage.percent
    total, free = inodes or (0, 0)
    used = max(0, total - free)
    obj.inodes = total or None
    obj.inodesUsed.set(used)
    obj.inodesPercent = percent(used, total)


def _is_above(obj: model.Filesystem) -> bool:
    if obj.readOnly:
        return False
    if obj.aboveThreshold:
        return obj.percent > obj.threshold - HYSTERESIS
    return obj.percent > obj.threshold
