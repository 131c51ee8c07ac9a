"""Clients as consoles see them."""

from __future__ import annotations

import os
import re

from broker.management.managed import TOPIC, connected, id_of, managed, queues
from support.recording import Inbox, message
from support.waiting import until

from qmf.bus import AmqpBus, Binding
from qmf.models.broker import console as remote


async def test_a_console_sees_itself() -> None:
    async with managed() as (broker, client):
        (connection,) = await client.objects(remote.Connection)
        (vhost,) = await client.objects(remote.Vhost)
        assert re.fullmatch(rf"qpid\.127\.0\.0\.1:{broker.port}-127\.0\.0\.1:\d+", connection.address)
        assert (connection.vhostRef, connection.protocol, connection.incoming) == (id_of(vhost), "AMQP 1.0", True)
        assert (connection.saslMechanism, connection.authIdentity) == ("ANONYMOUS", "anonymous")
        assert (connection.remotePid, connection.remoteParentPid) == (os.getpid(), os.getppid())
        assert connection.remoteProcessName
        assert connection.msgsFromClient > 0
        assert connection.msgsToClient > 0
        (session,) = await client.objects(remote.Session)
        assert session.connectionRef == id_of(connection)
        subscriptions = await client.objects(remote.Subscription)
        mine = {id_of(item): item for item in await client.objects(remote.Queue) if item.creator == "anonymous"}
        assert len(subscriptions) == len(mine) > 0
        assert {item.queueRef for item in subscriptions} == set(mine)
        assert {item.sessionRef for item in subscriptions} == {id_of(session)}
        bindings = [item for item in await client.objects(remote.Binding) if item.queueRef in mine]
        assert "agent.ind.heartbeat.#" in {item.bindingKey for item in bindings}
        # Each queue is bound to the default exchange, too.
        assert len(bindings) == 2 * len(mine)
        assert {item.bindingCount.value for item in mine.values()} == {2}
        assert {item.consumerCount.value for item in mine.values()} == {1}


async def test_objects_go_with_their_client() -> None:
    async with managed() as (broker, client):
        classes = (remote.Connection, remote.Session, remote.Subscription, remote.Queue, remote.Binding)

        async def counts() -> list[int]:
            return [len(await client.objects(cls)) for cls in classes]

        before = await counts()
        async with connected(broker.url) as bus:
            subscription = await bus.subscribe(Binding(TOPIC, "a"), Inbox())
            await bus.subscribe(Binding(TOPIC, "b"), Inbox())
            await bus.send(message(TOPIC, "a"), confirm=True)
            assert await counts() == [before[0] + 1, before[1] + 1, before[2] + 2, before[3] + 2, before[4] + 4]
            await subscription.close()
            assert await counts() == [before[0] + 1, before[1] + 1, before[2] + 1, before[3] + 1, before[4] + 2]
        await until(lambda: broker.connections == 1, "the end of the connection")
        assert await counts() == before


async def test_a_connection_can_be_closed() -> None:
    async with managed() as (broker, client):
        (mine,) = await client.objects(remote.Connection)
        bus = AmqpBus(broker.url, reconnect=False)
        await bus.open()
        (other,) = [item for item in await client.objects(remote.Connection) if id_of(item) != id_of(mine)]
        await other.close()
        await until(lambda: not bus.connected, "the end of the connection")
        await until(lambda: broker.connections == 1, "the end of the connection")
        await bus.close()


async def test_names_that_the_schema_does_not_allow_do_no_harm() -> None:
    async with managed() as (broker, client):
        bus = AmqpBus(broker.url, container="ü" * 300)
        await bus.open()
        inboxes = [Inbox(), Inbox()]
        for inbox in inboxes:
            await bus.subscribe(Binding(TOPIC, "k"), inbox)
        await bus.send(message(TOPIC, "k", "hello"), confirm=True)
        for inbox in inboxes:
            assert await inbox.wait(1) == ["hello"]
        # Cut to the same text, so that only one of them can be shown.
        assert "ü" * 127 in await queues(client)
        await bus.close()
