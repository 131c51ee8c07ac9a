"""The methods of a broker on this one, and on the qpidd that QMF_TEST_QPIDD names: the same codes, the same texts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
from broker.management.managed import id_of
from support.managed_brokers import NAMES, managed_broker, unique
from support.waiting import until

from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.models.broker import console as remote
from qmf.protocol import ErrorCode

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("name", NAMES)]


@attrs.frozen
class Managed:
    """A broker with a queue, which other tests don't use.

    Attributes:
        url: of the broker.
        client: a console.
        it: the broker's object.
        queue: name of the queue.
    """

    url: str
    client: Client
    it: remote.Broker
    queue: str

    async def queue_object(self, name: str = "") -> remote.Queue:
        (found,) = [item for item in await self.client.objects(remote.Queue) if item.name == (name or self.queue)]
        return found


@asynccontextmanager
async def managed(name: str) -> AsyncIterator[Managed]:
    with managed_broker(name) as url:
        async with Client(url, settle=0.0) as client:
            await client.locate(settle=0.0)
            await until(lambda: client.agents, "the agent of the broker")
            (it,) = await client.objects(remote.Broker)
            queue = unique("like")
            await it.create("queue", queue, {}, False)
            try:
                yield Managed(url, client, it, queue)
            finally:
                await it.delete("queue", queue, {})


#: What is called with the broker's object and the name of its queue; the code and the beginning of the text that are
#: answered. qpidd sends no reason with its own codes; this broker does.
REFUSED: dict[str, tuple[Callable[[remote.Broker, str], Awaitable[Any]], int, str]] = {
    "a queue that exists": (
        lambda it, queue: it.create("queue", queue, {}, False),
        ErrorCode.EXCEPTION,
        "object already exists: {queue}",
    ),
    "an exchange that exists": (
        lambda it, _: it.create("exchange", "amq.topic", {"exchange-type": "topic"}, False),
        ErrorCode.EXCEPTION,
        "object already exists: amq.topic",
    ),
    "a type of exchanges": (
        lambda it, _: it.create("exchange", "x", {"exchange-type": "lamp"}, False),
        ErrorCode.EXCEPTION,
        "Invalid exchange type: lamp",
    ),
    "a type of objects": (
        lambda it, _: it.create("lamp", "x", {}, False),
        ErrorCode.EXCEPTION,
        "unknown object type: lamp",
    ),
    "a type of objects to delete": (
        lambda it, _: it.delete("lamp", "x", {}),
        ErrorCode.EXCEPTION,
        "unknown object type: lamp",
    ),
    "a name of a binding": (
        lambda it, _: it.create("binding", "a/b/c/d", {}, False),
        ErrorCode.EXCEPTION,
        "invalid binding: a/b/c/d",
    ),
    "a binding to the default exchange": (
        lambda it, queue: it.create("binding", queue, {}, False),
        ErrorCode.EXCEPTION,
        "invalid-argument: Bind not allowed for default exchange",
    ),
    "a binding of no queue": (
        lambda it, _: it.create("binding", "amq.direct/none/k", {}, False),
        ErrorCode.EXCEPTION,
        "not-found: Bind failed. No such queue: none",
    ),
    "the end of a binding of no queue": (
        lambda it, _: it.delete("binding", "amq.direct/none/k", {}),
        ErrorCode.EXCEPTION,
        "not-found: Unbind failed. No such queue: none",
    ),
    "an alternate exchange": (
        lambda it, _: it.create("queue", "x", {"alternate-exchange": "none"}, False),
        ErrorCode.EXCEPTION,
        "not-found: Exchange not found: none",
    ),
    "no queue to delete": (
        lambda it, _: it.delete("queue", "none", {}),
        ErrorCode.EXCEPTION,
        "not-found: Delete failed. No such queue: none",
    ),
    "no exchange to delete": (
        lambda it, _: it.delete("exchange", "none", {}),
        ErrorCode.EXCEPTION,
        "not-found: Exchange not found: none",
    ),
    "an exchange that stays": (
        lambda it, _: it.delete("exchange", "amq.topic", {}),
        ErrorCode.EXCEPTION,
        "not-allowed: Cannot delete default exchange: 'amq.topic'",
    ),
    "the default exchange": (
        lambda it, _: it.delete("exchange", "", {}),
        ErrorCode.EXCEPTION,
        "invalid-argument: Delete not allowed for default exchange",
    ),
    "a binding without a name": (
        lambda it, _: it.create("binding", "", {}, False),
        ErrorCode.EXCEPTION,
        "invalid binding: ",
    ),
    "last values and priorities": (
        lambda it, _: it.create("queue", "x", {"qpid.last_value_queue_key": "k", "qpid.priorities": 3}, False),
        ErrorCode.EXCEPTION,
        "invalid-argument: Cannot specify qpid.last_value_queue_key and qpid.priorities for the same queue",
    ),
    "a query of no queue": (lambda it, _: it.query("queue", "none"), ErrorCode.UNKNOWN_OBJECT, "UnknownObject"),
    "a query of an exchange": (
        lambda it, _: it.query("exchange", "amq.topic"),
        ErrorCode.NOT_IMPLEMENTED,
        "NotImplemented",
    ),
    "a query of anything": (lambda it, _: it.query("lamp", "x"), ErrorCode.EXCEPTION, "unknown object type: lamp"),
    "a move from no queue": (
        lambda it, queue: it.queueMoveMessages("none", queue, 0, {}),
        ErrorCode.INVALID_PARAMETER,
        "InvalidParameter",
    ),
    "a move to no queue": (
        lambda it, queue: it.queueMoveMessages(queue, "none", 0, {}),
        ErrorCode.INVALID_PARAMETER,
        "InvalidParameter",
    ),
    "a redirection of no queue": (
        lambda it, queue: it.queueRedirect("none", queue),
        ErrorCode.UNKNOWN_OBJECT,
        "UnknownObject",
    ),
    "a redirection to no queue": (
        lambda it, queue: it.queueRedirect(queue, "none"),
        ErrorCode.UNKNOWN_OBJECT,
        "UnknownObject",
    ),
    "a redirection to itself": (lambda it, queue: it.queueRedirect(queue, queue), ErrorCode.METHOD, ""),
    "the end of no redirection": (lambda it, queue: it.queueRedirect(queue, ""), ErrorCode.METHOD, ""),
}


async def test_what_cannot_be_done_is_refused_likewise(name: str) -> None:
    async with managed(name) as broker:
        for what, (call, code, text) in REFUSED.items():
            with pytest.raises(RemoteError) as caught:
                await call(broker.it, broker.queue)
            assert caught.value.code == code, what
            assert caught.value.text.startswith(text.format(queue=broker.queue)), what


async def test_a_queue_is_rerouted_to_exchanges_that_exist(name: str) -> None:
    async with managed(name) as broker:
        queue = await broker.queue_object()
        for alternate, exchange in ((True, ""), (False, "none")):
            with pytest.raises(RemoteError) as caught:
                await queue.reroute(0, alternate, exchange, {})
            assert caught.value.code == ErrorCode.INVALID_PARAMETER
            assert caught.value.text.startswith("InvalidParameter")


async def test_every_property_of_a_queue_is_taken(name: str) -> None:
    properties = {
        "auto-delete": False,
        "alternate-exchange": "amq.fanout",
        "qpid.replicate": "none",
        "qpid.max_count": 10,
        "qpid.max_size": 1000,
        "qpid.policy_type": "ring",
        "qpid.alert_count": 5,
        "qpid.alert_repeat_gap": 1,
        "qpid.file_count": 8,
        "qpid.file_size": 24,
        "qpid.trace.id": "x",
        "qpid.trace.exclude": "y",
        "no-local": True,
        "qpid.persist_last_node": 1,
        "qpid.queue_event_generation": 1,
        "qpid.lifetime-policy": "manual",
    }
    other = unique("like")
    async with managed(name) as broker:
        await broker.it.create("queue", other, properties, True)
        found = await broker.queue_object(other)
        kept = {key: found.arguments[key] for key in ("qpid.max_count", "qpid.policy_type")}
        assert kept == {"qpid.max_count": 10, "qpid.policy_type": "ring"}
        assert found.altExchange is not None
        await broker.it.delete("queue", other, {"if_empty": True, "if_unused": True})


async def test_queues_are_redirected(name: str) -> None:
    other = unique("like")
    async with managed(name) as broker:
        await broker.it.create("queue", other, {}, False)
        try:
            await broker.it.queueRedirect(broker.queue, other)
            one, two = await broker.queue_object(), await broker.queue_object(other)
            assert (one.redirectPeer, one.redirectSource) == (other, True)
            assert (two.redirectPeer, two.redirectSource) == (broker.queue, False)
            for refused in ((broker.queue, other), (other, "")):
                with pytest.raises(RemoteError) as caught:
                    await broker.it.queueRedirect(*refused)
                assert caught.value.code == ErrorCode.METHOD
            await broker.it.queueRedirect(broker.queue, "")
            assert (await broker.queue_object()).redirectPeer == ""
        finally:
            await broker.it.delete("queue", other, {})


async def test_the_configuration_of_timestamps_is_changed(name: str) -> None:
    async with managed(name) as broker:
        before = (await broker.it.getTimestampConfig()).receive
        try:
            for wanted in (True, False):
                await broker.it.setTimestampConfig(wanted)
                assert (await broker.it.getTimestampConfig()).receive is wanted
        finally:
            await broker.it.setTimestampConfig(before)


async def test_links_and_sessions_are_shown_and_ended(name: str) -> None:
    async with managed(name) as broker, aio.Connection(broker.url, reconnect=False) as connection:
        await (await connection.session()).sender(broker.queue)
        (link,) = [item for item in await broker.client.objects(remote.Incoming) if item.target == broker.queue]
        (session,) = [item for item in await broker.client.objects(remote.Session) if id_of(item) == link.sessionRef]
        (peer,) = [
            item for item in await broker.client.objects(remote.Connection) if id_of(item) == session.connectionRef
        ]
        assert peer.remoteProperties["container-id"] == link.containerid
        assert (session.attached, session.fullName) == (True, session.name)
        for method in (session.solicitAck, session.resetLifespan, session.close):
            with pytest.raises(RemoteError, match="NotImplemented") as caught:
                await method()
            assert caught.value.code == ErrorCode.NOT_IMPLEMENTED
        await session.detach()

        async def sessions() -> set[object]:
            return {id_of(item) for item in await broker.client.objects(remote.Session)}

        await _until_gone(sessions, id_of(session))
        await peer.close()

        async def connections() -> set[object]:
            return {id_of(item) for item in await broker.client.objects(remote.Connection)}

        await _until_gone(connections, id_of(peer))


async def _until_gone(objects: Callable[[], Awaitable[set[object]]], gone: object) -> None:
    """Ask until an object is not there any more."""
    async with asyncio.timeout(30):
        while gone in await objects():
            continue


async def test_what_consoles_see_of_the_machine(name: str) -> None:
    async with managed(name) as broker:
        (system,) = await broker.client.objects(remote.System)
        (vhost,) = await broker.client.objects(remote.Vhost)
        (memory,) = await broker.client.objects(remote.Memory)
        assert broker.it.systemRef == id_of(system)
        assert vhost.federationTag
        assert memory.name == "amqp-broker"
        assert broker.it.stagingThreshold == 0
