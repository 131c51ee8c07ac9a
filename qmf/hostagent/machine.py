"""The functions of psutil that the collectors use, as a protocol, and the few files that psutil does not read.

The protocol names exactly the functions and fields that are used on every platform, so that a test's fake can be small.
Fields that only some platforms have are read with `platform_field`. Knows nothing of managed objects.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast
from uuid import UUID

import attrs
import psutil

_MACHINE_ID_FILES = ("etc/machine-id", "var/lib/dbus/machine-id")


class CpuTimes(Protocol):
    """Seconds that a processor spent since boot."""

    @property
    def user(self) -> float: ...
    @property
    def system(self) -> float: ...
    @property
    def idle(self) -> float: ...


class CpuStats(Protocol):
    """Counts since boot."""

    @property
    def ctx_switches(self) -> int: ...
    @property
    def interrupts(self) -> int: ...
    @property
    def soft_interrupts(self) -> int: ...


class Frequency(Protocol):
    """Megahertz; a limit of 0 means unknown."""

    @property
    def current(self) -> float: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...


class Temperature(Protocol):
    """A sensor's reading in degrees Celsius."""

    @property
    def label(self) -> str: ...
    @property
    def current(self) -> float: ...


class Usage(Protocol):
    """Used and free space: octets, and percent."""

    @property
    def total(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def percent(self) -> float: ...


class MainMemory(Usage, Protocol):
    """The main memory, in octets."""

    @property
    def available(self) -> int: ...


class Swap(Usage, Protocol):
    """The swap space, with octets swapped in and out since boot."""

    @property
    def sin(self) -> int: ...
    @property
    def sout(self) -> int: ...


class DiskIo(Protocol):
    """Counters of a block device since it was added; times in milliseconds."""

    @property
    def read_count(self) -> int: ...
    @property
    def write_count(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def write_bytes(self) -> int: ...
    @property
    def read_time(self) -> int: ...
    @property
    def write_time(self) -> int: ...


class Partition(Protocol):
    """A mount."""

    @property
    def device(self) -> str: ...
    @property
    def mountpoint(self) -> str: ...
    @property
    def fstype(self) -> str: ...
    @property
    def opts(self) -> str: ...


class NetIo(Protocol):
    """Counters of a network interface since it was added."""

    @property
    def bytes_sent(self) -> int: ...
    @property
    def bytes_recv(self) -> int: ...
    @property
    def packets_sent(self) -> int: ...
    @property
    def packets_recv(self) -> int: ...
    @property
    def errin(self) -> int: ...
    @property
    def errout(self) -> int: ...
    @property
    def dropin(self) -> int: ...
    @property
    def dropout(self) -> int: ...


class InterfaceAddress(Protocol):
    """An address of a network interface: IP or hardware."""

    @property
    def family(self) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def netmask(self) -> str | None: ...


class NicStats(Protocol):
    """State of a network interface; a speed of 0 means unknown."""

    @property
    def isup(self) -> bool: ...
    @property
    def duplex(self) -> int: ...
    @property
    def speed(self) -> int: ...
    @property
    def mtu(self) -> int: ...


class ProcessMemory(Protocol):
    """Memory of a process, in octets."""

    @property
    def rss(self) -> int: ...
    @property
    def vms(self) -> int: ...


class ProcessHandle(Protocol):
    """A handle on a process; every method may raise `psutil.Error`."""

    @property
    def pid(self) -> int: ...
    def name(self) -> str: ...
    def cmdline(self) -> list[str]: ...
    def status(self) -> str: ...
    def memory_info(self) -> ProcessMemory: ...
    def as_dict(self, attrs: list[str]) -> dict[str, Any]: ...
    def send_signal(self, sig: int) -> None: ...


class Psutil(Protocol):
    """The functions of psutil that are used; the module itself is one."""

    def boot_time(self) -> float: ...
    def cpu_count(self, logical: bool = True) -> int | None: ...
    def cpu_freq(self, percpu: Literal[True]) -> Sequence[Frequency]: ...
    def cpu_stats(self) -> CpuStats: ...
    def cpu_times(self, percpu: Literal[True]) -> Sequence[CpuTimes]: ...
    def getloadavg(self) -> tuple[float, float, float]: ...
    def virtual_memory(self) -> MainMemory: ...
    def swap_memory(self) -> Swap: ...
    def disk_io_counters(self, perdisk: Literal[True]) -> Mapping[str, DiskIo]: ...
    def disk_partitions(self, all: bool = False) -> Sequence[Partition]: ...
    def disk_usage(self, path: str) -> Usage: ...
    def net_io_counters(self, pernic: Literal[True]) -> Mapping[str, NetIo]: ...
    def net_if_addrs(self) -> Mapping[str, Sequence[InterfaceAddress]]: ...
    def net_if_stats(self) -> Mapping[str, NicStats]: ...
    def pids(self) -> Sequence[int]: ...
    def process_iter(self) -> Iterator[ProcessHandle]: ...
    def users(self) -> Sequence[object]: ...


def platform_field(reading: object, field: str) -> Any:
    """A field that only some platforms have, or 0."""
    return getattr(reading, field, 0)


@attrs.define
class Machine:
    """The source of all readings. Every method may block, and may raise `OSError` or `psutil.Error`.

    Attributes:
        ps: psutil, or a test's fake.
        root: the root of the file tree.
    """

    ps: Psutil = psutil
    root: Path = Path("/")

    def monotonic(self) -> float:
        """Seconds on a clock that only goes forward."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def temperatures(self) -> Mapping[str, Sequence[Temperature]]:
        """Sensors by chip; empty where the platform has none."""
        read = getattr(self.ps, "sensors_temperatures", dict)
        return cast(Mapping[str, Sequence[Temperature]], read())

    def threads(self) -> tuple[int, int] | None:
        """Number of runnable threads, and of all threads; None on platforms that have no such counter."""
        try:
            field = (self.root / "proc/loadavg").read_text(encoding="ascii").split()[3]
            runnable, _, total = field.partition("/")
            return int(runnable), int(total)
        except (OSError, ValueError, IndexError):
            return None

    def machine_id(self) -> UUID | None:
        """Id of the installation, or None if it has no id."""
        for name in _MACHINE_ID_FILES:
            try:
                return UUID((self.root / name).read_text(encoding="ascii").strip())
            except (OSError, ValueError):
                continue
        return None

    def is_directory(self, path: str) -> bool:
        """True for a directory. Containers also mount single files, for which it is False."""
        return (self.root / path.lstrip("/")).is_dir()

    def device_name(self, device: str) -> str:
        """The kernel's name of a device: symbolic links are followed, directories removed."""
        return Path(os.path.realpath(device)).name

    def inodes(self, path: str) -> tuple[int, int] | None:
        """Total and free inodes of a filesystem; None if their number is not fixed."""
        if not hasattr(os, "statvfs"):
            return None
        status = os.statvfs(path)
        return (status.f_files, status.f_ffree) if status.f_files else None
