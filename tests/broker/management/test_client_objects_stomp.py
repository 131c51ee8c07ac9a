"""Connections of STOMP as consoles see them: connection, session, links and subscription, as those of AMQP."""

from __future__ import annotations

import asyncio

import pytest
from broker.management.managed import NEVER, Raised, id_of, knows_agent, queues
from broker.protocols.stomp.stomp_wire import dial, stomp_broker
from support.waiting import until

from qmf.console.aio import Client
from qmf.messaging import aio
from qmf.models.broker import console as remote

pytestmark = pytest.mark.asyncio


async def test_a_client_of_stomp_is_a_connection_with_a_session_and_links() -> None:
    async with stomp_broker(management=NEVER) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        raised = Raised(console)
        client = await dial(broker, client_id="mine", heart_beat="60000,0")
        await client.ask("SUBSCRIBE", destination="/queue/q", id="s", ack="client-individual")
        await client.ask("BEGIN", transaction="t")
        await client.ask("SEND", b"1", destination="/queue/q", transaction="t")
        client.send("COMMIT", transaction="t")
        await client.message()
        await client.ask("BEGIN", transaction="open")

        (connection,) = [item for item in await console.objects(remote.Connection) if item.protocol == "STOMP 1.2"]
        assert connection.remoteProperties == {"container-id": "mine", "heart-beat": "60000,0"}
        assert (connection.authIdentity, connection.saslMechanism) == ("anonymous", "ANONYMOUS")
        assert (connection.msgsFromClient, connection.msgsToClient) == (1, 1)
        assert connection.framesFromClient == 6
        of_client = [item for item in await console.objects(remote.Session) if item.connectionRef == id_of(connection)]
        (session,) = of_client
        assert (session.TxnStarts, session.TxnCommits, session.TxnCount) == (2, 1, 1)
        assert session.unackedMessages == 1
        (subscription,) = [i for i in await console.objects(remote.Subscription) if i.sessionRef == id_of(session)]
        queue = (await queues(console))["q"]
        assert (subscription.name, subscription.queueRef, subscription.delivered) == ("s", id_of(queue), 1)
        assert subscription.acknowledged
        (incoming,) = [i for i in await console.objects(remote.Incoming) if i.sessionRef == id_of(session)]
        (outgoing,) = [i for i in await console.objects(remote.Outgoing) if i.sessionRef == id_of(session)]
        assert (incoming.containerid, incoming.name) == ("mine", client.connected.headers["session"])
        assert (incoming.transfers, outgoing.transfers, outgoing.source) == (1, 1, "q")
        (begun,) = raised("clientConnect", rhost=connection.address)
        assert begun["properties"] == {"heart-beat": "60000,0"}

        await connection.close()
        assert "closed by management" in await client.error()
        await until(lambda: raised("clientDisconnect", rhost=connection.address), "the end of the connection")
        assert all(i.protocol != "STOMP 1.2" for i in await console.objects(remote.Connection))


async def test_clients_without_a_client_id_are_apart() -> None:
    async with stomp_broker(management=NEVER) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        clients = [await dial(broker), await dial(broker)]
        for client in clients:
            await client.ask("SUBSCRIBE", destination="/topic/t", id="1")
        names = {client.connected.headers["session"] for client in clients}
        assert len(names) == 2
        assert names <= {i.containerid for i in await console.objects(remote.Incoming)}
        assert names <= {i.containerid for i in await console.objects(remote.Outgoing)}


async def test_a_session_is_detached() -> None:
    async with stomp_broker(management=NEVER) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        client = await dial(broker)
        (connection,) = [item for item in await console.objects(remote.Connection) if item.protocol == "STOMP 1.2"]
        (session,) = [i for i in await console.objects(remote.Session) if i.connectionRef == id_of(connection)]
        await session.detach()
        assert "ended by management" in await client.error()


async def test_clients_with_the_same_id_and_names_have_objects_of_their_own() -> None:
    """Also of different protocols: names are the clients' own, and nothing keeps them from having the same."""
    async with stomp_broker(management=NEVER, queues=["q"]) as broker, Client(broker.url, settle=0.0) as console:
        await knows_agent(console)
        clients = [await dial(broker, client_id="mine"), await dial(broker, client_id="mine")]
        for client in clients:
            await client.ask("SUBSCRIBE", destination="/queue/q", id="s")
        async with aio.Connection(broker.url, container_id="mine") as connection:
            session = await connection.session()
            await session.receiver("q; {link: {name: s}}")

            async def found() -> list[remote.Outgoing]:
                return [i for i in await console.objects(remote.Outgoing) if (i.containerid, i.name) == ("mine", "s")]

            objects = await found()
            assert len({id_of(item) for item in objects}) == len({item.sessionRef for item in objects}) == 3
            subscriptions = [i for i in await console.objects(remote.Subscription) if i.name == "s"]
            assert len(subscriptions) == 3
        async with asyncio.timeout(30):
            while len(left := await found()) == 3:
                await asyncio.sleep(0.01)
        assert {id_of(item) for item in left} < {id_of(item) for item in objects}
