"""Relaying to the qpidd that QMF_TEST_QPIDD names."""

from __future__ import annotations

import os

import pytest
from broker.federation.federated import receive, send
from broker.relay.relaying import DOMAIN, LETTERS, RelayingBroker
from support.managed_brokers import unique
from support.waiting import until

from qmf.broker.relay.options import RelayOptions
from qmf.client import BrokerAgent
from qmf.messaging import Connection

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
