"""Network interfaces: addresses, state, traffic."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence

import attrs
import psutil

from qmf.hostagent.collectors.base import Collector, CollectorContext, ObjectsByKey
from qmf.hostagent.collectors.counters import CounterChanges
from qmf.hostagent.conversions import clip
from qmf.hostagent.machine import InterfaceAddress, NetIo, NicStats
from qmf.models.host import agent as model

_DUPLEX = {int(psutil.NIC_DUPLEX_FULL): "full", int(psutil.NIC_DUPLEX_HALF): "half"}
_UINT32 = 0xFFFFFFFF


@attrs.frozen
class InterfaceReading:
    """One interface; `stats` and `io` are None if the machine does not report them."""

    addresses: Sequence[InterfaceAddress]
    stats: NicStats | None
    io: NetIo | None


@attrs.frozen
class NetworkReading:
    """All interfaces by name."""

    now: float
    interfaces: Mapping[str, InterfaceReading]


class NetworkCollector(Collector[NetworkReading]):
    """One object per interface."""

    what = "the network interfaces"

    def __init__(self, context: CollectorContext) -> None:
        super().__init__(context)
        self._objects: ObjectsByKey[str, model.NetworkInterface] = ObjectsByKey(context.agent)
        self._changes: CounterChanges[str] = CounterChanges()
        self._first = True

    def read(self) -> NetworkReading:
        machine = self.context.machine
        addresses = machine.ps.net_if_addrs()
        stats = machine.ps.net_if_stats()
        now = machine.monotonic()
        io = machine.ps.net_io_counters(pernic=True) or {}
        return NetworkReading(
            now,
            {
                name: InterfaceReading(addresses.get(name, ()), stats.get(name), io.get(name))
                for name in {**stats, **addresses}
            },
        )

    def apply(self, reading: NetworkReading) -> None:
        for gone in self._objects.keep(reading.interfaces):
            if gone.up:
                self._raise_event(gone.name, up=False)
        self._changes.keep(reading.interfaces)
        for name, interface in reading.interfaces.items():
            with self.context.reporting_invalid_values(f"network interface {name}"):
                self._update(name, interface, reading.now)
        self._first = False

    def _update(self, name: str, interface: InterfaceReading, now: float) -> None:
        obj = self._objects.get(name)
        if obj is None:
            obj = self._objects.add(name, model.NetworkInterface(name=clip(name), systemRef=self.context.system))
        addresses = ip_addresses(interface.addresses)
        # A list counts as changed whenever it is assigned.
        if obj.addresses != addresses:
            obj.addresses = addresses
        obj.macAddress = mac_address(interface.addresses)
        if interface.stats is not None:
            self._update_state(obj, interface.stats)
        if interface.io is not None:
            self._update_traffic(obj, name, interface.io, now)

    def _update_state(self, obj: model.NetworkInterface, stats: NicStats) -> None:
        obj.mtu = min(max(0, stats.mtu), _UINT32)
        obj.speed = stats.speed if 0 < stats.speed < _UINT32 else None
        obj.duplex = _DUPLEX.get(int(stats.duplex))
        if stats.isup != obj.up:
            obj.up = stats.isup
            # The state found at the start of the agent is not a change.
            if not self._first:
                self._raise_event(obj.name, up=stats.isup)

    def _update_traffic(self, obj: model.NetworkInterface, name: str, io: NetIo, now: float) -> None:
        obj.bytesSent.set(io.bytes_sent)
        obj.bytesReceived.set(io.bytes_recv)
        obj.packetsSent.set(io.packets_sent)
        obj.packetsReceived.set(io.packets_recv)
        obj.errorsOut.set(io.errout)
        obj.errorsIn.set(io.errin)
        obj.dropsOut.set(io.dropout)
        obj.dropsIn.set(io.dropin)
        change = self._changes.record(name, now, io.bytes_sent, io.bytes_recv)
        if change is not None:
            obj.sendRate.set(round(change.rate(0)))
            obj.receiveRate.set(round(change.rate(1)))

    def _raise_event(self, name: str, *, up: bool) -> None:
        event = model.InterfaceUp if up else model.InterfaceDown
        self.context.agent.raise_event(event(interface=name))


def ip_addresses(addresses: Sequence[InterfaceAddress]) -> list[str]:
    """The IP addresses in `addresses`, with prefix length where it is known, without zones."""
    found = []
    for item in addresses:
        if item.family not in (socket.AF_INET, socket.AF_INET6):
            continue
        text = item.address.partition("%")[0]
        found.append(f"{text}/{_prefix_length(item.netmask)}" if item.netmask else text)
    return found


def _prefix_length(netmask: str) -> int:
    return int(ipaddress.ip_address(netmask)).bit_count()


def mac_address(addresses: Sequence[InterfaceAddress]) -> str | None:
    """The first hardware address in `addresses`, or None."""
    return next((clip(item.address, 64) for item in addresses if item.family == psutil.AF_LINK), None)
