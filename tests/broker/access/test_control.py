"""A broker with a file of rules, and clients that log in."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from broker.management.managed import Raised
from support.waiting import until

from qmf.acl.reader import AclError
from qmf.acl.rules import Lookup
from qmf.broker import Broker
from qmf.broker.access.control import AclFileError, FileAccessControl
from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import ConnectError, MessagingError, UnauthorizedAccess
from qmf.messaging.message import Message
from qmf.models.acl import console as acl
from qmf.models.broker import console as remote

#: What consoles need.
CONSOLE = """
group operators ann@QPID
acl allow operators access
acl allow operators create queue name=qmf-*
acl allow operators consume queue name=qmf-*
acl allow operators delete queue name=qmf-*
acl allow operators bind exchange name=qmf.*
acl allow operators bind exchange name=amq.direct
acl allow operators publish exchange name=qmf.*
"""

USERS = {"ann": "a", "bob": "b"}


def control(folder: Path, text: str, **options: int) -> FileAccessControl:
    file = folder / "users.acl"
    file.write_text(text)
    return FileAccessControl(file, **options)  # type: ignore[arg-type]


@asynccontextmanager
async def broker(access: FileAccessControl, management: float | None = None) -> AsyncIterator[Broker]:
    async with Broker(port=0, users=USERS, access=access, queues=["q"], management=management) as made:
        yield made


@asynccontextmanager
async def session_of(made: Broker, user: str) -> AsyncIterator[aio.Session]:
    connection = aio.Connection(f"amqp://{user}:{USERS[user]}@127.0.0.1:{made.port}")
    await connection.open()
    try:
        yield await connection.session()
    finally:
        await connection.close()


async def test_links(tmp_path: Path) -> None:
    access = control(tmp_path, "acl allow bob@QPID access\nacl allow bob@QPID consume queue\n")
    async with broker(access) as made, session_of(made, "bob") as session:
        await session.receiver("q")
        with pytest.raises(UnauthorizedAccess, match="publish exchange '': the ACL denies it"):
            await session.sender("q")
    async with broker(access) as made, session_of(made, "ann") as session:
        with pytest.raises(UnauthorizedAccess, match="'q': the ACL denies it"):
            await session.receiver("q")
        # Whether a node is there can't be found out.
        with pytest.raises(UnauthorizedAccess, match="'none': the ACL denies it"):
            await session.receiver("none")
    assert access.denials.requests >= 3


async def test_messages(tmp_path: Path) -> None:
    text = "acl allow all access\nacl allow all publish exchange name=amq.topic routingkey=${user}.#\n"
    async with broker(control(tmp_path, text)) as made, session_of(made, "bob") as session:
        sender = await session.sender("amq.topic")
        await sender.send(Message("x", subject="bob.news"), sync=True)
        with pytest.raises(MessagingError, match=r"publish exchange 'amq.topic': the ACL denies it"):
            await sender.send(Message("x", subject="ann.news"), sync=True)


async def test_new_rules_apply_at_once(tmp_path: Path) -> None:
    access = control(tmp_path, "acl allow all all\n")
    async with broker(access) as made, session_of(made, "bob") as session:
        sender = await session.sender("amq.topic")
        await sender.send(Message("x", subject="a"), sync=True)
        access.file.write_text("acl deny bob@QPID publish exchange name=amq.topic\nacl allow all all\n")
        access.reload()
        with pytest.raises(MessagingError, match="the ACL denies it"):
            await sender.send(Message("x", subject="a"), sync=True)


def test_a_wrong_file_keeps_the_old_rules(tmp_path: Path) -> None:
    access = control(tmp_path, "acl allow all all\n")
    before = access.rules
    access.file.write_text("acl allow\n")
    with pytest.raises(AclError, match=r"users.acl:1: Line : 1, Insufficient tokens"):
        access.reload()
    access.file.unlink()
    with pytest.raises(AclFileError, match="Unable to open ACL file"):
        access.reload()
    assert access.rules is before


async def test_hosts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    access = control(tmp_path, "acl deny bob@QPID create connection host=127.0.0.1\nacl allow all all\n")
    async with broker(access) as made:
        async with session_of(made, "ann"):
            pass
        with pytest.raises(ConnectError, match="the ACL denies it"):
            async with session_of(made, "bob"):
                pass
    assert access.denials.connections == 1
    assert "connection of bob@QPID from 127.0.0.1 refused: deny: line 1" in caplog.text


async def test_quotas_of_connections(tmp_path: Path) -> None:
    access = control(tmp_path, "quota connections 2 ann@QPID\nacl allow all all\n", connections_per_user=1)
    async with broker(access) as made:
        async with session_of(made, "ann"), session_of(made, "ann"), session_of(made, "bob"):
            for user, limit in (("ann", 2), ("bob", 1)):
                with pytest.raises(ConnectError, match=f"limit of {limit} connections of user '{user}@QPID'"):
                    async with session_of(made, user):
                        pass
        await until(lambda: not made.connections, "the end of all connections")
        async with session_of(made, "bob"):
            pass
    assert access.denials.connections == 2


async def test_quotas_of_queues(tmp_path: Path) -> None:
    access = control(tmp_path, "acl allow all all\n", queues_per_user=1)
    async with broker(access) as made:
        async with session_of(made, "ann") as session:
            await session.receiver("#")
            with pytest.raises(UnauthorizedAccess, match="limit of 1 queues of user 'ann@QPID'"):
                await session.sender("one; {create: always}")
            async with session_of(made, "bob") as other:
                await other.sender("two; {create: always}")
        await until(lambda: not made.connections, "the end of the temporary queue")
        async with session_of(made, "ann") as session:
            await session.sender("three; {create: always}")
    assert access.denials.queues == 1


@asynccontextmanager
async def console(made: Broker) -> AsyncIterator[Client]:
    async with Client(f"amqp://ann:a@127.0.0.1:{made.port}", settle=0.0) as client:
        await client.locate(settle=0.0)
        await until(lambda: client.agents, "the agent of the broker")
        yield client


async def test_management(tmp_path: Path) -> None:
    access = control(tmp_path, f"acl deny-log bob@QPID all\n{CONSOLE}", queues_per_user=7)
    async with broker(access, 3600.0) as made, console(made) as client:
        events = Raised(client)
        (managed,) = await client.objects(acl.Acl)
        assert (managed.policyFile, managed.enforcingAcl, managed.transferAcl) == (str(access.file), True, True)
        assert (managed.maxQueuesPerUser, managed.aclDenyCount) == (7, 0)
        found = await managed.Lookup("bob@QPID", "create", "queue", "q", {"durable": "true"})
        assert found.result == "deny-log"
        assert (await managed.LookupPublish("ann@QPID", "qmf.default.topic", "x")).result == "allow"
        with pytest.raises(RemoteError, match="AclLookup invalid name : Acl illegal action name: eat"):
            await managed.Lookup("bob@QPID", "eat", "queue", "q", {})
        async with session_of(made, "bob") as session:
            with pytest.raises(UnauthorizedAccess):
                await session.receiver("q")
        await until(lambda: events("deny", userId="bob@QPID"), "the event")
        access.file.write_text("acl deny\n")
        with pytest.raises(RemoteError, match="Insufficient tokens"):
            await managed.reloadACLFile()
        await until(lambda: events("fileLoadFailed"), "the event")
        access.file.write_text(f"# changed\n{CONSOLE}")
        await managed.reloadACLFile()
        await until(lambda: events("fileLoaded"), "the event")
        assert events("fileLoaded") == [{"userId": "ann"}]


async def test_events_of_rights_that_are_lost(tmp_path: Path) -> None:
    access = control(tmp_path, f"acl allow bob@QPID all\n{CONSOLE}")
    async with broker(access, 3600.0) as made, console(made) as client, session_of(made, "bob") as session:
        events = Raised(client)
        await session.receiver("q")
        for event, rule in (
            ("linkRevoked", "consume queue name=q"),
            ("connectionRevoked", "create connection host=all"),
        ):
            access.file.write_text(f"acl deny bob@QPID {rule}\nacl allow bob@QPID all\n{CONSOLE}")
            access.reload()
            await until(partial(events, event, userId="bob"), f"the event {event}")


async def test_methods_and_queries_are_asked_for(tmp_path: Path) -> None:
    denied = "acl deny all access method name=shutdown\nacl deny all access query schemaclass=connection\n"
    async with broker(control(tmp_path, denied + CONSOLE), 3600.0) as made, console(made) as client:
        (managed,) = await client.objects(remote.Broker)
        with pytest.raises(RemoteError, match="access method 'shutdown': the ACL denies it"):
            await managed.shutdown()
        with pytest.raises(RemoteError, match="the ACL denies it"):
            await client.objects(remote.Connection)


def test_decisions_are_logged_as_by_qpidd(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    access = control(tmp_path, "acl allow-log all purge queue\nacl deny-log all all\n")
    for action in ("purge", "consume"):
        lookup = Lookup("bob@QPID", action, "queue", "q")
        access.report(lookup, access.rules.decide(lookup))
    assert "ACL Allow id:bob@QPID action:purge ObjectType:queue Name:q" in caplog.messages
    assert "ACL Deny id:bob@QPID action:consume ObjectType:queue Name:q" in caplog.messages


async def test_what_is_durable_is_kept_with_rules_as_well(tmp_path: Path) -> None:
    access = control(tmp_path, "acl allow all all\n")
    for expected in (None, "x"):
        async with (
            Broker(port=0, access=access, data_dir=tmp_path / "data") as made,
            aio.Connection(made.url) as connection,
        ):
            session = await connection.session()
            if expected is None:
                sender = await session.sender("kept; {create: always, node: {durable: true}}")
                await sender.send(Message("x", durable=True), timeout=30)
            else:
                assert (await (await session.receiver("kept")).fetch(timeout=30)).content == expected
                await session.acknowledge()
