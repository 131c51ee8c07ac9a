"""Fakes of the machine: a psutil whose values are plain attributes, and an agent that records what it gets."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar
from uuid import UUID

import attrs
import psutil

from qmf.agent import Event, ManagedObject
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.event_raiser import EventWriter
from qmf.hostagent.collectors.base import Collector, CollectorContext
from qmf.hostagent.machine import Machine, Temperature
from qmf.hostagent.settings import Settings
from qmf.protocol import ObjectId

T = TypeVar("T", bound=ManagedObject)

GIB = 1 << 30


@attrs.frozen
class Times:
    user: float = 0.0
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    irq: float = 0.0
    softirq: float = 0.0
    nice: float = 0.0
    steal: float = 0.0


@attrs.frozen
class Counts:
    ctx_switches: int = 1000
    interrupts: int = 2000
    soft_interrupts: int = 3000


@attrs.frozen
class Frequency:
    current: float
    min: float = 0.0
    max: float = 0.0


@attrs.frozen
class Sensor:
    label: str
    current: float


@attrs.frozen
class Usage:
    total: int = 100 * GIB
    used: int = 10 * GIB
    free: int = 90 * GIB
    percent: float = 10.0


def usage(percent: float) -> Usage:
    """A filesystem of 100 GiB."""
    used = round(percent * GIB)
    return Usage(used=used, free=100 * GIB - used, percent=percent)


@attrs.frozen
class Memory:
    total: int = 16 * GIB
    available: int = 12 * GIB
    percent: float = 25.0
    used: int = 3 * GIB
    free: int = 8 * GIB


@attrs.frozen
class LinuxMemory(Memory):
    cached: int = 4 * GIB
    buffers: int = GIB
    shared: int = GIB // 2


@attrs.frozen
class Swap:
    total: int = 0
    used: int = 0
    free: int = 0
    percent: float = 0.0
    sin: int = 0
    sout: int = 0


@attrs.frozen
class DiskIo:
    read_count: int = 0
    write_count: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    read_time: int = 0
    write_time: int = 0
    busy_time: int = 0
    read_merged_count: int = 0
    write_merged_count: int = 0


@attrs.frozen
class Partition:
    device: str
    mountpoint: str
    fstype: str = "ext4"
    opts: str = "rw,relatime"


@attrs.frozen
class NetIo:
    bytes_sent: int = 0
    bytes_recv: int = 0
    packets_sent: int = 0
    packets_recv: int = 0
    errin: int = 0
    errout: int = 0
    dropin: int = 0
    dropout: int = 0


@attrs.frozen
class Address:
    family: int
    address: str
    netmask: str | None = None


@attrs.frozen
class NicStats:
    isup: bool = True
    duplex: int = 2
    speed: int = 1000
    mtu: int = 1500


def ipv4(text: str, netmask: str = "255.255.255.0") -> Address:
    return Address(socket.AF_INET, text, netmask)


def ipv6(text: str, netmask: str = "ffff:ffff:ffff:ffff::") -> Address:
    return Address(socket.AF_INET6, text, netmask)


def mac(text: str) -> Address:
    return Address(psutil.AF_LINK, text)


@attrs.frozen
class ProcessMemory:
    rss: int
    vms: int


@attrs.frozen
class Io:
    read_bytes: int = 0
    write_bytes: int = 0


@attrs.frozen
class Switches:
    voluntary: int = 0
    involuntary: int = 0


@attrs.define(eq=False)
class FakeProcess:
    """A process that exists while it is in `FakePsutil.processes`.

    Attributes:
        vanishes: it ends while it is read.
        denied: fields that may not be read.
    """

    pid: int
    program: str = "worker"
    arguments: list[str] = attrs.field(factory=list)
    rss: int = 1 << 20
    parent: int = 1
    created: float = 1_700_000_000.0
    state: str = "sleeping"
    cpu: Times = Times()
    vanishes: bool = False
    denied: frozenset[str] = frozenset()
    signals: list[int] = attrs.field(factory=list)
    refusal: psutil.Error | None = None

    def _check(self, field: str) -> None:
        if self.vanishes:
            raise psutil.NoSuchProcess(self.pid)
        if field in self.denied:
            raise psutil.AccessDenied(self.pid)

    def name(self) -> str:
        self._check("name")
        return self.program

    def cmdline(self) -> list[str]:
        self._check("cmdline")
        return [self.program, *self.arguments]

    def status(self) -> str:
        self._check("status")
        return self.state

    def memory_info(self) -> ProcessMemory:
        self._check("memory_info")
        return ProcessMemory(self.rss, 4 * self.rss)

    def as_dict(self, attrs: list[str]) -> dict[str, Any]:
        if self.vanishes:
            raise psutil.NoSuchProcess(self.pid)
        known: dict[str, object] = {
            "cmdline": self.cmdline,
            "cpu_times": lambda: self.cpu,
            "create_time": lambda: self.created,
            "io_counters": lambda: Io(100, 200),
            "memory_info": self.memory_info,
            "name": self.name,
            "nice": lambda: -5,
            "num_ctx_switches": lambda: Switches(7, 8),
            "num_fds": lambda: 9,
            "num_threads": lambda: 3,
            "ppid": lambda: self.parent,
            "status": self.status,
            "username": lambda: "alice",
        }
        found = {}
        for field in attrs:
            read = known[field]
            assert callable(read)
            found[field] = None if field in self.denied else read()
        return found

    def send_signal(self, sig: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.signals.append(sig)


@attrs.define(eq=False)
class FakePsutil:
    """psutil with made-up values. `errors` holds what a function raises instead, by the function's name."""

    times: list[Times] = attrs.field(factory=lambda: [Times(), Times()])
    frequencies: list[Frequency] = attrs.field(factory=list)
    memory: Memory = attrs.field(factory=LinuxMemory)
    swap: Swap = attrs.field(factory=Swap)
    disks: dict[str, DiskIo] = attrs.field(factory=dict)
    partitions: list[Partition] = attrs.field(factory=list)
    pseudo: list[Partition] = attrs.field(factory=list)
    usages: dict[str, Usage | OSError] = attrs.field(factory=dict)
    addresses: dict[str, list[Address]] = attrs.field(factory=dict)
    nics: dict[str, NicStats] = attrs.field(factory=dict)
    traffic: dict[str, NetIo] = attrs.field(factory=dict)
    processes: list[FakeProcess] = attrs.field(factory=list)
    sensors: Mapping[str, Sequence[Temperature]] = attrs.field(factory=dict)
    counts: Counts = attrs.field(factory=Counts)
    errors: dict[str, Exception] = attrs.field(factory=dict)

    def _raise(self, function: str) -> None:
        if function in self.errors:
            raise self.errors[function]

    def boot_time(self) -> float:
        return 1_600_000_000.0

    def cpu_count(self, logical: bool = True) -> int | None:
        return len(self.times) if logical else None

    def cpu_freq(self, percpu: Literal[True]) -> Sequence[Frequency]:
        self._raise("cpu_freq")
        return self.frequencies

    def cpu_stats(self) -> Counts:
        return self.counts

    def cpu_times(self, percpu: Literal[True]) -> Sequence[Times]:
        return self.times

    def getloadavg(self) -> tuple[float, float, float]:
        return 1.5, 1.0, 0.5

    def virtual_memory(self) -> Memory:
        self._raise("virtual_memory")
        return self.memory

    def swap_memory(self) -> Swap:
        return self.swap

    def disk_io_counters(self, perdisk: Literal[True]) -> Mapping[str, DiskIo]:
        return dict(self.disks)

    def disk_partitions(self, all: bool = False) -> Sequence[Partition]:
        return [*self.pseudo, *self.partitions] if all else list(self.partitions)

    def disk_usage(self, path: str) -> Usage:
        found = self.usages.get(path, Usage())
        if isinstance(found, OSError):
            raise found
        return found

    def net_io_counters(self, pernic: Literal[True]) -> Mapping[str, NetIo]:
        return dict(self.traffic)

    def net_if_addrs(self) -> Mapping[str, Sequence[Address]]:
        return dict(self.addresses)

    def net_if_stats(self) -> Mapping[str, NicStats]:
        return dict(self.nics)

    def pids(self) -> Sequence[int]:
        return [process.pid for process in self.processes]

    def process_iter(self) -> Iterator[FakeProcess]:
        return iter(list(self.processes))

    def users(self) -> Sequence[object]:
        return ["alice on tty1"]

    def sensors_temperatures(self) -> Mapping[str, Sequence[Temperature]]:
        self._raise("sensors_temperatures")
        return self.sensors


@attrs.define
class FakeMachine(Machine):
    """A machine without files of its own, whose clock stands still until a test moves it.

    Attributes:
        now: seconds on both clocks.
        files: mount points that are no folders.
        links: what devices are links to.
        inode_counts: total and free inodes by mount point.
        loadavg: threads that run, and all.
    """

    now: float = 1_700_000_100.0
    files: set[str] = attrs.field(factory=set)
    links: dict[str, str] = attrs.field(factory=dict)
    inode_counts: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    loadavg: tuple[int, int] | None = (2, 300)

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def threads(self) -> tuple[int, int] | None:
        return self.loadavg

    def machine_id(self) -> UUID | None:
        return UUID(int=7)

    def is_directory(self, path: str) -> bool:
        return path not in self.files

    def device_name(self, device: str) -> str:
        return self.links.get(device, device).rpartition("/")[2]

    def inodes(self, path: str) -> tuple[int, int] | None:
        return self.inode_counts.get(path)


class RecordingAgent:
    """Records the objects that collectors add and remove, and the events that they raise.

    Attributes:
        ids: the object ids, by object.
    """

    def __init__(self) -> None:
        self.store = ManagedObjectStore("qmf:host:test", 1, lambda: 1)
        self.events: list[Event] = []
        self.ids: dict[ManagedObject, ObjectId] = {}

    def add(self, obj: ManagedObject) -> None:
        self.ids[obj] = self.store.add(obj, None)

    def remove(self, obj: ManagedObject) -> None:
        self.store.remove(obj)

    def raise_event(self, event: Event) -> None:
        EventWriter(type(event)).arguments(event)  # checks them
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """The objects of a class, in the order in which they came."""
        return [obj for obj in self.store.all() if isinstance(obj, kind)]

    def the(self, kind: type[T]) -> T:
        """The only object of a class."""
        (obj,) = self.of(kind)
        return obj

    def take_events(self) -> list[Event]:
        """Events since the last call."""
        events, self.events = self.events, []
        return events


@attrs.define
class World:
    """A made-up machine with an agent.

    Attributes:
        ps: the fake psutil.
        machine: what else there is.
        agent: records objects and events.
        settings: the operator's settings, for collectors made from then on.
    """

    ps: FakePsutil = attrs.field(factory=FakePsutil)
    machine: FakeMachine = attrs.field(init=False)
    agent: RecordingAgent = attrs.field(factory=RecordingAgent)
    settings: Settings = attrs.field(factory=Settings)

    def __attrs_post_init__(self) -> None:
        self.machine = FakeMachine(self.ps)

    def context(self, machine: Machine | None = None) -> CollectorContext:
        """A context for collectors; of the real machine if that is given."""
        return CollectorContext(self.agent, machine or self.machine, self.settings)

    def sample(self, *collectors: Collector[Any], seconds: float = 10.0) -> None:
        """Let time pass, then take a sample."""
        self.machine.now += seconds
        for collector in collectors:
            collector.apply(collector.read())
