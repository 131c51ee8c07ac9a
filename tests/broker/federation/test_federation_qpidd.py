"""Links between this broker and the qpidd that QMF_TEST_QPIDD names: asked for by either, in both directions."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from broker.federation.federated import IN, OUT, FederatedBroker, receive, send
from broker.management.managed import knows_agent
from support.managed_brokers import unique
from support.waiting import until

from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.traces import read_trace
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import BROKER
from qmf.console.aio import Client
from qmf.models.broker import console as remote

URL = os.environ.get("QMF_TEST_QPIDD", "")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not URL, reason="QMF_TEST_QPIDD names no qpidd")]


@asynccontextmanager
async def ours_and_qpidd() -> AsyncIterator[tuple[FederatedBroker, remote.Broker, str]]:
    """A broker with the queue ``here``, qpidd's object, and the name of a queue there."""
    name = unique("there")
    async with FederatedBroker(port=0, queues=["here"]) as here, Client(URL, settle=0.0) as client:
        await knows_agent(client)
        (it,) = await client.objects(remote.Broker)
        await it.create("queue", name, {}, True)
        try:
            yield here, it, name
        finally:
            await it.delete("queue", name, {})


async def test_this_broker_opens_both_directions() -> None:
    contents = [str(number) for number in range(700)]
    async with ours_and_qpidd() as (here, _, there):
        here.domain(URL)
        here.link(OUT, "here", there, name=unique("out"))
        await send(here, "here", *contents)
        assert await receive(URL, there, 700) == contents
        await until(lambda: not here.depth("here"), "qpidd has accepted all")
        for link in list(here.federation.links):
            here.operations.forwarding.delete(BROKER, OUT.value, link.name)

        here.link(IN, there, "here", name=unique("in"))
        await send(URL, there, *contents)
        assert await receive(here, "here", 700) == contents


async def test_this_broker_subscribes_to_an_exchange_of_qpidd_by_key_and_selector() -> None:
    key = unique("key")
    async with ours_and_qpidd() as (here, _, _):
        here.domain(URL)
        name = unique("in")
        here.link(IN, "amq.topic", "here", name=name, key=f"{key}.*", selector="colour = 'red'")
        await here.state(PeerLinkState.OPERATIONAL, name)
        await send(URL, f"amq.topic/{key}.a", "blue", properties={"colour": "blue"})
        await send(URL, f"amq.topic/other.{key}", "other", properties={"colour": "red"})
        await send(URL, f"amq.topic/{key}.b", "red", properties={"colour": "red"})
        assert await receive(here, "here", 1) == ["red"]
        assert not here.depth("here")


async def test_what_qpidd_has_no_node_for_is_tried_again() -> None:
    async with ours_and_qpidd() as (here, it, _):
        missing = unique("missing")
        here.domain(URL)
        here.link(OUT, "here", missing)
        link = await here.state(PeerLinkState.WAITING)
        assert "the other broker refused the link (amqp:not-found: " in link.reason
        await it.create("queue", missing, {}, True)
        try:
            await send(here, "here", "x")
            assert await receive(URL, missing, 1) == ["x"]
        finally:
            await it.delete("queue", missing, {})


async def test_what_comes_to_qpidd_while_a_durable_link_is_down_is_kept_for_it() -> None:
    async with ours_and_qpidd() as (here, _, _):
        name = unique("in")
        here.domain(URL, durable=True)
        here.link(IN, "amq.fanout", "here", name=name, durable=True)
        link = await here.state(PeerLinkState.OPERATIONAL, name)
        link.drop("for a test")
        await here.state(PeerLinkState.WAITING, name)
        await send(URL, "amq.fanout", "x")
        assert await receive(here, "here", 1) == ["x"]


async def test_a_circle_through_qpidd_ends() -> None:
    async with ours_and_qpidd() as (here, _, there):
        here.domain(URL)
        here.link(OUT, "here", there, name=unique("out"))
        here.link(IN, there, "amq.fanout", name=unique("in"))
        await send(here, "here", "x")
        links = here.federation.links
        await until(lambda: sum(link.unforwarded.count for link in links) == 1, "it comes back, and is at its end")
        assert here.registry.counters.discarded == 0


async def test_ids_that_qpidd_adds_itself() -> None:
    """They are for AMQP 0-10 there, and asked for by an argument of the queue."""
    name = unique("traced")
    async with ours_and_qpidd() as (here, it, _):
        await it.create("queue", name, {"qpid.trace.id": "others"}, True)
        try:
            here.domain(URL)
            here.link(IN, name, "here", name=unique("in"))
            await send(URL, name, "x")
            await until(lambda: here.depth("here") == 1, "it arrives")
            (entry,) = here.queue("here").contents.waiting()
            first, peer = read_trace(entry.message.data)
            assert first == "others"
            assert len(peer) == 36
        finally:
            await it.delete("queue", name, {})


@pytest.mark.parametrize("direction", [IN, OUT], ids=["incoming", "outgoing"])
async def test_qpidd_opens_a_link(direction: LinkDirection) -> None:
    contents = [str(number) for number in range(300)]
    async with ours_and_qpidd() as (here, it, there):
        domain, link = unique("domain"), unique("link")
        await it.create("domain", domain, {"url": urlsplit(here.url).netloc, "sasl_mechanisms": "ANONYMOUS"}, True)
        try:
            source, target = (there, "here") if direction is OUT else ("here", there)
            await it.create(direction.value, link, {"domain": domain, "source": source, "target": target}, True)
            if direction is OUT:
                await send(URL, there, *contents)
                assert await receive(here, "here", 300) == contents
            else:
                await send(here, "here", *contents)
                assert await receive(URL, there, 300) == contents
                await until(lambda: not here.depth("here"), "qpidd has accepted all")
            await it.delete(direction.value, link, {})
        finally:
            await it.delete("domain", domain, {})
