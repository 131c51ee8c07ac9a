"""What a transfer agent sends of a message."""

from __future__ import annotations

import asyncio

import pytest
from broker.federation.federated import send
from broker.relay.relaying import DOMAIN, LETTERS, NOWHERE, ORDERS, relaying
from support.waiting import until

from qmf.broker.nodes.relay_addresses import RELAY_EXPIRES, relay_annotations
from qmf.broker.operations.principal import BROKER
from qmf.messaging import aio

WAITING = f"relay.{DOMAIN}"


@pytest.mark.parametrize("timeout", [3_600, 20], ids=["waits longer", "waits less"])
async def test_a_message_that_has_waited_leaves_with_what_is_left_of_its_time_to_live(timeout: float) -> None:
    async with relaying() as (here, there):
        here.relay(timeout=timeout)
        await send(here, ORDERS, "one", ttl=60)
        await send(here, ORDERS, "two")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: loop.time() > began + 0.05, "some of the time to live")
        here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
        here.relay(domain="peer", timeout=timeout)
        async with aio.Connection(there.url) as connection:
            receiver = await (await connection.session()).receiver("orders", capacity=2)
            found = (await receiver.fetch(timeout=30)).ttl
            assert found is not None
            assert 30 < found < 59.96
            assert (await receiver.fetch(timeout=30)).ttl is None


async def test_the_time_to_live_of_a_dead_letter_that_is_sent_again_begins_anew() -> None:
    async with relaying() as (here, _):
        here.domain(NOWHERE, "away")
        here.relay(domain="away")
        await send(here, ORDERS, "one", ttl=0.05)
        (entry,) = here.queue(WAITING).contents.waiting()
        assert RELAY_EXPIRES in relay_annotations(entry.message)
        await here.has(LETTERS, 1)
        assert here.operations.forwarding.retry_dead_letters(BROKER, DOMAIN, 0) == 1
        (entry,) = here.queue(WAITING).contents.waiting()
        assert RELAY_EXPIRES not in relay_annotations(entry.message)
