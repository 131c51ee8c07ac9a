"""What consoles change in the broker by calling its methods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from broker.management.managed import NEVER, OFTEN, connected, exchange, id_of, knows_agent, managed, queues
from support.recording import message
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.management.administration import Administration, message_filter
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, OnStored
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.store.journal import Journal
from qmf.bus import AmqpBus
from qmf.console.aio import Client, EventRaised
from qmf.errors import DecodeError, RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import LinkClosed, MessagingError
from qmf.messaging.message import Message
from qmf.models.broker import console as remote

FILTER = {"filter_type": "header_match_str", "filter_params": {"header_key": "colour", "header_value": "red"}}


async def broker_object(client: Client) -> remote.Broker:
    (it,) = await client.objects(remote.Broker)
    return it


async def bindings(client: Client, queue: remote.Queue) -> set[str]:
    return {item.bindingKey for item in await client.objects(remote.Binding) if item.queueRef == id_of(queue)}


async def fill(broker: Broker, name: str) -> None:
    """Four messages, two of them red."""
    async with aio.Connection(broker.url) as connection:
        sender = await (await connection.session()).sender(name)
        for number, colour in enumerate(("red", "blue", "red", "blue")):
            await sender.send(Message(str(number), properties={"colour": colour}))


@pytest.mark.parametrize("method", ["create", "delete"])
async def test_what_is_durable_is_answered_when_the_disk_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    held: list[tuple[OnStored, NotStored | None]] = []
    close_unit = Journal.close_unit

    def hold(journal: Journal, on_stored: OnStored | None) -> bool:
        return close_unit(journal, None if on_stored is None else lambda error: held.append((on_stored, error)))

    async with managed(data_dir=tmp_path) as (_, client):
        it = await broker_object(client)
        if method == "delete":
            await it.create("queue", "jobs", {"durable": True}, True)
        monkeypatch.setattr(Journal, "close_unit", hold)
        call = (
            it.create("queue", "jobs", {"durable": True}, True)
            if method == "create"
            else it.delete("queue", "jobs", {})
        )
        answered = asyncio.ensure_future(call)
        await until(lambda: held, "a unit of the store")
        assert not answered.done()
        (on_stored, error) = held.pop()
        on_stored(error)
        await answered


async def test_a_queue_is_created_bound_and_deleted() -> None:
    async with managed() as (broker, client), connected(broker.url) as bus:
        it = await broker_object(client)
        before = (await exchange(client, "amq.direct")).bindingCount.value
        settings = {"qpid.max_count": 3, "qpid.policy_type": "ring", "auto-delete": False}
        await it.create("queue", "jobs", settings, True)
        jobs = (await queues(client))["jobs"]
        assert {name: jobs.arguments[name] for name in ("qpid.max_count", "qpid.policy_type")} == {
            "qpid.max_count": 3,
            "qpid.policy_type": "ring",
        }
        for key in ("one", "two"):
            await it.create("binding", f"amq.direct/jobs/{key}", {}, False)
        assert await bindings(client, jobs) == {"jobs", "one", "two"}
        for key in ("one", "two", "three"):
            await bus.send(message("amq.direct", key), confirm=True)
        await it.delete("binding", "amq.direct/jobs/one", {})
        await bus.send(message("amq.direct", "one"), confirm=True)
        jobs = (await queues(client))["jobs"]
        assert (jobs.msgDepth, jobs.bindingCount.value) == (2, 2)
        assert (await exchange(client, "amq.direct")).bindingCount.value == before + 1
        with pytest.raises(RemoteError, match="precondition-failed: Cannot delete queue jobs; queue not empty"):
            await it.delete("queue", "jobs", {"if_empty": True})
        await it.delete("queue", "jobs", {})
        assert "jobs" not in await queues(client)


@pytest.mark.parametrize("type", ["exchange", "topic"])
async def test_an_exchange_is_created_and_deleted(type: str) -> None:
    async with managed() as (_, client):
        it = await broker_object(client)
        await it.create(type, "news", {"exchange-type": "fanout"}, False)
        assert (await exchange(client, "news")).type == "fanout"
        await it.delete(type, "news", {})
        assert "news" not in {item.name for item in await client.objects(remote.Exchange)}


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("create", ("queue", "jobs", {}, False), "object already exists: jobs"),
        ("create", ("exchange", "amq.topic", {}, False), "object already exists: amq.topic"),
        ("create", ("queue", "", {}, False), "the name is empty"),
        ("create", ("queue", "new", {"exchange-type": "topic"}, False), "exchange-type: a queue has none"),
        ("create", ("queue", "new", {"qpid.max_count": "many"}, False), "qpid.max_count: must be a number from 0"),
        ("create", ("queue", "new", {"colour": "red"}, True), "colour: unknown"),
        ("create", ("exchange", "new", {"exchange-type": "lamp"}, False), "Invalid exchange type: lamp"),
        ("create", ("lamp", "new", {}, False), "unknown object type: lamp"),
        ("create", ("binding", "a/b/c/d", {}, False), "invalid binding: a/b/c/d"),
        ("create", ("binding", "jobs", {}, False), "invalid-argument: Bind not allowed for default exchange"),
        ("create", ("binding", "amq.direct/none", {}, False), "not-found: Bind failed. No such queue: none"),
        ("create", ("binding", "none/jobs", {}, False), "not-found: Bind failed. No such exchange: none"),
        ("delete", ("queue", "none", {}), "not-found: Delete failed. No such queue: none"),
        ("delete", ("exchange", "none", {}), "not-found: Exchange not found: none"),
        ("delete", ("exchange", "", {}), "invalid-argument: Delete not allowed for default exchange"),
        ("delete", ("exchange", "amq.topic", {}), "not-allowed: Cannot delete default exchange: 'amq.topic'"),
        ("delete", ("lamp", "x", {}), "unknown object type: lamp"),
        ("query", ("queue", "none"), "UnknownObject"),
        ("query", ("exchange", "amq.topic"), "NotImplemented"),
        ("queueMoveMessages", ("jobs", "none", 0, {}), "no queue 'none'"),
        ("queueMoveMessages", ("none", "jobs", 0, {}), "no queue 'none'"),
        ("queueMoveMessages", ("jobs", "jobs", 0, {"filter_type": "x"}), "Unrecognized message filter"),
    ],
)
async def test_what_cannot_be_done_is_refused(method: str, arguments: tuple[Any, ...], error: str) -> None:
    async with managed(queues=["jobs"]) as (_, client):
        it = await broker_object(client)
        before = {item.name for item in await client.objects(remote.Queue)}
        with pytest.raises(RemoteError) as caught:
            await getattr(it, method)(*arguments)
        assert error in str(caught.value)
        assert {item.name for item in await client.objects(remote.Queue)} == before


async def test_a_binding_with_the_same_key_and_other_arguments_is_refused() -> None:
    async with managed(queues=["jobs"]) as (_, client):
        it = await broker_object(client)
        for _ in range(2):
            await it.create("binding", "amq.match/jobs/k", {"colour": "red"}, False)
        with pytest.raises(RemoteError, match=r"not-allowed: Bind failed\. .* key 'k' and other arguments"):
            await it.create("binding", "amq.match/jobs/k", {"colour": "blue"}, False)


async def test_an_unknown_setting_is_ignored_unless_strict() -> None:
    async with managed() as (_, client):
        await (await broker_object(client)).create("queue", "jobs", {"colour": "red"}, False)
        assert "jobs" in await queues(client)


@pytest.mark.parametrize(("filter", "taken"), [({}, 4), (FILTER, 2)])
async def test_messages_are_moved(filter: Mapping[str, object], taken: int) -> None:
    async with managed(queues=["one", "two"]) as (broker, client):
        await fill(broker, "one")
        it = await broker_object(client)
        assert (await it.query("queue", "one")).results["msgDepth"] == 4
        await it.queueMoveMessages("one", "two", 0, filter)
        found = await queues(client)
        assert (found["one"].msgDepth, found["two"].msgDepth) == (4 - taken, taken)
        await it.queueMoveMessages("two", "one", 1, {})
        assert (await it.query("queue", "two")).results["msgDepth"] == taken - 1


async def test_what_the_other_queue_refuses_stays() -> None:
    async with managed(queues=["one"]) as (broker, client):
        it = await broker_object(client)
        await it.create("queue", "small", {"qpid.max_count": 3}, True)
        await fill(broker, "one")
        await it.queueMoveMessages("one", "small", 0, {})
        found = await queues(client)
        assert (found["one"].msgDepth, found["small"].msgDepth, found["one"].releases) == (1, 3, 0)


async def test_messages_are_purged_and_rerouted_by_a_filter() -> None:
    async with managed(queues=["one", "two"]) as (broker, client):
        await fill(broker, "one")
        it = await broker_object(client)
        await it.create("binding", "amq.fanout/two", {}, False)
        one = (await queues(client))["one"]
        await one.reroute(1, False, "amq.fanout", FILTER)
        await one.purge(0, FILTER)
        found = await queues(client)
        assert (found["one"].msgDepth, found["one"].reroutes, found["one"].discardsPurge) == (2, 1, 1)
        assert found["two"].msgDepth == 1
        for alternate, error in ((True, "No alternate-exchange defined"), (False, "Exchange not found")):
            with pytest.raises(RemoteError, match=error):
                await one.reroute(0, alternate, "none", {})


async def test_links_of_a_deleted_node_are_detached() -> None:
    async with managed(queues=["jobs"]) as (broker, client), aio.Connection(broker.url) as connection:
        session = await connection.session()
        sender, receiver = await session.sender("jobs"), await session.receiver("jobs")
        it = await broker_object(client)
        with pytest.raises(RemoteError, match="queue in use"):
            await it.delete("queue", "jobs", {"if_unused": True})
        await it.delete("queue", "jobs", {})
        with pytest.raises(LinkClosed, match="'jobs' was deleted"):
            await receiver.fetch(timeout=10)
        with pytest.raises(MessagingError, match="'jobs' was deleted"):
            await sender.send("x", timeout=10)
        other = await session.sender("amq.topic")
        await other.send("the session is usable", timeout=10)


async def test_queues_of_consoles_and_agents_are_not_deleted() -> None:
    async with managed() as (_, client):
        it = await broker_object(client)
        used = [name for name, queue in (await queues(client)).items() if queue.consumerCount.value]
        assert used
        for name in used:
            with pytest.raises(RemoteError, match="resource-locked: Cannot delete queue"):
                await it.delete("queue", name, {})
            with pytest.raises(RemoteError, match="resource-locked: Cannot bind queue"):
                await it.create("binding", f"amq.topic/{name}/k", {}, False)
            with pytest.raises(RemoteError, match="resource-locked: Cannot unbind queue"):
                await it.delete("binding", f"qmf.default.topic/{name}/console.heartbeat", {})


async def test_changes_raise_events() -> None:
    async with managed(OFTEN) as (_, client):
        raised: dict[str, dict[str, object]] = {}

        def listen(notification: object) -> None:
            if isinstance(notification, EventRaised) and notification.event.class_key is not None:
                arguments = dict(notification.event.arguments)
                if arguments.get("qName") == "jobs":
                    raised[notification.event.class_key.name] = arguments

        client.listen(listen)
        it = await broker_object(client)
        await it.create("queue", "jobs", {}, False)
        await it.create("binding", "amq.direct/jobs/k", {}, False)
        await it.delete("binding", "amq.direct/jobs/k", {})
        await it.delete("queue", "jobs", {})
        await until(lambda: len(raised) == 4, lambda: f"the events: {raised}")
        assert set(raised) == {"queueDeclare", "bind", "unbind", "queueDelete"}


async def test_a_method_is_called_for_its_caller_whatever_container_id_others_have() -> None:
    users = {"alice": "secret", "bob": "secret"}
    async with Broker(port=0, management=NEVER, users=users) as broker:
        buses = [AmqpBus(broker.url.replace("://", f"://{user}:secret@"), container="same") for user in users]
        async with Client(buses[0], settle=0.0) as first, Client(buses[1], settle=0.0) as second:
            for client, name in ((first, "of alice"), (second, "of bob")):
                await knows_agent(client)
                await (await broker_object(client)).create("queue", name, {}, False)
            found = await queues(first)
            assert (found["of alice"].creator, found["of bob"].creator) == ("alice", "bob")


async def test_malformed_messages_match_no_filter_and_are_not_lost() -> None:
    registry = NodeRegistry(queues=["jobs"])
    queue = registry.find("jobs")
    assert isinstance(queue, Queue)
    data = bytearray(message("amq.topic", "k", "text", colour="red"))
    data[data.index(b"\x00\x53\x74") + 6] = 0x3F  # no type code, of the first key
    damaged = read_message(bytes(data), 0.0)
    with pytest.raises(DecodeError):
        _ = damaged.headers
    queue.enqueue(damaged)
    administration = Administration(Operations(registry))
    queue.contents.purge(0, message_filter(FILTER))
    administration.reroute(queue, 0, "amq.match", {})
    assert len(queue.contents) == 1
    administration.reroute(queue, 0, "amq.topic", {})
    assert len(queue.contents) == 0
