"""Who is denied something learns nothing of the names that exist: the errors for both are the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from broker.access.test_control import USERS, broker, control, session_of

from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.models.broker import console as remote

ALL = "acl allow all all\n"
#: What there is, and what is invented.
QUEUES, EXCHANGES = ("there", "wrong"), ("place", "wrong")
#: bob may do nothing with these.
DENIED = "".join(
    f"acl deny bob@QPID all all name={name}\nacl deny bob@QPID bind exchange queuename={name}\n"
    for name in ("there", "place", "wrong")
)
LINKS = (
    "receiver {queue}",
    "receiver {queue}; {{mode: browse}}",
    "receiver {queue}; {{create: always}}",
    "receiver {queue}; {{delete: always}}",
    "receiver {exchange}/key",
    "receiver {exchange}; {{link: {{name: news, durable: true}}}}",
    "receiver amq.topic; {{link: {{x-bindings: [{{exchange: amq.topic, queue: {queue}, key: a}}]}}}}",
    "sender {queue}",
    "sender {queue}; {{create: always}}",
    "sender {queue}; {{delete: always}}",
    "sender {exchange}/key",
    "sender q; {{node: {{x-bindings: [{{exchange: {exchange}, queue: q, key: a}}]}}}}",
)
#: Methods of the broker's object, with their arguments.
METHODS: dict[str, Callable[[remote.Broker, str, str], Awaitable[object]]] = {
    "delete queue": lambda managed, queue, _: managed.delete("queue", queue, {}),
    "delete exchange": lambda managed, _, exchange: managed.delete("exchange", exchange, {}),
    "bind": lambda managed, _, exchange: managed.create("binding", f"{exchange}/q/a", {}, strict=True),
    "bind a queue": lambda managed, queue, _: managed.create("binding", f"amq.topic/{queue}/a", {}, strict=True),
    "unbind": lambda managed, _, exchange: managed.delete("binding", f"{exchange}/q/a", {}),
    "query": lambda managed, queue, _: managed.query("queue", queue),
    "move": lambda managed, queue, _: managed.queueMoveMessages(queue, "q", 0, {}),
    "redirect": lambda managed, queue, _: managed.queueRedirect(queue, "q"),
    "end of a redirection": lambda managed, queue, _: managed.queueRedirect(queue, ""),
}


async def prepare(session: aio.Session) -> None:
    await session.sender("there; {create: always}")
    await session.sender("place; {create: always, node: {type: topic}}")


def neutral(error: Exception, at: int) -> str:
    """An error without the names, of which the first ones exist, and the second ones don't."""
    text = str(error).replace(repr(QUEUES[at]), "NAME").replace(repr(EXCHANGES[at]), "NAME")
    return f"{type(error).__name__}: {text}"


async def test_links(tmp_path: Path) -> None:
    async with (
        broker(control(tmp_path, DENIED + ALL)) as made,
        session_of(made, "ann") as owner,
        session_of(made, "bob") as session,
    ):
        await prepare(owner)
        for what in LINKS:
            found = []
            for at in (0, 1):
                kind, _, address = what.format(queue=QUEUES[at], exchange=EXCHANGES[at]).partition(" ")
                with pytest.raises(MessagingError) as caught:
                    await (session.receiver(address) if kind == "receiver" else session.sender(address))
                found.append(neutral(caught.value, at))
            assert found[0] == found[1], what
            assert "the ACL denies it" in found[0], what


async def test_methods(tmp_path: Path) -> None:
    async with (
        broker(control(tmp_path, DENIED + ALL), 3600.0) as made,
        session_of(made, "ann") as owner,
        Client(f"amqp://bob:{USERS['bob']}@127.0.0.1:{made.port}", settle=0.0) as client,
    ):
        await prepare(owner)
        (managed,) = await client.objects(remote.Broker)
        for name, call in METHODS.items():
            found = []
            for at in (0, 1):
                with pytest.raises(RemoteError) as caught:
                    await call(managed, QUEUES[at], EXCHANGES[at])
                found.append(neutral(caught.value, at))
            assert found[0] == found[1], name
            assert "the ACL denies it" in found[0], name


async def test_methods_and_queries_of_objects(tmp_path: Path) -> None:
    """The ids of objects are made of their names."""
    denied = "acl deny bob@QPID purge queue name=there\nacl deny bob@QPID access method name=reroute\n"
    async with (
        broker(control(tmp_path, denied + ALL), 3600.0) as made,
        session_of(made, "ann") as owner,
        Client(f"amqp://bob:{USERS['bob']}@127.0.0.1:{made.port}", settle=0.0) as client,
    ):
        await prepare(owner)
        (queue,) = [item for item in await client.objects(remote.Queue) if item.name == "there"]

        async def refusals() -> list[str]:
            errors = []
            for call in (queue.purge(0, {}), queue.reroute(0, useAltExchange=True, exchange="", filter={})):
                with pytest.raises(RemoteError, match="the ACL denies it") as caught:
                    await call
                errors.append(str(caught.value))
            return errors

        while_it_is_there = await refusals()
        await (await owner.receiver("there; {delete: always}")).close()
        assert await refusals() == while_it_is_there


async def test_links_for_routes(tmp_path: Path) -> None:
    """Creating one that is there has no effect, and does not show that to those who may create none."""
    async with (
        broker(control(tmp_path, "acl deny bob@QPID create link\n" + ALL), 3600.0) as made,
        Client(f"amqp://ann:{USERS['ann']}@127.0.0.1:{made.port}", settle=0.0) as owner,
        Client(f"amqp://bob:{USERS['bob']}@127.0.0.1:{made.port}", settle=0.0) as client,
    ):
        (managed,) = await owner.objects(remote.Broker)
        await managed.connect("127.0.0.1", 1, False, "", "", "", "")
        (link,) = await owner.objects(remote.Link)
        await link.bridge(False, "amq.topic", "amq.topic", "there", "", "", False, False, False, 0, 0)
        await managed.connect("127.0.0.1", 1, False, "", "", "", "")
        (denied,) = await client.objects(remote.Broker)
        (denied_link,) = await client.objects(remote.Link)
        for port in (1, 2):
            with pytest.raises(RemoteError, match=f"may not create link 'qpid.tcp:127.0.0.1:{port}'"):
                await denied.connect("127.0.0.1", port, False, "", "", "", "")
        for key in ("there", "wrong"):
            with pytest.raises(RemoteError, match=f"may not create link 'tcp:127.0.0.1:1!amq.topic!amq.topic!{key}'"):
                await denied_link.bridge(False, "amq.topic", "amq.topic", key, "", "", False, False, False, 0, 0)


async def test_a_node_of_the_other_kind(tmp_path: Path) -> None:
    rules = "acl allow bob@QPID access queue\nacl deny bob@QPID all\n" + ALL
    async with (
        broker(control(tmp_path, rules)) as made,
        session_of(made, "ann") as owner,
        session_of(made, "bob") as session,
    ):
        await prepare(owner)
        for name in ("place", "nowhere"):
            with pytest.raises(MessagingError, match=f"no exchange or queue '{name}'"):
                await session.sender(f"{name}; {{node: {{type: queue}}}}")
        with pytest.raises(MessagingError, match="no queue 'place': it is an exchange"):
            await owner.sender("place; {node: {type: queue}}")


async def test_who_may_do_nothing_with_a_queue_does_not_keep_others_from_it(tmp_path: Path) -> None:
    rules = "acl allow bob@QPID access queue\nacl allow bob@QPID access exchange\nacl deny bob@QPID all\n" + ALL
    address = "q; {create: always, node: {x-declare: {exclusive: true}}}"
    async with (
        broker(control(tmp_path, rules)) as made,
        session_of(made, "ann") as owner,
        session_of(made, "bob") as session,
    ):
        for attach in (session.sender, session.receiver):
            with pytest.raises(MessagingError, match="may not"):
                await attach(address)
            await (await owner.receiver("q")).close()
