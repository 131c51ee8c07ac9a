"""Links for routes and the routes on them, as consoles create them by qpidd's methods, and as they are shown."""

from __future__ import annotations

import pytest
from broker.management.managed import OFTEN, Raised, id_of, managed
from support.waiting import until

from qmf.broker import Broker
from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.models.broker import console as remote

UNLIMITED = 0xFFFFFFFF


async def broker_of(client: Client) -> remote.Broker:
    (found,) = await client.objects(remote.Broker)
    return found


async def link_of(client: Client, state: str = "") -> remote.Link:
    """The only link, as soon as it is in a state."""
    while True:
        (found,) = await client.objects(remote.Link)
        if not state or found.state == state:
            return found


async def bridge_on(link: remote.Link, *, key: str = "k", sync: int = 0) -> None:
    """Create a route by the method of the link."""
    await link.bridge(False, "amq.topic", "amq.topic", key, "", "", False, False, False, sync, UNLIMITED)


async def test_connect_bridge_and_close() -> None:
    async with Broker(port=0) as there, managed(OFTEN) as (_, client):
        it, raised = await broker_of(client), Raised(client)
        for _ in range(2):  # the second one finds the link
            await it.connect("127.0.0.1", there.port, False, "", "", "", "tcp")
        link = await link_of(client, "Operational")
        assert (link.name, link.host, link.port) == (f"qpid.tcp:127.0.0.1:{there.port}", "127.0.0.1", there.port)
        assert (link.transport, link.durable, link.lastError) == ("tcp", False, "")
        await until(lambda: raised("brokerLinkUp"), "an event")
        for _ in range(2):
            await bridge_on(link)
        (bridge,) = await client.objects(remote.Bridge)
        assert (bridge.linkRef, bridge.src, bridge.dest, bridge.key) == (id_of(link), "amq.topic", "amq.topic", "k")
        assert (bridge.srcIsQueue, bridge.srcIsLocal, bridge.dynamic, bridge.durable) == (False, False, False, False)
        assert (bridge.tag, bridge.excludes, bridge.sync, bridge.credit) == ("", "", 0, UNLIMITED)
        await bridge.close()
        assert not await client.objects(remote.Bridge)
        await bridge_on(link)
        await link.close()
        assert not await client.objects(remote.Bridge)
        assert not await client.objects(remote.Link)
        await until(lambda: raised("brokerLinkDown"), "an event")
        assert len(raised("brokerLinkUp")) == 1  # the connection of the route has none


async def test_create_and_delete() -> None:
    async with Broker(port=0) as there, managed() as (_, client):
        it = await broker_of(client)
        place = {"host": "127.0.0.1", "port": there.port, "authMechanism": "", "username": "", "password": ""}
        await it.create("link", "link", place, True)
        wanted = {"src": "amq.topic", "dest": "amq.topic", "key": "k", "dynamic": False, "credit": 0, "sync": 7}
        await it.create("bridge", "route", {"link": "link", **wanted}, True)
        (bridge,) = await client.objects(remote.Bridge)
        assert (bridge.name, bridge.key, bridge.credit, bridge.sync) == ("route", "k", 0, 7)
        for type, name in (("link", "link"), ("bridge", "route")):
            with pytest.raises(RemoteError, match=f"object already exists: {name}"):
                await it.create(type, name, place if type == "link" else {"link": "link", **wanted}, True)
        await it.delete("bridge", "route", {})
        await it.delete("link", "link", {})
        assert not await client.objects(remote.Link)


async def test_errors_are_qpidds() -> None:
    async with managed(queues=["q"]) as (_, client):
        it = await broker_of(client)
        with pytest.raises(RemoteError, match="NotImplemented: transport type not supported: 'rdma'"):
            await it.connect("127.0.0.1", 1, False, "", "", "", "rdma")
        with pytest.raises(RemoteError, match=r"InvalidParameter: .*port: must be a number"):
            await it.connect("127.0.0.1", 70_000, False, "", "", "", "")
        with pytest.raises(RemoteError, match=r"names prefixed with 'qpid\.' are reserved: qpid\.x"):
            await it.create("link", "qpid.x", {"host": "127.0.0.1", "port": 1}, True)
        await it.connect("127.0.0.1", 1, False, "", "", "", "")
        link = await link_of(client, "Waiting")
        assert "nothing listens there (since " in link.lastError
        with pytest.raises(RemoteError, match="Can't create a durable route on a non-durable link"):
            await link.bridge(True, "amq.topic", "amq.topic", "k", "", "", False, False, False, 0, 0)
        with pytest.raises(RemoteError, match="The credit value must be greater"):
            await link.bridge(False, "amq.topic", "amq.topic", "k", "", "", False, False, False, 9, 3)


async def test_other_links_have_no_routes() -> None:
    async with managed(queues=["q"]) as (_, client):
        it = await broker_of(client)
        await it.create("domain", "peer", {"url": "amqp://127.0.0.1:1"}, True)
        await it.create("incoming", "in", {"domain": "peer", "source": "a", "target": "q"}, True)
        link = await link_of(client)
        with pytest.raises(RemoteError, match="an incoming link has no routes"):
            await bridge_on(link)


async def test_what_is_wrong_with_a_route_is_an_error_of_its_link() -> None:
    async with Broker(port=0) as there, managed() as (_, client):
        it = await broker_of(client)
        await it.connect("127.0.0.1", there.port, False, "", "", "", "")
        link = await link_of(client, "Operational")
        await link.bridge(False, "none", "amq.topic", "", "", "", True, False, False, 0, 0)
        while not link.lastError:
            link = await link_of(client)
        assert link.state == "Operational"
        assert link.lastError.startswith("route tcp:127.0.0.1:")
        assert "the other broker refused the link" in link.lastError
