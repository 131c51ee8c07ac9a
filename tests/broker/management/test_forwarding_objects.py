"""Relays and links within a broker, as consoles and `qpid-config` see them."""

from __future__ import annotations

import asyncio

import pytest
from broker.management.managed import OFTEN, Raised, managed
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.relay.options import RelayOptions
from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.message import Message
from qmf.models.broker import console as remote
from qmf.models.forwarding import console as forwarding
from qmf.tools.config.cli import main

DOMAIN = "office.example"


async def relay_of(client: Client) -> forwarding.Relay:
    (found,) = await client.objects(forwarding.Relay)
    return found


async def send(broker: Broker, address: str) -> None:
    async with aio.Connection(broker.url) as connection:
        await (await (await connection.session()).sender(address)).send(Message("x"))


@pytest.mark.slow
async def test_a_relay_is_an_object_with_methods_and_its_dead_letters_are_events() -> None:
    relay = RelayOptions(enabled=True)
    async with (
        Broker(port=0, queues=["orders"]) as there,
        managed(OFTEN, relay=relay) as (broker, client),
    ):
        raised = Raised(client)
        (it,) = await client.objects(remote.Broker)
        await it.create("domain", "peer", {"url": there.url}, True)
        await it.create("relay", DOMAIN, {"domain": "peer"}, True)
        found = await relay_of(client)
        assert (found.name, found.domain, found.durable) == (DOMAIN, "peer", False)
        assert (found.transmissionQueue, found.deadLetters) == (f"relay.{DOMAIN}", "relay.dead-letters")
        await send(broker, f"orders@{DOMAIN}")
        await send(broker, f"nothing@{DOMAIN}")
        await until(lambda: raised("deadLettered"), "an event")
        (event,) = raised("deadLettered", domain=DOMAIN, address=f"nothing@{DOMAIN}")
        assert "no exchange or queue 'nothing'" in str(event["reason"])
        found = await relay_of(client)
        assert (found.state, found.lastError) == ("Operational", "")
        assert (found.received, found.forwarded, found.deadLettered, found.waiting) == (2, 1, 1, 0)
        assert (await found.retryDeadLetters(0)).moved == 1
        await until(lambda: len(raised("deadLettered")) == 2, "it was tried again")
        await found.pause()
        assert (await relay_of(client)).state == "Paused"
        await found.resume()
        assert (await relay_of(client)).state != "Paused"
        await it.delete("relay", DOMAIN, {})
        with pytest.raises(RemoteError, match=f"No such relay: {DOMAIN}"):
            await it.delete("relay", DOMAIN, {})
        assert not await client.objects(forwarding.Relay)


async def test_a_link_between_queues_is_an_object_with_methods_and_events() -> None:
    async with managed(OFTEN, queues=["in", "out"]) as (broker, client):
        raised = Raised(client)
        (it,) = await client.objects(remote.Broker)
        wanted = {"source": "in", "target": "out", "selector": "a = 1 OR a IS NULL", "max_count": 2, "max_rate": 1000}
        await it.create("queuelink", "sorted", wanted, True)
        (found,) = await client.objects(forwarding.QueueLink)
        assert (found.source, found.target, found.mode, found.selector) == ("in", "out", "move", wanted["selector"])
        assert (found.maxCount, found.maxRate, found.maxSize, found.durable) == (2, 1000, 0, False)
        assert (found.state, found.passed, found.creator) == ("Operational", 0, "anonymous")
        await found.pause()
        await send(broker, "in")
        await send(broker, "in")
        await found.resume()
        await until(lambda: raised("queueLinkChanged", state="Completed"), "an event")
        assert [str(item["state"]) for item in raised("queueLinkChanged")] == ["Paused", "Operational", "Completed"]
        (found,) = await client.objects(forwarding.QueueLink)
        assert (found.state, found.passed, found.lastError, found.octets > 0) == ("Completed", 2, "", True)
        with pytest.raises(RemoteError, match="source: no queue 'none'"):
            await it.create("queuelink", "other", {"source": "none", "target": "out"}, True)
        await it.delete("queuelink", "sorted", {})
        assert not await client.objects(forwarding.QueueLink)


async def test_a_broker_that_does_not_relay_says_so() -> None:
    async with managed() as (_, client):
        (it,) = await client.objects(remote.Broker)
        with pytest.raises(RemoteError, match="this broker does not relay"):
            await it.create("relay", DOMAIN, {}, True)


@pytest.mark.slow
async def test_qpid_config_adds_lists_and_deletes_relays(capsys: pytest.CaptureFixture[str]) -> None:
    async with managed(relay=RelayOptions(enabled=True)) as (broker, _):

        async def run(*words: str) -> tuple[int, str]:
            code = await asyncio.to_thread(main, ["-b", broker.url.removeprefix("amqp://"), *words])
            printed = capsys.readouterr()
            return code, printed.out + printed.err

        assert await run("add", "relay", DOMAIN, "--argument", "timeout=60") == (0, "")
        code, text = await run("list", "relay")
        assert (code, DOMAIN in text, "relay.dead-letters" in text) == (0, True, True)
        code, text = await run("add", "relay", DOMAIN)
        assert (code, f"object already exists: {DOMAIN}" in text) == (1, True)
        assert await run("del", "relay", DOMAIN) == (0, "")
