"""Relaying to the qpidd that QMF_TEST_QPIDD names."""

from __future__ import annotations

import asyncio
import os

import pytest
from broker.federation.federated import receive, send
from broker.relay.relaying import DOMAIN, LETTERS, RelayingBroker
from support.managed_brokers import unique
from support.waiting import until

from qmf.broker.relay.options import RelayOptions
from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message

URL = os.environ.get("QMF_TEST_QPIDD", "")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not URL, reason="QMF_TEST_QPIDD names no qpidd")]


async def test_messages_arrive_and_qpidd_drops_those_to_what_it_does_not_have() -> None:
    name = unique("orders")
    contents = [str(number) for number in range(200)]
    with Connection(URL) as connection:
        agent = BrokerAgent(connection)
        agent.create("queue", name)
        try:
            async with RelayingBroker(port=0, relay=RelayOptions(enabled=True)) as here:
                here.domain(URL)
                relay = here.relay(domain="peer")
                await send(here, f"{name}@{DOMAIN}", *contents)
                assert await receive(URL, name, len(contents)) == contents
                await send(here, f"{unique('nothing')}@{DOMAIN}", "lost")
                await until(lambda: relay.forwarded == len(contents) + 1, lambda: str(relay.forwarded))
                assert not here.depth(LETTERS)
        finally:
            agent.delete("queue", name)


async def test_what_qpidd_pulls_has_what_is_left_of_its_time_to_live() -> None:
    """By an incoming link of qpidd from the transmission queue."""
    name, domain = unique("orders"), unique("domain")
    with Connection(URL) as connection:
        agent = BrokerAgent(connection)
        agent.create("queue", name)
        try:
            async with RelayingBroker(port=0, relay=RelayOptions(enabled=True)) as here:
                here.relay()
                await send(here, f"{name}@{DOMAIN}", "one", "two", ttl=60)
                loop = asyncio.get_running_loop()
                began = loop.time()
                await until(lambda: loop.time() > began + 0.05, "some of the time to live")

                def pull() -> list[Message]:
                    agent.create("domain", domain, {"url": f"127.0.0.1:{here.port}"})
                    source = {"domain": domain, "source": f"relay.{DOMAIN}", "target": name}
                    agent.create("incoming", unique("pull"), source)
                    receiver = connection.session().receiver(name, capacity=2)
                    return [receiver.fetch(timeout=30) for _ in range(2)]

                for message in await asyncio.to_thread(pull):
                    assert message.ttl is not None
                    assert 30 < message.ttl < 59.96
        finally:
            agent.delete("domain", domain)
            agent.delete("queue", name)
