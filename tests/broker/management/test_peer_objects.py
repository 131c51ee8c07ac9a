"""Domains and links to other brokers as consoles create them, and as they are shown; also on qpidd."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from broker.management.managed import OFTEN, Raised, id_of, knows_agent, managed
from support.managed_brokers import NAMES, managed_broker, unique
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.access.control import FileAccessControl
from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.message import Message
from qmf.models.broker import console as remote

NOWHERE = "amqp://127.0.0.1:1"


async def agent_of(client: Client) -> remote.Broker:
    (found,) = await client.objects(remote.Broker)
    return found


async def operational(client: Client, name: str) -> remote.Link:
    """A link to another broker, as soon as it is up."""
    found: dict[str, remote.Link] = {}

    async def look() -> bool:
        found.update({item.name: item for item in await client.objects(remote.Link)})
        return name in found and found[name].state == "Operational"

    while not await look():
        await until(lambda: True)
    return found[name]


async def test_domains_and_links_are_objects() -> None:
    async with Broker(port=0, queues=["there"]) as there, managed(OFTEN, queues=["here"]) as (broker, client):
        it, raised = await agent_of(client), Raised(client)
        url = f"amqp://127.0.0.1:{there.port}"
        await it.create("domain", "peer", {"url": url, "username": "ann", "password": "secret"}, True)
        (domain,) = await client.objects(remote.Domain)
        assert (domain.name, domain.url, domain.username, domain.password) == ("peer", url, "ann", "")
        await it.delete("domain", "peer", {})
        await it.create("domain", "peer", {"url": url}, True)
        for type, source, target in (("outgoing", "here", "there"), ("incoming", "amq.topic", "here")):
            await it.create(type, type, {"domain": "peer", "source": source, "target": target}, True)
        link = await operational(client, "outgoing")
        assert (link.host, link.port, link.transport) == ("127.0.0.1", there.port, "tcp")
        assert (link.durable, link.lastError) == (False, "")
        await operational(client, "incoming")
        connections = {id_of(item): item for item in await client.objects(remote.Connection)}
        assert link.connectionRef is not None
        connection = connections[link.connectionRef]
        assert (connection.incoming, connection.federationLink) == (False, True)
        (sent,) = [item for item in await client.objects(remote.Outgoing) if item.domain == "peer"]
        (got,) = [item for item in await client.objects(remote.Incoming) if item.domain == "peer"]
        assert (sent.name, sent.source, sent.target) == ("outgoing", "here", "there")
        assert (got.name, got.source, got.target) == ("incoming", "amq.topic", "here")
        async with aio.Connection(broker.url) as own:
            await (await (await own.session()).sender("here")).send(Message("x"), timeout=30)
        await until(lambda: raised("brokerLinkUp", rhost=connection.address), "an event")

        await link.close()
        await until(lambda: raised("brokerLinkDown", rhost=connection.address), "an event")
        await it.delete("incoming", "incoming", {})
        assert not await client.objects(remote.Link)
        assert not [item for item in await client.objects(remote.Outgoing) if item.domain]
        await it.delete("domain", "peer", {})
        assert not await client.objects(remote.Domain)


async def test_a_link_that_is_not_up_says_why_and_since_when() -> None:
    async with managed(queues=["here"]) as (_, client):
        it = await agent_of(client)
        await it.create("domain", "peer", {"url": NOWHERE}, True)
        await it.create("outgoing", "link", {"domain": "peer", "source": "here", "target": "there"}, True)
        found: list[remote.Link] = []
        while not found or found[0].state != "Waiting":
            found = list(await client.objects(remote.Link))
        pattern = r"connection refused: nothing listens there \(since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)"
        assert re.fullmatch(pattern, found[0].lastError)


async def test_durable_links_are_shown_after_a_restart(tmp_path: Path) -> None:
    async with managed(data_dir=tmp_path) as (_, client):
        it = await agent_of(client)
        await it.create("queue", "here", {"durable": True}, True)
        await it.create("domain", "peer", {"url": NOWHERE, "durable": True}, True)
        wanted = {"domain": "peer", "source": "here", "target": "there", "durable": True}
        await it.create("outgoing", "link", wanted, True)
    async with managed(data_dir=tmp_path) as (_, client):
        (domain,), (link,) = await client.objects(remote.Domain), await client.objects(remote.Link)
        assert (domain.name, domain.durable, link.name, link.durable) == ("peer", True, "link", True)


async def test_durable_bindings_are_shown_after_a_restart(tmp_path: Path) -> None:
    async with managed(data_dir=tmp_path) as (_, client):
        it = await agent_of(client)
        await it.create("queue", "here", {"durable": True}, True)
        await it.create("binding", "amq.topic/here/k", {}, True)
    async with managed(data_dir=tmp_path) as (_, client):
        assert "k" in [item.bindingKey for item in await client.objects(remote.Binding)]


async def test_rules_say_who_creates_links(tmp_path: Path) -> None:
    rules = tmp_path / "rules.acl"
    rules.write_text("acl deny bob@QPID create link\nacl allow all all\n")
    users, access = {"ann": "a", "bob": "b"}, FileAccessControl(rules)
    async with Broker(port=0, queues=["here"], management=3600.0, users=users, access=access) as broker:
        for user in ("bob", "ann"):
            async with Client(f"amqp://{user}:{users[user]}@127.0.0.1:{broker.port}", settle=0.0) as client:
                await knows_agent(client)
                it = await agent_of(client)
                if user == "bob":
                    with pytest.raises(RemoteError, match="unauthorized-access: user 'bob' may not create link 'peer'"):
                        await it.create("domain", "peer", {"url": NOWHERE}, True)
                else:
                    await it.create("domain", "peer", {"url": NOWHERE}, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_errors_are_those_of_qpidd(name: str) -> None:
    domain = unique("domain")
    with managed_broker(name) as url:
        async with Client(url, settle=0.0) as client:
            await knows_agent(client)
            it = await agent_of(client)
            await it.create("domain", domain, {"url": "127.0.0.1:1"}, True)
            (found,) = [item for item in await client.objects(remote.Domain) if item.name == domain]
            assert found.url.endswith("127.0.0.1:1")
            for type, of, properties, error in (
                ("domain", domain, {"url": "127.0.0.1:1"}, f"A domain named {domain} already exists"),
                ("domain", unique("x"), {}, "A url is required for a domain!"),
                ("incoming", unique("x"), {}, "Domain must be specified"),
                ("outgoing", unique("x"), {"domain": "none"}, "No such domain: none"),
            ):
                if name == "embedded" and type != "domain" and properties:
                    properties = {**properties, "source": "amq.topic", "target": "x"}
                with pytest.raises(RemoteError) as caught:
                    await it.create(type, of, properties, True)
                assert caught.value.text.startswith(error)
            await it.delete("domain", domain, {})
            for type, error in (("domain", "No such domain: none"), ("incoming", "No such interconnection: none")):
                with pytest.raises(RemoteError) as caught:
                    await it.delete(type, "none", {})
                assert caught.value.text.startswith(error)
