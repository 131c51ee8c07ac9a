"""Network interfaces."""

from __future__ import annotations

import psutil
import pytest
from hostagent.fakes import Address, NetIo, NicStats, World, ipv4, ipv6, mac

from qmf.agent import Event
from qmf.hostagent.collectors.network import NetworkCollector, ip_addresses, mac_address
from qmf.hostagent.machine import Machine
from qmf.models.host import agent as model


@pytest.fixture
def collector(world: World) -> NetworkCollector:
    world.ps.addresses = {"eth0": [ipv4("192.0.2.7"), mac("02:00:00:00:00:01")]}
    world.ps.nics = {"eth0": NicStats()}
    world.ps.traffic = {"eth0": NetIo()}
    return NetworkCollector(world.context())


def reported(world: World) -> list[Event]:
    return world.agent.take_events()


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ([], []),
        ([ipv4("192.0.2.7")], ["192.0.2.7/24"]),
        ([ipv4("10.0.0.1", "255.255.255.255")], ["10.0.0.1/32"]),
        ([ipv6("fe80::1%eth0")], ["fe80::1/64"]),
        ([Address(2, "192.0.2.7")], ["192.0.2.7"]),
        ([mac("02:00:00:00:00:01"), ipv6("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")], ["::1/128"]),
    ],
)
def test_ip_addresses(addresses: list[Address], expected: list[str]) -> None:
    assert ip_addresses(addresses) == expected


def test_mac_address() -> None:
    assert mac_address([ipv4("192.0.2.7"), mac("02:00:00:00:00:01")]) == "02:00:00:00:00:01"
    assert mac_address([ipv4("192.0.2.7")]) is None


def test_what_an_interface_tells(world: World, collector: NetworkCollector) -> None:
    world.ps.traffic = {"eth0": NetIo(1, 2, 3, 4, 5, 6, 7, 8)}
    world.sample(collector)
    interface = world.agent.the(model.NetworkInterface)
    assert interface.addresses == ["192.0.2.7/24"]
    assert interface.macAddress == "02:00:00:00:00:01"
    assert interface.up is True
    assert (interface.mtu, interface.speed, interface.duplex) == (1500, 1000, "full")
    assert (interface.bytesSent.value, interface.bytesReceived.value) == (1, 2)
    assert (interface.packetsSent.value, interface.packetsReceived.value) == (3, 4)
    assert (interface.errorsIn.value, interface.errorsOut.value) == (5, 6)
    assert (interface.dropsIn.value, interface.dropsOut.value) == (7, 8)
    assert interface.sendRate.value == 0


def test_rates_are_of_the_time_since_the_sample_before(world: World, collector: NetworkCollector) -> None:
    world.sample(collector)
    world.ps.traffic = {"eth0": NetIo(bytes_sent=1000, bytes_recv=250)}
    world.sample(collector, seconds=5.0)
    interface = world.agent.the(model.NetworkInterface)
    assert (interface.sendRate.value, interface.receiveRate.value) == (200, 50)


def test_counters_that_were_reset(world: World, collector: NetworkCollector) -> None:
    world.ps.traffic = {"eth0": NetIo(bytes_sent=10**6, bytes_recv=10**6)}
    world.sample(collector)
    world.ps.traffic = {"eth0": NetIo(bytes_sent=100, bytes_recv=10**6 + 100)}
    world.sample(collector)
    interface = world.agent.the(model.NetworkInterface)
    assert interface.bytesSent.value == 100
    assert (interface.sendRate.value, interface.receiveRate.value) == (0, 10)


def test_an_interface_with_few_values(world: World) -> None:
    world.ps.nics = {"tun0": NicStats(speed=0, duplex=0, mtu=0)}
    world.sample(NetworkCollector(world.context()))
    interface = world.agent.the(model.NetworkInterface)
    assert (interface.speed, interface.duplex, interface.macAddress) == (None, None, None)
    assert interface.addresses == []
    assert interface.bytesSent.value == 0


def test_what_is_found_at_the_start_is_no_news(world: World, collector: NetworkCollector) -> None:
    world.sample(collector)
    assert reported(world) == []


def test_down_and_up_again_is_reported_once_each(world: World, collector: NetworkCollector) -> None:
    world.sample(collector)
    world.ps.nics = {"eth0": NicStats(isup=False)}
    world.sample(collector)
    world.sample(collector)
    assert reported(world) == [model.InterfaceDown(interface="eth0")]
    world.ps.nics = {"eth0": NicStats()}
    world.sample(collector)
    world.sample(collector)
    assert reported(world) == [model.InterfaceUp(interface="eth0")]


def test_an_interface_that_comes_and_goes(world: World, collector: NetworkCollector) -> None:
    world.sample(collector)
    world.ps.nics["wg0"] = NicStats()
    world.sample(collector)
    assert reported(world) == [model.InterfaceUp(interface="wg0")]
    del world.ps.nics["wg0"]
    world.sample(collector)
    assert reported(world) == [model.InterfaceDown(interface="wg0")]
    assert [item.name for item in world.agent.of(model.NetworkInterface)] == ["eth0"]


def test_an_interface_that_was_down_goes_without_a_word(world: World, collector: NetworkCollector) -> None:
    world.ps.nics["wg0"] = NicStats(isup=False)
    world.sample(collector)
    del world.ps.nics["wg0"]
    world.sample(collector)
    assert reported(world) == []


def test_new_addresses_are_seen(world: World, collector: NetworkCollector) -> None:
    world.sample(collector)
    world.ps.addresses["eth0"].append(ipv6("fd00::2"))
    world.sample(collector)
    assert world.agent.the(model.NetworkInterface).addresses == ["192.0.2.7/24", "fd00::2/64"]


def test_the_real_machine(world: World) -> None:
    collector = NetworkCollector(world.context(Machine()))
    collector.apply(collector.read())
    names = {item.name for item in world.agent.of(model.NetworkInterface)}
    assert names == set(psutil.net_if_stats()) | set(psutil.net_if_addrs())
