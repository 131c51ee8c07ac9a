"""SRV records, asked of a DNS server in this process; the system's servers are never asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import dns.message
import dns.rcode
import dns.rrset
import pytest
from broker.federation.federated import receive, send
from broker.relay.relaying import DOMAIN, ORDERS, RelayingBroker
from support.waiting import until

from qmf.broker.relay.options import RelayOptions
from qmf.broker.relay.srv import LookupFailed, SrvLookup, may_look_up


class Dns(asyncio.DatagramProtocol):
    """A DNS server.

    Attributes:
        records: texts of SRV records, by name.
        asked: names that were asked for.
    """

    def __init__(self, records: dict[str, list[str]]) -> None:
        self.records = records
        self.asked: list[str] = []
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        name = query.question[0].name.to_text(omit_final_dot=True)
        self.asked.append(name)
        answer = dns.message.make_response(query)
        if found := self.records.get(name):
            answer.answer.append(dns.rrset.from_text(query.question[0].name, 5, "IN", "SRV", *found))
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        self._transport.sendto(answer.to_wire(), addr)


@asynccontextmanager
async def dns_server(records: dict[str, list[str]]) -> AsyncIterator[tuple[Dns, str]]:
    """A server with records, and its address."""
    server = Dns(records)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: server, local_addr=("127.0.0.1", 0)
    )
    try:
        yield server, "127.0.0.1:{}".format(transport.get_extra_info("sockname")[1])
    finally:
        transport.close()


async def test_the_records_of_a_domain_in_their_order() -> None:
    records = {"_amqp._tcp.a.example": ["20 0 5673 late.example.", "10 0 5672 first.example."]}
    async with dns_server(records) as (server, address):
        found = await SrvLookup(address).find("a.example")
    assert [str(url) for url in found.urls] == ["amqp://first.example:5672", "amqp://late.example:5673"]
    assert found.lifetime == 5
    assert server.asked == ["_amqps._tcp.a.example", "_amqp._tcp.a.example"]


async def test_tls_is_preferred() -> None:
    records = {
        "_amqps._tcp.a.example": ["0 0 5671 safe.example."],
        "_amqp._tcp.a.example": ["0 0 5672 plain.example."],
    }
    async with dns_server(records) as (_, address):
        assert [str(url) for url in (await SrvLookup(address).find("a.example")).urls] == ["amqps://safe.example:5671"]


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ({}, r"no SRV record of _amqps\._tcp or _amqp\._tcp for a\.example"),
        ({"_amqp._tcp.a.example": ["0 0 0 ."]}, r"_amqp\._tcp\.a\.example says that the domain has no such service"),
    ],
    ids=["none", "no service"],
)
async def test_a_domain_without_a_broker(records: dict[str, list[str]], text: str) -> None:
    async with dns_server(records) as (_, address):
        with pytest.raises(LookupFailed, match=text):
            await SrvLookup(address).find("a.example")


@pytest.mark.parametrize(
    ("domain", "allowed", "expected"),
    [
        ("a.example", ["a.example"], True),
        ("a.example", ["A.Example."], True),
        ("a.example", [], False),
        ("b.a.example", ["a.example"], False),
        ("b.a.example", ["*.a.example"], True),
        ("a.example", ["*.a.example"], False),
        ("xa.example", ["*.a.example"], False),
    ],
)
def test_which_domains_may_be_looked_up(domain: str, allowed: list[str], expected: bool) -> None:
    assert may_look_up(domain, allowed) is expected


async def test_a_relay_finds_its_broker_and_follows_it() -> None:
    async with RelayingBroker(port=0, queues=["orders"]) as there, dns_server({}) as (server, address):
        options = RelayOptions(enabled=True, srv_domains=[DOMAIN], resolver=address)
        async with RelayingBroker(port=0, relay=options) as here:
            relay = here.relay(srv=True)
            await send(here, ORDERS, "one")
            await until(lambda: "no SRV record" in relay.reason, lambda: relay.reason)
            assert relay.state_name == "Waiting"
            server.records[f"_amqp._tcp.{DOMAIN}"] = [f"0 0 {there.port} 127.0.0.1."]
            assert await receive(there, "orders", 1) == ["one"]
            assert all(name.endswith(DOMAIN) for name in server.asked)
