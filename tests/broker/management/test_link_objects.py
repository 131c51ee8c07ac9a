"""Links, sessions and transactions as consoles see them."""

from __future__ import annotations

import pytest
from broker.management.managed import TOPIC, connected, exchange, id_of, managed, queues
from support.recording import Inbox, message
from support.waiting import until

from qmf._marks import is_own_name
from qmf.bus import Binding
from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message
from qmf.models.broker import console as remote
from qmf.protocol import ErrorCode

CONTAINER = "somebody"


async def incoming(client: Client, target: str) -> remote.Incoming:
    (found,) = [item for item in await client.objects(remote.Incoming) if item.target == target]
    return found


async def outgoing(client: Client, source: str) -> list[remote.Outgoing]:
    return [item for item in await client.objects(remote.Outgoing) if item.source == source]


async def subscription(client: Client, queue: str) -> remote.Subscription:
    reference = id_of((await queues(client))[queue])
    (found,) = [item for item in await client.objects(remote.Subscription) if item.queueRef == reference]
    return found


async def test_links_are_shown_with_their_transfers() -> None:
    async with managed(queues=["jobs"]) as (broker, client):
        async with aio.Connection(broker.url, container_id=CONTAINER) as connection:
            session = await connection.session()
            sender, receiver = await session.sender("jobs"), await session.receiver("jobs")
            for number in range(3):
                await sender.send(Message(str(number)))
            await receiver.fetch(timeout=30)
            await session.acknowledge()
            sending = await incoming(client, "jobs")
            (receiving,) = await outgoing(client, "jobs")
            assert {item.containerid for item in (sending, receiving)} == {CONTAINER}
            assert {item.domain for item in (sending, receiving)} == {""}
            assert (sending.transfers, receiving.transfers) == (3, 1)
            assert sending.sessionRef == receiving.sessionRef == (await subscription(client, "jobs")).sessionRef
            (used,) = [item for item in await client.objects(remote.Session) if id_of(item) == sending.sessionRef]
            (peer,) = [item for item in await client.objects(remote.Connection) if id_of(item) == used.connectionRef]
            assert peer.remoteProperties["container-id"] == CONTAINER
            assert used.fullName == used.name
        await until(lambda: broker.connections == 1, "the end of the connection")
        assert not await outgoing(client, "jobs")


async def test_the_anonymous_relay_and_the_names_of_a_client_are_shown() -> None:
    async with managed() as (broker, client), connected(broker.url) as bus:
        await bus.send(message(TOPIC, "k"), confirm=True)
        assert [item.name for item in await client.objects(remote.Incoming) if item.target == "ANONYMOUS-RELAY"]


async def test_a_browser_is_shown_as_one() -> None:
    async with managed(queues=["jobs"]) as (broker, client), aio.Connection(broker.url) as connection:
        session = await connection.session()
        await session.receiver("jobs; {mode: browse}")
        assert (await subscription(client, "jobs")).browsing
        jobs = (await queues(client))["jobs"]
        assert jobs.consumerCount.value == 1
        (it,) = await client.objects(remote.Broker)
        with pytest.raises(RemoteError, match="queue in use"):
            await it.delete("queue", "jobs", {"if_unused": True})
        await session.receiver("jobs")
        assert (await queues(client))["jobs"].consumerCount.value == 2


async def test_senders_to_an_exchange_are_counted() -> None:
    async with managed() as (broker, client):
        async with aio.Connection(broker.url) as connection:
            session = await connection.session()
            first = await session.sender("amq.fanout")
            await session.sender("amq.fanout")
            assert (await exchange(client, "amq.fanout")).producerCount.value == 2
            await first.close()
            assert (await exchange(client, "amq.fanout")).producerCount.value == 1
        await until(lambda: broker.connections == 1, "the end of the connection")
        assert (await exchange(client, "amq.fanout")).producerCount.value == 0


async def test_frames_and_octets_are_counted() -> None:
    async with managed() as (broker, client), connected(broker.url) as bus:
        (mine, before) = sorted(
            await client.objects(remote.Connection), key=lambda item: item.msgsToClient, reverse=True
        )
        assert min(before.framesFromClient, before.framesToClient, before.bytesFromClient, before.bytesToClient) > 0
        await bus.send(message(TOPIC, "k", "x" * 10_000), confirm=True)
        (after,) = [item for item in await client.objects(remote.Connection) if id_of(item) == id_of(before)]
        assert after.framesFromClient > before.framesFromClient
        assert after.framesToClient > before.framesToClient
        assert 10_000 < after.bytesFromClient - before.bytesFromClient < 12_000
        assert 0 < after.bytesToClient - before.bytesToClient < 1_000
        assert id_of(mine) != id_of(after)


async def test_high_values_of_receivers_and_bindings_are_those_between_two_looks() -> None:
    async with managed(queues=["jobs"]) as (broker, client), aio.Connection(broker.url) as connection:
        session = await connection.session()
        receivers = [await session.receiver("jobs") for _ in range(2)]
        for receiver in receivers:
            await receiver.close()
        (it,) = await client.objects(remote.Broker)
        await it.create("binding", "amq.direct/jobs/k", {}, False)
        await it.delete("binding", "amq.direct/jobs/k", {})
        jobs = (await queues(client))["jobs"]
        assert (jobs.consumerCount.value, jobs.consumerCount.high) == (0, 2)
        assert (jobs.bindingCount.value, jobs.bindingCount.high) == (1, 2)


async def transactions(client: Client, queue: str) -> tuple[int, int, int, int]:
    """Started, committed, rolled back, open: those of the session that sends to a queue."""
    reference = (await incoming(client, queue)).sessionRef
    (found,) = [item for item in await client.objects(remote.Session) if id_of(item) == reference]
    return found.TxnStarts, found.TxnCommits, found.TxnRejects, found.TxnCount


async def test_transactions_of_a_session_are_counted() -> None:
    async with managed(queues=["jobs"]) as (broker, client), aio.Connection(broker.url) as connection:
        session = await connection.session(transactional=True)
        sender = await session.sender("jobs")
        await sender.send(Message("1"))
        await session.commit()
        await sender.send(Message("2"))
        await session.rollback()
        await sender.send(Message("3"))
        started, committed, rolled_back, open_now = await transactions(client, "jobs")
        assert (committed, rolled_back) == (1, 1)
        assert started == committed + rolled_back + open_now
        assert await incoming(client, "txn-ctrl")
        jobs = (await queues(client))["jobs"]
        assert (jobs.msgTxnEnqueues, jobs.msgDepth) == (1, 1)


async def test_a_session_is_ended() -> None:
    async with managed(queues=["jobs"]) as (broker, client), aio.Connection(broker.url, reconnect=False) as connection:
        session, other = await connection.session(), await connection.session()
        sender = await session.sender("jobs")
        await session.receiver("jobs")
        reference = (await incoming(client, "jobs")).sessionRef
        (found,) = [item for item in await client.objects(remote.Session) if id_of(item) == reference]
        await found.detach()
        with pytest.raises(MessagingError, match="ended by management"):
            await sender.send(Message("x"), timeout=30)
        assert (await queues(client))["jobs"].consumerCount.value == 0
        assert id_of(found) not in {id_of(item) for item in await client.objects(remote.Session)}
        remaining = await other.sender("jobs")
        await remaining.send(Message("the connection is usable"), timeout=30)


@pytest.mark.parametrize("method", ["solicitAck", "resetLifespan", "close"])
async def test_methods_of_sessions_that_qpidd_has_not_are_refused_likewise(method: str) -> None:
    async with managed() as (_, client):
        (session,) = await client.objects(remote.Session)
        with pytest.raises(RemoteError, match=f"NotImplemented: Session.{method}") as caught:
            await getattr(session, method)()
        assert caught.value.code == ErrorCode.NOT_IMPLEMENTED


async def test_links_of_consoles_and_agents_have_the_marks_of_their_own() -> None:
    async with managed() as (broker, client), connected(broker.url) as bus:
        await bus.subscribe(Binding(TOPIC, "k"), Inbox())
        names = [item.name for item in await client.objects(remote.Incoming)]
        names += [item.name for item in await client.objects(remote.Outgoing)]
        assert len(names) > 2
        assert all(map(is_own_name, names))
