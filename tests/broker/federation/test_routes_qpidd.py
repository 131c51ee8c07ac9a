"""Routes of this broker whose source is the qpidd that QMF_TEST_QPIDD names, asked for by QMF and AMQP 1.0."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from broker.federation.federated import receive, send
from broker.federation.routed import RoutedBroker
from broker.management.managed import knows_agent
from support.managed_brokers import unique
from support.waiting import until

from qmf.broker.federation import incoming
from qmf.broker.nodes.traces import read_trace
from qmf.broker.operations.principal import BROKER
from qmf.console.aio import Client
from qmf.models.broker import console as remote

URL = os.environ.get("QMF_TEST_QPIDD", "")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not URL, reason="QMF_TEST_QPIDD names no qpidd")]


@asynccontextmanager
async def ours_and_qpidd() -> AsyncIterator[tuple[RoutedBroker, remote.Broker, Client, str]]:
    """A broker with a queue, an exchange of a new name at both, qpidd's object and a client of it."""
    name = unique("fed")
    async with RoutedBroker(queues=["q"]) as here, Client(URL, settle=0.0) as client:
        await knows_agent(client)
        (it,) = await client.objects(remote.Broker)
        await it.create("exchange", name, {"exchange-type": "topic"}, True)
        here.add_exchange(name)
        place = urlsplit(URL)
        here.operations.forwarding.create(
            BROKER, "link", "qpidd", {"host": place.hostname, "port": place.port, "durable": True}
        )
        try:
            yield here, it, client, name
        finally:
            await it.delete("exchange", name, {})


def add(here: RoutedBroker, name: str, **properties: object) -> None:
    here.operations.forwarding.create(BROKER, "bridge", name, {"link": "qpidd", **properties}, strict=True)


async def keys(client: Client) -> dict[str, dict[str, object]]:
    """The bindings that routes have at qpidd."""
    found = await client.objects(remote.Binding)
    return {item.bindingKey: dict(item.arguments or {}) for item in found if "bridge_queue" in str(item.queueRef)}


async def test_a_static_and_a_queue_route_from_qpidd() -> None:
    async with ours_and_qpidd() as (here, it, _, name):
        here.bind("amq.fanout", "q")
        add(here, unique("static"), src=name, dest="amq.fanout", key="a.#")
        await here.all_up()
        await send(URL, f"{name}/b", "another key")
        await send(URL, f"{name}/a.1", "static")
        assert await receive(here, "q", 1) == ["static"]
        await it.create("queue", f"{name}.q", {}, True)
        add(here, unique("queue"), src=f"{name}.q", dest="amq.fanout", srcIsQueue=True)
        await send(URL, f"{name}.q", "queued")
        await until(lambda: here.depth("q"), "it came")
        (entry,) = here.queue("q").contents.waiting()
        assert len(read_trace(entry.message.data)) == 1  # the tag of qpidd
        here.operations.forwarding.delete(BROKER, "link", "qpidd")
        await it.delete("queue", f"{name}.q", {})


@pytest.mark.parametrize("durable", [False, True])
async def test_a_dynamic_route_from_qpidd_follows_the_bindings(durable: bool) -> None:
    async with ours_and_qpidd() as (here, _, client, name):
        here.bind(name, "q", "a.*")
        route = unique("dynamic")
        add(here, route, src=name, dest=name, dynamic=True, durable=durable)
        await here.up(route)
        here.bind(name, "q", "b")
        found: dict[str, dict[str, object]] = {}
        while not {"a.*", "b"} <= found.keys():
            found = await keys(client)
        assert found["b"]["qpid.fed.op"] == "B"
        assert found["b"]["qpid.fed.tags"] == here.federation.tag
        await send(URL, f"{name}/a.1", "one")
        await send(URL, f"{name}/c", "nobody's")
        await send(URL, f"{name}/b", "two")
        assert await receive(here, "q", 2) == ["one", "two"]
        here.unbind(name, "q", "a.*")
        while "a.*" in await keys(client):
            continue
        here.operations.forwarding.delete(BROKER, "link", "qpidd")
        while await keys(client):
            continue


@pytest.mark.parametrize("kind", ["dynamic", "static", "queue"])
async def test_what_waits_at_qpidd_for_a_route(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not answer flows: its agent is asked."""
    monkeypatch.setattr(incoming, "ANSWER_TIMEOUT", 0.1)
    async with ours_and_qpidd() as (here, it, _, name):
        queue = f"{name}.q"
        await it.create("queue", queue, {}, True)
        here.bind(name, "q", "#")
        properties: dict[str, dict[str, object]] = {
            "dynamic": {"src": name, "dynamic": True},
            "static": {"src": name, "key": "#"},
            "queue": {"src": queue, "srcIsQueue": True},
        }
        route = unique(kind)
        add(here, route, dest=name, **properties[kind])
        bridge = await here.up(route)
        bridge.on_deliveries = lambda batch: None  # type: ignore[method-assign]
        bridge.on_delivery = lambda delivery: None  # type: ignore[method-assign]
        await send(URL, queue if kind == "queue" else f"{name}/k", *map(str, range(600)))
        await until(lambda: bridge.measure().waiting, "its agent has answered")
        assert bridge.measure().waiting == 600  # as qpidd counts, with what is on its way
        here.operations.forwarding.delete(BROKER, "link", "qpidd")
        await it.delete("queue", queue, {})
