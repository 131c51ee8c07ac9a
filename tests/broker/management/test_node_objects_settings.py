"""Queues and exchanges with settings, as consoles create and see them."""

from __future__ import annotations

from typing import Any

import pytest
from broker.management.managed import OFTEN, exchange, id_of, managed, queues
from support.waiting import until

from qmf.console.aio import Client, EventRaised
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.message import Message
from qmf.models.broker import console as remote


async def broker_object(client: Client) -> remote.Broker:
    (it,) = await client.objects(remote.Broker)
    return it


async def send(url: str, address: str, *contents: str, **properties: object) -> None:
    async with aio.Connection(url) as connection:
        sender = await (await connection.session()).sender(address)
        for content in contents:
            await sender.send(Message(content, properties=properties), timeout=30)


async def test_settings_and_alternate_exchanges_are_shown() -> None:
    async with managed() as (_, client):
        it = await broker_object(client)
        await it.create("exchange", "dead", {"exchange-type": "fanout", "auto-delete": True}, True)
        await it.create("exchange", "news", {"alternate-exchange": "dead", "qpid.ive": 1}, True)
        arguments = {"qpid.max_count": 5, "qpid.policy_type": "ring", "unknown": "kept"}
        await it.create("queue", "jobs", {**arguments, "alternate-exchange": "dead", "auto-delete": True}, False)
        dead, news, jobs = (
            await exchange(client, "dead"),
            await exchange(client, "news"),
            (await queues(client))["jobs"],
        )
        assert (dead.type, dead.autoDelete, dead.altExchange) == ("fanout", True, None)
        assert (news.type, news.arguments, news.altExchange) == ("topic", {"qpid.ive": 1}, id_of(dead))
        assert (jobs.arguments, jobs.autoDelete, jobs.altExchange) == (arguments, True, id_of(dead))
        with pytest.raises(RemoteError, match="not-allowed: Cannot delete dead, in use as alternate-exchange"):
            await it.delete("exchange", "dead", {})
        await it.delete("exchange", "news", {})
        await it.delete("queue", "jobs", {})
        assert "dead" not in {item.name for item in await client.objects(remote.Exchange)}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("queue", "x", {"alternate-exchange": "nowhere"}), "not-found: Exchange not found: nowhere"),
        (("exchange", "x", {"alternate-exchange": "nowhere"}), "not-found: Exchange not found: nowhere"),
        (("queue", "x", {"qpid.fairshare": 2}), "invalid-argument: Cannot specify fairshare settings"),
        (("queue", "x", {"qpid.policy_type": "flow-to-disk"}), "flow-to-disk needs a data directory"),
        (("binding", "amq.match/jobs/k", {"x-match": "some"}), "internal-error: Invalid or missing x-match value"),
    ],
)
async def test_what_cannot_be_is_refused(arguments: tuple[Any, ...], error: str) -> None:
    async with managed(queues=["jobs"]) as (_, client):
        with pytest.raises(RemoteError, match=error):
            await (await broker_object(client)).create(arguments[0], arguments[1], arguments[2], True)


async def test_messages_are_rerouted_to_the_alternate_exchange() -> None:
    async with managed(queues=["left"]) as (broker, client):
        it = await broker_object(client)
        await it.create("queue", "jobs", {"alternate-exchange": "amq.fanout"}, True)
        await it.create("binding", "amq.fanout/left", {}, False)
        await send(broker.url, "jobs", "a", "b", "c")
        jobs = (await queues(client))["jobs"]
        await jobs.reroute(2, True, "", {})
        found = await queues(client)
        assert (found["jobs"].msgDepth, found["jobs"].reroutes, found["left"].msgDepth) == (1, 2, 2)
        await it.delete("queue", "jobs", {})
        assert (await queues(client))["left"].msgDepth == 3
        it = await broker_object(client)
        assert (it.abandonedViaAlt, it.abandoned) == (1, 0)


async def test_queues_are_redirected() -> None:
    async with managed(queues=["one", "two"]) as (broker, client):
        it = await broker_object(client)
        await it.create("queue", "short", {"auto-delete": True}, True)
        for source, target, error in (
            ("one", "one", "'one' cannot be its own target"),
            ("one", "none", "UnknownObject"),
            ("none", "one", "UnknownObject"),
            ("one", "short", "'short' deletes itself"),
            ("one", "", "'one' is not the source of a redirection"),
        ):
            with pytest.raises(RemoteError, match=error):
                await it.queueRedirect(source, target)
        await it.queueRedirect("one", "two")
        with pytest.raises(RemoteError, match="'one' is redirected already"):
            await it.queueRedirect("one", "two")
        await send(broker.url, "one", "a", "b")
        found = await queues(client)
        assert [(q.msgDepth, q.redirectPeer, q.redirectSource) for q in (found["one"], found["two"])] == [
            (0, "two", True),
            (2, "one", False),
        ]
        await it.queueRedirect("one", "")
        found = await queues(client)
        assert [(q.msgDepth, q.redirectPeer) for q in (found["one"], found["two"])] == [(2, ""), (0, "")]
        await it.queueRedirect("one", "two")
        await it.delete("queue", "two", {})
        assert (await queues(client))["one"].redirectPeer == ""


async def test_groups_are_told_by_a_query() -> None:
    async with managed() as (broker, client):
        it = await broker_object(client)
        settings = {"qpid.group_header_key": "g", "qpid.shared_msg_group": 1, "qpid.group_timestamp": True}
        await it.create("queue", "jobs", settings, True)
        await send(broker.url, "jobs", "1", "2", g="a")
        results: Any = (await it.query("queue", "jobs")).results["qpid.message_group_queue"]
        (group,) = results["group_state"]
        assert results["group_header_key"] == "g"
        assert (group["group_id"], group["msg_count"], group["consumer"]) == ("a", 2, "")
        assert group["timestamp"] > 1_600_000_000


async def test_thresholds_and_redirections_raise_events() -> None:
    async with managed(OFTEN, queues=["two"]) as (broker, client):
        raised: dict[str, dict[str, object]] = {}

        def listen(notification: object) -> None:
            if isinstance(notification, EventRaised) and notification.event.class_key is not None:
                arguments = dict(notification.event.arguments)
                if arguments.get("qName") == "jobs":
                    raised[notification.event.class_key.name] = arguments

        client.listen(listen)
        it = await broker_object(client)
        await it.create("queue", "jobs", {"qpid.max_count": 5}, True)
        await send(broker.url, "jobs", *"abcd")
        await until(lambda: "queueThresholdExceeded" in raised, lambda: f"the events: {raised}")
        await (await queues(client))["jobs"].purge(0, {})
        await it.queueRedirect("jobs", "two")
        await it.queueRedirect("jobs", "")
        wanted = {"queueThresholdCrossedDownward", "queueRedirect", "queueRedirectCancelled"}
        await until(lambda: wanted <= raised.keys(), lambda: f"the events: {raised}")
        assert raised["queueThresholdExceeded"] == raised["queueThresholdCrossedUpward"]
        assert raised["queueThresholdCrossedUpward"]["msgDepth"] == 4
        assert raised["queueThresholdCrossedDownward"]["msgDepth"] == 2
        assert raised["queueRedirect"] == raised["queueRedirectCancelled"] == {"qName": "jobs", "qTarget": "two"}
