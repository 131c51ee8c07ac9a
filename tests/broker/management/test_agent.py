"""The broker's own agent."""

from __future__ import annotations

import asyncio

import pytest
from broker.management.managed import NEVER, OFTEN, TOPIC, connected, knows_agent, managed
from bus.certificates import server_tls, trusting
from support.recording import message
from support.waiting import until

from qmf.broker import Broker, EmbeddedBroker
from qmf.bus import AmqpBus
from qmf.console.aio import AgentRemoved, Client, ObjectUpdated, Removal
from qmf.models.broker import console as remote


async def test_the_agent_does_not_count_as_a_client() -> None:
    async with Broker(port=0, management=NEVER) as broker:
        assert (broker.connections, broker.counters.connections) == (0, 0)


async def test_by_default_a_broker_has_no_agent() -> None:
    async with Broker(port=0) as broker, Client(broker.url, settle=0.0) as client:
        assert await client.locate(settle=0.05) == []
        assert broker.connections == 1


@pytest.mark.slow
async def test_changes_are_published() -> None:
    async with managed(OFTEN) as (broker, client):
        notifications: list[ObjectUpdated] = []
        client.listen(lambda item: notifications.append(item) if isinstance(item, ObjectUpdated) else None)

        def published(name: str) -> list[ObjectUpdated]:
            return [item for item in notifications if item.object.class_key and item.object.class_key.name == name]

        async with connected(broker.url) as bus:
            await bus.send(message(TOPIC, "k"), confirm=True)
            await until(lambda: len(published("connection")) > 0, "the new connection")
            await until(lambda: len(published("exchange")) > 0, "the exchange")
            await until(lambda: len(published("broker")) > 1, "the broker's uptime, again")
        await until(
            lambda: any(item.object.is_deleted for item in published("connection")), "the end of the connection"
        )


@pytest.mark.slow
async def test_followed_objects_have_current_statistics() -> None:
    """At intervals of the subscription, while the agent publishes nothing."""
    async with (
        managed(queues=["jobs"]) as (broker, client),
        connected(broker.url) as bus,
        client.follow(remote.Queue, where={"name": "jobs"}, interval=1) as jobs,
    ):
        await until(lambda: [item.msgDepth for item in jobs] == [0], "the queue")
        await bus.send(message("jobs", None), confirm=True)
        await until(lambda: [item.msgDepth for item in jobs] == [1], "the message")


async def test_with_users() -> None:
    async with Broker(port=0, users={"guest": "secret"}, management=NEVER) as broker:
        url = f"amqp://guest:secret@127.0.0.1:{broker.port}"
        async with Client(url, settle=0.0) as client:
            await knows_agent(client)
            (connection,) = await client.objects(remote.Connection)
            assert (connection.saslMechanism, connection.authIdentity) == ("SCRAM-SHA-512", "guest")
            assert {item.creator for item in await client.objects(remote.Queue)} == {"guest", ""}


async def test_over_tls() -> None:
    async with (
        Broker(port=0, ssl_context=server_tls(), management=NEVER) as broker,
        Client(AmqpBus(broker.url, ssl_context=trusting()), settle=0.0) as client,
    ):
        await knows_agent(client)
        assert len(await client.objects(remote.Connection)) == 1


async def test_closing_signs_off_from_consoles_and_leaves_nothing() -> None:
    broker = Broker(port=0, management=OFTEN)
    await broker.start()
    async with Client(broker.url, settle=0.0) as client:
        await knows_agent(client)
        removed: list[AgentRemoved] = []
        client.listen(lambda item: removed.append(item) if isinstance(item, AgentRemoved) else None)
        await broker.close()
        await until(lambda: removed, "the agent's sign-off")
        assert removed[0].reason is Removal.GOODBYE
    await broker.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.slow
async def test_in_a_thread() -> None:
    with EmbeddedBroker(management=NEVER, name="mine") as broker:
        async with Client(broker.url, settle=0.0) as client:
            await knows_agent(client)
            assert [agent.name for agent in client.agents] == ["qmf:broker:mine"]
